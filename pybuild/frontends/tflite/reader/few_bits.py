"""Constants of fewer than 8 bits: several in a byte, the first in its lowest bits."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from pybuild.dtype import Array

BITS = {"INT4": 4, "INT2": 2}  # of the types of a file


def unpacked(data: npt.NDArray[np.uint8], count: int, bits: int) -> Array:
    """Return signed integers of so many bits as int8."""
    up = np.arange(8 - bits, -1, -bits, dtype=np.uint8)
    parts = np.left_shift(data[:, None], up).reshape(-1)[:count]
    values: Array = parts.view(np.int8) >> (8 - bits)
    return values
