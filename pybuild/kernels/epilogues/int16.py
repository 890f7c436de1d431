"""How a layer of int16 activations ends: from sums of 32 or 64 bits to int16.

Its rules: that of the reference kernels for int64 sums, and of float64 in dense layers.
"""

from __future__ import annotations

import functools
import math

import numpy as np

from pybuild.dtype import Ints
from pybuild.errors import BuildError
from pybuild.ir.loop import (
    FLOAT64,
    INT8,
    INT16,
    INT32,
    INT64,
    UINT32,
    Expr,
    Intrin,
    Operand,
    Var,
    cast,
    const,
    i32,
    i64,
    load,
    maximum,
    minimum,
    select,
)
from pybuild.kernels.base.builder import Builder
from pybuild.kernels.base.candidate import EACH, Packed
from pybuild.ops.conv import ConvParameters
from pybuild.ops.fixed_point.quant import first_reaching
from pybuild.records import dataclass

# bits of the lower of two parts of a multiplier of 53 bits
PART = 26
# sums of more bits would overflow with the upper part
_MOST_BITS = 35
# half of what int64 has, so that a bound of a sum does not wrap
MOST_SUM = 1 << 62

_SUM, _MULT, _SHIFT = Var("sum", INT64), Var("multiplier", INT32), Var("shift", INT32)
_SUM32 = Var("sum", INT32)
_LOW, _HALF = Var("rest", INT32), Var("half", INT64)
_SIZE, _SCALED = Var("size", INT64), Var("scaled", INT64)
_HALVES = (_HALF, const(1, INT64) << i64(_SHIFT - 1))

# gemmlowp has none: LiteRT MultiplyByQuantizedMultiplier of int64
WIDE = Intrin(
    "crt_requant_wide",
    (_SUM, _MULT, _SHIFT),
    i32((_SUM * i64(_MULT) + _HALF) >> i64(_SHIFT)),
    (_HALVES,),
    doc="sum * multiplier / 2^shift, rounded once; ties up.",
)
# the same of sums of 32 bits, the multiplier shifted so that a high half is left
HIGH = Intrin(
    "crt_requant_high",
    (_SUM32, _MULT),
    i32((i64(_SUM32) * i64(_MULT) + (1 << 31)) >> const(32, INT64)),
    doc="The high half of sum * multiplier, rounded.",
)
_FACTOR, _WORD = cast(_MULT, UINT32), Var("word", INT32)
# the same of a sum of 64 bits, without what is below the high half of its lower word
LONG_HIGH = Intrin(
    "crt_requant_long",
    (_SUM, _MULT, _SHIFT),
    (_WORD + (const(1) << (_SHIFT - 1))) >> _SHIFT,
    (
        (
            _WORD,
            i32((i64(cast(_SUM, UINT32)) * i64(_FACTOR)) >> const(32, INT64))
            + i32(_SUM >> const(32, INT64)) * _MULT,
        ),
    ),
    doc="sum * multiplier / 2^(32 + shift), rounded once; ties up.",
)


