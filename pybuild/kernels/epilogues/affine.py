"""Requantisation by one high multiplication, proven equal to the reference.

A rounding rule is a staircase: each value begins at some accumulator. Here a
multiplier and an offset are sought whose staircase has the same steps; every step
is checked on both sides. A channel without them ends by the rule itself (exact.py).
Knows no kernel.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from pybuild.dtype import Array, Ints
from pybuild.kernels.epilogues.exact import Exact, exact
from pybuild.ops.conv import ConvParameters
from pybuild.ops.eltwise import MulParameters
from pybuild.ops.fixed_point.quant import requantize
from pybuild.ops.reduce import MeanParameters

FRACTION = 8  # bits below the unit of an accumulator when it is multiplied
REACH = 1 << 22  # accumulators, bias included, are smaller than this
# tried in this order: layers with the same shift share their kernels
SHIFTS = (9, 10, 12)
_LARGEST = (1 << 30) - (1 << 24)  # offset: 256 * REACH + offset stays in int32
DISTANCES = (0, 1, 8, 64, 512)  # of multipliers from the nearest, widening
# of scales in float32, whose steps next to ties fit no multiplier or all
_NEAR = DISTANCES[:3]
_BATCH = 1 << 21  # steps looked at together
_MOST_BITS = 6  # of a shift to the left
_FEW = 9  # multipliers at which it is seen which steps decide
_FAR = 1 << 62
_MOST = 256  # layers that are remembered

Flags = npt.NDArray[np.bool_]


def told_form(signed: bool, clamped: bool) -> str:
    """An `Affine` in words."""
    offset = "an offset for its sign" if signed else "offset"
    held = "low..high" if clamped else "int8"
    return (
        f"requantises by one 32-bit product: the high half of (256 * sum + {offset}) * "
        f"factor, shifted, held within {held}"
    )


@dataclass(frozen=True)
class Affine:
    """y = (((256 * acc + offset + (acc < 0 ? below : 0)) * multiplier >> 32) + base)
    >> shift, which a clamp to low..high then ends.

    Shapes  offsets, multipliers, below: one per output channel; below None: all 0
    Units   the zero point and half a step are in base or, where that is 0, in offset
    exact   the end of channels that have no such form: there the multiplier is
            less than 0, ~ the first word of the channel's row; None: all have one
    """

    shift: int
    base: int
    offsets: Ints
    multipliers: Ints
    low: int
    high: int
    below: Ints | None = None
    exact: Exact | None = None

    @property
    def clamped(self) -> bool:
        """The clamp is tighter than int8's own ends."""
        return (self.low, self.high) != (-128, 127)

    def added(self, bias: Array) -> Ints:
        """What is added to sums before they end: nothing where the rule itself adds
        the bias."""
        return np.where(self.multipliers < 0, 0, bias.astype(np.int64))

    def rows(self, bias: Array) -> Ints:
        """The table of `exact`, one row after the other."""
        assert self.exact is not None
        return self.exact.columns(bias)[self.multipliers < 0]

    def columns(self, bias: Array) -> Ints:
        """What a channel's sum starts with, and what it ends with.

        Shapes  bias [O]; returns [O, 2], or [O, 4] with `below`
        """
        start = self.added(bias) << FRACTION
        columns = [start + self.offsets, self.multipliers]
        if self.below is not None:
            columns = [start, self.offsets, self.below, self.multipliers]
        return np.stack(columns, axis=1)

    @property
    def row(self) -> str:
        """`columns` for readers of the C."""
        if self.below is None:
            return "256 * bias + offset, factor"
        return "256 * bias, offset, what is added to it below zero, factor"

    @property
    def key(self) -> str:
        """What distinguishes the code of two layers."""
        parts = (
            "signed" if self.below is not None else "",
            "based" if self.base else "",
            "clamped" if self.clamped else "",
            f"shift{self.shift}",
            self.exact.key if self.exact is not None else "",
        )
        return "_".join(p for p in parts if p)

    @property
    def words(self) -> str:
        """The form, for readers of the C: what a kernel has of it."""
        form = told_form(self.below is not None, self.clamped)
        if self.exact is None:
            return form
        return f"{form}; where the factor is below 0, {self.exact.words}"


@dataclass(frozen=True)
class Staircase:
    """Where a layer's values begin.

    low, high  accumulators of each channel, both included
    first      [channel, step] the least accumulator that reaches a step; low: all
               reach it, high + 1: none does
    """

    shift: int
    base: int
    low: Ints
    high: Ints
    steps: Ints
    first: Ints


