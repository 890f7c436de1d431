"""group_norm: elements of a group less their mean, over their standard deviation; of
float32. LayerNorm, RMSNorm, InstanceNorm and GroupNorm are this, by what a group is.
"""

from __future__ import annotations

import math

import numpy as np

from pybuild.dtype import Array, DType
from pybuild.ir.graph import Graph, Node
from pybuild.ops.base.operator import (
    Types,
    Values,
    clamp_of,
    invalid,
    must_have_type,
    operand,
    optional,
    value,
)

FACTORS, OFFSETS = 1, 2  # inputs


def infer(node: Node, graph: Graph) -> Types:
    """attrs epsilon, centred, view. x is read as view [outer, rows, groups, n],
    whatever its shape: a group is a place of `outer` and of `groups`. Factors and
    offsets float32, one for each channel, groups * n of them. y as x
    """
    x = operand(node, graph, 0)
    must_have_type(node, graph, x, DType.FLOAT32)
    view = tuple(node.attrs["view"])
    if len(view) != 4 or min(view) < 1 or math.prod(view) != x.size:
        raise invalid(node, graph, f"view {list(view)} of {list(x.shape)}")
    for index in (FACTORS, OFFSETS):
        given = optional(node, graph, index)
        if given is not None:
            must_have_type(node, graph, given, DType.FLOAT32)
            if given.size != view[2] * view[3]:
                what = f"'{given.name}' has {given.size} numbers"
                raise invalid(node, graph, what, f"{view[2] * view[3]}: one a channel")
    if not 0 <= float(node.attrs["epsilon"]) < math.inf:
        raise invalid(node, graph, f"epsilon is {node.attrs['epsilon']}")
    return ((x.shape, x.dtype),)


def reference(node: Node, graph: Graph, values: Values) -> tuple[Array, ...]:
    """Numpy meaning, in float64; where float32 does not hold the sum of the squares,
    the deviation is infinite.
    """
    x = value(values, 0)
    view = tuple(node.attrs["view"])
    y = x.astype(np.float64).reshape(view)
    if node.attrs["centred"]:
        y = y - y.mean((1, 3), keepdims=True)
    spread = (y * y).sum((1, 3), keepdims=True)
    spread = np.where(spread > np.finfo(np.float32).max, np.inf, spread)
    spread = spread / (view[1] * view[3])
    y = y / np.sqrt(spread + float(node.attrs["epsilon"]))
    for index in (FACTORS, OFFSETS):
        if optional(node, graph, index) is not None:
            each = value(values, index).astype(np.float64).reshape(view[2:])
            y = y * each if index == FACTORS else y + each
    low, high = clamp_of(node)
    with np.errstate(over="ignore"):
        made = np.asarray(y).reshape(x.shape).astype(np.float32)
    if low is not None:
        made = np.maximum(made, np.float32(low))
    if high is not None:
        made = np.minimum(made, np.float32(high))
    return (made,)
