"""Requantisation by the rule itself in a few instructions: a product whose high half is
rounded as it is taken (SMMLAR), and a shift. For sums whose 256fold stays in int32;
affine.py seeks cheaper forms, exact.py has those of all other sums. Knows no kernel.
"""

# Of LiteRT's rule, rounded twice: the high half of 2 * sum * multiplier, rounded, is
# its first rounding; what its second adds before it shifts, half a step and, below
# zero, -1, is added together with the zero point. The sum's own sign serves: where it
# is below zero and the high half is 0, half a step less 1 shifts to 0, too. Rounded
# once, the bits below the high half are only what a floor cuts; ties away from zero
# are ties up for channels that have no tie below zero.

from __future__ import annotations

from dataclasses import replace

import numpy as np

from pybuild.dtype import Array, Ints
from pybuild.kernels.epilogues.affine import SHIFTS, Affine, ends_key
from pybuild.kernels.epilogues.exact import exact
from pybuild.kernels.epilogues.staircase import FRACTION, Flags
from pybuild.ops.conv import ConvParameters
from pybuild.records import dataclass

# rules, and whether they round the high half
_RULES = {"double": True, "single": False, "away": False}
_REACH = (1 << 23) - (1 << 17)  # sums are below: 256 times one and another is int32
_MOST_SHIFT = 23  # beyond it nothing is left of such a sum
_MOST_OFFSET = (1 << 31) - (1 << 24)  # what the high half of such a sum is added to


@dataclass(frozen=True)
class Rounded(Affine):
    """y = ((2 * acc * multiplier >> 32) + (base << below) - (acc < 0)) >> below + 1,
    which a clamp to low..high then ends.

    twice  the high half is rounded, and the sign counts; else both not
    Units  base is the zero point and half a step, in half steps; shift and offsets are
           of no use
    """

    twice: bool = True

    @property
    def key(self) -> str:
        """The key that distinguishes the code of two layers."""
        parts = (
            "rounded_twice" if self.twice else "rounded_once",
            ends_key(self),
            self.exact.key if self.exact is not None else "",
        )
        return "_".join(p for p in parts if p)

    @property
    def row(self) -> str:
        """`columns` for readers of the C."""
        return "256 * bias, shift less 1, factor"

    def columns(self, bias: Array, bits: int = FRACTION) -> Ints:
        """Return the same as Affine.columns, of shape [O, 3]."""
        assert self.below is not None
        return np.stack([self.added(bias) << bits, self.below, self.multipliers], 1)

    @property
    def words(self) -> str:
        """The form, for readers of the C: what a kernel has of it."""
        half = ", rounded, and -1 below zero" if self.twice else ""
        held = "low..high" if self.clamped else "int8"
        form = (
            "requantises by the rule itself: the zero point and the high half of 2 * "
            f"sum * factor{half}, shifted, held within {held}"
        )
        if self.exact is None:
            return form
        return f"{form}; where the factor is below 0, {self.exact.words}"


def rounded(
    made: ConvParameters, low: Ints, high: Ints
) -> tuple[Rounded, Flags] | None:
    """Return the form, and flags for the channels that it does not fit; None if it fits
    none.

    Shapes  low, high: the accumulators, bias included, of each output channel
    """
    if made.rounding not in _RULES:
        return None
    mult = np.broadcast_to(np.asarray(made.multipliers, np.int64), low.shape)
    right = -np.broadcast_to(np.asarray(made.shifts, np.int64), low.shape)
    none = (mult == 0) | (right > _MOST_SHIFT)
    missing = (low < -_REACH) | (high > _REACH) | ((right < 1) & ~none)
    base = 2 * made.y_zero + 1
    # a zero point that is raised is more than int8's
    missing |= ~none & (abs(base) << right.clip(1) - 1 >= _MOST_OFFSET)
    if made.rounding == "away":
        # sums of ties are multiples of 2^(30 + right) over the factor's power of two
        tie = np.int64(1) << 30 + right.clip(1, _MOST_SHIFT)
        missing |= ~none & (-low * (mult & -mult) >= tie)
    if missing.all():
        return None
    # of a scale of 0, half of twice the zero point and 1
    below = np.where(none | missing, 1, right) - 1
    form = Rounded(
        SHIFTS[0], base, np.zeros_like(low), np.where(none, 0, mult), made.low,
        made.high, below, twice=_RULES[made.rounding],
    )  # fmt: skip
    return form, missing


def with_exact(form: Rounded, missing: Flags, made: ConvParameters) -> Rounded:
    """Return the form, with the rule itself for channels that it does not fit."""
    if not missing.any():
        return form
    whole = exact(made, len(missing))
    marks = ~((np.cumsum(missing) - 1) * whole.size)
    factors = np.where(missing, marks, form.multipliers)
    return replace(form, multipliers=factors, exact=whole)


def value(form: Rounded, channel: int, acc: Array) -> Array:
    """Return the results of the form for sums, in 64 bits."""
    sums: Ints = acc.astype(np.int64)
    product = 2 * sums * form.multipliers[channel]
    assert form.below is not None
    high = (product + ((1 << 31) if form.twice else 0)) >> 32
    below = np.where(sums < 0, int(form.twice), 0)
    total = high + (form.base << int(form.below[channel])) - below
    return np.asarray(np.clip(total >> form.below[channel] + 1, form.low, form.high))
