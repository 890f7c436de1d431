"""Requantisation by two 32-bit products, proven equal to the reference. For cores
without a high multiplication: the multiplier is split in two parts, so that each
product with an accumulator fits 32 bits. Every step of the rounding rule is checked on
both sides. Knows no kernel.
"""

from __future__ import annotations

import functools
import itertools
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from pybuild.dtype import Array, Ints
from pybuild.kernels.epilogues.exact import Exact, exact
from pybuild.kernels.epilogues.staircase import (
    NEAR,
    REACH,
    Flags,
    Staircase,
    outwards,
    staircase,
)
from pybuild.ops.conv import ConvParameters
from pybuild.ops.fixed_point.chunks import chunks
from pybuild.records import dataclass

# bits of the multiplier's lower part, tried in this order: layers with the same
# part share their kernels
PARTS = (12, 11, 10, 9, 13, 14)
# layers whose forms are remembered: kernels of several families, of several cores, ask
# for the same layer
_LAYERS = 1024
_LOST = 3  # shifts below the greatest that are tried
_MOST_SHIFT = 22  # a value of int8 and more above it stay in int32
_INT32 = 1 << 31
_FAR = 1 << 30  # more than offsets

# what is added to the nearest multiplier, in this order
_TRIED = outwards(NEAR)

Reals = npt.NDArray[np.float64]
_Rooms = tuple[tuple[Ints, Ints], tuple[Ints, Ints]]


@dataclass(frozen=True)
class Split:
    """y = (acc * upper + (acc * lower >> part) + offset + (acc < 0 ? below : 0)) >>
    shift, clamped to low..high; no intermediate value leaves int32.

    limit   accumulators are first clamped to -limit..limit, outside of which the value
            no longer changes; None: not needed
    exact   the rule for channels without such a form: their `uppers` is negative, ~ the
            index of the first word of their row; None: all channels have the form
    Shapes  uppers, lowers, offsets, shifts, below: one per output channel
    """

    part: int
    uppers: Ints
    lowers: Ints
    offsets: Ints
    shifts: Ints
    low: int
    high: int
    below: Ints | None = None
    limit: int | None = None
    exact: Exact | None = None

    def added(self, bias: Array) -> Ints:
        """The value that is added to sums before their epilogue: nothing if the rule
        itself adds the bias."""
        return np.where(self.uppers < 0, 0, bias.astype(np.int64))

    def rows(self, bias: Array) -> Ints:
        """The table of `exact`, one row after the other."""
        assert self.exact is not None
        return self.exact.columns(bias)[self.uppers < 0]

    @property
    def clamped(self) -> bool:
        """True if the clamp is tighter than int8's own limits."""
        return (self.low, self.high) != (-128, 127)

    @property
    def key(self) -> str:
        """The key that distinguishes the code of two layers."""
        signed = "signed" if self.below is not None else ""
        clamped = "clamped" if self.clamped else ""
        held = "held" if self.limit is not None else ""
        rule = self.exact.key if self.exact is not None else ""
        parts = (f"split{self.part}", signed, held, clamped, rule)
        return "_".join(p for p in parts if p)

    @property
    def words(self) -> str:
        """`key` in words, for readers of the C."""
        first = "" if self.limit is None else "held within a limit, then "
        return (
            f"{first}requantises by two products of 32 bits, with the upper and the "
            f"lower {self.part} bits of the channel's factor"
            + ("" if self.exact is None else f"; below 0, {self.exact.words}")
        )


def split(made: ConvParameters, low: Ints, high: Ints) -> Split | None:
    """Return the form of a layer's requantisation, or None if a channel has none.

    Shapes  low, high: the accumulators, bias included, of each output channel
    """
    found = _proven(made, tuple(low.tolist()), tuple(high.tolist()))
    return None if found is None or found[1].any() else found[0]


