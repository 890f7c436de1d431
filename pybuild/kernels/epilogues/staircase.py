"""The staircase of a rounding rule, and multipliers with offsets that have the same.

Each value begins at some accumulator: every such step is checked on both sides. Knows
no kernel.
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
    """Where a layer's values begin.

    low, high  accumulators of each channel, both included
    steps      [channel, step] values from which on a layer's are one more
    first      [channel, step] the least accumulator that reaches a step; low: all
               reach it, high + 1: none does
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
    """[channel, step] the least accumulator that reaches a step, of a few channels.
    None: a step is not near where it should be."""
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
    """The reference's rounding, of a few channels."""

    made: ConvParameters
    mult: Ints
    bits: Ints
    scales: Floats | None

    def reached(self, acc: Ints, channel: Ints, steps: Ints) -> Flags:
        """Whether accumulators of channels are as great as steps; shapes broadcast."""
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
    """Multipliers, offsets from 0 on, offsets below 0: [3, channel]; and which channels
    have none.

    Of each channel the first multiplier, from the nearest on, that some offset
    completes: one for all accumulators, else one of their own for those below 0.
    far  of multipliers from the nearest, at most
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
    """For each channel the first multiplier that some offset completes.

    The nearest mostly is. Of the others only those are tried that real numbers allow,
    with the steps that decide, and with all steps the first that these let through.
    apart  accumulators below 0 may have an offset of their own
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
    """-1, 1, -2, 2, ... to as far."""
    return np.asarray(sorted(range(-far, far + 1), key=abs)[1:], np.int64)


def some_of(stairs: Staircase, part: Ints) -> Staircase:
    """Some channels."""
    return replace(
        stairs, low=stairs.low[part], high=stairs.high[part],
        steps=stairs.steps[part], first=stairs.first[part],
    )  # fmt: skip


def _between(
    stairs: Staircase, sides: Sides, low: Floats, high: Floats
) -> tuple[Floats, Floats]:
    """Of the slopes of low to high, in values for an accumulator, those that real
    numbers allow are between these.

    Of a step and another one, whose values are v apart and whose accumulators are f
    apart, v < slope * (f + 1) holds if one offset serves both. At either end the two
    steps that ask for most are seen, and the end moves to where they are content: what
    it leaves out no offset completes.
    """
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
    """Of each channel the steps that leave the least room to a few of these slopes."""
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
    """[channel] the step that asks for the greatest offset, the one that asks for the
    least, and whether there are both."""
    over = stairs.steps - slope[:, None] * stairs.first
    at, before = side
    one = np.where(at, over, -_FAR).argmax(1)
    other = np.where(before, over, _FAR).argmin(1)
    rows = np.arange(len(slope))
    return one, other, at[rows, one] & before[rows, other]


def _pick(stairs: Staircase, multipliers: Ints, apart: bool) -> tuple[Flags, Ints]:
    """Of each channel's one multiplier, whether some offset completes it, and the
    middle ones of those that do; as in `searched`."""
    least, most = _ends(stairs, multipliers)
    rooms = [_room(least, most, *side) for side in _sides(stairs, apart)]
    valid = (multipliers > 0) & (multipliers < 1 << 31)
    good = np.logical_and.reduce([valid, *(low <= high for low, high in rooms)])
    middles = [(low + high) >> 1 for low, high in (rooms[0], rooms[-1])]
    return good, np.stack([multipliers, *middles])


def _ends(stairs: Staircase, multipliers: Ints) -> tuple[Ints, Ints]:
    """[channel, step] the least and the greatest offset that keep a step in place."""
    m = np.clip(multipliers, 1, (1 << 31) - 1)[:, None]
    # the least 256 * acc + offset whose value is at least the step
    wanted = (stairs.steps << stairs.shift) - stairs.base
    edge = _quotients(wanted << 32, m)
    least = edge - (stairs.first << FRACTION)
    most = edge - 1 - ((stairs.first - 1) << FRACTION)
    return least, most


def _quotients(of: Ints, by: Ints) -> Ints:
    """Rounded up, where they are less than 2^52, as all are that some offset completes:
    of doubles, at most one off, and put right. Dividing integers takes far longer."""
    near = np.ceil(of / by).astype(np.int64)
    rest = near * by
    rest -= of
    near += rest < 0
    near -= rest >= by
    return near


def _sides(stairs: Staircase, apart: bool) -> Sides:
    """[channel, step] where the least and the greatest of `_ends` count: with one
    offset; with two, from 0 on, and below."""
    first = stairs.first
    at = first <= stairs.high[:, None]
    before = first > stairs.low[:, None]
    if not apart:
        return ((at, before),)
    above = at & (first >= 0), before & (first >= 1)
    below = at & (first < 0), before & (first < 1)
    return above, below


def _room(least: Ints, most: Ints, at: Flags, before: Flags) -> tuple[Ints, Ints]:
    """The offsets that keep every step where it is."""
    low = np.where(at, least, -_LARGEST).max(-1, initial=-_LARGEST)
    high = np.where(before, most, _LARGEST).min(-1, initial=_LARGEST)
    return low, high
