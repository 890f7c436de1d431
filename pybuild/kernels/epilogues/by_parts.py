"""Multiplies sums of 32 or 64 bits by a float64 scale in integers, by all its 53 bits,
and rounds once, as a product of float64 does.
"""

from __future__ import annotations

import functools
import math

import numpy as np

from pybuild.dtype import Ints
from pybuild.ir.loop import (
    FLOAT64,
    INT32,
    INT64,
    UINT32,
    Intrin,
    Var,
    cast,
    const,
    equal,
    i32,
    i64,
    select,
)
from pybuild.ops.fixed_point.quant import first_reaching

# bits of the lower of two parts of a multiplier of 53 bits
PART = 26
# sums of more bits would overflow with the upper part
_MOST_BITS = 35
Row = tuple[int, int, int]

_SUM, _MULT, _SHIFT = Var("sum", INT64), Var("multiplier", INT32), Var("shift", INT32)
_LOW, _HALF = Var("rest", INT32), Var("half", INT64)
_SIZE, _SCALED = Var("size", INT64), Var("scaled", INT64)
_HALVES = (_HALF, const(1, INT64) << i64(_SHIFT - 1))
# round(sum * scale) of C, the scale in all bits of a float64
EXACT = Intrin(
    "crt_requant_exact",
    (_SUM, _MULT, _LOW, _SHIFT),
    i32(select(_SUM < 0, const(0, INT64) - _SCALED, _SCALED)),
    (
        (_SIZE, select(_SUM < 0, const(0, INT64) - _SUM, _SUM)),
        _HALVES,
        (
            _SCALED,
            (_SIZE * i64(_MULT) + ((_SIZE * i64(_LOW)) >> const(PART, INT64)) + _HALF)
            >> i64(_SHIFT),
        ),
    ),
    doc="round(sum * scale), the scale in two parts: 53 bits in all.",
)
_UPPER, _LOWER = Var("upper", INT64), Var("lower", INT64)
_PRODUCT = Var("product", INT64)
_LOST = equal(_LOWER & const((1 << PART) - 1, INT64), const(0, INT64))
# the same, ties to even: what is below the two products is looked at, too
EXACT_EVEN = Intrin(
    "crt_requant_exact_even",
    (_SUM, _MULT, _LOW, _SHIFT),
    EXACT.result,
    (
        EXACT.lets[0],
        (_UPPER, _SIZE * i64(_MULT)),
        (_LOWER, _SIZE * i64(_LOW)),
        (_PRODUCT, _UPPER + (_LOWER >> const(PART, INT64))),
        (_HALF, (const(1, INT64) << i64(_SHIFT - 1)) - const(1, INT64)),
        (
            _SCALED,
            (
                _PRODUCT
                + _HALF
                + select(
                    _LOST, (_PRODUCT >> i64(_SHIFT)) & const(1, INT64), const(1, INT64)
                )
            )
            >> i64(_SHIFT),
        ),
    ),
    doc="sum * scale, the scale in two parts: 53 bits in all; ties to even.",
)
_REAL, _WHOLE = Var("real", FLOAT64), Var("whole", INT32)
_REST = _REAL - cast(_WHOLE, FLOAT64)
_TIE, _BELOW = const(0.5, FLOAT64), const(-0.5, FLOAT64)
# the same of any sum, and where a product that is next to a tie is rounded to it
REAL = Intrin(
    "crt_requant_real",
    (_SUM, _MULT, _LOW, _SHIFT),
    _WHOLE + i32(_REST >= _TIE) - i32(_BELOW >= _REST),
    (
        (
            _REAL,
            cast(_SUM, FLOAT64)
            * cast((i64(_MULT) << const(PART, INT64)) + i64(_LOW), FLOAT64)
            / const(float(1 << PART), FLOAT64)
            / cast(const(1, INT64) << i64(_SHIFT), FLOAT64),
        ),
        (_WHOLE, cast(_REAL, INT32)),
    ),
    doc="round(sum * scale) in float64, the 53 bits of the scale in two parts.",
)
# the same, ties to even
REAL_EVEN = Intrin(
    "crt_requant_real_even",
    (_SUM, _MULT, _LOW, _SHIFT),
    _WHOLE
    + select(equal(_REST, _TIE), _WHOLE & 1, i32(_REST >= _TIE))
    - select(equal(_REST, _BELOW), _WHOLE & 1, i32(_BELOW >= _REST)),
    REAL.lets,
    doc="sum * scale in float64, the 53 bits of the scale in two parts; ties to even.",
)
_SUM32, _SIZE32 = Var("sum", INT32), Var("size", INT32)
_UPPER32, _HIGH = Var("upper", INT64), Var("high", INT32)
_LOWER32, _WHOLE32 = Var("lower", INT64), Var("scaled", INT32)
# round(sum * scale) of a sum of 32 bits: only upper words of products are shifted
PRECISE = Intrin(
    "crt_requant_precise",
    (_SUM32, _MULT, _LOW, _SHIFT),
    select(_SUM32 < 0, const(0) - _WHOLE32, _WHOLE32),
    (
        (_SIZE32, select(_SUM32 < 0, const(0) - _SUM32, _SUM32)),
        (_UPPER32, i64(_SIZE32) * i64(_MULT)),
        (_LOWER32, i64(_SIZE32) * i64(cast(_LOW, UINT32))),
        (_HIGH, i32((_UPPER32 + (_LOWER32 >> const(32, INT64))) >> const(32, INT64))),
        (_WHOLE32, (_HIGH + (const(1) << (_SHIFT - 1))) >> _SHIFT),
    ),
    doc="round(sum * scale) of 32 bits, the scale in two words: 53 bits in all.",
)
BY_PARTS = {"precise": PRECISE, "exact": EXACT, "exact_even": EXACT_EVEN, "real": REAL,
            "real_even": REAL_EVEN}  # fmt: skip


