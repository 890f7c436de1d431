"""Takes large constants out of the protobuf first, as each pass of onnx copies the
whole model.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from pybuild.dtype import Array

if TYPE_CHECKING:
    from onnx import ModelProto, TensorProto

# a shape, a scale or a pad is shorter, and may decide what onnx infers
_LEAST = 1 << 12
# TensorProto.DataType -> element type of weights, its lowest byte first
_KINDS = {1: "<f4", 2: "u1", 3: "i1", 6: "<i4", 10: "<f2", 11: "<f8"}


def array_of(tensor: TensorProto) -> Array:
    """Return a constant's values.

    Errors  ValueError, TypeError, KeyError, OverflowError or MemoryError if its bytes
    do not fit its shape
    """
    from onnx import numpy_helper

    count = 1
    for dim in tensor.dims:
        count *= dim
    if count < 0 or count > 8 * tensor.ByteSize():
        raise ValueError("more elements than bytes")
    array: Array = numpy_helper.to_array(tensor)
    return array


def _values(tensor: TensorProto) -> Array | None:
    """Return the values of a large constant stored as raw bytes, or None if it is small
    or its size does not fit its shape."""
    kind = _KINDS.get(tensor.data_type)
    if kind is None:
        return None
    size = math.prod(tensor.dims) * np.dtype(kind).itemsize
    raw = tensor.raw_data if size >= _LEAST else b""
    if not raw or len(raw) != size or min(tensor.dims) < 0:
        return None
    return np.frombuffer(raw, kind).reshape(tensor.dims)


def lifted(model: ModelProto) -> tuple[ModelProto, dict[str, Array]]:
    """Return the model with inputs in place of its large constants, and these
    constants' values.

    model  is consumed: protobuf keeps a field's bytes until the whole message is freed
    """
    from onnx import ModelProto, helper

    taken: dict[str, Array] = {}
    graph = model.graph
    inputs = {value.name for value in graph.input}
    kept = []
    for tensor in graph.initializer:
        values = _values(tensor)
        if values is None:
            kept.append(tensor)
            continue
        taken[tensor.name] = values
        if tensor.name not in inputs:
            graph.input.append(
                helper.make_tensor_value_info(
                    tensor.name, tensor.data_type, values.shape
                )
            )
    del graph.initializer[:]
    light = ModelProto()
    light.CopyFrom(model)
    light.graph.initializer.extend(kept)
    return light, taken
