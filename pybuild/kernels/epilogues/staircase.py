"""The steps of a rounding rule, and the search for multipliers and offsets with the
same steps. Each value begins at some accumulator: every such step is checked on both
sides. Knows no kernel.
"""

from __future__ import annotations

import functools
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from pybuild.dtype import Ints
from pybuild.ops.conv import ConvParameters
from pybuild.ops.fixed_point.chunks import chunks
from pybuild.ops.fixed_point.quant import requantize
from pybuild.records import dataclass

FRACTION = 8  # bits below the unit of an accumulator when it is multiplied
REACH = 1 << 22  # accumulators, bias included, are smaller than this
FAR, NEAR = 512, 8  # of multipliers from the nearest, that are tried
_LARGEST = (1 << 30) - (1 << 24)  # offset: 256 * REACH + offset stays in int32
_AROUND = 6  # accumulators about where a step should be
_FEW = 3  # slopes at which it is seen which steps decide
_TURNS = 2  # after which an end has hardly anything left to move
_FAR = 1 << 62
_ROUNDED = 2.0**-40  # more than what quotients of doubles are off

Flags = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]
# for each offset
Sides = tuple[tuple[Flags, Flags], ...]


@dataclass(frozen=True)
class Staircase:
    """The accumulators at which a layer's values begin.

    low, high  the range of accumulators of each channel, both included
    steps      [channel, step] the values, each of which is reached at one accumulator
    first      [channel, step] the least accumulator that reaches a step; low: all reach
               it, high + 1: none does
    """

    shift: int
    base: int
    low: Ints
    high: Ints
    steps: Ints
    first: Ints


def staircase(
    made: ConvParameters, some: Flags, low: Ints, high: Ints
) -> Staircase | None:
    """Return the staircase of some channels, or None if a step is not near its expected
    place.

    Shapes  some, low, high: of all output channels
    """
    mult, bits, scales = (
        np.broadcast_to(np.asarray(each), some.shape)[some] if len(each) else None
        for each in (made.multipliers, made.shifts, made.scales)
    )
    assert mult is not None and bits is not None
    low, high = low[some], high[some]
    steps = np.arange(made.low + 1, made.high + 1, dtype=np.int64)
    first = np.empty((len(low), len(steps)), np.int64)
    for part in chunks(np.arange(len(low)), _AROUND * max(1, len(steps))):
        factors = None if scales is None else scales[part]
        found = _first_of(made, mult[part], bits[part], factors, steps)
        if found is None:
            return None
        first[part] = np.clip(found, low[part, None], high[part, None] + 1)
    return Staircase(0, 0, low, high, np.broadcast_to(steps, first.shape), first)


def _first_of(
    made: ConvParameters, mult: Ints, bits: Ints, scales: Floats | None, steps: Ints
) -> Ints | None:
    """Return the least accumulator that reaches each step, [channel, step]; None if a
    step is not near its expected place."""
    real = mult * 2.0 ** (bits - 31.0)
    values = steps - made.y_zero - 0.5
    place = values / real[:, None]
    rule = _Rule(made, mult, bits, scales)
    # almost all are where a real product reaches them; a rule that rounds twice has
    # rounded it to an integer before it shifts, up, and takes 1 off below zero
    likely = place
    if made.rounding == "double":
        ends = np.where(bits < 0, 2.0 ** (bits - 1.0), 0)
        likely = (values + np.outer(ends, np.where(values < 0, 1, -1))) / real[:, None]
    first = np.ceil(np.clip(likely, -REACH, REACH)).astype(np.int64)
    far = np.arange(len(mult))[:, None]
    sure = rule.reached(first, far, steps) & ~rule.reached(first - 1, far, steps)
    rows, which = np.nonzero(~sure)
    guess = np.floor(place[rows, which])
    near = np.clip(guess, -REACH, REACH).astype(np.int64)[:, None]
    near = near + np.arange(-2, _AROUND - 2)
    reached = rule.reached(near, rows[:, None], steps[which, None])
    inside = np.abs(guess) < REACH - 4
    if bool(((reached[:, 0] | ~reached[:, -1]) & inside).any()):
        return None
    first[rows, which] = near[:, 0] + (~reached).sum(-1)
    return first


