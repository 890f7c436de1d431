"""The epilogue of a layer with int16 activations: from sums of 32 or 64 bits to int16.
Its rules: the reference kernels' for int64 sums, and float64's for dense layers.
"""

from __future__ import annotations

import numpy as np

from pybuild.dtype import Ints
from pybuild.errors import BuildError
from pybuild.ir.loop import (
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
)
from pybuild.kernels.base.builder import Builder
from pybuild.kernels.base.candidate import EACH, Packed
from pybuild.kernels.epilogues.by_parts import BY_PARTS, parts, precise_parts, rule_of
from pybuild.ops.conv import ConvParameters
from pybuild.records import dataclass

# half of what int64 has, so that a bound of a sum does not wrap
MOST_SUM = 1 << 62

_SUM, _MULT, _SHIFT = Var("sum", INT64), Var("multiplier", INT32), Var("shift", INT32)
_SUM32 = Var("sum", INT32)
_HALF = Var("half", INT64)
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
    """Return the multiplier and the shift of `LONG_HIGH` that equal those of `WIDE`;
    None if a product could overflow.

    most  the greatest absolute sum
    """
    up = max(33 - shift, 0)
    factor, down = multiplier << up, shift + up - 32
    half = 1 << (down - 1)
    if factor >= 1 << 31 or ((most * factor) >> 32) + half + 1 >= 1 << 31:
        return None
    return factor, down


@dataclass(frozen=True)
class Finish16:
    """clamp(round(sum * scale) + zero)

    multipliers, rests  one for each output channel, or one for all
    shifts              bits to the right, at least 1
    rests empty: `WIDE`; shifts too: `HIGH`
    by_parts            else a name of BY_PARTS
    zero                of the output, within its limits low and high
    """

    multipliers: tuple[int, ...]
    rests: tuple[int, ...]
    shifts: tuple[int, ...]
    low: int
    high: int
    by_parts: str = ""
    zero: int = 0

    @property
    def key(self) -> str:
        kind = "channel" if len(self.multipliers) > 1 else "tensor"
        form = "high" if not self.shifts else self.by_parts if self.rests else "wide"
        return f"{kind}_{form}{'_zero' * bool(self.zero)}"

    @property
    def words(self) -> str:
        """`key` for readers of the C."""
        whose = "each channel" if len(self.multipliers) > 1 else "the whole layer"
        return f"{self.rounds}; factors of {whose}"

    @property
    def rounds(self) -> str:
        """The words that say how a sum is rounded."""
        form = "the high half of one 64-bit product, rounded"
        if self.shifts:
            form = "one 64-bit product, rounded once"
        if self.rests:
            form = "two 64-bit products, a multiplier of 53 bits, rounded once"
        if self.by_parts.startswith("real"):
            form = "a product of float64, rounded"
        ties = ", ties to even" * self.by_parts.endswith("even")
        return f"requantises by {form}{ties}"

    def tables(self) -> tuple[Packed, ...]:
        kind = np.int16 if self._is_short else np.int32
        made = [Packed("multipliers", np.asarray(self.multipliers, kind), order=EACH)]
        if self.shifts:
            shifts = np.asarray(self.shifts, np.int8)
            made.append(Packed("shifts", shifts, order=f"{EACH}, bits to the right"))
        if self.rests:
            rests = np.asarray(self.rests, np.int64).astype(np.int32)
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
        zero = k.arg("y_zero", self.zero) if self.zero else None
        one = len(self.multipliers) == 1
        return _Bound(multipliers, shifts, rests, low, high, zero, one, self.by_parts)


@dataclass(frozen=True)
class _Bound:
    multipliers: Expr
    shifts: Expr | None
    rests: Expr | None
    low: Expr
    high: Expr
    zero: Expr | None
    one: bool
    by_parts: str

    def apply(self, acc: Expr, channel: Operand) -> Expr:
        whole: Expr
        at: Operand = 0 if self.one else channel
        multiplier = i32(load(self.multipliers, at))
        if self.shifts is None:
            whole = HIGH(acc, multiplier)
        elif self.rests is None:
            whole = WIDE(i64(acc), multiplier, i32(load(self.shifts, at)))
        else:
            shift = i32(load(self.shifts, at))
            rule = BY_PARTS[self.by_parts]
            total = acc if self.by_parts == "precise" else i64(acc)
            whole = rule(total, multiplier, load(self.rests, at), shift)
        whole = whole if self.zero is None else whole + self.zero
        return cast(minimum(maximum(whole, self.low), self.high), INT16)


def finish16(made: ConvParameters, reach: Ints, where: str) -> Finish16:
    """Return the epilogue of a layer by the rule "wide", "away" or "even".

    reach   greatest absolute sum of each output channel
    Errors  BuildError, naming `where` and the channel, if a scaled sum could leave
            int32, or an intermediate value int64
    """
    is_wide = made.rounding == "wide"
    if is_wide:
        pairs = zip(made.multipliers, made.shifts, strict=True)
        rows = [(m, 0, min(15 - s, 62)) for m, s in pairs]
    else:
        rows = [parts(scale) for scale in made.scales]
    _must_hold(made, rows, reach, where)
    most = int(reach.max(initial=0))
    by_parts = "" if is_wide else rule_of(made.scales, most, made.rounding == "even")
    if by_parts == "precise":
        rows = [precise_parts(scale) or (0, 0, 1) for scale in made.scales]
    rows = rows[:1] if len(set(rows)) == 1 else rows
    multipliers, rests, shifts = (tuple(c) for c in zip(*rows, strict=True))
    if is_wide:
        rests = ()
        if most < 1 << 31 and all(17 <= s <= 32 for s in shifts):
            pairs = zip(multipliers, shifts, strict=True)
            multipliers, shifts = tuple(m << (32 - s) for m, s in pairs), ()
    limits = made.low, made.high
    return Finish16(multipliers, rests, shifts, *limits, by_parts, made.y_zero)


def _must_hold(
    made: ConvParameters, rows: list[tuple[int, int, int]], reach: Ints, where: str
) -> None:
    """Check that scaled sums fit.

    Errors  BuildError that names the first channel that could overflow
    """
    count = max(len(reach), len(rows))
    sums = np.broadcast_to(reach, count).tolist()
    scales = np.broadcast_to(np.asarray(made.scales), count).tolist()
    every = rows * (count // len(rows))
    for channel, (most, scale, row) in enumerate(zip(sums, scales, every, strict=True)):
        multiplier, _, shift = row
        if most >= MOST_SUM:
            what = f"the 64-bit sum of output channel {channel} could overflow"
            raise BuildError(where, what, "a smaller bias")
        if multiplier and (shift < 1 or most * scale >= 2.0**31 - abs(made.y_zero)):
            what = f"the scales of inputs and output channel {channel} are too far "
            what += "apart for 32 bits"
            raise BuildError(where, what, "calibrate the output of this layer")
        half = 1 << max(shift - 1, 0)
        if made.rounding == "wide" and most * multiplier + half >= 1 << 63:
            what = f"the scaled sum of output channel {channel} could leave 64 bits"
            raise BuildError(where, what, "a smaller bias")