def split_or_exact(made: ConvParameters, low: Ints, high: Ints) -> Split | Exact:
    """Return the form, with the rule itself for channels that have none."""
    found = _proven(made, tuple(low.tolist()), tuple(high.tolist()))
    whole = exact(made, len(low))
    if found is None:
        return whole
    form, missing = found
    if not missing.any():
        return form
    rows = np.cumsum(missing) - 1
    uppers = np.where(missing, ~(rows * whole.size), form.uppers)
    return replace(form, uppers=uppers, exact=whole)


@functools.lru_cache(_LAYERS)
def _proven(
    made: ConvParameters, lows: tuple[int, ...], highs: tuple[int, ...]
) -> tuple[Split, Flags] | None:
    """Return the form that fits most channels, and flags for those it does not fit;
    None if it fits none."""
    low, high = np.asarray(lows, np.int64), np.asarray(highs, np.int64)
    mult = np.broadcast_to(np.asarray(made.multipliers, np.int64), low.shape)
    bits = np.broadcast_to(np.asarray(made.shifts, np.int64), low.shape)
    able = (low >= -REACH) & (high <= REACH)
    some = able & (mult > 0)
    stairs = staircase(made, some, low, high)
    if stairs is None or not able.any():
        return None
    real = mult[some] * 2.0 ** (bits[some] - 31)
    steps = np.where(stairs.first > high[some, None], stairs.first - 1, stairs.first)
    limit = int(np.abs(steps).max(initial=0)) + 1
    reach = int(np.maximum(-low, high)[able].max(initial=1)) + 1
    fewest: tuple[int, int | None, int, Ints, Flags] | None = None
    hard = np.ones(len(real), bool)
    for held, part in itertools.product((None, limit), PARTS):
        most = reach if held is None else min(reach, limit)
        search = _Search(stairs, real, part, most)
        # those without a form so far say soon that there are as many
        search.try_some(np.flatnonzero(hard))
        if fewest is not None and int(search.missing[hard].sum()) >= fewest[0]:
            continue
        search.try_some(np.flatnonzero(~hard))
        count = int(search.missing.sum())
        if fewest is None or count < fewest[0]:
            fewest = count, held, part, search.rows, search.missing
            hard = search.missing
        if count == 0:
            break
    assert fewest is not None
    _, held, part, found, missing = fewest
    left = ~able
    left[some] = missing
    return None if left.all() else (_made(made, found, some, part, held), left)


def _made(
    made: ConvParameters, found: Ints, some: Flags, part: int, held: int | None
) -> Split:
    """Add the channels whose scale is 0 to `found`: their value is the zero point."""
    whole = np.zeros((4, len(some)), np.int64)
    whole[1:3] = made.y_zero
    whole[:, some] = found
    multiplier, above, under, shifts = whole
    below = under - above if bool((above != under).any()) else None
    mask = (1 << part) - 1
    return Split(part, multiplier >> part, multiplier & mask, above, shifts,
                 made.low, made.high, below, held)  # fmt: skip


