"""Weights whose zero point is taken out: int8 if they fit, else int16, of nine bits."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from pybuild.dtype import Array, DType
from pybuild.ir.graph import Tensor


def centred(tensor: Tensor, value: Array) -> tuple[Tensor, Array]:
    """The tensor and value of int8 weights without their zero points."""
    quant = tensor.quant
    if quant is None or not any(quant.zero_point):
        return tensor, value
    made = less_zero(value, np.asarray(quant.zero_point), quant.axis or 0)
    bare = replace(quant, zero_point=(0,))
    return replace(tensor, dtype=DType.of(made), quant=bare), made


def less_zero(value: Array, zero: Array, axis: int) -> Array:
    """Return bytes less their zero point: one number, or one for each along an axis."""
    row = [1] * value.ndim
    if zero.size > 1:
        row[axis] = zero.size
    return narrowed(value.astype(np.int16) - zero.astype(np.int16).reshape(row))


def narrowed(wide: Array) -> Array:
    """int16 as int8, if all of it fits."""
    low, high = wide.min(initial=0), wide.max(initial=0)
    fits = low >= DType.INT8.low and high <= DType.INT8.high
    return wide.astype(np.int8) if fits else wide
