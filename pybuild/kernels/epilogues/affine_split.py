"""Requantisation by two 32-bit products, proven equal to the reference.

For cores without a high multiplication: the multiplier is in two parts, so that
each product with an accumulator fits 32 bits. Every step of the rounding rule's
staircase is checked on both sides. Knows no kernel.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from pybuild.dtype import Array, Ints
from pybuild.kernels.epilogues.exact import Exact, exact
from pybuild.kernels.epilogues.staircase import (
    DISTANCES,
    REACH,
    Flags,
    Staircase,
    staircase,
)
from pybuild.ops.conv import ConvParameters

# bits of the multiplier's lower part, tried in this order: layers with the same
# part share their kernels
PARTS = (12, 11, 10, 9, 13, 14)
_LOST = 3  # shifts below the greatest that are tried
_MOST_SHIFT = 22  # a value of int8 and more above it stay in int32
_INT32 = 1 << 31

Reals = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Split:
    """y = (acc * upper + (acc * lower >> part) + offset + (acc < 0 ? below : 0))
    >> shift, which a clamp to low..high then ends; no step leaves int32.

    limit   accumulators are first held within -limit..limit, outside of which there
            is no step; None: none needs it
    exact   the end of channels that have no such form: there `uppers` is less than
            0, ~ the first word of the channel's row; None: all have one
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
        """What is added to sums before they end: nothing where the rule itself adds
        the bias."""
        return np.where(self.uppers < 0, 0, bias.astype(np.int64))

    def rows(self, bias: Array) -> Ints:
        """The table of `exact`, one row after the other."""
        assert self.exact is not None
        return self.exact.columns(bias)[self.uppers < 0]

    @property
    def clamped(self) -> bool:
        """The clamp is tighter than int8's own ends."""
        return (self.low, self.high) != (-128, 127)

    @property
    def key(self) -> str:
        """What distinguishes the code of two layers."""
        signed = "signed" if self.below is not None else ""
        clamped = "clamped" if self.clamped else ""
        held = "held" if self.limit is not None else ""
        rule = self.exact.key if self.exact is not None else ""
        parts = (f"split{self.part}", signed, held, clamped, rule)
        return "_".join(p for p in parts if p)

    @property
    def words(self) -> str:
        """`key` for readers of the C."""
        first = "" if self.limit is None else "held within a limit, then "
        return (
            f"{first}requantises by two products of 32 bits, with the upper and the "
            f"lower {self.part} bits of the channel's factor"
            + ("" if self.exact is None else f"; below 0, {self.exact.words}")
        )


def split(made: ConvParameters, low: Ints, high: Ints) -> Split | None:
    """The form of a layer's requantisation, where every channel has one.

    Shapes  low, high: the accumulators, bias included, of each output channel
    """
    found = _proven(made, low, high)
    return None if found is None or found[1].any() else found[0]


def split_or_exact(made: ConvParameters, low: Ints, high: Ints) -> Split | Exact:
    """The form of each channel that has one, and the rule itself of others."""
    found = _proven(made, low, high)
    whole = exact(made, len(low))
    if found is None:
        return whole
    form, missing = found
    if not missing.any():
        return form
    rows = np.cumsum(missing) - 1
    uppers = np.where(missing, ~(rows * whole.size), form.uppers)
    return replace(form, uppers=uppers, exact=whole)


def _proven(made: ConvParameters, low: Ints, high: Ints) -> tuple[Split, Flags] | None:
    """The form that fits most channels, and those that it does not fit; None: it fits
    none."""
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
    for held, part in itertools.product((None, limit), PARTS):
        most = reach if held is None else min(reach, limit)
        found, missing = _channels(stairs, real, part, most)
        count = int(missing.sum())
        if fewest is None or count < fewest[0]:
            fewest = count, held, part, found, missing
        if count == 0:
            break
    assert fewest is not None
    _, held, part, found, missing = fewest
    left = ~able
    left[some] = missing
    return None if left.all() else (_made(made, found, some, part, held), left)


def _channels(
    stairs: Staircase, real: Reals, part: int, reach: int
) -> tuple[Ints, Flags]:
    """What `_search` finds: [4, channel]; and for which channels it finds nothing."""
    rows = np.zeros((len(real), 4), np.int64)
    missing = np.ones(len(real), bool)
    if reach << part > _INT32:
        return rows.T, missing
    for channel, scale in enumerate(real.tolist()):
        row = _search(stairs, channel, scale, part, reach)
        if row is not None:
            rows[channel], missing[channel] = row, False
    return rows.T, missing


def _made(
    made: ConvParameters, found: Ints, some: Flags, part: int, held: int | None
) -> Split:
    """`found` with the channels whose scale is 0: they give the zero point."""
    whole = np.zeros((4, len(some)), np.int64)
    whole[1:3] = made.y_zero
    whole[:, some] = found
    multiplier, above, under, shifts = whole
    below = under - above if bool((above != under).any()) else None
    mask = (1 << part) - 1
    return Split(part, multiplier >> part, multiplier & mask, above, shifts,
                 made.low, made.high, below, held)  # fmt: skip


def _search(
    stairs: Staircase, channel: int, real: float, part: int, reach: int
) -> tuple[int, int, int, int] | None:
    """Multiplier, offset from 0 on, offset below 0, shift of one channel."""
    most = min(2 * part - int(np.ceil(np.log2(real))), _MOST_SHIFT + part)
    for apart, lost, far in itertools.product(
        (False, True), range(_LOST), DISTANCES[:3]
    ):
        shift = most - lost - part
        if shift < 0:
            continue
        near = np.asarray(sorted(range(-far, far + 1), key=abs), np.int64)
        multipliers = np.rint(real * 2.0 ** (part + shift)).astype(np.int64) + near
        chosen = _pick(stairs, channel, multipliers, part, shift, apart)
        if chosen is not None and _fits(chosen, part, reach):
            return (*chosen, shift)
    return None


def _fits(chosen: tuple[int, int, int], part: int, reach: int) -> bool:
    """Whether neither the products nor their sum leave int32."""
    multiplier, above, under = chosen
    most = reach * ((multiplier >> part) + 1)
    offset = max(abs(above), abs(under), abs(under - above))
    return multiplier > 0 and most + offset + reach < _INT32


def _pick(
    stairs: Staircase,
    channel: int,
    multipliers: Ints,
    part: int,
    shift: int,
    apart: bool,
) -> tuple[int, int, int] | None:
    """The first multiplier that some offset completes.

    apart  accumulators below 0 may have an offset of their own
    """
    first, wanted = stairs.first[channel], stairs.steps << shift
    at = first <= stairs.high[channel]
    before = first > stairs.low[channel]
    least = wanted - (first * multipliers[:, None] >> part)
    most = wanted - 1 - ((first - 1) * multipliers[:, None] >> part)
    up = _room(least, most, at & (first >= 0), before & (first >= 1))
    down = _room(least, most, at & (first < 0), before & (first < 1))
    if not apart:
        up = down = (np.maximum(up[0], down[0]), np.minimum(up[1], down[1]))
    good = (up[0] <= up[1]) & (down[0] <= down[1])
    if not good.any():
        return None
    which = int(good.argmax())
    middles = [int(ends[0][which] + ends[1][which]) >> 1 for ends in (up, down)]
    return int(multipliers[which]), middles[0], middles[1]


def _room(least: Ints, most: Ints, at: Flags, before: Flags) -> tuple[Ints, Ints]:
    """The offsets that keep every step where it is."""
    end = 1 << 30
    low = np.where(at, least, -end).max(-1, initial=-end)
    high = np.where(before, most, end).min(-1, initial=end)
    return low, high
