"""Sums whose rounded value is the same at both of their ends: and so for all between,
as rules of rounding never fall. Must not know which operator asks.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from pybuild.dtype import Ints
from pybuild.records import dataclass

_LOW, _HIGH = -(2**31), 2**31 - 1
_WIDE = 2**47  # of sums that are scaled by 15 bits


@dataclass(frozen=True)
class Still:
    """flags   which channels give one value
    values  that value, where there is one
    """

    flags: npt.NDArray[np.bool_]
    values: Ints


def sum_ends(
    start: Ints, reach: tuple[Ints, Ints], wide: bool
) -> tuple[Ints, npt.NDArray[np.bool_]]:
    """([least, greatest] sum of each channel, whether they are known).

    start  what is added to what is between the two of `reach`
    wide   sums are int64; else one that may leave int32 may be any int32
    """
    # in halves, as int64 may not have a whole
    halves = [start // 2 + end // 2 for end in reach]
    sure = np.abs(np.stack(halves)).max(0) < 2**61
    ends = np.stack([np.where(sure, start, 0) + np.where(sure, e, 0) for e in reach])
    if wide:
        return ends, sure
    out = ~sure | (ends[0] < _LOW) | (ends[1] > _HIGH)
    return np.stack([np.where(out, _LOW, ends[0]), np.where(out, _HIGH, ends[1])]), (
        np.ones(len(start), bool)
    )


def fits(
    ends: Ints, multipliers: Sequence[int], shifts: Sequence[int], rounding: str
) -> npt.NDArray[np.bool_]:
    """The channels for which `requantize` gives the true value at both ends."""
    if rounding == "double":
        left = np.maximum(np.asarray(shifts), 0)
        low, high = (np.ldexp(end.astype(np.float64), left) for end in ends)
        return np.asarray((low >= _LOW) & (high <= _HIGH))
    most = np.abs(ends).max(0).astype(np.float64)
    bits = 15 if rounding == "wide" else 31
    scaled = most * np.ldexp(np.asarray(multipliers, np.float64),
                             np.asarray(shifts) - bits)  # fmt: skip
    right = bits - np.asarray(shifts) > 0  # none shifts to the left
    return np.asarray((most < _WIDE) & (scaled < 2.0**31) & right)