@dataclass(frozen=True)
class _Rule:
    """The reference's rounding, for a few channels."""

    made: ConvParameters
    mult: Ints
    bits: Ints
    scales: Floats | None

    def reached(self, acc: Ints, channel: Ints, steps: Ints) -> Flags:
        """Return whether accumulators of channels reach steps; shapes broadcast."""
        made = self.made
        if made.rounding == "even" and self.scales is not None:
            factors = self.scales.astype(np.float32)[channel]
            reals = np.rint(acc.astype(np.float32) * factors)
            whole = reals.clip(-_FAR, _FAR).astype(np.int64)
        else:
            given = self.mult[channel], self.bits[channel]
            whole = requantize(acc, *given, made.rounding)
        return np.asarray(whole + made.y_zero >= steps)


def searched(stairs: Staircase, nearest: Ints, far: int) -> tuple[Ints, Flags]:
    """Search multipliers, offsets from 0 on, and offsets below 0: return [3, channel],
    and flags for the channels without a solution. For each channel the first
    multiplier, from the nearest on, is taken for which an offset exists: one for all
    accumulators, else one of their own for negative ones.

    far  the greatest distance of multipliers from the nearest
    """
    count = len(nearest)
    found = np.zeros((3, count), np.int64)
    missing = np.ones(count, bool)
    each = max(2 * far + 1, stairs.first.shape[1])
    for part in chunks(np.arange(count), each):
        for apart in (False, True):
            left = part[missing[part]]
            good, chosen = _first(some_of(stairs, left), nearest[left], far, apart)
            found[:, left[good]] = chosen[:, good]
            missing[left[good]] = False
    return found, missing


def _first(
    stairs: Staircase, nearest: Ints, far: int, apart: bool
) -> tuple[Flags, Ints]:
    """For each channel, return the first multiplier for which an offset exists. Mostly
    it is the nearest. Of the others, only those within the bounds of real arithmetic
    are tried: first with the deciding steps, then with all steps.

    apart  whether negative accumulators may have an offset of their own
    """
    good, chosen = _pick(stairs, nearest, apart)
    left = np.flatnonzero(~good)
    if not left.size or not stairs.steps.size:
        return good, chosen
    multipliers = nearest[left, None] + outwards(far)
    stairs, sides = some_of(stairs, left), _sides(some_of(stairs, left), apart)
    unit = 2.0 ** (24 + stairs.shift)
    ends = np.maximum(nearest[left] - far, 1) / unit, (nearest[left] + far) / unit
    low, high = _between(stairs, sides, *ends)
    able = multipliers >= (low * unit * (1 - _ROUNDED))[:, None]
    able &= multipliers <= (high * unit * (1 + _ROUNDED))[:, None]
    few = _deciding(stairs, sides, low, high)
    for pairs in chunks(np.argwhere(able), few.steps.shape[1]):
        rows, which = pairs.T
        given = some_of(few, rows), multipliers[rows, which]
        able[rows, which] = _pick(*given, apart)[0]
    while (some := np.flatnonzero(able.any(1))).size:
        which = able[some].argmax(1)
        known, made = _pick(some_of(stairs, some), multipliers[some, which], apart)
        good[left[some]], chosen[:, left[some]] = known, made
        able[some, which] = False
        able[some[known]] = False
    return good, chosen


@functools.cache
def outwards(far: int) -> Ints:
    """Return -1, 1, -2, 2, ... up to `far`."""
    return np.asarray(sorted(range(-far, far + 1), key=abs)[1:], np.int64)


def some_of(stairs: Staircase, part: Ints) -> Staircase:
    """Return the staircase of the channels in `part`."""
    return replace(
        stairs, low=stairs.low[part], high=stairs.high[part],
        steps=stairs.steps[part], first=stairs.first[part],
    )  # fmt: skip


