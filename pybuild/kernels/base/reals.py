"""Conversions between integers and real numbers, and from float16 to float32: their
meaning and their names. Their C is in crt/reals.h: instructions of an FPU or of Helium,
or comparisons.
"""

from __future__ import annotations

from collections.abc import Callable

from pybuild.ir.loop import (
    FLOAT32,
    INT32,
    Bitcast,
    Expr,
    Intrin,
    Lane,
    Lanes,
    Operand,
    Var,
    VectorType,
    cast,
    const,
    equal,
    i32,
    maximum,
    minimum,
    select,
    wide,
)
from pybuild.kernels.base.vectors import WORDS

HEADER = "crt/reals.h"
LANES = 4
REALS = VectorType(FLOAT32, LANES)
_X, _V, _WORDS = Var("x", FLOAT32), Var("v", REALS), Var("v", WORDS)
_LOW, _HIGH, _N = (Var(name, INT32) for name in ("low", "high", "n"))
_BEYOND, _INTEGERS = 2.0**31, 2.0**23  # from where on all numbers are integers


def _real(value: float) -> Expr:
    return const(value, FLOAT32)


def _held(x: Expr) -> Expr:
    """Convert toward zero, clamped to int32; NaN becomes 0."""
    inside = select(x < _BEYOND, x, _real(0.0))
    inside = select(inside < -_BEYOND, _real(-_BEYOND), inside)
    return select(x >= _BEYOND, const(2**31 - 1), i32(inside))


def _few(x: Expr, rounded: Callable[[Expr], Expr]) -> Expr:
    """Round a number that may not fit an integer."""
    inside = select(x < _INTEGERS, select(x < -_INTEGERS, _real(0.0), x), _real(0.0))
    fits = select(x < _INTEGERS, x > -_INTEGERS, x < -_INTEGERS)
    return _held(select(fits, rounded(inside), x))


def _even(x: Expr) -> Expr:
    far = select(x < 0.0, _real(-_INTEGERS), _real(_INTEGERS))
    return (x + far) - far


def _away(x: Expr) -> Expr:
    whole = cast(i32(x), FLOAT32)
    up = select(x - whole >= 0.5, whole + 1.0, whole)
    return select(x - whole <= -0.5, whole - 1.0, up)


def _each(meaning: Callable[[Expr], Expr], vector: Var = _V) -> Expr:
    return Lanes(tuple(meaning(Lane(vector, i)) for i in range(LANES)))


# the next integer toward zero, held within int32; of NaN 0
WHOLE = Intrin(
    "crt_whole", (_X,), _held(_X), c="crt_whole({0})", llvm="llvm.fptosi.sat.i32.f32"
)
# the nearest integer, ties to even, likewise
WHOLE_EVEN = Intrin(
    "crt_whole_even",
    (_X,),
    _few(_X, _even),
    c="crt_whole_even({0})",
    feature="dsp",
    llvm="crt_whole_even",
)


def vector(name: str, params: tuple[Var, ...], result: Expr) -> Intrin:
    """A function of the module on a target with "mve": llvm_declared.py."""
    given = ", ".join(f"{{{i}}}" for i in range(len(params)))
    return Intrin(name, params, result, c=f"{name}({given})", feature="mve", llvm=name)


def _steps(rounded: Callable[[Expr], Expr]) -> Expr:
    def held(v: Expr) -> Expr:
        return minimum(maximum(_few(v, rounded), _LOW), _HIGH) + _N

    return _each(held)


_GIVEN = (_V, _LOW, _HIGH, _N)
# in each lane: v / x; the nearest integer, ties away from zero, or to even, held within
# low and high, and then more
QUOTIENT4 = vector("crt_quotient4", (_V, _X), _each(lambda v: v / _X))
STEPS_AWAY4 = vector("crt_steps_away4", _GIVEN, _steps(_away))
STEPS_EVEN4 = vector("crt_steps_even4", _GIVEN, _steps(_even))
# in each lane: v as a real number, times x
REAL4 = vector(
    "crt_real4", (_WORDS, _X), _each(lambda v: cast(v, FLOAT32) * _X, _WORDS)
)

_BOTH, _BITS, _SIGN, _BASE = (Var(n, INT32) for n in ("h", "bits", "sign", "base"))
_SMALL = Var("small", FLOAT32)
_LEAST = 2.0**-14  # of a float16 that is normal


def _widened(both: Expr) -> tuple[Expr, tuple[tuple[Var, Expr], ...]]:
    """Convert the float16 in the lower half of a word to float32, by changing the
    exponent's bias. A subnormal is computed as the difference of two normal numbers,
    because vectors treat subnormal float32 as 0; infinity and NaN are kept."""
    whole = select(_BITS < 1 << 23, Bitcast(_SMALL, INT32), _BITS + _BASE)
    return Bitcast(whole | _SIGN, FLOAT32), (
        (_BITS, (both & 0x7FFF) << 13),
        (_SIGN, select(equal(both & 0x8000, 0), const(0), const(-(2**31)))),
        (_BASE, select(_BITS < 0x7C00 << 13, const(0x38000000), const(0x70000000))),
        (_SMALL, Bitcast((_BITS & 0x7FFFFF) + 0x38800000, FLOAT32) - _LEAST),
    )


def _half(name: str, both: Expr, doc: str) -> Intrin:
    """A function of the module on every target: llvm_declared.py."""
    spelled = f"{name}({{0}})"
    return Intrin(name, (_BOTH,), *_widened(both), c=spelled, llvm=name, doc=doc)


# the float32 of the float16 in a word's lower half, and in its upper half
FROM_HALF = _half("crt_from_half", _BOTH, "The float32 of float16 bits.")
FROM_HIGH_HALF = _half(
    "crt_from_high_half", _BOTH >> 16, "The float32 of the float16 in the upper half."
)


def _halves(half: Intrin) -> Expr:
    """Apply `half` to each word."""
    return _each(half, _WORDS)


# in each lane: the same of a word
FROM_HALVES4 = vector("crt_from_halves4", (_WORDS,), _halves(FROM_HALF))
FROM_HIGH_HALVES4 = vector("crt_from_high_halves4", (_WORDS,), _halves(FROM_HIGH_HALF))
# by which a kernel is seen to need HEADER
NAMES = frozenset(one.name for one in list(vars().values()) if isinstance(one, Intrin))


def reals_at(pointer: Expr, index: Operand = 0) -> Expr:
    """Loads four floats."""
    return wide(pointer, index, REALS)
