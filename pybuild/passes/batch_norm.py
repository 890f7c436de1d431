"""Batch-norm fusion: constants per channel go into the layer before.

Multiplications and additions of constants after conv2d, depthwise_conv2d and dense, in
float32.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from pybuild.dtype import DType
from pybuild.ir.graph import Graph, Node
from pybuild.passes.edit import Edit, only_reader

_LAYERS = ("conv2d", "depthwise_conv2d", "dense")
# where the output channel is in the weights
_CHANNEL = {"conv2d": 0, "depthwise_conv2d": 2, "dense": 0}

Floats = npt.NDArray[np.float64]


def fuse_batch_norm(graph: Graph) -> Graph:
    """mul, add and sub of one number per channel, into weights and bias."""
    edit = Edit(graph)
    users = graph.consumers()
    places: dict[str, int] = {}
    for node in graph.nodes:
        source, row = _per_channel(node, graph)
        at = places.get(source, -1)
        if at >= 0 and row is not None and only_reader(graph, users, source):
            edit.nodes[at] = _fused(edit, edit.nodes[at], node, row)
            places[node.output] = at
            continue
        edit.keep(node)
        if _open(node, graph):
            places[node.output] = len(edit.nodes) - 1
    return edit.done()


def _open(node: Node, graph: Graph) -> bool:
    """A float layer with known weights and without an activation."""
    return (
        node.op in _LAYERS
        and graph.tensor(node.output).dtype is DType.FLOAT32
        and "clamp" not in node.attrs
        and all(not name or graph.known(name) for name in node.inputs[1:])
    )


def _per_channel(node: Node, graph: Graph) -> tuple[str, Floats | None]:
    """The computed operand, and the constant one as a number per last-axis index."""
    if node.op not in ("add", "sub", "mul") or "clamp" in node.attrs:
        return "", None
    a, b = node.inputs
    if graph.known(a) and node.op != "sub":
        a, b = b, a
    value = graph.constants[b] if graph.known(b) else None
    x, y = graph.tensor(a), graph.tensor(node.output)
    if value is None or value.dtype != np.float32 or x.shape != y.shape:
        return "", None
    channels = x.shape[-1] if x.shape else 1
    if value.size not in (1, channels) or value.size != (value.shape or (1,))[-1]:
        return "", None
    numbers: Floats = value.reshape(-1).astype(np.float64)
    return a, np.broadcast_to(numbers, (channels,))


def _fused(edit: Edit, layer: Node, node: Node, row: Floats) -> Node:
    weights = edit.constants[layer.inputs[1]].astype(np.float64)
    bias = np.zeros(len(row))
    if len(layer.inputs) > 2 and layer.inputs[2]:
        bias = edit.constants[layer.inputs[2]].astype(np.float64)
    if node.op == "mul":
        shape = [1] * weights.ndim
        shape[_CHANNEL[layer.op]] = -1
        weights, bias = weights * row.reshape(shape), bias * row
    else:
        bias = bias - row if node.op == "sub" else bias + row
    names = [layer.inputs[1]]
    if node.op == "mul":
        names = [edit.constant(f"{names[0]}.fused", weights.astype(np.float32))]
    names.append(edit.constant(f"{layer.name}.bias", bias.astype(np.float32)))
    return replace(layer, inputs=(layer.inputs[0], *names), outputs=node.outputs)