def long_high(multiplier: int, shift: int, most: int) -> tuple[int, int] | None:
    """The multiplier and the shift of `LONG_HIGH` that are those of `WIDE`; None where
    a product could leave them.

    most  the greatest absolute sum
    """
    up = max(33 - shift, 0)
    factor, down = multiplier << up, shift + up - 32
    half = 1 << (down - 1)
    if factor >= 1 << 31 or ((most * factor) >> 32) + half + 1 >= 1 << 31:
        return None
    return factor, down


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
_REAL, _WHOLE = Var("real", FLOAT64), Var("whole", INT32)
_REST = _REAL - cast(_WHOLE, FLOAT64)
_TIE = const(0.5, FLOAT64)
# the same of any sum, and where a product that is next to a tie is rounded to it
REAL = Intrin(
    "crt_requant_real",
    (_SUM, _MULT, _LOW, _SHIFT),
    _WHOLE + i32(_REST >= _TIE) - i32(const(-0.5, FLOAT64) >= _REST),
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


@dataclass(frozen=True)
class Finish16:
    """clamp(round(sum * scale))

    multipliers, rests  of each output channel, or of all
    shifts              bits to the right, at least 1
    rests empty: `WIDE`; shifts too: `HIGH`
    real                `REAL`, not `EXACT`
    """

    multipliers: tuple[int, ...]
    rests: tuple[int, ...]
    shifts: tuple[int, ...]
    low: int
    high: int
    real: bool = False

    @property
    def key(self) -> str:
        kind = "channel" if len(self.multipliers) > 1 else "tensor"
        form = "high" if not self.shifts else self.by_parts if self.rests else "wide"
        return f"{kind}_{form}"

    @property
    def by_parts(self) -> str:
        """The rule of a multiplier in two parts."""
        return "real" if self.real else "exact"

    @property
    def words(self) -> str:
        """`key` for readers of the C."""
        whose = "each channel" if len(self.multipliers) > 1 else "the whole layer"
        return f"{self.rounds}; factors of {whose}"

    @property
    def rounds(self) -> str:
        """Of `words`, how a sum is rounded."""
        form = "the high half of one 64-bit product, rounded"
        if self.shifts:
            form = "one 64-bit product, rounded once"
        if self.rests:
            form = "two 64-bit products, a multiplier of 53 bits, rounded once"
        if self.real:
            form = "a product of float64, rounded"
        return f"requantises by {form}"

    def tables(self) -> tuple[Packed, ...]:
        kind = np.int16 if self._is_short else np.int32
        made = [Packed("multipliers", np.asarray(self.multipliers, kind), order=EACH)]
        if self.shifts:
            shifts = np.asarray(self.shifts, np.int8)
            made.append(Packed("shifts", shifts, order=f"{EACH}, bits to the right"))
        if self.rests:
            rests = np.asarray(self.rests, np.int32)
            made.append(Packed("rests", rests, order=f"{EACH}, lower multipliers"))
        return tuple(made)

    @property
    def _is_short(self) -> bool:
        return bool(self.shifts) and not self.rests

    def bind(self, k: Builder, pointer: Expr) -> _Bound:
        at = i32(pointer)
        multipliers = k.row("multipliers", at, INT16 if self._is_short else INT32)
        shifts = k.row("shifts", at + 1, INT8) if self.shifts else None
        rests = k.row("rests", at + 2, INT32) if self.rests else None
        low, high = k.arg("low", self.low), k.arg("high", self.high)
        one = len(self.multipliers) == 1
        return _Bound(multipliers, shifts, rests, low, high, one, self.real)


@dataclass(frozen=True)
class _Bound:
    multipliers: Expr
    shifts: Expr | None
    rests: Expr | None
    low: Expr
    high: Expr
    one: bool
    real: bool

    def apply(self, acc: Expr, channel: Operand) -> Expr:
        at: Operand = 0 if self.one else channel
        multiplier = i32(load(self.multipliers, at))
        if self.shifts is None:
            whole = HIGH(acc, multiplier)
        elif self.rests is None:
            whole = WIDE(i64(acc), multiplier, i32(load(self.shifts, at)))
        else:
            shift = i32(load(self.shifts, at))
            rule = REAL if self.real else EXACT
            whole = rule(i64(acc), multiplier, load(self.rests, at), shift)
        return cast(minimum(maximum(whole, self.low), self.high), INT16)


def finish16(made: ConvParameters, reach: Ints, where: str) -> Finish16:
    """The epilogue of a layer by the rules "wide" and "away".

    reach   greatest absolute sum of each output channel
    Errors  BuildError, naming `where` and the channel, where a scaled sum could leave
            int32, or what is on the way there int64
    """
    is_wide = made.rounding == "wide"
    if is_wide:
        pairs = zip(made.multipliers, made.shifts, strict=True)
        rows = [(m, 0, min(15 - s, 62)) for m, s in pairs]
    else:
        rows = [_parts(scale) for scale in made.scales]
    _must_hold(made, rows, reach, where)
    most = int(reach.max(initial=0))
    real = not is_wide and not _exact(made, rows, most)
    rows = rows[:1] if len(set(rows)) == 1 else rows
    multipliers, rests, shifts = (tuple(c) for c in zip(*rows, strict=True))
    if is_wide:
        rests = ()
        if most < 1 << 31 and all(17 <= s <= 32 for s in shifts):
            pairs = zip(multipliers, shifts, strict=True)
            multipliers, shifts = tuple(m << (32 - s) for m, s in pairs), ()
    return Finish16(multipliers, rests, shifts, made.low, made.high, real)


def _must_hold(
    made: ConvParameters, rows: list[tuple[int, int, int]], reach: Ints, where: str
) -> None:
    """Errors  BuildError that names the first channel that could overflow"""
    count = max(len(reach), len(rows))
    sums = np.broadcast_to(reach, count).tolist()
    scales = np.broadcast_to(np.asarray(made.scales), count).tolist()
    every = rows * (count // len(rows))
    for channel, (most, scale, row) in enumerate(zip(sums, scales, every, strict=True)):
        multiplier, _, shift = row
        if most >= MOST_SUM:
            what = f"the 64-bit sum of output channel {channel} could overflow"
            raise BuildError(where, what, "a smaller bias")
        if multiplier and (shift < 1 or most * scale >= 2.0**31):
            what = f"the scales of inputs and output channel {channel} are too far "
            what += "apart for 32 bits"
            raise BuildError(where, what, "calibrate the output of this layer")
        half = 1 << max(shift - 1, 0)
        if made.rounding == "wide" and most * multiplier + half >= 1 << 63:
            what = f"the scaled sum of output channel {channel} could leave 64 bits"
            raise BuildError(where, what, "a smaller bias")


def _exact(made: ConvParameters, rows: list[tuple[int, int, int]], most: int) -> bool:
    """Whether `EXACT` rounds as float64 does in every channel."""
    if most >= 1 << _MOST_BITS:
        return False
    pairs = dict(zip(made.scales, rows, strict=True))
    return all(_steps_of_float64(scale, row, most) for scale, row in pairs.items())


@functools.lru_cache(1 << 12)
def _steps_of_float64(scale: float, row: tuple[int, int, int], most: int) -> bool:
    """Whether each result within int16 begins at the sum where that of float64 does."""
    multiplier, rest, shift = row
    if not multiplier:
        return True
    steps = np.arange(1, min(1 << 15, int(most * scale + 0.5)) + 1)
    first = first_reaching(scale, steps)

    def scaled(sums: Ints) -> Ints:
        whole = sums * multiplier + ((sums * rest) >> PART)
        return (whole + (1 << (shift - 1))) >> shift

    return bool(((scaled(first) >= steps) & (scaled(first - 1) < steps)).all())


def _parts(scale: float) -> tuple[int, int, int]:
    """Upper and lower part of the multiplier, and the shift of the upper one."""
    fraction, power = math.frexp(scale)
    whole = int(fraction * 2.0**53)
    shift = 53 - PART - power
    if shift > 62:
        return 0, 0, 62
    return whole >> PART, whole & ((1 << PART) - 1), shift
