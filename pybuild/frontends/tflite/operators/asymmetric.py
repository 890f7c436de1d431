"""Weights with a zero point, as uint8 files have them: without it they need nine bits,
so each is the sum of two that fit, and every input is read twice.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from pybuild.dtype import Array, DType
from pybuild.frontends.tflite.draft.builder import Call
from pybuild.frontends.tflite.draft.flow import Flow
from pybuild.ir.graph import Quant, Tensor

_Int16s = npt.NDArray[np.int16]


def symmetric(
    call: Call, x: Tensor, tensor: Tensor, value: Array
) -> tuple[Tensor, Tensor, Array]:
    """(input, weights, their value) where the last axis of both is what is summed."""
    centred, made = _centred(call, tensor, value)
    if centred is None:
        return x, tensor, value
    if made.dtype is DType.INT8 and np.abs(centred).max(initial=0) <= 127:
        return x, made, centred.astype(np.int8)
    halves = np.concatenate(_halves(centred), axis=-1)
    flow = Flow(call)
    twice = flow.node("concat", [x, x], {"axis": len(x.shape) - 1}, like=x)
    return twice, Tensor(made.name, halves.shape, DType.INT8, made.quant), halves


def depthwise(
    call: Call, x: Tensor, tensor: Tensor, value: Array
) -> tuple[Tensor, Tensor, Array] | None:
    """Depthwise weights [1,KH,KW,C*M] as those of a convolution in C groups of two
    channels. None if the weights fit unchanged.

    None where the weights fit as they are.
    """
    centred, made = _centred(call, tensor, value)
    if centred is None or np.abs(centred).max(initial=0) <= 127:
        return None
    halves = np.stack([half[0] for half in _halves(centred)], axis=-1)
    weights = np.ascontiguousarray(halves.transpose(2, 0, 1, 3))
    flow, shape = Flow(call), x.shape
    wide = flow.reshape(x, (*shape, 1))
    wide = flow.node("concat", [wide, wide], {"axis": len(shape)}, like=x)
    wide = flow.reshape(wide, (*shape[:-1], 2 * shape[-1]))
    return wide, Tensor(made.name, weights.shape, DType.INT8, made.quant), weights


def _centred(call: Call, tensor: Tensor, value: Array) -> tuple[_Int16s | None, Tensor]:
    """The weights without their one zero point; None where they have none.

    LiteRT's convolutions of int8 do not look at it: theirs is refused later.
    """
    quant = tensor.quant
    if not call.builder.has_twin(call.index(1)) and call.flat.code != "FULLY_CONNECTED":
        return None, tensor
    if quant is None or not any(quant.zero_point) or len(quant.zero_point) > 1:
        return None, tensor
    bare = Quant(quant.scale, (0,), quant.axis)
    made = Tensor(tensor.name, tensor.shape, tensor.dtype, bare)
    return value.astype(np.int16) - np.int16(quant.zero_point[0]), made


def _halves(centred: _Int16s) -> tuple[Array, Array]:
    first = np.clip(centred, -127, 127)
    return first.astype(np.int8), (centred - first).astype(np.int8)
