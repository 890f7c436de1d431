"""int4 constants of a file: two in a byte, the lower half first."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from pybuild.dtype import Array


def unpacked(data: npt.NDArray[np.uint8], count: int) -> Array:
    """int8 values from -8 to 7."""
    halves = np.stack([data << 4, data & 0xF0], 1).reshape(-1)[:count]
    values: Array = halves.view(np.int8) >> 4
    return values
