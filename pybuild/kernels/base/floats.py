"""Arithmetic of four floats, as kernels for Cortex-M55 spell it: its meaning and its
names. Its C is in crt/floats.h, its LLVM IR in emit/kernels/llvm_floats.py.
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
    Var,
    cast,
    maximum,
    minimum,
)
from pybuild.kernels.base.reals import LANES, REALS, vector
from pybuild.kernels.base.vectors import WORDS

HEADER = "crt/floats.h"
_X, _V, _Q, _MOST = (
    Var("x", FLOAT32), Var("v", REALS), Var("x", REALS), Var("most", WORDS)
)  # fmt: skip
_N = Var("n", INT32)
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
OF_WORDS4 = vector("crt_of_words4", (_MOST,), _lanes(lambda v: cast(v, FLOAT32), _MOST))


def _above(bits: Callable[[Expr], Expr]) -> Expr:
    """In each lane: no less than the bits of a float, or what is made of them."""
    return _lanes(lambda m, v: maximum(m, bits(Bitcast(v, INT32))), _MOST, _V)


# in each lane: no less than the bits of |v|, of v and of -v
REACH4 = vector("crt_reach4", (_MOST, _V), _above(lambda bits: bits & 0x7FFFFFFF))
ABOVE4 = vector("crt_above4", (_MOST, _V), _above(lambda bits: bits))
BELOW4 = vector("crt_below4", (_MOST, _V), _above(lambda bits: bits ^ -(2**31)))
# the greatest of n and all lanes
GREATEST4 = vector(
    "crt_greatest4",
    (_N, _MOST),
    maximum(
        maximum(_N, maximum(Lane(_MOST, 0), Lane(_MOST, 1))),
        maximum(Lane(_MOST, 2), Lane(_MOST, 3)),
    ),
)
# in each lane: v + w, v - w, v * w; x
ADD_REALS4 = vector("crt_add_reals4", (_V, _W), _lanes(lambda v, w: v + w, _V, _W))
SUB_REALS4 = vector("crt_sub_reals4", (_V, _W), _lanes(lambda v, w: v - w, _V, _W))
MUL_REALS4 = vector("crt_mul_reals4", (_V, _W), _lanes(lambda v, w: v * w, _V, _W))
ALL_REALS4 = vector("crt_all_reals4", (_X,), Lanes((_X,) * LANES))
# in each lane: v + x * w, rounded twice, of one x or of an x of each lane; v, but no
# less or no more than x
ADD_PRODUCT4 = vector("crt_add_product4", (_V, _X, _W), _lanes(_product, _V, _X, _W))
ADD_PRODUCTS4 = vector("crt_add_products4", (_V, _Q, _W), _lanes(_product, _V, _Q, _W))
AT_LEAST4 = vector("crt_at_least4", (_V, _X), _lanes(maximum, _V, _X))
AT_MOST4 = vector("crt_at_most4", (_V, _X), _lanes(minimum, _V, _X))
# by which a kernel is seen to need HEADER
NAMES = {one.name for one in list(vars().values()) if isinstance(one, Intrin)}
