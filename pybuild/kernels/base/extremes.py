"""The greater and the less of numbers side by side, in words and in vectors, as kernels
spell them: their meaning and their names. Their C is in crt/extremes.h.
"""

from __future__ import annotations

from collections.abc import Callable

from pybuild.ir.loop import (
    INT8,
    INT32,
    Expr,
    Intrin,
    Lane,
    Var,
    binary,
    cast,
    i32,
    maximum,
    minimum,
)
from pybuild.kernels.base.intrin import low_half, two_halves
from pybuild.kernels.base.vectors import HALVES, WORDS

HEADER = "crt/extremes.h"
_X, _W, _N = (Var(name, INT32) for name in ("x", "w", "n"))
_X8, _W8 = Var("x", HALVES), Var("w", HALVES)
_V, _U = Var("v", WORDS), Var("u", WORDS)
_Two = Callable[[Expr, Expr], Expr]


def _bytes(chosen: _Two) -> Expr:
    def byte(bits: int) -> Expr:
        return chosen(*(i32(cast(v >> bits, INT8)) for v in (_X, _W)))

    low = (byte(16) & 0xFF) * (1 << 16) + (byte(8) & 0xFF) * (1 << 8)
    return byte(24) * (1 << 24) + low + (byte(0) & 0xFF)


def _halves(chosen: _Two) -> Expr:
    low = chosen(low_half(_X), low_half(_W))
    return two_halves(chosen(_X >> 16, _W >> 16), low)


def _words(name: str, result: Expr) -> Intrin:
    """On a target with "dsp" a function of the module: llvm_declared.py."""
    return Intrin(name, (_X, _W), result, c=f"{name}({{0}}, {{1}})", feature="dsp",
                  llvm=name)  # fmt: skip


# of each two bytes, or halves, one
MIN_BYTES = _words("crt_min_bytes", _bytes(minimum))
MAX_HALVES = _words("crt_max_halves", _halves(maximum))
MIN_HALVES = _words("crt_min_halves", _halves(minimum))


def _vectors(name: str, params: tuple[Var, ...], result: Expr) -> Intrin:
    given = ", ".join(f"{{{i}}}" for i in range(len(params)))
    return Intrin(name, params, result, c=f"{name}({given})")


# in each lane: the greater, the less
MAX8 = _vectors("crt_max8", (_X8, _W8), binary("max", _X8, _W8))
MIN8 = _vectors("crt_min8", (_X8, _W8), binary("min", _X8, _W8))
MIN4 = _vectors("crt_min4", (_V, _U), binary("min", _V, _U))


def _most() -> Expr:
    most = i32(Lane(_X8, 0))
    for i in range(1, 8):
        most = maximum(most, i32(Lane(_X8, i)))
    return most


# the greatest of all lanes
MOST8 = _vectors("crt_most8", (_X8,), _most())
# by which a kernel is seen to need HEADER
NAMES = {v.name for v in list(vars().values()) if isinstance(v, Intrin)}
