"""Integers of real numbers, and back, as kernels spell them: their meaning and their
names. Their C is in crt/reals.h: an FPU's instructions, or Helium's, or comparisons.
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
    """Toward zero, held within int32; of NaN 0."""
    inside = select(x < _BEYOND, x, _real(0.0))
    inside = select(inside < -_BEYOND, _real(-_BEYOND), inside)
    return select(x >= _BEYOND, const(2**31 - 1), i32(inside))


def _few(x: Expr, rounded: Callable[[Expr], Expr]) -> Expr:
    """The rounding of a number that may not fit an integer."""
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


def _vector(name: str, params: tuple[Var, ...], result: Expr) -> Intrin:
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
QUOTIENT4 = _vector("crt_quotient4", (_V, _X), _each(lambda v: v / _X))
STEPS_AWAY4 = _vector("crt_steps_away4", _GIVEN, _steps(_away))
STEPS_EVEN4 = _vector("crt_steps_even4", _GIVEN, _steps(_even))
# in each lane: v as a real number, times x
REAL4 = _vector(
    "crt_real4", (_WORDS, _X), _each(lambda v: cast(v, FLOAT32) * _X, _WORDS)
)
_W = Var("w", REALS)


def _product(v: Expr, x: Expr, w: Expr) -> Expr:
    return v + x * w


def _lanes(meaning: Callable[..., Expr], *given: Var) -> Expr:
    """Of each lane what `meaning` makes of the lanes of vectors, and of scalars."""
    return Lanes(
        tuple(
            meaning(*(v if v is _X else Lane(v, i) for v in given))
            for i in range(LANES)
        )
    )


# in each lane: v as a real number
OF_WORDS4 = _vector(
    "crt_of_words4", (_WORDS,), _each(lambda v: cast(v, FLOAT32), _WORDS)
)
_MOST = Var("most", WORDS)


def _above(bits: Callable[[Expr], Expr]) -> Expr:
    """In each lane: no less than the bits of a float, or what is made of them."""
    return _lanes(lambda m, v: maximum(m, bits(Bitcast(v, INT32))), _MOST, _V)


# in each lane: no less than the bits of |v|, of v and of -v
REACH4 = _vector("crt_reach4", (_MOST, _V), _above(lambda bits: bits & 0x7FFFFFFF))
ABOVE4 = _vector("crt_above4", (_MOST, _V), _above(lambda bits: bits))
BELOW4 = _vector("crt_below4", (_MOST, _V), _above(lambda bits: bits ^ -(2**31)))
# the greatest of n and all lanes
GREATEST4 = _vector(
    "crt_greatest4",
    (_N, _MOST),
    maximum(
        maximum(_N, maximum(Lane(_MOST, 0), Lane(_MOST, 1))),
        maximum(Lane(_MOST, 2), Lane(_MOST, 3)),
    ),
)
# in each lane: v + w, v - w, v * w; x
ADD_REALS4 = _vector("crt_add_reals4", (_V, _W), _lanes(lambda v, w: v + w, _V, _W))
SUB_REALS4 = _vector("crt_sub_reals4", (_V, _W), _lanes(lambda v, w: v - w, _V, _W))
MUL_REALS4 = _vector("crt_mul_reals4", (_V, _W), _lanes(lambda v, w: v * w, _V, _W))
ALL_REALS4 = _vector("crt_all_reals4", (_X,), Lanes((_X,) * LANES))
# in each lane: v + x * w, rounded twice, of one x or of an x of each lane; v, but no
# less or no more than x
ADD_PRODUCT4 = _vector("crt_add_product4", (_V, _X, _W), _lanes(_product, _V, _X, _W))
_Q = Var("x", REALS)
ADD_PRODUCTS4 = _vector("crt_add_products4", (_V, _Q, _W), _lanes(_product, _V, _Q, _W))
AT_LEAST4 = _vector("crt_at_least4", (_V, _X), _lanes(maximum, _V, _X))
AT_MOST4 = _vector("crt_at_most4", (_V, _X), _lanes(minimum, _V, _X))
# by which a kernel is seen to need HEADER
NAMES = frozenset(
    one.name
    for one in (
        WHOLE, WHOLE_EVEN, QUOTIENT4, STEPS_AWAY4, STEPS_EVEN4, REAL4, ADD_PRODUCT4,
        ADD_PRODUCTS4, AT_LEAST4, AT_MOST4, ADD_REALS4, SUB_REALS4, MUL_REALS4,
        ALL_REALS4, OF_WORDS4, REACH4, ABOVE4, BELOW4, GREATEST4,
    )
)  # fmt: skip


def reals_at(pointer: Expr, index: Operand = 0) -> Expr:
    """Loads four floats."""
    return wide(pointer, index, REALS)