class _Search:
    """Multipliers, offsets from 0 on, offsets below 0 and shifts of channels: `rows`
    [4, channel]; `missing`: which have none.

    reach  accumulators are less, of either sign
    """

    def __init__(self, stairs: Staircase, real: Reals, part: int, reach: int) -> None:
        self.stairs, self.real, self.part, self.reach = stairs, real, part, reach
        self.rows = np.zeros((4, len(real)), np.int64)
        self.missing = np.ones(len(real), bool)
        bits = 2 * part - np.ceil(np.log2(real)).astype(np.int64)
        self.most = np.minimum(bits, _MOST_SHIFT + part) - part

    def try_some(self, channels: Ints) -> None:
        if self.reach << self.part > _INT32:
            return
        for apart, lost in itertools.product((False, True), range(_LOST)):
            left = channels[self.missing[channels]]
            left = left[self.most[left] >= lost]
            size = max(1, self.stairs.first.shape[1]) * len(_TRIED)
            for few in chunks(left, size):
                self._try(few, self.most[few] - lost, apart)

    def _try(self, few: Ints, shifts: Ints, apart: bool) -> None:
        """Try the nearest multiplier, then those around it."""
        scaled = self.real[few] * 2.0 ** (self.part + shifts)
        nearest = np.rint(scaled).astype(np.int64)
        good = self._take(few, shifts, nearest[:, None], apart)
        few, shifts, near = few[~good], shifts[~good], nearest[~good, None] + _TRIED
        if not few.size:  # as where clamping leaves one value, without any step
            return
        # the steps that leave the outermost of them the least room leave some to one
        deciding = self._deciding(few, shifts, near[:, -2:])
        rooms = self._rooms(few, shifts, near, apart, deciding)
        able = _left(rooms).any(1)
        self._take(few[able], shifts[able], near[able], apart)

    def _take(self, few: Ints, shifts: Ints, multipliers: Ints, apart: bool) -> Flags:
        """Of each channel the first multiplier that some offset completes, where
        neither the products nor their sum leave int32. For which there was one.

        apart  accumulators below 0 may have an offset of their own
        """
        rooms = self._rooms(few, shifts, multipliers, apart)
        left = _left(rooms)
        good = np.asarray(left.any(1))
        which = np.arange(len(few)), left.argmax(1)
        multiplier = multipliers[which]
        above, under = ((low[which] + high[which]) >> 1 for low, high in rooms)
        most = self.reach * ((multiplier >> self.part) + 1)
        offset = np.abs([above, under, under - above]).max(0)
        fits = good & (multiplier > 0) & (most + offset + self.reach < _INT32)
        self.rows[:, few[fits]] = np.stack([multiplier, above, under, shifts])[:, fits]
        self.missing[few[fits]] = False
        return good

    def _deciding(self, few: Ints, shifts: Ints, multipliers: Ints) -> Ints:
        """[channel, some] the steps that leave the least room to one of these."""
        least, most, sides = self._ends(few, shifts, multipliers, None)
        found = []
        for at, before in sides:
            found += [np.where(at, least, -_FAR).argmax(-1)]
            found += [np.where(before, most, _FAR).argmin(-1)]
        return np.concatenate(found, axis=1)

    def _rooms(
        self, few: Ints, shifts: Ints, multipliers: Ints, apart: bool,
        which: Ints | None = None,
    ) -> _Rooms:  # fmt: skip
        """[channel, multiplier] the least and the greatest offset that keep every step
        where it is, or those of `which`; from 0 on, and below."""
        least, most, sides = self._ends(few, shifts, multipliers, which)
        up, down = (_room(least, most, *flags) for flags in sides)
        if not apart:
            up = down = (np.maximum(up[0], down[0]), np.minimum(up[1], down[1]))
        return up, down

    def _ends(
        self, few: Ints, shifts: Ints, multipliers: Ints, which: Ints | None
    ) -> tuple[Ints, Ints, tuple[tuple[Flags, Flags], tuple[Flags, Flags]]]:
        """[channel, multiplier, step] the least and the greatest offset that keep a
        step where it is, and which of both count from 0 on, and below."""
        first = self.stairs.first[few]
        steps = self.stairs.steps[few]
        if which is not None:
            first = np.take_along_axis(first, which, 1)
            steps = np.take_along_axis(steps, which, 1)
        first, wanted = first[:, None, :], (steps << shifts[:, None])[:, None, :]
        at = first <= self.stairs.high[few, None, None]
        before = first > self.stairs.low[few, None, None]
        least = wanted - (first * multipliers[..., None] >> self.part)
        most = wanted - 1 - ((first - 1) * multipliers[..., None] >> self.part)
        above = at & (first >= 0), before & (first >= 1)
        below = at & (first < 0), before & (first < 1)
        return least, most, (above, below)


def _left(rooms: _Rooms) -> Flags:
    """Return flags for the multipliers that some offset completes."""
    (low, high), (least, most) = rooms
    return (low <= high) & (least <= most)


def _room(least: Ints, most: Ints, at: Flags, before: Flags) -> tuple[Ints, Ints]:
    """Return the range of offsets that keep every step in place."""
    low = np.where(at, least, -_FAR).max(-1, initial=-_FAR)
    high = np.where(before, most, _FAR).min(-1, initial=_FAR)
    return low, high
