"""Operators that combine many elements along one axis: reduce, arg_reduce, cumulate.

The front end joins several axes into one. float16 accumulates in float32.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pybuild.dtype import HALVES, Array, DType, widened
from pybuild.ir.graph import Graph, Node
from pybuild.ops.base.operator import Types, Values, invalid, operand, value
from pybuild.ops.map import NUMBERS

# name -> the function of map that joins two
REDUCTIONS = {"sum": "add", "product": "multiply", "min": "minimum", "max": "maximum"}
_UFUNCS: dict[str, Any] = {"sum": np.add, "product": np.multiply}


def start(name: str, dtype: DType) -> float | int:
    """The result of a reduction of no elements."""
    if name in ("sum", "product"):
        return int(name == "product")
    least = name == "max"
    if dtype.is_float:
        return float("-inf") if least else float("inf")
    return dtype.low if least else dtype.high


def _axis(node: Node, graph: Graph) -> int:
    x, axis = operand(node, graph, 0), int(node.attrs["axis"])
    if x.dtype not in NUMBERS:
        raise invalid(node, graph, f"'{x.name}' is {x.dtype.value}")
    if not 0 <= axis < len(x.shape):
        raise invalid(node, graph, f"axis {axis} of a tensor of rank {len(x.shape)}")
    if node.attrs["fn"] not in REDUCTIONS:
        raise invalid(node, graph, f"the function '{node.attrs['fn']}' does not exist")
    return axis


def _without(shape: tuple[int, ...], axis: int) -> tuple[int, ...]:
    return (*shape[:axis], 1, *shape[axis + 1 :])


def infer_reduce(node: Node, graph: Graph) -> Types:
    """attrs fn (of REDUCTIONS), axis; y has size 1 there. wide: of float16 float32"""
    x, axis = operand(node, graph, 0), _axis(node, graph)
    wide = bool(node.attrs.get("wide")) and x.dtype in HALVES
    return ((_without(x.shape, axis), DType.FLOAT32 if wide else x.dtype),)


def reduce(node: Node, graph: Graph, values: Values) -> tuple[Array, ...]:
    x, axis, name = value(values, 0), int(node.attrs["axis"]), str(node.attrs["fn"])
    dtype = operand(node, graph, 0).dtype
    wide = widened(x)
    first = start(name, dtype)
    with np.errstate(all="ignore"):
        if name in _UFUNCS:
            made = _UFUNCS[name].reduce(wide, axis, wide.dtype, keepdims=True)
        else:
            function = np.max if name == "max" else np.min
            made = function(wide, axis, keepdims=True, initial=first)
        return (np.asarray(made).astype(graph.tensor(node.output).dtype.numpy),)


def infer_arg(node: Node, graph: Graph) -> Types:
    """attrs fn ("min" | "max"), axis, last (of equal ones); y is int64"""
    x, axis = operand(node, graph, 0), _axis(node, graph)
    if node.attrs["fn"] not in ("min", "max") or not x.shape[axis]:
        raise invalid(node, graph, f"no place of the {node.attrs['fn']}")
    return ((_without(x.shape, axis), DType.INT64),)


def arg_reduce(node: Node, graph: Graph, values: Values) -> tuple[Array, ...]:
    """Place of the first (or last) least or greatest element."""
    x, axis = value(values, 0), int(node.attrs["axis"])
    function = np.argmax if node.attrs["fn"] == "max" else np.argmin
    if node.attrs["last"]:
        made = x.shape[axis] - 1 - function(np.flip(x, axis), axis=axis, keepdims=True)
    else:
        made = function(x, axis=axis, keepdims=True)
    return (np.asarray(made, np.int64),)


def infer_cumulate(node: Node, graph: Graph) -> Types:
    """attrs fn ("sum" | "product"), axis, exclusive, reverse"""
    x = operand(node, graph, 0)
    _axis(node, graph)
    if node.attrs["fn"] not in _UFUNCS:
        raise invalid(node, graph, f"no running {node.attrs['fn']}")
    return ((x.shape, x.dtype),)


def cumulate(node: Node, graph: Graph, values: Values) -> tuple[Array, ...]:
    """Accumulates all elements up to each one, or before it."""
    x, axis, name = value(values, 0), int(node.attrs["axis"]), str(node.attrs["fn"])
    wide = widened(x)
    if node.attrs["reverse"]:
        wide = np.flip(wide, axis)
    with np.errstate(all="ignore"):
        made = _UFUNCS[name].accumulate(wide, axis, wide.dtype)
    if node.attrs["exclusive"]:
        first = np.full(_without(x.shape, axis), start(name, DType.INT64), wide.dtype)
        rest = np.take(made, range(max(x.shape[axis] - 1, 0)), axis)
        made = np.concatenate([first, rest], axis) if x.size else made
    if node.attrs["reverse"]:
        made = np.flip(made, axis)
    return (np.ascontiguousarray(made).astype(x.dtype),)
