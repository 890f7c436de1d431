"""Operations on vectors of 16 words or floats: their meaning and their names. Their C
is in crt/wide.h, lane by lane; their LLVM IR in emit/kernels/llvm_wide.py.
"""

from __future__ import annotations

from collections.abc import Callable

from pybuild.dtype import DType
from pybuild.ir.loop import (
    FLOAT32,
    INT8,
    INT32,
    Expr,
    Intrin,
    Lane,
    Lanes,
    Operand,
    Var,
    VectorType,
    cast,
    i32,
    maximum,
    minimum,
    wide,
)
from pybuild.kernels.base.intrin import MULHI
from pybuild.kernels.base.vector_rounds import away, lift, once, scaled, twice

LANES = 16
TAPS = 4  # values of a lane
WORDS = VectorType(INT32, LANES)
BYTES = VectorType(INT8, LANES * TAPS)
FEW = VectorType(INT8, LANES)
REALS = VectorType(FLOAT32, LANES)
HEADER = "crt/wide.h"
FEATURE = "wide"

_V, _U, _M = (Var(name, WORDS) for name in "vum")
_X, _W = Var("x", BYTES), Var("w", BYTES)
_FEW = Var("x", FEW)
_R, _Q, _S = (Var(name, REALS) for name in "vxw")
_REAL = Var("x", FLOAT32)
_N, _LOW, _HIGH, _MORE = (Var(name, INT32) for name in ("n", "low", "high", "more"))


def words_at(pointer: Expr, index: Operand = 0) -> Expr:
    """Load sixteen words."""
    return wide(pointer, index, WORDS)


def bytes_at(pointer: Expr, index: Operand = 0) -> Expr:
    """Load 64 bytes from any address."""
    return wide(pointer, index, BYTES)


def _intrin(name: str, params: tuple[Var, ...], result: Expr) -> Intrin:
    given = ", ".join(f"{{{i}}}" for i in range(len(params)))
    return Intrin(
        name, params, result, c=f"{name}({given})", feature=FEATURE, llvm=name
    )


def _each(meaning: Callable[..., Expr], *given: Var) -> Expr:
    """Return a vector whose lanes are `meaning` of the lanes of vectors, and of
    scalars."""
    return Lanes(
        tuple(
            meaning(*(v if isinstance(v.type, DType) else Lane(v, i) for v in given))
            for i in range(LANES)
        )
    )


def _unsigned(x: Expr) -> Expr:
    return i32(x) & 0xFF


def _dot(lane: int) -> Expr:
    total: Expr = Lane(_V, lane)
    for at in range(TAPS * lane, TAPS * (lane + 1)):
        total = total + _unsigned(Lane(_X, at)) * i32(Lane(_W, at))
    return total


def _held(v: Expr, low: Expr, high: Expr) -> Expr:
    return minimum(maximum(v, low), high)


# the four bytes of n, in each lane
SPREAD = _intrin(
    "crt_spread16",
    (_N,),
    Lanes(tuple(cast(_N >> 8 * (i % TAPS), INT8) for i in range(LANES * TAPS))),
)
# bytes without their sign: 128 more
FLIP = _intrin(
    "crt_flip16",
    (_FEW,),
    Lanes(tuple(cast(i32(Lane(_FEW, i)) ^ -128, INT8) for i in range(LANES))),
)
# in each lane: v + the sum of x * w over its four; x without a sign
DOT = _intrin("crt_dot4x16", (_V, _X, _W), Lanes(tuple(_dot(i) for i in range(LANES))))
# in each lane: v * 256 + u; the high half of the product; v + n
SCALE = _intrin("crt_scale16", (_V, _U), _each(lambda v, u: v * 256 + u, _V, _U))
HIGH = _intrin("crt_mulhi16", (_V, _U), _each(lambda v, u: MULHI(v, u), _V, _U))
ADD = _intrin("crt_add16", (_V, _N), _each(lambda v, n: v + n, _V, _N))
# in each lane: v >> n, held within low and high
NARROW = _intrin(
    "crt_narrow16",
    (_V, _N, _LOW, _HIGH),
    _each(lambda v, n, low, high: _held(v >> n, low, high), _V, _N, _LOW, _HIGH),
)
# in each lane: v, held within low and high, and then more
HOLD = _intrin(
    "crt_hold16",
    (_V, _LOW, _HIGH, _MORE),
    _each(lambda v, low, high, n: _held(v, low, high) + n, _V, _LOW, _HIGH, _MORE),
)
# as those of four lanes: vector_rounds.py
LIFT = _intrin("crt_lift16", (_V, _U), _each(lift, _V, _U))
TWICE = _intrin("crt_twice16", (_V, _M, _U), _each(twice, _V, _M, _U))
ONCE = _intrin("crt_once16", (_V, _M, _U), _each(once, _V, _M, _U))
AWAY = _intrin("crt_away16", (_V, _M, _U), _each(away, _V, _M, _U))
SCALED = _intrin("crt_scaled16", (_V, _M), _each(scaled, _V, _M))
# in each lane: v + x * w, rounded twice, of one x or of an x of each lane; v, but no
# less or no more than x
ADD_PRODUCT = _intrin(
    "crt_add_product16",
    (_R, _REAL, _S),
    _each(lambda v, x, w: v + x * w, _R, _REAL, _S),
)
ADD_PRODUCTS = _intrin(
    "crt_add_products16",
    (_R, _Q, _S),
    _each(lambda v, x, w: v + x * w, _R, _Q, _S),
)
AT_LEAST = _intrin("crt_at_least16", (_R, _REAL), _each(maximum, _R, _REAL))
AT_MOST = _intrin("crt_at_most16", (_R, _REAL), _each(minimum, _R, _REAL))
INTRINS = (
    SPREAD, FLIP, DOT, SCALE, HIGH, ADD, NARROW, HOLD, LIFT, TWICE, ONCE, AWAY, SCALED,
    ADD_PRODUCT, ADD_PRODUCTS, AT_LEAST, AT_MOST,
)  # fmt: skip
# by which a kernel is seen to need HEADER
NAMES = frozenset(one.name for one in INTRINS)
