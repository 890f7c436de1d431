"""Elements by computed numbers: gather, lookup, scatter, top_k; places of what is true.

Negative indices count from the end; what is outside is held within, so that no
kernel leaves its tensor.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pybuild.dtype import Array, DType, widened
from pybuild.ir.graph import Graph, Node, Tensor
from pybuild.ops.base.operator import BYTES, Types, Values, invalid, operand, value
from pybuild.ops.fixed_point.curves16 import curve_between

# of a curve of int16: where each 128th value goes, and where one more would
POINTS = 513
INDICES = (DType.INT32, DType.INT64)
# of scatter -> the function of map that joins old and new; "none": the new
JOINS = {
    "none": "",
    "add": "add",
    "mul": "multiply",
    "min": "minimum",
    "max": "maximum",
}


def _indices(node: Node, graph: Graph, index: int) -> Tensor:
    found = operand(node, graph, index)
    if found.dtype not in INDICES:
        raise invalid(node, graph, f"'{found.name}' is {found.dtype.value}, no index")
    return found


def _held(indices: Array, size: int) -> Any:
    whole = indices.astype(np.int64)
    return np.clip(np.where(whole < 0, whole + size, whole), 0, max(size - 1, 0))


def infer_gather(node: Node, graph: Graph) -> Types:
    """attrs axis. Shapes  x[A.., n, B..]  indices[I..]  y[A.., I.., B..]"""
    x, indices = operand(node, graph, 0), _indices(node, graph, 1)
    axis = int(node.attrs["axis"])
    if not 0 <= axis < len(x.shape) or not x.shape[axis]:
        raise invalid(node, graph, f"axis {axis} of {list(x.shape)}")
    return ((x.shape[:axis] + indices.shape + x.shape[axis + 1 :], x.dtype),)


def gather(node: Node, graph: Graph, values: Values) -> tuple[Array, ...]:
    x, axis = value(values, 0), int(node.attrs["axis"])
    held = _held(value(values, 1), x.shape[axis])
    return (np.ascontiguousarray(np.take(x, held, axis)),)


def infer_lookup(node: Node, graph: Graph) -> Types:
    """Shapes  x int8[..] or uint8[..]  table[256]  y[..], of the table's type; or
    x int16[..]  table int16[513]: points 128 apart
    """
    x, table = operand(node, graph, 0), operand(node, graph, 1)
    if x.dtype is table.dtype is DType.INT16 and table.shape == (POINTS,):
        return ((x.shape, table.dtype),)
    if x.dtype not in BYTES or table.shape != (256,):
        what = f"{x.dtype.value} in a table of shape {list(table.shape)}"
        raise invalid(node, graph, what)
    return ((x.shape, table.dtype),)


def lookup(node: Node, graph: Graph, values: Values) -> tuple[Array, ...]:
    """The entry of each byte, the least byte's first; of int16 between two points."""
    x, table = value(values, 0), value(values, 1)
    if x.dtype == np.int16:
        between = curve_between(table, x.astype(np.int64) + 32768)
        return (between.astype(np.int16),)
    return (table[x.astype(np.int64) - operand(node, graph, 0).dtype.low],)


def infer_scatter(node: Node, graph: Graph) -> Types:
    """attrs join, axis = 0. Shapes  x[A.., n, B..]  indices[m]  updates[A.., m, B..]
    y[A.., n, B..]
    """
    x, indices, updates = (
        operand(node, graph, 0),
        _indices(node, graph, 1),
        operand(node, graph, 2),
    )
    axis = int(node.attrs.get("axis", 0))
    if not 0 <= axis < len(x.shape) or not x.shape[axis]:
        raise invalid(node, graph, f"axis {axis} of {list(x.shape)}")
    flat = (*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :])
    one = len(indices.shape) == 1
    if not one or updates.shape != flat or updates.dtype is not x.dtype:
        what = f"{list(updates.shape)} does not fit {list(x.shape)}"
        raise invalid(node, graph, what)
    if node.attrs["join"] not in JOINS:
        raise invalid(node, graph, f"join '{node.attrs['join']}' does not exist")
    return ((x.shape, x.dtype),)


