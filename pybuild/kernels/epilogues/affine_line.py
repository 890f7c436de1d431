"""Scales sums by one 32-bit product, proven equal to a rule. For layers that can have
only a few different sums, so that the form is checked for each. Knows no kernel.
"""

from __future__ import annotations

import numpy as np

from pybuild.dtype import Ints
from pybuild.records import dataclass

# tried in this order: layers with the same shift share their kernels
SHIFTS = (21, 20, 19, 18, 17, 16, 14, 12)
MOST = 1 << 18  # sums
_NEAR = (0, 1, -1, 2, -2)  # factors next to the nearest
_INT32 = 1 << 31


@dataclass(frozen=True)
class Line:
    """y = clamp((sum * factor + offset) >> shift), all in int32."""

    factor: int
    offset: int
    shift: int
    low: int
    high: int

    @property
    def words(self) -> str:
        """The form in words, for readers of the C."""
        return "requantises by one product of 32 bits, proven equal for every sum"


def line(
    sums: Ints, wanted: Ints, scale: float, limits: tuple[int, int]
) -> Line | None:
    """Return the form of a layer, or None.

    sums    all possible sums
    wanted  the rule's result for each sum, before the clamp to `limits`
    scale   the rule's approximate scale
    """
    low, high = limits
    y = np.clip(wanted, low, high)
    for shift in SHIFTS:
        for near in _NEAR:
            factor = round(scale * 2.0**shift) + near
            offset = offset_of(sums * factor, y, shift, limits)
            if offset is not None:
                return Line(factor, offset, shift, low, high)
    return None


def offset_of(total: Ints, y: Ints, shift: int, limits: tuple[int, int]) -> int | None:
    """Return an offset for which (total + offset) >> shift, clamped to `limits`, equals
    each y, all in int32; None if there is no such offset."""
    above, below = y > limits[0], y < limits[1]
    least = np.where(above, (y << shift) - total, -_INT32).max()
    most = np.where(below, ((y + 1) << shift) - 1 - total, _INT32).min()
    offset = int(least + most) >> 1
    fits = int(np.abs(total).max()) + abs(offset) < _INT32
    return offset if least <= most and fits else None
