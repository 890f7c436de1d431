"""Between real numbers and integers: quantize, dequantize; and copy."""

from __future__ import annotations

import numpy as np

from pybuild.dtype import Array, DType
from pybuild.ir.graph import Graph, Node
from pybuild.ops.act import unary_table
from pybuild.ops.base.operator import (
    BYTES,
    Types,
    Values,
    invalid,
    operand,
    rounding,
    value,
)
from pybuild.ops.fixed_point.quant import dequantized, quantized
from pybuild.ops.int16 import act16


def infer_quantize(node: Node, graph: Graph) -> Types:
    """x float32 or small integers; y small integers, whose tensor has the scale."""
    x, y = operand(node, graph, 0), graph.tensor(node.output)
    kinds = (*BYTES, DType.INT16)
    if y.dtype not in kinds or y.quant is None:
        what = f"'{y.name}' is {y.dtype.value}"
        raise invalid(
            node, graph, what, "quantise to int8, uint8 or int16, with a scale"
        )
    if x.dtype is not DType.FLOAT32 and (x.dtype not in kinds or x.quant is None):
        what = f"'{x.name}' is {x.dtype.value}, not float32, int8, uint8 or int16"
        raise invalid(node, graph, what)
    return ((x.shape, y.dtype),)


def quantize(node: Node, graph: Graph, values: Values) -> tuple[Array, ...]:
    """q = round(x / scale) + zero_point, held within the type; x / scale in float32.

    Ties away from zero (LiteRT), or to even; between byte types by table.
    """
    x, tensor = value(values, 0), operand(node, graph, 0)
    if tensor.dtype is DType.FLOAT32:
        return (quantized(x, graph.tensor(node.output), rounding(node)),)
    if DType.INT16 in (tensor.dtype, graph.tensor(node.output).dtype):
        return (act16.unary(node, graph, x),)
    return (unary_table(node, graph)[x.astype(np.int64) - tensor.dtype.low],)


def infer_dequantize(node: Node, graph: Graph) -> Types:
    """x any integer type with a scale; y float32."""
    x = operand(node, graph, 0)
    if x.dtype.is_float or x.dtype is DType.BOOL or x.quant is None:
        raise invalid(node, graph, f"'{x.name}' has no scale or is not of integers")
    return ((x.shape, DType.FLOAT32),)


def dequantize(node: Node, graph: Graph, values: Values) -> tuple[Array, ...]:
    """x = scale * (q - zero_point), one float32 product."""
    tensor = operand(node, graph, 0)
    assert tensor.quant is not None
    return (dequantized(value(values, 0), tensor.quant),)


def infer_copy(node: Node, graph: Graph) -> Types:
    """y as x."""
    x = operand(node, graph, 0)
    return ((x.shape, x.dtype),)


def copy(node: Node, graph: Graph, values: Values) -> tuple[Array, ...]:
    """The same bytes elsewhere."""
    return (value(values, 0).copy(),)
