"""Cross-layer equalisation: channels of an activation brought to like magnitudes.

A factor per channel goes out of the layer that makes it (weights and bias / s) and into
the layer that reads it (weights * s). What is balanced is the activation, which has one
scale, against input channels. Source: Nagel et al., Data-free quantization (2019).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from pybuild.dtype import Array, DType
from pybuild.graph import Graph, Node
from pybuild.ops.operator import clamp_of
from pybuild.passes.edit import Edit
from pybuild.passes.qdq import WEIGHTED
from pybuild.quantisation.ranges import Floats, Observed, magnitudes
from pybuild.quantisation.rewrite import CHANNEL_AXIS

# these keep channels apart and pass any positive factor through
_BETWEEN = ("max_pool2d", "avg_pool2d", "reshape", "mean", "copy")
_MOST = 64.0


@dataclass(frozen=True)
class Pair:
    """A layer whose output only `reader` reads, through what keeps channels apart."""

    maker: Node
    reader: Node


def equalised(graph: Graph, seen: Mapping[str, Observed]) -> Graph:
    """The graph with other weights that computes the same.

    seen  every tensor of `graph`, on the samples
    """
    edit = Edit(graph)
    edit.nodes = list(graph.nodes)
    for pair in pairs(graph):
        edit_pair(edit, pair, seen[pair.maker.output].channels)
    return edit.done()


def pairs(graph: Graph) -> list[Pair]:
    users = graph.consumers()
    found = []
    for node in graph.nodes:
        reader = _reader(node, graph, users) if _free(node, graph, users) else None
        if reader is not None:
            found.append(Pair(node, reader))
    return found


def _free(node: Node, graph: Graph, users: Mapping[str, Sequence[Node]]) -> bool:
    """A layer whose weights are its own and whose clamp passes factors through."""
    if node.op not in WEIGHTED or clamp_of(node) not in ((None, None), (0.0, None)):
        return False
    named = [name for name in node.inputs[1:] if name]
    return all(_own(name, graph, users) for name in named)


def _reader(
    node: Node, graph: Graph, users: Mapping[str, Sequence[Node]]
) -> Node | None:
    name, channels = node.output, graph.tensor(node.output).shape[-1]
    while True:
        if name in graph.outputs or len(users[name]) != 1:
            return None
        (reader,) = users[name]
        if reader.op in WEIGHTED:
            break
        if not _keeps_apart(reader, graph, channels):
            return None
        name = reader.output
    first = reader.inputs[0] == name and _own(reader.inputs[1], graph, users)
    return reader if first and _by_channel(reader, graph) % channels == 0 else None


def _keeps_apart(node: Node, graph: Graph, channels: int) -> bool:
    """The last axis holds the channels again, or several times in their order."""
    if node.op not in _BETWEEN or clamp_of(node) != (None, None):
        return False
    last = len(graph.tensor(node.inputs[0]).shape) - 1
    shape = graph.tensor(node.output).shape
    if last in node.attrs.get("axes", ()) or not shape:
        return False
    many = node.op == "reshape" and shape[-1] % channels == 0
    return many or shape[-1] == channels


def _own(name: str, graph: Graph, users: Mapping[str, Sequence[Node]]) -> bool:
    """Float weights that nothing else reads."""
    if graph.tensor(name).dtype is not DType.FLOAT32:
        return False
    return graph.known(name) and len(users[name]) == 1


def _by_channel(reader: Node, graph: Graph) -> int:
    """Input channels; 1, which fits nothing, for weights that several have."""
    shape, x = graph.tensor(reader.inputs[1]).shape, graph.tensor(reader.inputs[0])
    if reader.op == "depthwise_conv2d":
        return shape[2] if shape[2] == x.shape[-1] else 1
    return shape[-1] if int(reader.attrs.get("groups", 1)) == 1 else 1


def edit_pair(edit: Edit, pair: Pair, activity: Floats) -> None:
    """Balances one pair; `activity`: greatest magnitude of each channel."""
    w = edit.constants[pair.reader.inputs[1]]
    columns = _columns(w, len(activity))
    factor = _factors(activity, magnitudes(columns, 2), pair.reader.op)
    maker = pair.maker
    axis = CHANNEL_AXIS[maker.op]
    made = edit.constants[maker.inputs[1]].astype(np.float64)
    rows = [1] * made.ndim
    rows[axis] = -1
    _put(edit, maker.inputs[1], made / factor.reshape(rows))
    if len(maker.inputs) > 2 and maker.inputs[2]:
        bias = edit.constants[maker.inputs[2]].astype(np.float64)
        _put(edit, maker.inputs[2], bias / factor)
    scaled = columns * factor.reshape(1, 1, -1)
    _put(edit, pair.reader.inputs[1], scaled.reshape(w.shape))


def _columns(w: Array, channels: int) -> Floats:
    """[-1, times a channel comes, channels]: the input channel is the last axis."""
    return w.astype(np.float64).reshape(-1, 1, channels)


def _factors(activity: Floats, columns: Floats, op: str) -> Floats:
    """By which each channel is divided; their geometric mean is 1.

    A depthwise layer has a scale for each channel: there the activation alone counts.
    """
    used = (activity > 1e-12) & (columns > 1e-12)
    if not used.any():
        return np.ones_like(activity)
    safe = np.where(used, activity, 1.0)
    if op == "depthwise_conv2d":
        raw = safe
    else:
        raw = np.sqrt(safe / np.where(used, columns, 1.0))
    middle = np.exp(np.log(raw[used]).mean())
    return np.where(used, np.clip(raw / middle, 1 / _MOST, _MOST), 1.0)


def _put(edit: Edit, name: str, value: Floats) -> None:
    edit.constants[name] = np.ascontiguousarray(value, np.float32)
