"""Where the table of a softmax's powers may end: what is left out changes nothing."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from pybuild.dtype import DType
from pybuild.kernels.portable.softmax import _LEFT, _last
from pybuild.ops.softmax import SoftmaxParameters, exponentials, softmax8


@pytest.mark.parametrize("dtype", (DType.INT8, DType.INT16))
@pytest.mark.parametrize("scale", (0.06, 0.1, 0.17, 0.41, 1.3))
def test_what_is_left_out_changes_no_share(scale: float, dtype: DType) -> None:
    """Of rows of a thousand elements that are all about where the table ends."""
    powers = tuple(map(int, exponentials(scale)))
    made = SoftmaxParameters("double", powers, 0, 0, dtype.low, dtype.low, dtype.high)
    last = _last(made, _LEFT)
    assert 0 < last < 255
    short = replace(made, table=(*powers[:last], *[0] * (256 - last)))
    far = np.random.default_rng(4).integers(last - 3, min(last + 9, 255), (60, 1024))
    far[:, :3] = np.arange(60)[:, None] % [3, 5, 7]
    far[np.arange(60), np.arange(60) % 3] = 0
    x = 127 - far
    np.testing.assert_array_equal(softmax8(short, x, dtype), softmax8(made, x, dtype))
