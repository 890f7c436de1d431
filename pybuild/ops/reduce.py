"""mean over axes."""

from __future__ import annotations

import math

import numpy as np

from pybuild.dtype import Array, DType
from pybuild.ir.graph import Graph, Node
from pybuild.ops.base.operator import (
    Types,
    Values,
    computable,
    invalid,
    operand,
    rounding,
    value,
    whole_quant,
)
from pybuild.ops.fixed_point.quant import quantize_multiplier, requantize, saturated
from pybuild.records import dataclass


@dataclass(frozen=True)
class MeanParameters:
    """y = clamp(requantize(sum(x) - count * x_zero, multiplier, shift) + y_zero).

    count       elements in one mean
    multiplier  below 2^31, not always at least 2^30
    """

    rounding: str
    count: int
    multiplier: int
    shift: int
    x_zero: int
    y_zero: int
    low: int
    high: int


def mean_parameters(node: Node, graph: Graph) -> MeanParameters:
    """Every integer of an int8 or int16 mean.

    Errors  BuildError where the int32 sum could overflow
    Source  LiteRT QuantizedMeanOrSum: the division by count is folded into the
            multiplier, rounding down
    """
    x, y = operand(node, graph, 0), graph.tensor(node.output)
    for tensor in (x, y):
        whole_quant(node, graph, tensor)
    count = math.prod(x.shape[axis] for axis in node.attrs["axes"])
    if count * (x.dtype.high - x.dtype.low) >= 1 << 31:
        raise invalid(node, graph, f"the int32 sum of {count} values could overflow")
    rule = rounding(node)
    if rule == "even":
        multiplier, shift = quantize_multiplier(x.scale / (y.scale * count))
    else:
        multiplier, shift = quantize_multiplier(x.scale / y.scale)
        fold = min(count.bit_length() - 1, 32, 31 + shift)
        multiplier, shift = (multiplier << fold) // count, shift - fold
    return MeanParameters(
        rule, count, multiplier, shift, x.zero_point, y.zero_point, y.dtype.low,
        y.dtype.high,
    )  # fmt: skip


def infer(node: Node, graph: Graph) -> Types:
    """Shapes  y without the axes, or with 1 there (keepdims)"""
    x = operand(node, graph, 0)
    dtype = computable(node, graph, x)
    axes = tuple(node.attrs["axes"])
    if list(axes) != sorted({a for a in axes if 0 <= a < len(x.shape)}):
        raise invalid(node, graph, f"axes {axes} of a tensor of rank {len(x.shape)}")
    if 0 in x.shape:
        raise invalid(node, graph, f"the mean of no values, of shape {x.shape}")
    keep = bool(node.attrs["keepdims"])
    shape = tuple(
        1 if i in axes else dim
        for i, dim in enumerate(x.shape)
        if keep or i not in axes
    )
    return ((shape, dtype),)


def reference(node: Node, graph: Graph, values: Values) -> tuple[Array, ...]:
    """Numpy meaning; int8 exact."""
    x, y = value(values, 0), graph.tensor(node.output)
    axes, keep = tuple(node.attrs["axes"]), bool(node.attrs["keepdims"])
    if y.dtype is DType.FLOAT32:
        mean = x.astype(np.float64).mean(axes, keepdims=keep)
        return (np.asarray(mean).astype(np.float32),)
    made = mean_parameters(node, graph)
    total = x.astype(np.int64).sum(axes, keepdims=keep) - made.count * made.x_zero
    whole = requantize(total, made.multiplier, made.shift, made.rounding)
    return (saturated(whole + made.y_zero, y.dtype, made.low, made.high),)