def scatter(node: Node, graph: Graph, values: Values) -> tuple[Array, ...]:
    """x with rows replaced by, or joined with, updates, one after the other."""
    from pybuild.ops.map import FUNCTIONS

    axis = int(node.attrs.get("axis", 0))
    made = value(values, 0).copy()
    y, updates = np.moveaxis(made, axis, 0), np.moveaxis(value(values, 2), axis, 0)
    held = _held(value(values, 1), y.shape[0])
    joins = JOINS[node.attrs["join"]]
    with np.errstate(all="ignore"):
        for row, update in zip(held.tolist(), updates, strict=True):
            joined = (
                FUNCTIONS[joins].numpy(widened(y[row]), widened(update))
                if joins
                else update
            )
            y[row] = joined
    return (made,)


def infer_top_k(node: Node, graph: Graph) -> Types:
    """attrs k, largest. Shapes  x[A, n, B]  y int64[A, k, B]: their places, sorted"""
    x, k = operand(node, graph, 0), int(node.attrs["k"])
    if len(x.shape) != 3 or not 0 < k <= x.shape[1]:
        raise invalid(node, graph, f"{k} of {list(x.shape)}")
    return (((x.shape[0], k, x.shape[2]), DType.INT64),)


def top_k(node: Node, graph: Graph, values: Values) -> tuple[Array, ...]:
    """The k greatest or least elements; of equal ones, the first come first."""
    x, k = value(values, 0), int(node.attrs["k"])
    if node.attrs["largest"]:
        order = x.shape[1] - 1 - np.argsort(np.flip(x, 1), 1, kind="stable")
        order = np.flip(order, 1)
    else:
        order = np.argsort(x, 1, kind="stable")
    return (np.ascontiguousarray(order[:, :k], np.int64),)


def infer_places(node: Node, graph: Graph) -> Types:
    """attrs count. Shapes  x bool[n]  y int32[1 + count]"""
    x, count = operand(node, graph, 0), int(node.attrs["count"])
    if len(x.shape) != 1 or x.dtype is not DType.BOOL or not 0 < count <= x.size:
        raise invalid(node, graph, f"{count} of {x.dtype.value}{list(x.shape)}")
    return (((1 + count,), DType.INT32),)


def places(node: Node, graph: Graph, values: Values) -> tuple[Array, ...]:
    """How many are true; then the places of the first ones, -1 after the last."""
    count = int(node.attrs["count"])
    found = np.flatnonzero(value(values, 0))
    made = np.full(1 + count, -1, np.int32)
    made[0] = len(found)
    made[1:][: len(found)] = found[:count]
    return (made,)


def infer_distinct(node: Node, graph: Graph) -> Types:
    """attrs sorted. Shapes  x[n, w]  y int32[n]"""
    x = operand(node, graph, 0)
    if len(x.shape) != 2 or x.dtype is DType.BOOL or not x.size:
        raise invalid(node, graph, f"rows of {x.dtype.value}{list(x.shape)}")
    return (((x.shape[0],), DType.INT32),)


def distinct(node: Node, graph: Graph, values: Values) -> tuple[Array, ...]:
    """The number of each row among those that differ: in order of their elements, or in
    that in which they come. What is not a number is the largest, and equal to others.
    """
    rows = [
        tuple((v != v, 0 if v != v else v) for v in row)
        for row in widened(value(values, 0)).tolist()
    ]
    each = dict.fromkeys(rows)
    order = sorted(each) if node.attrs["sorted"] else list(each)
    numbers = {row: number for number, row in enumerate(order)}
    return (np.asarray([numbers[row] for row in rows], np.int32),)


def outer_inner(shape: tuple[int, ...], axis: int) -> tuple[int, int, int]:
    """Elements before, along and after an axis."""
    return math.prod(shape[:axis]), shape[axis], math.prod(shape[axis + 1 :])
