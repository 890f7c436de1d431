"""Machine instructions for complex numbers of two int16, the real part in the low half.

Their C is in crt/pairs.h.
"""

from __future__ import annotations

from pybuild.ir.loop import INT32, Expr, Intrin, Var, maximum, minimum
from pybuild.kernels.base.intrin import low_half, two_halves

HEADER = "crt/pairs.h"
_X, _W, _ACC = (Var(name, INT32) for name in ("x", "w", "acc"))


def _held(value: Expr) -> Expr:
    return minimum(maximum(value, -32768), 32767)


def _two(name: str, spelling: str, high: Expr, low: Expr) -> Intrin:
    made = two_halves(high, low)
    return Intrin(name, (_X, _W), made, c=f"{name}({{0}}, {{1}})", feature="dsp",
                  llvm=f"llvm.arm.{spelling}")  # fmt: skip


_XL, _WL, _XH, _WH = low_half(_X), low_half(_W), _X >> 16, _W >> 16
# halves of sums and differences; turned: of x and w times i, whose real part is low
HALF_ADD2 = _two("crt_half_add2", "shadd16", (_XH + _WH) >> 1, (_XL + _WL) >> 1)
HALF_SUB2 = _two("crt_half_sub2", "shsub16", (_XH - _WH) >> 1, (_XL - _WL) >> 1)
HALF_ADD_TURNED = _two(
    "crt_half_add_turned", "shasx", (_XH + _WL) >> 1, (_XL - _WH) >> 1
)
HALF_SUB_TURNED = _two(
    "crt_half_sub_turned", "shsax", (_XH - _WL) >> 1, (_XL + _WH) >> 1
)
# the same, not halved but held within int16
HELD_ADD2 = _two("crt_held_add2", "qadd16", _held(_XH + _WH), _held(_XL + _WL))
HELD_SUB2 = _two("crt_held_sub2", "qsub16", _held(_XH - _WH), _held(_XL - _WL))
HELD_ADD_TURNED = _two(
    "crt_held_add_turned", "qasx", _held(_XH + _WL), _held(_XL - _WH)
)
HELD_SUB_TURNED = _two(
    "crt_held_sub_turned", "qsax", _held(_XH - _WL), _held(_XL + _WH)
)
# acc + parts of the product of complex numbers, in which no sum overflows
TIMES_REAL = Intrin(
    "crt_times_real",
    (_X, _W, _ACC),
    _ACC + (_XL * _WL - _XH * _WH),
    c="crt_times_real({0}, {1}, {2})",
    feature="dsp",
    llvm="llvm.arm.smlsd",
)
TIMES_IMAGINARY = Intrin(
    "crt_times_imaginary",
    (_X, _W, _ACC),
    _ACC + (_XL * _WH + _XH * _WL),
    c="crt_times_imaginary({0}, {1}, {2})",
    feature="dsp",
    llvm="llvm.arm.smladx",
)

NAMES = {v.name for v in list(vars().values()) if isinstance(v, Intrin)}
