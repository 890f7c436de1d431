"""Requantisation by one high multiplication, proven equal to the reference. A rounding
rule is a step function: each value begins at some accumulator. A multiplier and an
offset are searched that have the same steps; every step is checked on both sides. A
channel without them uses the rule itself (exact.py). Knows no kernel.
"""

from __future__ import annotations

import functools
import itertools
from dataclasses import field, replace
from typing import TypeVar

import numpy as np

from pybuild.dtype import Array, Ints
from pybuild.kernels.base.once import ARGUMENT
from pybuild.kernels.epilogues.exact import Exact, exact
from pybuild.kernels.epilogues.staircase import (
    FAR,
    FRACTION,
    NEAR,
    REACH,
    Flags,
    searched,
    some_of,
    staircase,
)
from pybuild.ops.conv import ConvParameters
from pybuild.ops.eltwise import MulParameters
from pybuild.ops.reduce import MeanParameters
from pybuild.records import dataclass

End = TypeVar("End")  # of any kind

# tried in this order: layers with the same shift share their kernels
SHIFTS = (9, 10, 12)
_MOST_BITS = 6  # of a shift to the left
_MOST = 1024  # layers that are remembered, for kernels of several cores


def told_form(signed: bool, clamped: bool) -> str:
    """Describe an `Affine` in words."""
    offset = "an offset for its sign" if signed else "offset"
    held = "low..high" if clamped else "int8"
    return (
        f"requantises by one 32-bit product: the high half of (256 * sum + {offset}) * "
        f"factor, shifted, held within {held}"
    )


@dataclass(frozen=True)
class Affine:
    """y = (((256 * acc + offset + (acc < 0 ? below : 0)) * multiplier >> 32) + base) >>
    shift, clamped to low..high.

    Shapes  offsets, multipliers, below: one per output channel; below None: all 0
    Units   the zero point and the rounding half are in base or, if that is 0, in offset
    exact   the rule for channels without such a form: their multiplier is negative, ~
            the index of the first word of their row; None: all channels have the form
    raised  the amount by which values are raised before the clamp, so that their high
            limit is int8's; None: not raised
    joint   the one multiplier of all channels, which is then in no table; None: they
            differ
    """

    shift: int
    base: int
    offsets: Ints
    multipliers: Ints
    low: int
    high: int
    below: Ints | None = None
    exact: Exact | None = None
    raised: int | None = None
    joint: int | None = field(default=None, metadata=ARGUMENT)

    @property
    def clamped(self) -> bool:
        """True if the clamp is tighter than int8's own limits."""
        return (self.low, self.high) != (-128, 127)

    def added(self, bias: Array) -> Ints:
        """Return the value that is added to sums before their epilogue: 0 for channels
        that use the rule itself, which adds the bias."""
        return np.where(self.multipliers < 0, 0, bias.astype(np.int64))

    def rows(self, bias: Array) -> Ints:
        """Return the rows of `exact`, for the channels that use it."""
        assert self.exact is not None
        return self.exact.columns(bias)[self.multipliers < 0]

    def columns(self, bias: Array, bits: int = FRACTION) -> Ints:
        """Return each channel's start value, times 2^bits, and the numbers of its
        epilogue.

        Shapes  bias [O]; returns [O, 2], [O, 4] with `below`, or [O, 1] where joint
        """
        start = self.added(bias) << bits
        if self.joint is not None:
            return (start + self.offsets)[:, None]
        columns = [start + self.offsets, self.multipliers]
        if self.below is not None:
            columns = [start, self.offsets, self.below, self.multipliers]
        return np.stack(columns, axis=1)

    @property
    def row(self) -> str:
        """`columns` for readers of the C."""
        if self.joint is not None:
            return "256 * bias + offset"
        if self.below is None:
            return "256 * bias + offset, factor"
        return "256 * bias, offset, what is added to it below zero, factor"

    @property
    def key(self) -> str:
        """The key that distinguishes the code of two layers."""
        parts = (
            "signed" if self.below is not None else "",
            "joint" if self.joint is not None else "",
            "based" if self.base else "",
            ends_key(self),
            f"shift{self.shift}",
            self.exact.key if self.exact is not None else "",
        )
        return "_".join(p for p in parts if p)

    @property
    def words(self) -> str:
        """The form in words, for readers of the C."""
        form = told_form(self.below is not None, self.clamped)
        if self.exact is None:
            return form
        return f"{form}; where the factor is below 0, {self.exact.words}"


def with_one_factor(end: End) -> End | Affine:
    """Return the epilogue with one factor for all channels, if possible: for layers
    with a single scale."""
    if not isinstance(end, Affine) or end.below is not None or end.exact is not None:
        return end
    first = int(end.multipliers[0])
    return replace(end, joint=first) if (end.multipliers == first).all() else end


