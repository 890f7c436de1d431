"""Fully connected layers: dense(x[...,K], w[O,K], bias[O])."""

from __future__ import annotations

import numpy as np

from pybuild.dtype import Array, DType
from pybuild.ir.graph import Graph, Node
from pybuild.ops.base.conv_types import check_weights, layer_types
from pybuild.ops.base.operator import Types, Values, clamped, invalid, operand, value
from pybuild.ops.conv import (
    conv_parameters,
    exact,
    finish,
    products,
    without_zero,
)


def infer(node: Node, graph: Graph) -> Types:
    """Shapes  x [...,K]  w [O,K]  y [...,O]"""
    x, w = operand(node, graph, 0), operand(node, graph, 1)
    dtype = layer_types(node, graph, x, w)
    if len(w.shape) != 2 or not x.shape or x.shape[-1] != w.shape[1]:
        what = f"needs x[...,K] and w[O,K], has {x.shape} and {w.shape}"
        raise invalid(node, graph, what)
    if not w.shape[1]:
        raise invalid(node, graph, "there is nothing to sum")
    check_weights(node, graph, w.shape[0], 0)
    return (((*x.shape[:-1], w.shape[0]), dtype),)


def reference(node: Node, graph: Graph, values: Values) -> tuple[Array, ...]:
    """Numpy meaning; integers exact, float32 summed in float64."""
    x, w = value(values, 0), value(values, 1)
    bias = values[2] if len(values) > 2 else None
    if operand(node, graph, 0).dtype is DType.FLOAT32:
        acc = products(x.astype(np.float64), w)
        if bias is not None:
            acc = acc + bias.astype(np.float64)
        return (clamped(node, acc.astype(np.float32)),)
    made = conv_parameters(node, graph)
    kind = exact(w.shape[1], x.itemsize, w.itemsize)
    rows = without_zero(x, made).astype(kind)
    sums = products(rows, w).astype(np.int64)
    if bias is not None:
        sums = sums + bias.astype(np.int64)
    return (finish(node, graph, sums, made),)


def macs(node: Node, graph: Graph) -> int:
    return graph.tensor(node.output).size * operand(node, graph, 1).shape[1]
