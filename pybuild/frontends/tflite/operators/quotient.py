"""DIV of bytes in fixed point, step by step as LiteRT's and TFLM's reference kernels
have it: a reciprocal of the divisor, by tables of what a byte can be.
"""

from __future__ import annotations

import numpy as np

from pybuild.dtype import DType, Ints
from pybuild.frontends.tflite.draft.flow import Flow
from pybuild.frontends.tflite.operators.fixed import high, whole_scale
from pybuild.ir.graph import Tensor
from pybuild.ops.fixed_point.quant import quantize_multiplier
from pybuild.ops.fixed_point.reciprocal import reciprocal

_MOST = 255  # of a byte without its zero point


def quotient(flow: Flow, a: Tensor, b: Tensor, clamp: object) -> Tensor:
    """DIV of bytes; 0 for a divisor of 0, and where LiteRT shifts by more than 31 bits.

    Source  LiteRT reference DIV (uint8), TFLM's (int8)
    """
    y = flow.wanted()
    whole_scale(flow, a, b, y)
    ratio = np.float32(a.scale) / (np.float32(b.scale) * np.float32(y.scale))
    multiplier, shift = quantize_multiplier(float(ratio))
    if not -20 < shift < 21:
        what = f"scales {a.scale:g} by {b.scale:g} to {y.scale:g} are too far apart"
        raise flow.call.error(what)
    below, above = flow.centred(b), flow.centred(a)
    negative = flow.map("less", below, flow.const(0, below))
    above = flow.map("where", negative, flow.map("negate", above), above)
    bits = 31 - _length(np.arange(-_MOST, _MOST + 1))
    places = flow.plus(above, _MOST)
    lifted = _entry(flow, np.arange(-_MOST, _MOST + 1) << bits, places)
    size = flow.map("abs", below)
    inverse, over = _reciprocals()
    made = high(flow, lifted, _entry(flow, inverse, size))
    made = high(flow, made, flow.const(multiplier, made))
    right = flow.add(_entry(flow, bits, places), _entry(flow, over - shift, size))
    return flow.quantised(_shifted(flow, made, right), y, clamp)


def _shifted(flow: Flow, x: Tensor, bits: Tensor) -> Tensor:
    """Shift right by 1 to 60 bits, with ties away from zero."""
    wide, count = flow.cast(x, DType.INT64), flow.cast(bits, DType.INT64)
    half = flow.map("shift_left", flow.const(1, wide), flow.plus(count, -1))
    sign = flow.map("shift_right", wide, flow.const(63, wide))
    wide = flow.map("shift_right", flow.add(flow.add(wide, half), sign), count)
    return flow.cast(wide, DType.INT32)


def _entry(flow: Flow, table: Ints, places: Tensor) -> Tensor:
    return flow.gather(flow.const(table, DType.INT32), places, 0)


def _length(numbers: Ints) -> Ints:
    """Return the number of bits, not counting repeated sign bits."""
    held = np.where(numbers < 0, ~numbers, numbers)
    return np.frexp(held.astype(np.float64))[1].astype(np.int64)


def _reciprocals() -> tuple[Ints, Ints]:
    """For every size: 1/size in Q0.31 of a half to 1, and how many bits it lost; 0 for
    0.

    Source  LiteRT GetReciprocal
    """
    sizes = np.arange(_MOST + 1)
    bits = _length(sizes)
    inverse = reciprocal((np.maximum(sizes, 1) << (32 - np.maximum(bits, 1))) >> 1)
    return np.where(sizes == 0, 0, inverse), bits - 1
