"""The value of a constant as the file stores it: packed, sparse, or plain."""

from __future__ import annotations

from functools import partial

import numpy as np

from pybuild.dtype import Array, DType
from pybuild.errors import BuildError
from pybuild.frontends.tflite.reader.few_bits import BITS, unpacked
from pybuild.frontends.tflite.reader.flat import FlatTensor, guarded
from pybuild.frontends.tflite.reader.sparse import dense
from pybuild.params.budget import Budget

_KINDS = (
    DType.FLOAT32, DType.INT8, DType.UINT8, DType.INT16, DType.INT32, DType.INT64,
    DType.BOOL, DType.FLOAT64, DType.UINT16, DType.UINT32, DType.UINT64,
)  # fmt: skip
_DTYPES = {kind.name: kind for kind in _KINDS}
_PACKED = dict.fromkeys(BITS, DType.INT8)
_STORED = {**_DTYPES, **_PACKED, "FLOAT16": DType.FLOAT16}


def type_of(flat: FlatTensor) -> DType | None:
    """Return the graph's type of a tensor: of a constant of few bits int8, of one with
    a scale for each block float32; None if there is none."""
    if not flat.data.size:
        return _DTYPES.get(flat.kind)
    return DType.FLOAT32 if flat.blocks else {**_DTYPES, **_PACKED}.get(flat.kind)


def stored(source: str, name: str, flat: FlatTensor, budget: Budget) -> Array:
    """Return the stored values in the file's type; those of few bits as int8.

    Errors  BuildError if the bytes do not fit the shape, or the type is not supported
    """
    kind = _STORED.get(flat.kind)
    if kind is None:
        what = f"'{name}' has type {flat.kind}, which is not supported"
        raise BuildError(source, what, "convert to int8 or float32")
    count = 1
    for dim in flat.shape:
        count *= dim
    bits, data = BITS.get(flat.kind, 0), flat.data
    size = -(-count * bits // 8) if bits else count * kind.bytes
    if flat.sparse and count > 0 and not bits:
        budget.take_bytes(size)
        read = partial(dense, flat.sparse, data, flat.shape, kind.bytes)
        data = guarded(source, read)
    if count < 0 or size != data.size:
        what = f"constant '{name}' of shape {list(flat.shape)} has "
        what += f"{data.size} bytes, not {size}"
        raise BuildError(source, what, "the file is damaged")
    if bits:
        return unpacked(data, count, bits).reshape(flat.shape)
    value: Array = np.frombuffer(data.tobytes(), kind.numpy).reshape(flat.shape)
    return value