def parts(scale: float) -> Row:
    """Return the upper and lower part of the multiplier of EXACT, and the upper one's
    shift."""
    fraction, power = math.frexp(scale)
    whole = int(fraction * 2.0**53)
    shift = 53 - PART - power
    if shift > 62:
        return 0, 0, 62
    return whole >> PART, whole & ((1 << PART) - 1), shift


def precise_parts(scale: float) -> Row | None:
    """Return the upper and lower word of scale * 2^(64 + shift), and the shift; None if
    they do not fit the multiplier of PRECISE."""
    fraction, power = math.frexp(scale)
    shift = max(1, -11 - power)
    if shift > 31 or not scale:
        return 0, 0, 1
    if power > -1 - shift:
        return None
    whole = int(fraction * 2.0**53) << (11 + power + shift)
    return whole >> 32, whole & 0xFFFFFFFF, shift


def rule_of(scales: tuple[float, ...], most: int, even: bool) -> str:
    """Return the name in BY_PARTS of a rule that rounds as float64 does in every
    channel.

    most  the greatest absolute sum
    even  whether ties are rounded to even, else away from zero
    """
    ways = ["precise"] if most < 1 << 31 else []
    ways += ["exact", "exact_even"][: 1 + even] if most < 1 << _MOST_BITS else []
    for name in ways:
        if all(_steps_of_float64(scale, most, even, name) for scale in set(scales)):
            return name
    return "real_even" if even else "real"


@functools.lru_cache(1 << 12)
def _steps_of_float64(scale: float, most: int, even: bool, name: str) -> bool:
    """Return True if each result within int16 begins at the same sum as with
    float64."""
    row = precise_parts(scale) if name == "precise" else parts(scale)
    if row is None or not row[0]:
        return row is not None
    steps = np.arange(1, min(1 << 15, int(most * scale + 0.5)) + 1)
    first = first_reaching(scale, steps, even)
    reached = _scaled(first, row, name)
    return bool(((reached >= steps) & (_scaled(first - 1, row, name) < steps)).all())


def _scaled(sums: Ints, row: Row, name: str) -> Ints:
    """Return the results of a rule for sums of 0 or more."""
    multiplier, rest, shift = row
    if name == "precise":
        high = (sums * multiplier + (sums * rest >> 32)) >> 32
        return (high + (1 << (shift - 1))) >> shift
    lower = sums * rest
    whole = sums * multiplier + (lower >> PART)
    whole += 1 << (shift - 1)
    if name == "exact_even":
        lost = lower & ((1 << PART) - 1)
        before = whole - (1 << (shift - 1))
        whole += np.where(lost, 1, (before >> shift) & 1) - 1
    return np.asarray(whole >> shift)
