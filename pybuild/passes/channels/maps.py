"""Maps the channels of a node's output to the channels of its inputs.

A channel is an index of the last axis. Knows nothing of values.
"""

from __future__ import annotations

import numpy as np

from pybuild.dtype import DType, Ints
from pybuild.ir.graph import Graph, Node, Tensor
from pybuild.ops.base.signatures import BINARY, UNARY

MIXING = ("conv2d", "dense")
ALONE = (*UNARY, "quantize", "lookup")
WINDOWED = ("avg_pool2d", "max_pool2d", "mean")
MOVING = ("concat", "pad", "reshape", "slice", "transpose")
# no channel of the output
ABSENT = -1


def integer(node: Node, graph: Graph) -> bool:
    """True if all computed tensors are int8 or int16 of one scale, and have
    channels."""
    names = [n for n in (*node.inputs, *node.outputs) if n and n not in graph.constants]
    return all(_quantised(graph.tensor(n)) for n in names)


def _quantised(tensor: Tensor) -> bool:
    whole = tensor.dtype in (DType.INT8, DType.INT16) and tensor.size > 0
    quant = tensor.quant
    return whole and quant is not None and len(quant.scale) == 1 and tensor.shape != ()


def weighted(node: Node, graph: Graph) -> bool:
    """A layer with weights whose values are known, and one group of channels."""
    if node.op not in (*MIXING, "depthwise_conv2d"):
        return False
    if node.attrs.get("groups", 1) != 1:
        return False
    weights, x = graph.tensor(node.inputs[1]), graph.tensor(node.inputs[0])
    if node.op == "dense" and weights.shape[-1:] != x.shape[-1:]:
        return False
    fixed = [n for n in node.inputs[1:] if n]
    return not weights.dtype.is_float and all(graph.known(n) for n in fixed)


def mixes(node: Node, graph: Graph) -> bool:
    """True if it may lose channels of its input and of its output independently."""
    return node.op in MIXING and weighted(node, graph) and integer(node, graph)


def followed(node: Node, graph: Graph) -> tuple[Ints, ...]:
    """For each input: the channel that each output channel follows, or ABSENT. () if
    its channels are not channels of the inputs, or if none can be removed.

    (): its channels are not channels of the inputs, or it cannot lose any.
    """
    if not integer(node, graph) or len(node.outputs) != 1:
        return ()
    y = graph.tensor(node.output)
    xs = [graph.tensor(n) for n in node.inputs if n]
    if any(t.name in graph.parameters for t in xs):
        return ()
    match node.op:
        case "depthwise_conv2d" if weighted(node, graph):
            multiplier = y.shape[-1] // xs[0].shape[-1]
            return (np.arange(y.shape[-1]) // multiplier,)
        case op if op in BINARY:
            return tuple(_broadcast(x, y) for x in xs)
        case "concat":
            return _concat(node, xs, y)
    if node.op in (*ALONE, *WINDOWED, *MOVING) and _keeps(node, xs[0], y):
        return (_moved(node, xs[0], y),)
    return ()


def _broadcast(x: Tensor, y: Tensor) -> Ints:
    count = y.shape[-1]
    whole = x.shape[-1:] == (count,)
    return np.arange(count) if whole else np.full(count, ABSENT)


def _concat(node: Node, xs: list[Tensor], y: Tensor) -> tuple[Ints, ...]:
    if node.attrs["axis"] != len(y.shape) - 1:
        return tuple(np.arange(y.shape[-1]) for _ in xs)
    maps, begin = [], 0
    for x in xs:
        at = np.full(y.shape[-1], ABSENT)
        at[begin : begin + x.shape[-1]] = np.arange(x.shape[-1])
        maps.append(at)
        begin += x.shape[-1]
    return tuple(maps)


def _keeps(node: Node, x: Tensor, y: Tensor) -> bool:
    """True if each channel of y is one of x, and any of them may go."""
    last = len(x.shape) - 1
    match node.op:
        case "mean":
            return last not in node.attrs["axes"]
        case "pad":
            return not any(node.attrs["pads"][last])
        case "transpose":
            return bool(node.attrs["perm"][last] == last)
        case "slice":
            return bool(node.attrs["strides"][last] == 1)
        case "reshape":
            return y.shape[-1] % x.shape[-1] == 0
    return x.dtype is y.dtype


def _moved(node: Node, x: Tensor, y: Tensor) -> Ints:
    at = np.arange(y.shape[-1])
    match node.op:
        case "slice":
            return at + int(node.attrs["begin"][-1])
        case "reshape":  # elements lie in order
            return at % x.shape[-1]
    return at


def resliced(node: Node, x_kept: Ints, y_kept: Ints) -> Node:
    """A slice of a tensor of which these channels are left."""
    begin, end = tuple(node.attrs["begin"]), tuple(node.attrs["end"])
    first = int(np.searchsorted(x_kept, begin[-1]))
    last = first + len(y_kept)
    return node.with_attrs(begin=(*begin[:-1], first), end=(*end[:-1], last))
