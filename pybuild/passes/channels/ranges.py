"""The least and the greatest integer that each channel of each tensor can be.

Forward through the graph, exact where the inputs of a channel are constants.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import product

import numpy as np
import numpy.typing as npt

from pybuild.dtype import Array, DType, Ints
from pybuild.errors import BuildError
from pybuild.ir.graph import Graph, Node
from pybuild.ops.act import unary_table
from pybuild.ops.base.signatures import BINARY
from pybuild.ops.conv import conv_parameters, finish
from pybuild.ops.fixed_point.chunks import chunks
from pybuild.ops.interpret import operator_of
from pybuild.ops.shape import pad_fill
from pybuild.passes.channels.maps import (
    ABSENT,
    ALONE,
    MOVING,
    followed,
    integer,
    weighted,
)
from pybuild.records import dataclass

Flags = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Range:
    """Least and greatest value of each channel of a tensor."""

    low: Ints
    high: Ints

    @property
    def constant(self) -> Flags:
        return np.asarray(self.low == self.high)


def channel_ranges(graph: Graph) -> dict[str, Range]:
    """The range of every tensor that is not a parameter; other types than integers get
    none."""
    ranges = {name: _everything(graph, name) for name in graph.inputs}
    for name, value in graph.constants.items():
        if graph.known(name) and value.size and value.dtype.kind == "i":
            flat = value.reshape(-1, value.shape[-1] if value.shape else 1)
            low, high = flat.min(0), flat.max(0)
            ranges[name] = Range(low.astype(np.int64), high.astype(np.int64))
    for node in graph.nodes:
        for name in node.outputs:
            ranges[name] = _everything(graph, name)
        found = _of_node(node, graph, ranges)
        if found is not None:
            ranges[node.output] = found
    return ranges


def _everything(graph: Graph, name: str) -> Range:
    tensor = graph.tensor(name)
    count = tensor.shape[-1] if tensor.shape else 1
    whole = tensor.dtype in (DType.INT8, DType.INT16)
    # of other types: two values that are never alike
    low, high = (tensor.dtype.low, tensor.dtype.high) if whole else (0, 1)
    return Range(np.full(count, low), np.full(count, high))


def _of_node(node: Node, graph: Graph, ranges: Mapping[str, Range]) -> Range | None:
    if not integer(node, graph):
        return None
    if weighted(node, graph):
        try:
            return _of_weights(node, graph, ranges[node.inputs[0]])
        except BuildError:  # said with all others when kernels are chosen
            return None
    maps = followed(node, graph)
    if not maps:
        return None
    xs = [ranges[n] for n in node.inputs]
    if node.op in BINARY:
        return _of_corners(node, graph, xs)
    if node.op in ALONE:
        return _of_table(node, graph, xs[0])
    if node.op in MOVING:
        return _of_moves(node, graph, xs, maps)
    ends = []
    for values in (xs[0].low, xs[0].high):
        x = graph.tensor(node.inputs[0])
        array: Array = np.broadcast_to(values, x.shape).astype(x.dtype.numpy)
        (made,) = operator_of(node, graph).reference(node, graph, (array,))
        ends.append(made.reshape(-1, made.shape[-1]).astype(np.int64))
    return Range(ends[0].min(0), ends[1].max(0))


def _of_corners(node: Node, graph: Graph, xs: list[Range]) -> Range:
    """The range of a function that is monotonic in each of its two inputs."""
    ends = []
    kinds = [graph.tensor(n).dtype.numpy for n in node.inputs]
    for values in product(*((x.low, x.high) for x in xs)):
        arrays = [v.astype(kind) for v, kind in zip(values, kinds, strict=True)]
        (made,) = operator_of(node, graph).reference(node, graph, arrays)
        ends.append(made.astype(np.int64))
    return Range(np.minimum.reduce(ends), np.maximum.reduce(ends))


def _of_table(node: Node, graph: Graph, x: Range) -> Range | None:
    kinds = {graph.tensor(n).dtype for n in (node.inputs[0], node.output)}
    if kinds != {DType.INT8}:
        return None
    if node.op == "lookup":
        table = graph.constants[node.inputs[1]].astype(np.int64)
    else:
        table = unary_table(node, graph).astype(np.int64)
    ends = (x.low - DType.INT8.low, x.high - DType.INT8.low + 1)
    parts = [table[a:b] for a, b in zip(*(e.tolist() for e in ends), strict=True)]
    return Range(np.array([p.min() for p in parts]), np.array([p.max() for p in parts]))


def _of_moves(
    node: Node, graph: Graph, xs: list[Range], maps: tuple[Ints, ...]
) -> Range:
    whole = _everything(graph, node.output)
    low, high = whole.high, whole.low
    for x, at in zip(xs, maps, strict=True):
        there = at != ABSENT
        low = np.where(there, np.minimum(low, x.low[at]), low)
        high = np.where(there, np.maximum(high, x.high[at]), high)
    if node.op == "pad" and any(map(any, node.attrs["pads"])):
        fill = int(pad_fill(node, graph))
        low, high = np.minimum(low, fill), np.maximum(high, fill)
    return Range(low, high)


# ---- layers with weights --------------------------------------------------------


def taps_of(node: Node, graph: Graph) -> Array:
    """Weights [outputs, taps, inputs]; of a depthwise layer [channels, taps, 1]."""
    w = graph.constants[node.inputs[1]]
    if node.op == "depthwise_conv2d":
        return w.reshape(-1, w.shape[2]).T[:, :, None]
    return w.reshape(w.shape[0], -1, w.shape[-1])


def bias_of(node: Node, graph: Graph, outputs: int) -> Ints:
    if len(node.inputs) > 2 and node.inputs[2]:
        return graph.constants[node.inputs[2]].astype(np.int64)
    return np.zeros(outputs, np.int64)


def windows_of(node: Node, graph: Graph) -> Floats:
    """A mask of the taps inside the input (1) for each kind of window.

    Shapes  [kinds, taps]; at most so many rows as there are corners, edges, middles
    """
    shape = graph.tensor(node.inputs[1]).shape
    kernel = shape[:2] if node.op == "depthwise_conv2d" else shape[1:-1]
    pads = node.attrs.get("pads", (0, 0, 0, 0))
    if node.op == "dense" or not any(pads):
        return np.ones((1, math.prod(kernel)))
    x, y = graph.tensor(node.inputs[0]).shape, graph.tensor(node.output).shape
    seen = []
    for axis in (0, 1):
        stride, dilation = (
            node.attrs.get(name, (1, 1))[axis] for name in ("strides", "dilations")
        )
        to = np.arange(y[axis + 1])[:, None] * stride - pads[axis]
        at = to + np.arange(kernel[axis]) * dilation
        inside = (at >= 0) & (at < x[axis + 1])
        seen.append(np.stack(list({row.tobytes(): row for row in inside}.values())))
    both = seen[0][:, None, :, None] & seen[1][None, :, None, :]
    kinds: Floats = both.reshape(-1, math.prod(kernel)).astype(np.float64)
    return kinds


def _of_weights(node: Node, graph: Graph, x: Range) -> Range:
    """Sums are below 2^53: float64 has each."""
    made, w = conv_parameters(node, graph), taps_of(node, graph)
    low, high = (end.astype(np.float64) - made.x_zero for end in (x.low, x.high))
    if node.op == "depthwise_conv2d":
        low, high = (np.repeat(e, len(w) // len(e))[:, None] for e in (low, high))
        w = w[:, :, 0]
    parts = []
    # of few channels at a time: a layer has millions of weights, bytes; here eight each
    for part in chunks(np.arange(len(w)), 8 * w[0].size):
        up = np.maximum(w[part], 0).astype(np.float64)
        down = np.minimum(w[part], 0).astype(np.float64)
        if node.op == "depthwise_conv2d":
            ends = low[part], high[part]
            both = up * ends[0] + down * ends[1], up * ends[1] + down * ends[0]
        else:
            both = up @ low + down @ high, up @ high + down @ low
        parts.append(np.stack(both))
    sums = np.concatenate(parts, 1)
    # [ends, outputs, taps] -> [ends, kinds of windows, outputs]
    windows = windows_of(node, graph) @ sums.transpose(0, 2, 1)
    acc = bias_of(node, graph, len(w)) + windows.astype(np.int64)
    values = finish(node, graph, acc, made).astype(np.int64)
    return Range(values[0].min(0), values[1].max(0))
