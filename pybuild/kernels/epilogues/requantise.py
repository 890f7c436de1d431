"""From an int32 accumulator to an int8 value: the rounding rules as Loop IR.

The multipliers come from ops/fixed_point/quant.py; nothing here computes one.
"""

from __future__ import annotations

import numpy as np

from pybuild.dtype import DType, Ints
from pybuild.errors import BuildError
from pybuild.ir.loop import (
    INT32,
    INT64,
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
from pybuild.ops.fixed_point.quant import fits_int32
from pybuild.records import dataclass

_ACC, _MULT, _SHIFT = (Var(n, INT32) for n in ("acc", "multiplier", "shift"))
_X = Var("x", INT32)
_HIGH, _MASK = Var("high", INT32), Var("mask", INT32)
_LOW, _TOP = Var("low", INT32), Var("top", INT32)
_PRODUCT, _HALF = Var("product", INT64), Var("half", INT64)

CLAMP = Intrin(
    "crt_clamp",
    (_X, _LOW, _TOP),
    minimum(maximum(_X, _LOW), _TOP),
    doc="x held within low..top.",
)


def _bit(condition: Expr, dtype: DType = INT32) -> Expr:
    return select(condition, const(1, dtype), const(0, dtype))


# gemmlowp SaturatingRoundingDoublingHighMul without its one saturating case
MULHI_ROUND = Intrin(
    "crt_mulhi_round",
    (_ACC, _MULT),
    i32((i64(_ACC) * i64(_MULT) + (1 << 30)) >> const(31, INT64)),
    doc="acc * multiplier / 2^31, rounded: gemmlowp's doubling high product.",
)
# gemmlowp RoundingDivideByPOT: ties away from zero
SHIFT_ROUND = Intrin(
    "crt_shift_round",
    (_X, _SHIFT),
    (_X >> _SHIFT) + _bit(((_MASK >> 1) + _bit(_X < 0)) < (_X & _MASK)),
    ((_MASK, (const(1) << _SHIFT) - 1),),
    doc="x / 2^shift, rounded to nearest, ties away from zero: gemmlowp's.",
)
SHIFT_EVEN = Intrin(
    "crt_shift_even",
    (_X, _SHIFT),
    (_X + ((const(1) << (_SHIFT - 1)) - 1 + ((_X >> _SHIFT) & 1))) >> _SHIFT,
    doc="x / 2^shift, rounded to nearest, ties to even.",
)
DOUBLE = Intrin(
    "crt_requant_double",
    (_ACC, _MULT, _SHIFT),
    SHIFT_ROUND(_HIGH, _SHIFT),
    ((_HIGH, MULHI_ROUND(_ACC, _MULT)),),
    doc="acc * multiplier / 2^(31 + shift), rounded twice: LiteRT's rule.",
)


def _one_rounding(name: str, result: Expr, ties: str) -> Intrin:
    lets = (
        (_PRODUCT, i64(_ACC) * i64(_MULT)),
        (_HALF, const(1, INT64) << i64(_SHIFT - 1)),
    )
    doc = f"acc * multiplier / 2^shift, rounded once; ties {ties}."
    return Intrin(name, (_ACC, _MULT, _SHIFT), i32(result), lets, doc=doc)


# `shift` counts right of the whole product, at least 1
SINGLE = _one_rounding("crt_requant_single", (_PRODUCT + _HALF) >> i64(_SHIFT), "up")
AWAY = _one_rounding(
    "crt_requant_away",
    (_PRODUCT + _HALF - _bit(_PRODUCT < 0, INT64)) >> i64(_SHIFT),
    "away from zero",
)
EVEN = _one_rounding(
    "crt_requant_even",
    (_PRODUCT + (_HALF - 1) + ((_PRODUCT >> i64(_SHIFT)) & 1)) >> i64(_SHIFT),
    "to even",
)
RULES = {"double": DOUBLE, "single": SINGLE, "away": AWAY, "even": EVEN}
_ONCE = "requantises by one rounding of the 64-bit product, half"
_WORDS = {
    "double": "requantises by two roundings: of the product's high half, then of a "
    "shift",
    "single": f"{_ONCE} up",
    "away": f"{_ONCE} away from zero",
    "even": f"{_ONCE} to even",
}


@dataclass(frozen=True)
class Requant:
    """How one layer scales its accumulators, as the kernel will see it.

    rounding     "double" | "single" | "away" | "even"
    multipliers  Q31, one or one per output channel
    shifts       bits to the right: after the high multiplication ("double"), of
                 the whole 64-bit product (the others)
    left         "double" only: bits to the left before; a layer needs one or other
    """

    rounding: str
    multipliers: tuple[int, ...]
    shifts: tuple[int, ...]
    left: tuple[int, ...] | None
    low: int
    high: int
    zero_point: int
    dtype: DType = DType.INT8

    @property
    def per_channel(self) -> bool:
        return len(self.multipliers) > 1

    @property
    def key(self) -> str:
        """The key that distinguishes the code of two layers."""
        left = "_left" if self.left else ""
        return f"{'channel' if self.per_channel else 'tensor'}{left}_{self.rounding}"

    @property
    def words(self) -> str:
        """`key` for readers of the C."""
        whose = "of each channel" if self.per_channel else "of the whole layer"
        left = "; sums are first shifted left" if self.left else ""
        return f"{self.rounds}; factors {whose}{left}"

    @property
    def rounds(self) -> str:
        """The words that say how a sum is rounded."""
        return _WORDS[self.rounding]


def requant(
    rounding: str,
    multiplier: Ints | int,
    shift: Ints | int,
    clamp: tuple[int, int],
    zero_point: int,
    dtype: DType = DType.INT8,
) -> Requant:
    """From LiteRT's (Q31 multiplier, shift; positive = left) per channel."""
    mult = [int(m) for m in np.atleast_1d(multiplier)]
    bits = [int(s) for s in np.atleast_1d(shift)]
    if len(set(zip(mult, bits, strict=True))) == 1:
        mult, bits = mult[:1], bits[:1]
    left: tuple[int, ...] | None = None
    if rounding == "double":
        if any(s > 0 for s in bits):
            left = tuple(max(s, 0) for s in bits)
        # beyond 30 bits nothing is left of an accumulator below 2^30
        mult = [0 if s < -30 else m for m, s in zip(mult, bits, strict=True)]
        shifts = tuple(min(max(-s, 0), 30) for s in bits)
    else:
        mult = [0 if 31 - s > 62 else m for m, s in zip(mult, bits, strict=True)]
        shifts = tuple(min(31 - s, 62) for s in bits)
    low, high = clamp
    return Requant(rounding, tuple(mult), shifts, left, low, high, zero_point, dtype)


def check_reach(
    where: str, rounding: str, multiplier: int, shift: int, reach: int
) -> None:
    """Check that accumulators up to `reach`, scaled, plus a zero point, fit int32.

    Units   multiplier and shift as in `requant`
    Errors  BuildError, naming `where`
    """
    if not fits_int32(rounding, multiplier, shift, reach):
        what = "the scales of inputs and output are too far apart for 32 bits"
        raise BuildError(where, what, "calibrate the output of this layer")


@dataclass(frozen=True)
class Scaler:
    """The bound values of a Requant inside a kernel being written."""

    rule: Intrin
    multiplier: Expr
    shift: Expr
    left: Expr | None
    low: Expr
    high: Expr
    zero_point: Expr
    dtype: DType

    def apply(self, acc: Expr, channel: Operand) -> Expr:
        """Return the stored value of an accumulator of that output channel."""
        if self.left is not None:
            acc = acc * (const(1) << _at(self.left, channel))
        scaled = self.rule(acc, _at(self.multiplier, channel), _at(self.shift, channel))
        return cast(CLAMP(scaled + self.zero_point, self.low, self.high), self.dtype)


def _at(value: Expr, channel: Operand) -> Expr:
    return i32(load(value, channel)) if not isinstance(value.type, DType) else value


def packed(rule: Requant) -> tuple[Packed, ...]:
    """Return the tables that `scaler` expects, in the order of its pointers."""
    if not rule.per_channel:
        return ()
    multipliers = np.asarray(rule.multipliers, np.int32)
    tables = [Packed("multipliers", multipliers, order=f"{EACH}, Q31")]
    shifts = np.asarray(rule.shifts, np.int8)
    tables.append(Packed("shifts", shifts, order=f"{EACH}, bits to the right"))
    if rule.left is not None:
        left = np.asarray(rule.left, np.int8)
        tables.append(Packed("left_shifts", left, order=f"{EACH}, bits to the left"))
    return tuple(tables)


def scaler(k: Builder, rule: Requant, pointer: Operand) -> Scaler:
    """Bind a Requant: tables from pointer `pointer` on, scalars as arguments."""
    left: Expr | None = None
    if rule.per_channel:
        at = i32(pointer)
        multiplier: Expr = k.row("multipliers", at, INT32)
        shift: Expr = k.row("shifts", at + 1, DType.INT8)
        if rule.left is not None:
            left = k.row("left_shifts", at + 2, DType.INT8)
    else:
        multiplier = k.arg("multiplier", rule.multipliers[0])
        shift = k.arg("shift", rule.shifts[0])
        if rule.left is not None:
            left = k.arg("left_shift", rule.left[0])
    low, high = k.arg("low", rule.low), k.arg("high", rule.high)
    zero_point = k.arg("y_zero", rule.zero_point)
    return Scaler(
        RULES[rule.rounding], multiplier, shift, left, low, high, zero_point, rule.dtype
    )
