"""Scales and zero points of a file's tensors, checked."""

from __future__ import annotations

from pybuild.dtype import DType
from pybuild.errors import BuildError
from pybuild.frontends.tflite.reader.flat import FlatTensor
from pybuild.ir.graph import Quant

# of what is computed; a constant, as the weights of a dead channel, may have a less one
_LEAST, _MOST = 1e-30, 1e30


def quant_of(source: str, name: str, flat: FlatTensor, dtype: DType) -> Quant | None:
    """The quantisation of an integer tensor, checked."""
    if not flat.scale or dtype.is_float or dtype is DType.BOOL:
        return None
    zeros = flat.zero_point or (0,)
    # old converters gave a bias the axis of the weights, such as 3
    count, axis = len(flat.scale), flat.axis if len(flat.shape) > 1 else 0
    whole = count == 1
    if not whole and not (0 <= axis < len(flat.shape) and flat.shape[axis] == count):
        what = f"'{name}' has {count} scales on axis {axis} of {list(flat.shape)}"
        raise BuildError(source, what, "the file is damaged")
    for channel, scale in enumerate(flat.scale):
        if not (0 if flat.data.size else _LEAST) <= scale < _MOST:
            where = "" if whole else f" in channel {channel}"
            what = f"'{name}' has scale {scale:g}{where}"
            hint = f"quantise the model again: {_LEAST:g} to {_MOST:g} are supported"
            raise BuildError(source, what, hint)
    fits = dtype.low <= min(zeros) and max(zeros) <= dtype.high
    if not fits or len(zeros) not in (1, count):
        raise BuildError(source, f"'{name}' has zero points outside of {dtype.value}")
    if len(set(zeros)) == 1:
        zeros = zeros[:1]
    return Quant(flat.scale, zeros, None if whole else axis)