def _between(
    stairs: Staircase, sides: Sides, low: Floats, high: Floats
) -> tuple[Floats, Floats]:
    """Narrow the range of slopes, in values per accumulator, to those possible in real
    arithmetic. If one offset serves two steps whose values are v apart and whose
    accumulators are f apart, then v < slope * (f + 1). At either end of the range the
    two most demanding steps are found, and the end moves to where they are satisfied:
    no offset exists for the slopes that this excludes."""
    rows = np.arange(len(low))
    for side in sides * _TURNS:
        for slope in (low, high):
            one, other, both = _outermost(stairs, side, slope)
            value = stairs.steps[rows, one] - stairs.steps[rows, other]
            past = stairs.first[rows, one] - stairs.first[rows, other] + 1
            asked = both & (value >= slope * past)
            bound = value / np.where(past == 0, 1, past)
            low = np.where(asked & (past > 0), np.maximum(low, bound), low)
            bound = np.where(past == 0, 0, bound)
            high = np.where(asked & (past <= 0), np.minimum(high, bound), high)
    return low, high


def _deciding(stairs: Staircase, sides: Sides, low: Floats, high: Floats) -> Staircase:
    """Return, for each channel, the steps that leave the least room at a few of these
    slopes."""
    slopes = [low + part * (high - low) for part in np.linspace(0, 1, _FEW)]
    found = [_outermost(stairs, side, slope) for side in sides for slope in slopes]
    which = np.stack([steps for one, other, _ in found for steps in (one, other)], 1)
    steps, first = (
        np.take_along_axis(a, which, 1) for a in (stairs.steps, stairs.first)
    )
    return replace(stairs, steps=steps, first=first)


def _outermost(
    stairs: Staircase, side: tuple[Flags, Flags], slope: Floats
) -> tuple[Ints, Ints, Flags]:
    """Return, for each channel, the step that needs the greatest offset, the one that
    needs the least, and whether both exist."""
    over = stairs.steps - slope[:, None] * stairs.first
    at, before = side
    one = np.where(at, over, -_FAR).argmax(1)
    other = np.where(before, over, _FAR).argmin(1)
    rows = np.arange(len(slope))
    return one, other, at[rows, one] & before[rows, other]


def _pick(stairs: Staircase, multipliers: Ints, apart: bool) -> tuple[Flags, Ints]:
    """Check one multiplier for each channel: return whether an offset exists, and the
    multiplier with the middle of the possible offsets, as in `searched`."""
    least, most = _ends(stairs, multipliers)
    rooms = [_room(least, most, *side) for side in _sides(stairs, apart)]
    valid = (multipliers > 0) & (multipliers < 1 << 31)
    good = np.logical_and.reduce([valid, *(low <= high for low, high in rooms)])
    middles = [(low + high) >> 1 for low, high in (rooms[0], rooms[-1])]
    return good, np.stack([multipliers, *middles])


def _ends(stairs: Staircase, multipliers: Ints) -> tuple[Ints, Ints]:
    """Return the least and the greatest offset that keep each step in place: [channel,
    step]."""
    m = np.clip(multipliers, 1, (1 << 31) - 1)[:, None]
    # the least 256 * acc + offset whose value is at least the step
    wanted = (stairs.steps << stairs.shift) - stairs.base
    edge = _quotients(wanted << 32, m)
    least = edge - (stairs.first << FRACTION)
    most = edge - 1 - ((stairs.first - 1) << FRACTION)
    return least, most


def _quotients(of: Ints, by: Ints) -> Ints:
    """Return quotients rounded up, for results below 2^52, as all are for which an
    offset exists. They are computed in doubles, at most one off, and corrected; integer
    division is far slower."""
    near = np.ceil(of / by).astype(np.int64)
    rest = near * by
    rest -= of
    near += rest < 0
    near -= rest >= by
    return near


def _sides(stairs: Staircase, apart: bool) -> Sides:
    """Return the masks [channel, step] for the least and the greatest of `_ends`: with
    one offset; or with two, for accumulators from 0 on and for negative ones."""
    first = stairs.first
    at = first <= stairs.high[:, None]
    before = first > stairs.low[:, None]
    if not apart:
        return ((at, before),)
    above = at & (first >= 0), before & (first >= 1)
    below = at & (first < 0), before & (first < 1)
    return above, below


def _room(least: Ints, most: Ints, at: Flags, before: Flags) -> tuple[Ints, Ints]:
    """Return the range of offsets that keep every step in place."""
    low = np.where(at, least, -_LARGEST).max(-1, initial=-_LARGEST)
    high = np.where(before, most, _LARGEST).min(-1, initial=_LARGEST)
    return low, high
