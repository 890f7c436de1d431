"""The value of a constant as the file stores it: packed, sparse, or plain."""

from __future__ import annotations

from functools import partial

import numpy as np

from pybuild.dtype import Array
from pybuild.errors import BuildError
from pybuild.frontends.tflite.reader.flat import FlatTensor, guarded
from pybuild.frontends.tflite.reader.nibbles import unpacked
from pybuild.frontends.tflite.reader.sparse import dense
from pybuild.params.budget import Budget


def stored(
    source: str, name: str, flat: FlatTensor, kind: np.dtype[np.generic],
    budget: Budget,
) -> Array:  # fmt: skip
    """Return the stored values in the file's type; int4 as int8.

    Errors  BuildError if the bytes do not fit the shape
    """
    count = 1
    for dim in flat.shape:
        count *= dim
    half, data = flat.kind == "INT4", flat.data
    size = (count + 1) // 2 if half else count * kind.itemsize
    if flat.sparse and count > 0 and not half:
        budget.take_bytes(size)
        read = partial(dense, flat.sparse, data, flat.shape, kind.itemsize)
        data = guarded(source, read)
    if count < 0 or size != data.size:
        what = f"constant '{name}' of shape {list(flat.shape)} has "
        what += f"{data.size} bytes, not {size}"
        raise BuildError(source, what, "the file is damaged")
    if half:
        return unpacked(data, count).reshape(flat.shape)
    value: Array = np.frombuffer(data.tobytes(), kind).reshape(flat.shape)
    return value