def affine(made: ConvParameters, low: Ints, high: Ints) -> Affine | None:
    """The cheap form of a layer's requantisation, where every channel has one.

    Shapes  low, high: the accumulators, bias included, of each output channel
    """
    return _of_rule(made, low, high)


def affine_or_exact(made: ConvParameters, low: Ints, high: Ints) -> Affine | Exact:
    """The cheap form of each channel that has one, and the rule itself of others."""
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
    """The form that fits most channels, and those that it does not fit; None: it fits
    none. Several families of kernels ask for the same layer."""
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
    far = _NEAR if made.rounding == "even" else DISTANCES
    for based, shift in itertools.product((False, True), shifts):
        base = (made.y_zero << shift) + (1 << shift - 1) if based else 0
        if not based and not some[able].all():
            continue
        nearest = mult[some] >> (7 - bits[some] - shift)
        one = replace(stairs, shift=shift, base=base)
        chosen, missing = _search(one, nearest, far)
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
    """The cheap end of a mul of int8."""
    return _of_rule(*products(made))


def of_means(made: MeanParameters) -> Affine | None:
    """The cheap end of a mean of int8: of sums of values as they are, less their zero
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
    """A mul of int8 as a layer of one channel, and its least and greatest sum: of all
    products, less the zero points."""
    a, b = (np.asarray([-128, 127]) - zero for zero in (made.a_zero, made.b_zero))
    corners = np.outer(a, b)
    low, high = corners.min(keepdims=True)[0], corners.max(keepdims=True)[0]
    assert max(-int(low[0]), int(high[0])) < REACH
    return _one_channel(made), low, high


def staircase(
    made: ConvParameters, some: Flags, low: Ints, high: Ints
) -> Staircase | None:
    """Of some channels.

    Shapes  some, low, high: of all output channels
    """
    mult, bits, scales = (
        np.broadcast_to(np.asarray(each), some.shape)[some] if len(each) else None
        for each in (made.multipliers, made.shifts, made.scales)
    )
    assert mult is not None and bits is not None
    low, high = low[some], high[some]
    steps = np.arange(made.low + 1, made.high + 1, dtype=np.int64)
    real = mult * 2.0 ** (bits - 31.0)
    guess = np.floor((steps - made.y_zero - 0.5) / real[:, None])
    near = np.clip(guess, -REACH, REACH).astype(np.int64)[..., None] + np.arange(-2, 4)
    if made.rounding == "even" and scales is not None:
        factors = scales.astype(np.float32)[:, None, None]
        reals = np.rint(near.astype(np.float32) * factors)
        whole = reals.clip(-_FAR, _FAR).astype(np.int64)
    else:
        shape = mult[:, None, None], bits[:, None, None]
        whole = requantize(near, *shape, made.rounding)
    reached = whole + made.y_zero >= steps[:, None]
    inside = np.abs(guess) < REACH - 4
    if bool(((reached[..., 0] | ~reached[..., -1]) & inside).any()):
        return None
    first = near[..., 0] + (~reached).sum(-1)
    first = np.clip(first, low[:, None], high[:, None] + 1)
    return Staircase(0, 0, low, high, steps, first)


def _search(
    stairs: Staircase, nearest: Ints, distances: Sequence[int]
) -> tuple[Ints, Flags]:
    """Multipliers, offsets from 0 on, offsets below 0: [3, channel]; and which channels
    have none."""
    count = len(nearest)
    steps = np.broadcast_to(stairs.steps, stairs.first.shape)
    stairs = replace(stairs, steps=steps)
    found = np.zeros((3, count), np.int64)
    missing = np.ones(count, bool)
    for apart in (False, True):
        last = -1
        for far in distances:
            near = [d for d in range(-far, far + 1) if abs(d) > last]
            near.sort(key=abs)
            last = far
            index = np.flatnonzero(missing)
            cost = len(near) * max(1, steps.shape[1])
            for part in np.array_split(index, 1 + len(index) * cost // _BATCH):
                multipliers = nearest[part, None] + np.asarray(near, np.int64)
                good, chosen = _first(stairs, part, multipliers, apart)
                found[:, part[good]] = chosen[:, good]
                missing[part[good]] = False
    return found, missing


def _first(
    stairs: Staircase, part: Ints, multipliers: Ints, apart: bool
) -> tuple[Flags, Ints]:
    """For each channel the first multiplier that some offset completes.

    Of many multipliers all are tried with the steps that decide at some of them, and
    with all steps only the first that these let through.
    apart  accumulators below 0 may have an offset of their own
    """
    mine, tried = _of(stairs, part), multipliers.shape[1]
    if tried <= _FEW or mine.first.shape[1] <= 4 * _FEW:
        return _pick(mine, multipliers, apart)
    some = multipliers[:, np.linspace(0, tried - 1, _FEW).astype(int)]
    able = _completed(_deciding(mine, some), multipliers, apart)[0]
    good, chosen = np.zeros(len(part), bool), np.zeros((3, len(part)), np.int64)
    left = np.flatnonzero(able.any(1))
    while len(left):
        which = able[left].argmax(1)
        known, made = _pick(_of(mine, left), multipliers[left, which][:, None], apart)
        good[left[known]], chosen[:, left[known]] = True, made[:, known]
        able[left, which] = False
        left = left[~known & able[left].any(1)]
    return good, chosen


def _of(stairs: Staircase, part: Ints) -> Staircase:
    """Some channels."""
    return replace(
        stairs, low=stairs.low[part], high=stairs.high[part],
        steps=stairs.steps[part], first=stairs.first[part],
    )  # fmt: skip


def _deciding(stairs: Staircase, multipliers: Ints) -> Staircase:
    """Of each channel the steps that leave the least room to one of these."""
    least, most, sides = _ends(stairs, multipliers)
    found = []
    for at, before in sides:
        found += [np.where(at, least, -_FAR).argmax(-1)]
        found += [np.where(before, most, _FAR).argmin(-1)]
    which = np.concatenate(found, axis=1)
    steps, first = (
        np.take_along_axis(a, which, 1) for a in (stairs.steps, stairs.first)
    )
    return replace(stairs, steps=steps, first=first)


def _pick(stairs: Staircase, multipliers: Ints, apart: bool) -> tuple[Flags, Ints]:
    """As _first, with all steps at once."""
    good, *rooms = _completed(stairs, multipliers, apart)
    which = good.argmax(1)
    rows = np.arange(len(good))
    middles = [(low + high)[rows, which] >> 1 for low, high in rooms]
    return np.asarray(good.any(1)), np.stack([multipliers[rows, which], *middles])


def _completed(
    stairs: Staircase, multipliers: Ints, apart: bool
) -> tuple[Flags, tuple[Ints, Ints], tuple[Ints, Ints]]:
    """[channel, multiplier] which of them some offset completes, and the least and the
    greatest such offset from 0 on, and below."""
    least, most, sides = _ends(stairs, multipliers)
    up, down = (_room(least, most, *flags) for flags in sides)
    if not apart:
        up = down = (np.maximum(up[0], down[0]), np.minimum(up[1], down[1]))
    valid = (multipliers > 0) & (multipliers < 1 << 31)
    return valid & (up[0] <= up[1]) & (down[0] <= down[1]), up, down


def _ends(
    stairs: Staircase, multipliers: Ints
) -> tuple[Ints, Ints, tuple[tuple[Flags, Flags], tuple[Flags, Flags]]]:
    """[channel, multiplier, step] the least and the greatest offset that keep a step
    where it is, and which of both count from 0 on, and below."""
    m = np.clip(multipliers, 1, (1 << 31) - 1)[..., None]
    first = stairs.first[:, None, :]
    # the least 256 * acc + offset whose value is at least the step
    wanted = (stairs.steps[:, None, :] << stairs.shift) - stairs.base
    edge = -((-(wanted << 32)) // m)
    least = edge - (first << FRACTION)
    most = edge - 1 - ((first - 1) << FRACTION)
    at = first <= stairs.high[:, None, None]
    before = first > stairs.low[:, None, None]
    above = at & (first >= 0), before & (first >= 1)
    below = at & (first < 0), before & (first < 1)
    return least, most, (above, below)


def _room(least: Ints, most: Ints, at: Flags, before: Flags) -> tuple[Ints, Ints]:
    """The offsets that keep every step where it is."""
    low = np.where(at, least, -_LARGEST).max(-1, initial=-_LARGEST)
    high = np.where(before, most, _LARGEST).min(-1, initial=_LARGEST)
    return low, high
