"""The staircase of a rounding rule, and multipliers with offsets that have the same.

Each value begins at some accumulator: every such step is checked on both sides. Knows
no kernel.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from pybuild.dtype import Ints
from pybuild.ops.conv import ConvParameters
from pybuild.ops.fixed_point.chunks import chunks
from pybuild.ops.fixed_point.quant import requantize

FRACTION = 8  # bits below the unit of an accumulator when it is multiplied
REACH = 1 << 22  # accumulators, bias included, are smaller than this
DISTANCES = (0, 1, 8, 64, 512)  # of multipliers from the nearest, widening
_LARGEST = (1 << 30) - (1 << 24)  # offset: 256 * REACH + offset stays in int32
_BATCH = 1 << 18  # steps looked at together
_AROUND = 6  # accumulators about where a step should be
_FEW = 9  # multipliers at which it is seen which steps decide
_FAR = 1 << 62
_ROUNDED = 2.0**-40  # more than what quotients of doubles are off

Flags = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]


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
    return Staircase(0, 0, low, high, steps, first)


def _first_of(
    made: ConvParameters, mult: Ints, bits: Ints, scales: Floats | None, steps: Ints
) -> Ints | None:
    """[channel, step] the least accumulator that reaches a step, of a few channels:
    _AROUND are looked at for each. None: a step is not near where it should be."""
    real = mult * 2.0 ** (bits - 31.0)
    guess = np.floor((steps - made.y_zero - 0.5) / real[:, None])
    near = np.clip(guess, -REACH, REACH).astype(np.int64)[..., None]
    near = near + np.arange(-2, _AROUND - 2)
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
    return np.asarray(near[..., 0] + (~reached).sum(-1))


def searched(
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
    deciding = _deciding(mine, some)
    good, chosen = np.zeros(len(part), bool), np.zeros((3, len(part)), np.int64)
    # offsets of their own bound no multiplier
    open_to = np.arange(len(part))
    if not apart:
        low, high = multipliers.min(1), multipliers.max(1)
        open_to = np.flatnonzero(_may_fit(deciding, low, high))
    able = np.zeros(multipliers.shape, bool)
    few = _of(deciding, open_to)
    able[open_to] = _completed(few, multipliers[open_to], apart)[0]
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


def _may_fit(stairs: Staircase, low: Ints, high: Ints) -> Flags:
    """[channel] whether no two steps rule out all multipliers of low to high, where one
    offset serves all accumulators. Of a step and another one, whose values are v apart
    and whose accumulators are f apart, 2^(24 + shift) v < multiplier * (f + 1) holds.
    """
    at = stairs.first <= stairs.high[:, None]
    before = stairs.first > stairs.low[:, None]
    both = at[:, :, None] & before[:, None, :]
    steps, first = (a.astype(np.float64) for a in (stairs.steps, stairs.first))
    values = (steps[:, :, None] - steps[:, None, :]) * 2.0 ** (24 + stairs.shift)
    past = first[:, :, None] - first[:, None, :] + 1
    ratio = values / np.where(past == 0, 1, past)
    least = np.where(both & (past > 0), ratio, 0).max((1, 2), initial=0)
    most = np.where(both & (past < 0), ratio, _FAR).min((1, 2), initial=_FAR)
    least, most = np.maximum(least, low), np.minimum(most, high)
    fits: Flags = least <= most * (1 + _ROUNDED)
    return fits


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
