"""Quantised elements in fixed point, step by step as LiteRT's reference kernels have
them: each function gives the tensor of the output's type.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pybuild.dtype import DType
from pybuild.frontends.tflite.flow import Flow
from pybuild.graph import Tensor


def whole_scale(flow: Flow, *tensors: Tensor) -> None:
    """Errors  BuildError for tensors without one scale"""
    for x in tensors:
        if x.quant is None or len(x.quant.scale) != 1:
            raise flow.call.error(f"'{x.name}' is {x.dtype.value} without one scale")


def lifted(flow: Flow, x: Tensor, bits: int) -> Tensor:
    """int32 without the zero point, times 2^bits."""
    return flow.mul(flow.centred(x), flow.const(1 << bits, DType.INT32))


def add_n(flow: Flow, parts: Sequence[Tensor]) -> Tensor:
    """Each with 20 more bits, in the scale of twice the largest.

    Source  TFLM ADD_N; LiteRT has none in int8
    """
    y = flow.wanted()
    whole_scale(flow, y, *parts)
    twice = 2.0 * max(x.scale for x in parts)
    terms = [flow.requantized(lifted(flow, x, 20), x.scale / twice) for x in parts]
    total = terms[0]
    for term in terms[1:]:
        total = flow.add(total, term)
    made = flow.requantized(total, twice / ((1 << 20) * y.scale))
    return flow.quantised(made, y)


def squared_difference(flow: Flow, a: Tensor, b: Tensor) -> Tensor:
    """Seven more bits before the square, so that it fits int32."""
    y = flow.wanted()
    whole_scale(flow, a, b, y)
    twice = 2.0 * max(a.scale, b.scale)
    terms = [flow.requantized(lifted(flow, x, 7), x.scale / twice) for x in (a, b)]
    left = flow.sub(*terms)
    scale = twice * twice / ((1 << 14) * y.scale)
    return flow.quantised(flow.requantized(flow.mul(left, left), scale), y)


def comparable(flow: Flow, x: Tensor) -> Tensor:
    """Real values with eight bits after the point, in int32."""
    whole_scale(flow, x)
    if x.scale >= 1:
        what = f"'{x.name}' has scale {x.scale:g}"
        raise flow.call.error(what, "LiteRT compares bytes of scales below 1")
    return flow.requantized(lifted(flow, x, 8), x.scale)


def prelu(flow: Flow, x: Tensor, alpha: Tensor) -> Tensor:
    y = flow.wanted()
    whole_scale(flow, x, alpha, y)
    ratio = np.float32(x.scale) / np.float32(y.scale)
    product = np.float32(x.scale) * np.float32(alpha.scale) / np.float32(y.scale)
    q = flow.centred(x)
    above = flow.requantized(q, float(ratio))
    below = flow.mul(q, flow.centred(alpha))
    below = flow.requantized(below, float(product))
    positive = flow.map("less_or_equal", flow.const(0, q), q)
    return flow.quantised(flow.map("where", positive, above, below), y)
