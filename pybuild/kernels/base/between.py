"""Values between two points of a table, as kernels spell them: their meaning and their
names. Their C is in crt/between.h.
"""

from __future__ import annotations

from dataclasses import replace

from pybuild.ir.loop import (
    INT16,
    INT32,
    Expr,
    Intrin,
    Lane,
    Lanes,
    PointerType,
    Var,
    binary,
    const,
    i32,
    load,
    maximum,
    minimum,
)
from pybuild.kernels.base.intrin import low_half
from pybuild.kernels.base.vector_packs import GATHER_HALVES4
from pybuild.kernels.base.vectors import WORDS

HEADER = "crt/between.h"
_X, _N = Var("x", INT32), Var("n", INT32)
_V, _U, _PART = (Var(name, WORDS) for name in ("v", "u", "part"))


def _all(value: Expr) -> Expr:
    return Lanes((value,) * 4)


def _held(bits: int) -> Intrin:
    """Return x clamped to 0 and the largest number of so many bits."""
    name = f"crt_held_{bits}_bits"
    made = minimum(maximum(_X, 0), (1 << bits) - 1)
    return Intrin(name, (_X,), made, c=f"{name}({{0}})", feature="dsp",
                  llvm="llvm.arm.usat", trail=(bits,))  # fmt: skip


HELD14, HELD16, HELD17 = (_held(bits) for bits in (14, 16, 17))

_SHARES, _START = Var("shares", INT32), Var("start", INT32)
# start + x.low * shares.low + x.high * shares.high: DOT2 into another register
TWO_POINTS = Intrin(
    "crt_two_points",
    (_X, _SHARES, _START),
    _START + low_half(_X) * low_half(_SHARES) + (_X >> 16) * (_SHARES >> 16),
    c="crt_two_points({0}, {1}, {2})",
    feature="dsp",
    llvm="llvm.arm.smlad",
)


def _lanes(name: str, params: tuple[Var, ...], result: Expr) -> Intrin:
    given = ", ".join(f"{{{i}}}" for i in range(len(params)))
    return Intrin(name, params, result, c=f"{name}({given})")


# in each lane: v without its sign, n at most; v's bits that n has
SIZE4 = _lanes(
    "crt_size4",
    (_V, _N),
    binary(
        "min",
        binary("max", binary("max", _V, _all(const(0)) - _V), _all(const(0))),
        _all(_N),
    ),
)
BITS4 = _lanes("crt_bits4", (_V, _N), _V & _all(_N))
# in each lane: v * n + (u - v) * part
BETWEEN4 = _lanes(
    "crt_between4", (_V, _U, _PART, _N), _V * _all(_N) + (_U - _V) * _PART
)
_MINUS = _U >> _all(const(31))
# in each lane: v, with its sign changed where that of u is minus
SIGNED4 = _lanes("crt_signed4", (_V, _U), (_V ^ _MINUS) - _MINUS)
_FROM = Var("from", PointerType(INT16))
# GATHER_HALVES4 of a table that is never written
GATHER_POINTS4 = replace(
    GATHER_HALVES4,
    params=(_FROM, _V),
    result=Lanes(tuple(i32(load(_FROM, Lane(_V, i))) for i in range(4))),
)
# by which a kernel is seen to need HEADER
NAMES = {
    v.name
    for v in (HELD14, HELD16, HELD17, TWO_POINTS, SIZE4, BITS4, BETWEEN4, SIGNED4)
}
