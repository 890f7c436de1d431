"""Operations that pack vectors of words into halves and bytes, and epilogues whose
numbers are the same in all four lanes: their meaning and their names. Their C is in
crt/packs.h: Cortex-M55's instructions, or loops.
"""

from __future__ import annotations

from dataclasses import replace

from pybuild.ir.loop import (
    INT8,
    INT16,
    INT32,
    INT64,
    Bitcast,
    Expr,
    Intrin,
    Lane,
    Lanes,
    PointerType,
    Var,
    binary,
    cast,
    const,
    i32,
    i64,
    load,
    maximum,
    minimum,
)
from pybuild.kernels.base.vector_rounds import (
    LANE,
    lane,
    low_byte,
    once,
    twice_down,
)
from pybuild.kernels.base.vectors import BYTES, HALVES, LANES, WORDS

__all__ = [
    "BYTE8", "FOURTH", "GATHER8", "GATHER_HALVES4", "HEADER", "HOLD8", "LANE",
    "LANES8", "LANES_NOW", "MORE8", "NAMES", "ODD4", "ONCE_ALL4", "PACK8", "PACK16",
    "PLACES8", "RIGHT4", "SCALE_ALL4", "SCALE_KEPT4", "SHIFTED_EVEN8", "SHIFTED_ODD8",
    "TWICE_ALL4", "TWICE_UP_ALL4", "TWOS4",
]  # fmt: skip
HEADER = "crt/packs.h"
_V, _U = (Var(name, WORDS) for name in "vu")
_X, _Y = Var("x", HALVES), Var("y", HALVES)
# LANES, before whatever is written behind it: four sums are all that registers hold
LANES_NOW = replace(LANES, name="crt_lanes_now", ordered=True, feature="mve")
_M, _N = Var("m", INT32), Var("n", INT32)
# m in the first lane, n in the third, of the others nothing is said, before whatever is
# written behind it; v, its second and fourth lane replaced
TWOS4 = Intrin(
    "crt_twos4",
    (_M, _N),
    Lanes((_M, _M, _N, _N)),
    c="crt_twos4({0}, {1})",
    feature="mve",
    llvm="crt_twos4",
    ordered=True,
)
ODD4 = Intrin(
    "crt_odd4",
    (_V, _M, _N),
    Lanes((Lane(_V, 0), _M, Lane(_V, 2), _N)),
    c="crt_odd4({0}, {1}, {2})",
    feature="mve",
    llvm="crt_odd4",
)


def _held(value: Expr, bits: int) -> Expr:
    return minimum(maximum(value, -(1 << (bits - 1))), (1 << (bits - 1)) - 1)


def _twice_up(v: Expr, m: Expr, n: Expr) -> Expr:
    n = low_byte(n)
    high = (i64(v) * i64(m) + (1 << 30)) >> const(31, INT64)
    half = (const(1, INT64) << i64(0 - n)) >> const(1, INT64)
    return i32((high + half) >> i64(0 - n))


def _intrin(name: str, params: tuple[Var, ...], result: Expr) -> Intrin:
    """Define an intrinsic; on a target with "mve" it is a function of the module:
    llvm_declared.py."""
    given = ", ".join(f"{{{i}}}" for i in range(len(params)))
    return Intrin(name, params, result, c=f"{name}({given})", feature="mve", llvm=name)


# v and u, in turns, each held within int16
PACK8 = _intrin(
    "crt_pack8",
    (_V, _U),
    Lanes(
        tuple(cast(_held(Lane(v, i), 16), INT16) for i in range(4) for v in (_V, _U))
    ),
)


