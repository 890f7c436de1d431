"""Operations on vectors of eight int16 in fixed point: their meaning and their names.
Their C is in crt/eights.h: Cortex-M55's instructions, or loops.
"""

from __future__ import annotations

from collections.abc import Callable

from pybuild.ir.loop import (
    INT16,
    INT32,
    UINT16,
    Expr,
    Intrin,
    Lane,
    Lanes,
    PointerType,
    Var,
    cast,
    const,
    i32,
    load,
    maximum,
    minimum,
    select,
)
from pybuild.kernels.base.vectors import HALVES, WORDS

HEADER = "crt/eights.h"
_X, _Y, _Z = (Var(name, HALVES) for name in "xyz")
_V = Var("v", WORDS)
_N, _M = Var("n", INT32), Var("m", INT32)


def _intrin(name: str, params: tuple[Var, ...], result: Expr, llvm: str = "") -> Intrin:
    """Define an intrinsic; on a target with "mve" it is a function of the module:
    llvm_eights.py."""
    given = ", ".join(f"{{{i}}}" for i in range(len(params)))
    return Intrin(
        name, params, result, c=f"{name}({given})", feature="mve", llvm=llvm or name
    )


def _each(meaning: Callable[..., Expr], *vectors: Var) -> Expr:
    """Return a vector whose lanes are `meaning` of the operands' lanes."""
    lanes = ([i32(Lane(v, i)) for v in vectors] for i in range(8))
    return Lanes(tuple(cast(meaning(*some), INT16) for some in lanes))


def _held(value: Expr) -> Expr:
    return minimum(maximum(value, -32768), 32767)


def _high(x: Expr, y: Expr) -> Expr:
    return _held((x * y + (1 << 14)) >> const(15))


# in each lane: n; x + y; x - y; x + 4 y
ALL8 = _intrin("crt_all8", (_N,), Lanes((cast(_N, INT16),) * 8))
PLUS8 = _intrin("crt_plus8", (_X, _Y), _each(lambda x, y: x + y, _X, _Y))
MINUS8 = _intrin("crt_minus8", (_X, _Y), _each(lambda x, y: x - y, _X, _Y))
FOURFOLD8 = _intrin("crt_fourfold8", (_X, _Y), _each(lambda x, y: x + y * 4, _X, _Y))
# in each lane: x + y, held within int16
HELD8 = _intrin("crt_held8", (_X, _Y), _each(lambda x, y: _held(x + y), _X, _Y))
# in each lane: x * y in Q0.15, rounded, held within int16; x * n
HIGH8 = _intrin(
    "crt_high8", (_X, _Y), _each(_high, _X, _Y), "llvm.arm.mve.vqrdmulh.v8i16"
)
HIGH_ALL8 = _intrin("crt_high_all8", (_X, _N), _each(lambda x: _high(x, _N), _X))
# in each lane: (x + y + 1) / 2; (x + 2) / 4; rounded down
MIDDLE8 = _intrin(
    "crt_middle8", (_X, _Y), _each(lambda x, y: (x + y + 1) >> const(1), _X, _Y)
)
FOURTH8 = _intrin("crt_fourth8", (_X,), _each(lambda x: (x + 2) >> const(2), _X))
# in each lane: the less of x and -x
BELOW8 = _intrin("crt_below8", (_X,), _each(lambda x: minimum(x, const(0) - x), _X))
# in each lane: the 13 - n low bits of x, n more bits behind them, less 2^12
NEAR8 = _intrin(
    "crt_near8",
    (_X, _N),
    _each(lambda x: ((x & (const(0x1FFF) >> _N)) << _N) - (1 << 12), _X),
)
# in each lane: x, or x * m in Q0.15, rounded, where bits n of y are 0
TIMES_WHERE8 = _intrin(
    "crt_times_where8",
    (_X, _Y, _N, _M),
    _each(lambda x, y: select((y & _N) < 1, _high(x, _M), x), _X, _Y),
)
# in each lane: y, or z where x is below 0; x, or 0 where y is below n; x, or n where y
# is 0
BY_SIGN8 = _intrin(
    "crt_by_sign8", (_X, _Y, _Z), _each(lambda x, y, z: select(x < 0, z, y), _X, _Y, _Z)
)
ABOVE8 = _intrin(
    "crt_above8", (_X, _Y, _N), _each(lambda x, y: select(y < _N, const(0), x), _X, _Y)
)
AT_ZERO8 = _intrin(
    "crt_at_zero8",
    (_X, _Y, _N),
    _each(lambda x, y: select(y * y < 1, _N, x), _X, _Y),
)


def _products(name: str, odd: int) -> Intrin:
    lanes = tuple(i32(Lane(_X, i)) * i32(Lane(_Y, i)) for i in range(odd, 8, 2))
    return _intrin(name, (_X, _Y), Lanes(lanes))


# products of the first of each two lanes, and of the second
PRODUCTS_EVEN8 = _products("crt_products_even8", 0)
PRODUCTS_ODD8 = _products("crt_products_odd8", 1)


def _away(v: Expr) -> Expr:
    return (v + (const(1) << (_N - 1)) + (v >> 31)) >> _N


# in each lane: v / 2^n, n from 1, ties away from zero
AWAY_ALL4 = _intrin(
    "crt_away_all4", (_V, _N), Lanes(tuple(_away(Lane(_V, i)) for i in range(4)))
)
_POINTS = Var("points", PointerType(UINT16))
_D, _TOP = Var("d", WORDS), Var("top", INT32)


def _between(d: Expr) -> Expr:
    size = maximum(d, const(0) - d)
    cell = size >> _N
    at = minimum(cell, 254)
    first, after = (i32(load(_POINTS, at + i)) for i in (0, 1))
    found = first * (const(1) << _N) + (size & ((const(1) << _N) - 1)) * (after - first)
    t = select(cell < 255, found, _TOP * (const(1) << _N))
    end = _N + select(_N < 9, const(0), const(1))
    top = select(_N < 9, const(1 << 23), const(1 << 25))
    whole = select(d < 0, top - 1 - t, t - select(_N < 9, const(1 << 23), const(0)))
    return (whole + (const(1) << (end - 1))) >> end


# in each lane: what a curve is, d steps of 2^-n from its middle, between points from
# there on; behind the last one top; of n 8 tanh, of n 9 logistic, in Q0.15
BETWEEN4 = _intrin(
    "crt_curve4",
    (_POINTS, _D, _N, _TOP),
    Lanes(tuple(_between(Lane(_D, i)) for i in range(4))),
)
# by which a kernel is seen to need HEADER
NAMES = frozenset(v.name for v in list(vars().values()) if isinstance(v, Intrin))
