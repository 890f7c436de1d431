"""Rounding rules on vectors of four words: their meaning and their names. Their C is in
crt/rounds.h: Cortex-M55's instructions, or loops.
"""

from __future__ import annotations

from collections.abc import Callable

from pybuild.ir.loop import (
    FLOAT32,
    INT32,
    INT64,
    Bitcast,
    Expr,
    Intrin,
    Lane,
    Lanes,
    Var,
    binary,
    cast,
    const,
    i32,
    i64,
    maximum,
    minimum,
    select,
)
from pybuild.kernels.base.vectors import EVEN4, WORDS

_V, _M, _N = (Var(name, WORDS) for name in "vmn")
_LOW, _HIGH, _MORE = (Var(name, INT32) for name in ("low", "high", "more"))
_INT32 = 1 << 31
# 1.5 * 2^23: adding it leaves the integer, rounded to even, in the lowest bits
_MAGIC, _MAGIC_BITS = 12582912.0, 0x4B400000
HEADER = "crt/rounds.h"


def _lanes(meaning: Callable[..., Expr], *vectors: Var) -> Expr:
    """Return a vector whose lanes are `meaning` of the operands' lanes."""
    return Lanes(tuple(meaning(*(Lane(v, i) for v in vectors)) for i in range(4)))


def _intrin(name: str, params: tuple[Var, ...], result: Expr) -> Intrin:
    """Define an intrinsic; on a target with "mve" it is a function of the module:
    llvm_declared.py."""
    given = ", ".join(f"{{{i}}}" for i in range(len(params)))
    return Intrin(name, params, result, c=f"{name}({given})", feature="mve", llvm=name)


def _bit(condition: Expr) -> Expr:
    return select(condition, const(1, INT64), const(0, INT64))


def low_byte(n: Expr) -> Expr:
    return ((n & 255) ^ 128) - 128


def _product(v: Expr, m: Expr) -> Expr:
    return i64(v) * i64(m)


def lift(v: Expr, n: Expr) -> Expr:
    value = i64(v) * (const(1, INT64) << i64(n))
    return i32(minimum(maximum(value, -_INT32), _INT32 - 1))


def twice(v: Expr, m: Expr, n: Expr) -> Expr:
    high = (_product(v, m) + (1 << 30)) >> const(31, INT64)
    half = (const(1, INT64) << i64(0 - n)) >> const(1, INT64)
    below = _bit(high < 0) * _bit(n < 0)
    return i32((high + half - below) >> i64(0 - n))


def twice_down(v: Expr, m: Expr, n: Expr) -> Expr:
    return twice(v, m, low_byte(n))


def once(v: Expr, m: Expr, n: Expr) -> Expr:
    n = low_byte(n)
    high = i32(_product(v, m) >> const(32, INT64))
    return (high + (const(1) << (-1 - n))) >> (0 - n)


def away(v: Expr, m: Expr, n: Expr) -> Expr:
    n = low_byte(n)
    product = _product(v, m)
    half = const(1, INT64) << i64(31 - n)
    return i32((product + half - _bit(product < 0)) >> i64(32 - n))


def scaled(v: Expr, scale: Expr) -> Expr:
    value = cast(v, FLOAT32) * Bitcast(scale, FLOAT32)
    held = minimum(maximum(value, -512.0), 511.0)
    return Bitcast(held + _MAGIC, INT32) - _MAGIC_BITS


# in each lane: v * 2^n, held within int32
LIFT4 = _intrin("crt_lift4", (_V, _N), _lanes(lift, _V, _N))
# in each lane: v * m / 2^31, ties up; then / 2^-n, ties away from zero
TWICE4 = _intrin("crt_twice4", (_V, _M, _N), _lanes(twice, _V, _M, _N))
# the same, where n, the low byte of a word, is below 0
TWICE_DOWN4 = _intrin("crt_twice_down4", (_V, _M, _N), _lanes(twice_down, _V, _M, _N))
# in each lane: v * m / 2^(32 - n), n < 0, the low byte of a word; ties up, or away from
# zero
ONCE4 = _intrin("crt_once4", (_V, _M, _N), _lanes(once, _V, _M, _N))
AWAY4 = _intrin("crt_away4", (_V, _M, _N), _lanes(away, _V, _M, _N))
# in each lane: v times the float with these bits, ties to even; from -512 to 511
SCALED4 = _intrin("crt_scaled4", (_V, _M), _lanes(scaled, _V, _M))


def _all(value: Expr) -> Expr:
    return Lanes((value,) * 4)


def _native(name: str, params: tuple[Var, ...], result: Expr) -> Intrin:
    given = ", ".join(f"{{{i}}}" for i in range(len(params)))
    return Intrin(name, params, result, c=f"{name}({given})")


# in each lane: v and what m holds above its low byte, or above its five low bits
ABOVE_BYTE4 = _native("crt_above_byte4", (_V, _M), _V + (_M >> _all(const(8))))
ABOVE_FIVE4 = _native("crt_above_five4", (_V, _M), _V + (_M >> _all(const(5))))
# words whose low byte is that number of five bits less 32
FIVE_BELOW = 224
FIVE_LOW4 = _native("crt_five_low4", (_V,), _V | _all(const(FIVE_BELOW)))


def _hold() -> Expr:
    held = binary("min", binary("max", _V, _all(_LOW)), _all(_HIGH))
    return held + _all(_MORE)


# in each lane: v, held within low and high, and then more
HOLD4 = Intrin(
    "crt_hold4", (_V, _LOW, _HIGH, _MORE), _hold(), c="crt_hold4({0}, {1}, {2}, {3})"
)


def lane(name: str, index: int) -> Intrin:
    return Intrin(name, (_V,), Lane(_V, index), c=f"{name}({{0}})")


# one lane, of those before the last
LANE = (lane("crt_first4", 0), lane("crt_second4", 1), lane("crt_third4", 2))
# by which a kernel is seen to need HEADER
NAMES = frozenset(
    one.name
    for one in (
        EVEN4, LIFT4, TWICE4, TWICE_DOWN4, ONCE4, AWAY4, SCALED4, HOLD4,
        ABOVE_BYTE4, ABOVE_FIVE4, FIVE_LOW4, *LANE,
    )
)  # fmt: skip