def _shifted(name: str, odd: int) -> Intrin:
    """Define an intrinsic: x with one lane of each pair replaced by v >> n, clamped to
    int16; n is a constant from 1 to 16."""
    given = "{0}, {1}, {2}" if odd else "{1}, {2}"
    lanes = [
        cast(_held(Lane(_V, i // 2) >> _N, 16), INT16) if i % 2 == odd else Lane(_X, i)
        for i in range(8)
    ]
    return Intrin(
        name,
        (_X, _V, _N),
        Lanes(tuple(lanes)),
        c=f"{name}({given})",
        feature="mve",
        llvm="llvm.arm.mve.vshrn.v8i16.v4i32",
        trail=(1, 0, 0, 0, odd),
    )


# in each lane: v >> n
RIGHT4 = Intrin(
    "crt_right4", (_V, _N), _V >> Lanes((_N,) * 4), c="crt_right4({0}, {1})"
)
_NARROWS = 16  # bits by which an instruction that narrows shifts, at most
# the first of each two lanes; x has the bits of v, and of the others nothing is said
SHIFTED_EVEN8 = _shifted("crt_shifted_even8", 0)
SHIFTED_ODD8 = _shifted("crt_shifted_odd8", 1)
# in each lane: v * 256 + n
SCALE_ALL4 = Intrin(
    "crt_scale_all4",
    (_V, _N),
    _V * Lanes((const(256),) * 4) + Lanes((_N,) * 4),
    c="crt_scale_all4({0}, {1})",
)
# the same in one instruction (VMLAS) and a vector of 256 that is kept
SCALE_KEPT4 = replace(
    SCALE_ALL4, name="crt_scale_kept4", feature="mve", llvm="crt_scale_kept4"
)
# x and y, in turns, each held within int8
PACK16 = _intrin(
    "crt_pack16",
    (_X, _Y),
    Lanes(
        tuple(
            cast(_held(cast(Lane(v, i), INT32), 8), INT8)
            for i in range(8)
            for v in (_X, _Y)
        )
    ),
)
# in each lane: x + n, held within int16
MORE8 = _intrin(
    "crt_more8",
    (_X, _N),
    Lanes(
        tuple(cast(_held(cast(Lane(_X, i), INT32) + _N, 16), INT16) for i in range(8))
    ),
)
# in each lane: x, held within low and high
_LOW, _HIGH = Var("low", INT32), Var("high", INT32)
_LOW8, _HIGH8 = (Lanes((cast(bound, INT16),) * 8) for bound in (_LOW, _HIGH))
HOLD8 = Intrin(
    "crt_hold8",
    (_X, _LOW, _HIGH),
    binary("min", binary("max", _X, _LOW8), _HIGH8),
    c="crt_hold8({0}, {1}, {2})",
)
# in each lane: x, held within int8; only its low byte can be stored
BYTE8 = _intrin(
    "crt_byte8",
    (_X,),
    Lanes(tuple(cast(_held(cast(Lane(_X, i), INT32), 8), INT16) for i in range(8))),
)
# bytes from the first of eight pixels to each: four that are m apart, and four that
# begin n behind them, in turns
PLACES8 = Intrin(
    "crt_places8",
    (_M, _N),
    Lanes(tuple(cast(_M * i + j, INT16) for i in range(4) for j in (const(0), _N))),
    c="crt_places8({0}, {1})",
)
# the int16 so many elements behind a pointer to them, each in a lane
_FROM16 = Var("from", PointerType(INT16, writable=True))
GATHER_HALVES4 = Intrin(
    "crt_gather_halves4",
    (_FROM16, _V),
    Lanes(tuple(i32(load(_FROM16, Lane(_V, i))) for i in range(4))),
    c="crt_gather_halves4({0}, {1})",
    feature="mve",
    llvm="llvm.arm.mve.vldr.gather.offset.v4i32.p0.v4i32",
    trail=(16, 1, 0),
)
# eight of them; numbers of 16 bits as a vector
GATHER8 = Intrin(
    "crt_gather8",
    (_FROM16, _X),
    Lanes(tuple(load(_FROM16, i32(Lane(_X, i))) for i in range(8))),
    c="crt_gather8({0}, {1})",
    feature="mve",
    llvm="llvm.arm.mve.vldr.gather.offset.v8i16.p0.v8i16",
    trail=(16, 1, 0),
)
_EIGHT = tuple(Var(name, INT32) for name in "abcdefgh")
LANES8 = Intrin(
    "crt_lanes8",
    _EIGHT,
    Lanes(tuple(cast(one, INT16) for one in _EIGHT)),
    c="crt_lanes8({0}, {1}, {2}, {3}, {4}, {5}, {6}, {7})",
)


def gathered_halves(pointer: Expr, places: Expr) -> Expr:
    """Eight int16 as sixteen bytes."""
    return Bitcast(GATHER8(pointer, places), BYTES)


def even_halves(one: Expr, shift: int) -> Expr:
    """Four words, shifted right and saturated to int16, each in the first of two
    halves."""
    value, left = _shifted_within(one, shift)
    return SHIFTED_EVEN8(Bitcast(value, HALVES), value, const(left))


def shifted_halves(one: Expr, other: Expr, shift: int) -> Expr:
    """The same for two vectors of four words, interleaved."""
    value, left = _shifted_within(other, shift)
    return SHIFTED_ODD8(even_halves(one, shift), value, const(left))


def _shifted_within(one: Expr, shift: int) -> tuple[Expr, int]:
    """Shift as far as the narrowing instruction leaves to others; also return the rest
    for it."""
    more = max(0, shift - _NARROWS)
    return (RIGHT4(one, const(more)) if more else one), shift - more


def held_bytes(halves: Expr, limits: tuple[Expr, Expr] | None) -> Expr:
    """Clamp bytes, stored in halves, to the limits; None: to int8's own."""
    return BYTE8(halves) if limits is None else HOLD8(halves, *limits)


# TWICE_DOWN4 and ONCE4 by the same numbers in each lane; TWICE4 with ties up, n the low
# byte
TWICE_ALL4 = _intrin(
    "crt_twice_all4",
    (_V, _M, _N),
    Lanes(tuple(twice_down(Lane(_V, i), _M, _N) for i in range(4))),
)
TWICE_UP_ALL4 = _intrin(
    "crt_twice_up_all4",
    (_V, _M, _N),
    Lanes(tuple(_twice_up(Lane(_V, i), _M, _N) for i in range(4))),
)
ONCE_ALL4 = _intrin(
    "crt_once_all4",
    (_V, _M, _N),
    Lanes(tuple(once(Lane(_V, i), _M, _N) for i in range(4))),
)
FOURTH = lane("crt_fourth4", 3)
# by which a kernel is seen to need HEADER
NAMES = frozenset(
    one.name
    for one in (
        PACK8, PACK16, MORE8, TWICE_ALL4, TWICE_UP_ALL4, ONCE_ALL4, FOURTH,
        SHIFTED_EVEN8, SHIFTED_ODD8, TWOS4, ODD4, HOLD8, BYTE8, PLACES8, SCALE_ALL4,
        SCALE_KEPT4, RIGHT4,
        GATHER_HALVES4, GATHER8, LANES8,
    )
)  # fmt: skip