def ends_key(form: Affine) -> str:
    """The part of the key that depends on the clamp."""
    if form.raised is not None:
        return "raised"
    return "clamped" if form.clamped else ""


def affine(made: ConvParameters, low: Ints, high: Ints) -> Affine | None:
    """Return the cheap form of a layer's requantisation, or None if a channel has none.

    Shapes  low, high: the accumulators, bias included, of each output channel
    """
    return _of_rule(made, low, high)


def affine_or_exact(made: ConvParameters, low: Ints, high: Ints) -> Affine | Exact:
    """Return the cheap form, with the rule itself for channels that have none."""
    found = _proven(made, tuple(low.tolist()), tuple(high.tolist()))
    whole = exact(made, len(low))
    if found is None:
        return whole
    form, missing = found
    if not missing.any():
        return form
    rows = np.cumsum(missing) - 1
    factors = np.where(missing, ~(rows * whole.size), form.multipliers)
    return replace(form, multipliers=factors, exact=whole)


def _of_rule(made: ConvParameters, low: Ints, high: Ints) -> Affine | None:
    found = _proven(made, tuple(low.tolist()), tuple(high.tolist()))
    return None if found is None or found[1].any() else found[0]


@functools.lru_cache(_MOST)
def _proven(
    made: ConvParameters, lows: tuple[int, ...], highs: tuple[int, ...]
) -> tuple[Affine, Flags] | None:
    """Return the form that fits most channels, and flags for those it does not fit;
    None if it fits none. Cached: several families of kernels ask for the same layer."""
    low, high = np.asarray(lows, np.int64), np.asarray(highs, np.int64)
    mult = np.broadcast_to(np.asarray(made.multipliers, np.int64), low.shape)
    bits = np.broadcast_to(np.asarray(made.shifts, np.int64), low.shape)
    # beyond it a multiplier would not fit its 31 bits
    able = (low >= -REACH) & (high <= REACH) & ((bits <= _MOST_BITS) | (mult == 0))
    some = able & (mult > 0)
    most = min(7 - int(bits[some].max(initial=-15)), 22)
    stairs = staircase(made, some, low, high)
    if stairs is None or not able.any():
        return None
    fewest: tuple[int, int, int, Ints, Flags] | None = None
    shifts = [s for s in SHIFTS if s < most] + [most]
    # of scales in float32 steps next to ties fit no multiplier, or all
    far = NEAR if made.rounding == "even" else FAR
    for based, shift in itertools.product((False, True), shifts):
        base = (made.y_zero << shift) + (1 << shift - 1) if based else 0
        if not based and not some[able].all():
            continue
        nearest = mult[some] >> (7 - bits[some] - shift)
        one = replace(stairs, shift=shift, base=base)
        if fewest is not None:
            # those without a form so far say soon that there are as many
            hard = np.flatnonzero(fewest[-1])
            missing = searched(some_of(one, hard), nearest[hard], far)[1]
            if int(missing.sum()) >= fewest[0]:
                continue
        chosen, missing = searched(one, nearest, far)
        count = int(missing.sum())
        if fewest is None or count < fewest[0]:
            fewest = count, shift, base, chosen, missing
        if count == 0:
            break
    assert fewest is not None  # with a base nothing is left out
    _, shift, base, chosen, missing = fewest
    # a scale of 0 gives the zero point, whatever the offset is
    found, left = np.zeros((3, len(low)), np.int64), ~able
    found[:, some], left[some] = chosen, missing
    if left.all():
        return None
    multiplier, above, under = found
    below = under - above if bool((above != under).any()) else None
    form = Affine(shift, base, above, multiplier, made.low, made.high, below)
    return form, left


def of_products(made: MulParameters) -> Affine | None:
    """Return the cheap form of an int8 mul."""
    return _of_rule(*products(made))


def of_means(made: MeanParameters) -> Affine | None:
    """Return the cheap form of an int8 mean, for sums of values less their zero
    points."""
    low, high = (np.asarray([made.count * (e - made.x_zero)]) for e in (-128, 127))
    if max(-int(low[0]), int(high[0])) >= REACH:
        return None
    return _of_rule(_one_channel(made), low, high)


def _one_channel(made: MulParameters | MeanParameters) -> ConvParameters:
    return ConvParameters(
        made.rounding, (made.multiplier,), (made.shift,), (), 0, made.y_zero, made.low,
        made.high,
    )  # fmt: skip


def products(made: MulParameters) -> tuple[ConvParameters, Ints, Ints]:
    """Return an int8 mul as a layer of one channel, with its least and greatest sum:
    the products of values less their zero points."""
    a, b = (np.asarray([-128, 127]) - zero for zero in (made.a_zero, made.b_zero))
    corners = np.outer(a, b)
    low, high = corners.min(keepdims=True)[0], corners.max(keepdims=True)[0]
    assert max(-int(low[0]), int(high[0])) < REACH
    return _one_channel(made), low, high
