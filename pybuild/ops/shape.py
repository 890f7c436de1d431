"""Operators that move data without computing: pad, concat, reshape, transpose,
slice."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from pybuild.dtype import Array
from pybuild.ir.graph import Attr, Graph, Node
from pybuild.ops.base.operator import Types, Values, invalid, operand, value
from pybuild.ops.fixed_point.quant import pad_value

# each element of their output is one of their input
MOVING = ("reshape", "slice", "transpose")
# gives a tensor that is kept from run to run its next value, after all else
ASSIGN = "assign"


def pad_fill(node: Node, graph: Graph) -> float | int:
    """The value that a pad writes: the real value, or its integer in a quantised
    tensor."""
    y = graph.tensor(node.output)
    number = float(node.attrs.get("value", 0.0))
    if y.dtype.is_float:
        return number
    return int(number) if y.quant is None else pad_value(number, y)


def infer_pad(node: Node, graph: Graph) -> Types:
    """attrs pads ((before, after), ...), value (a real number)"""
    x, pads = operand(node, graph, 0), node.attrs["pads"]
    if len(pads) != len(x.shape) or any(p < 0 for pair in pads for p in pair):
        raise invalid(node, graph, f"pads {pads} do not fit rank {len(x.shape)}")
    return (
        (tuple(d + a + b for d, (a, b) in zip(x.shape, pads, strict=True)), x.dtype),
    )


def pad(node: Node, graph: Graph, values: Values) -> tuple[Array, ...]:
    x = value(values, 0)
    fill = np.asarray(pad_fill(node, graph)).astype(x.dtype)
    return (np.pad(x, node.attrs["pads"], constant_values=fill),)


def infer_concat(node: Node, graph: Graph) -> Types:
    """attrs axis; the inputs are quantised as the output is"""
    tensors = [operand(node, graph, i) for i in range(len(node.inputs))]
    if not tensors:
        raise invalid(node, graph, "has no inputs")
    first, axis = tensors[0], int(node.attrs["axis"])
    if not 0 <= axis < len(first.shape):
        raise invalid(node, graph, f"axis {axis} of a tensor of rank {first.shape}")
    for other in tensors[1:]:
        rest = [s[:axis] + s[axis + 1 :] for s in (first.shape, other.shape)]
        same = len(other.shape) == len(first.shape) and rest[0] == rest[1]
        if not same or other.dtype is not first.dtype:
            what = f"'{other.name}' {other.dtype.value}{list(other.shape)} does not "
            what += f"fit '{first.name}' {first.dtype.value}{list(first.shape)}"
            raise invalid(node, graph, what)
    shape = list(first.shape)
    shape[axis] = sum(t.shape[axis] for t in tensors)
    return ((tuple(shape), first.dtype),)


def concat(node: Node, graph: Graph, values: Values) -> tuple[Array, ...]:
    """Errors  BuildError where an input has another scale than the output"""
    y = graph.tensor(node.output)
    for index in range(len(values)):
        x = operand(node, graph, index)
        if x.quant is not None and x.quant != y.quant:
            what = f"'{x.name}' and the output have different scales"
            raise invalid(node, graph, what, "requantise the input first")
    parts = [value(values, i) for i in range(len(values))]
    return (np.concatenate(parts, int(node.attrs["axis"])),)


def infer_shift(node: Node, graph: Graph) -> Types:
    """attrs axis. Shapes  x[A.., n, B..]  new[A.., m, B..], m < n  y[A.., n, B..]"""
    x, new = operand(node, graph, 0), operand(node, graph, 1)
    axis = int(node.attrs["axis"])
    fits = 0 <= axis < len(x.shape) == len(new.shape) and x.dtype is new.dtype
    if fits:
        rest = [t.shape[:axis] + t.shape[axis + 1 :] for t in (x, new)]
        fits = rest[0] == rest[1] and 0 < new.shape[axis] < x.shape[axis]
    if not fits:
        what = f"{list(new.shape)} is no part of {list(x.shape)} along axis {axis}"
        raise invalid(node, graph, what)
    return ((x.shape, x.dtype),)


def shift(node: Node, graph: Graph, values: Values) -> tuple[Array, ...]:
    """x moved on along an axis, and new elements behind it: a window over time."""
    x, new, axis = value(values, 0), value(values, 1), int(node.attrs["axis"])
    rest = np.split(x, [new.shape[axis]], axis)[1]
    return (np.concatenate([rest, new], axis),)


def infer_reshape(node: Node, graph: Graph) -> Types:
    """The shape is that of the output's tensor."""
    x, y = operand(node, graph, 0), graph.tensor(node.output)
    if x.size != y.size:
        raise invalid(node, graph, f"{x.shape} does not reshape to {y.shape}")
    return ((y.shape, x.dtype),)


def reshape(node: Node, graph: Graph, values: Values) -> tuple[Array, ...]:
    return (value(values, 0).reshape(graph.tensor(node.output).shape),)


def infer_transpose(node: Node, graph: Graph) -> Types:
    """attrs perm: output axis i is input axis perm[i]"""
    x, perm = operand(node, graph, 0), tuple(node.attrs["perm"])
    if sorted(perm) != list(range(len(x.shape))):
        raise invalid(node, graph, f"perm {perm} of a tensor of rank {len(x.shape)}")
    return ((tuple(x.shape[i] for i in perm), x.dtype),)


def transpose(node: Node, graph: Graph, values: Values) -> tuple[Array, ...]:
    return (np.ascontiguousarray(value(values, 0).transpose(node.attrs["perm"])),)


def backwards(shape: Sequence[int], axes: Iterable[int]) -> dict[str, Attr]:
    """The attributes of a slice that is a whole tensor, backwards along some axes."""
    begin, end, strides = [0] * len(shape), list(shape), [1] * len(shape)
    for axis in axes:
        begin[axis], end[axis], strides[axis] = shape[axis] - 1, -1, -1
    return {"begin": tuple(begin), "end": tuple(end), "strides": tuple(strides)}


def infer_slice(node: Node, graph: Graph) -> Types:
    """attrs begin, end (exclusive; -1 past the start of a negative stride), strides

    One of each per axis, already normalised: 0 <= begin < dim.
    """
    x = operand(node, graph, 0)
    begin, end, strides = (node.attrs[k] for k in ("begin", "end", "strides"))
    what = f"begin {begin}, end {end}, strides {strides} do not fit {x.shape}"
    if {len(begin), len(end), len(strides)} != {len(x.shape)} or 0 in strides:
        raise invalid(node, graph, what)
    shape = []
    for dim, b, e, s in zip(x.shape, begin, end, strides, strict=True):
        count = len(range(b, e, s))
        if count and not (0 <= b < dim and -1 <= e <= dim):
            raise invalid(node, graph, what)
        shape.append(count)
    if 0 in shape:
        raise invalid(node, graph, f"begin {begin}, end {end} leave nothing")
    return ((tuple(shape), x.dtype),)


def slice_(node: Node, graph: Graph, values: Values) -> tuple[Array, ...]:
    cuts = tuple(
        slice(b, None if e < 0 else e, s)
        for b, e, s in zip(
            node.attrs["begin"], node.attrs["end"], node.attrs["strides"], strict=True
        )
    )
    return (np.ascontiguousarray(value(values, 0)[cuts]),)
