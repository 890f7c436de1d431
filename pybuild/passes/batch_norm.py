"""Batch-norm fusion: constants per channel go into the layer before.

Multiplications and additions of constants after conv2d, depthwise_conv2d and dense, in
float32; after one whose weights a file has as integers, additions: they are its bias.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from pybuild.dtype import Array, DType
from pybuild.ir.graph import Graph, Node
from pybuild.ops.interpret import operator_of
from pybuild.passes.edit import Edit, only_reader

_LAYERS = ("conv2d", "depthwise_conv2d", "dense")
# where the output channel is in the weights
_CHANNEL = {"conv2d": 0, "depthwise_conv2d": 2, "dense": 0}

Floats = npt.NDArray[np.float64]


def fuse_batch_norm(graph: Graph) -> Graph:
    """mul, add and sub of one number per channel, into weights and bias."""
    edit = Edit(graph)
    users, makers = graph.consumers(), graph.producers()
    places: dict[str, int] = {}
    biases = {_as_it_is(node, graph, makers) for node in graph.nodes}
    first = [node for node in graph.nodes if node.output in biases]
    rest = [node for node in graph.nodes if node.output not in biases]
    for node in (*first, *rest):  # a bias is there before its layer
        source, row = _per_channel(node, graph, makers)
        at = places.get(source, -1)
        fits = at >= 0 and row is not None and only_reader(graph, users, source)
        if fits and node.op == "mul":
            fits = edit.nodes[at].inputs[1] in edit.constants
        if fits and row is not None:
            layer, bias = edit.nodes[at], _as_it_is(node, graph, makers)
            if bias and len(layer.inputs) == 2:
                reads = (*layer.inputs, bias)
                edit.nodes[at] = replace(layer, inputs=reads, outputs=node.outputs)
            else:
                edit.nodes[at] = _fused(edit, layer, node, row)
            places[node.output] = at
            continue
        edit.keep(node)
        if _open(node, graph, makers):
            places[node.output] = len(edit.nodes) - 1
    return edit.done()


def _open(node: Node, graph: Graph, makers: Mapping[str, Node]) -> bool:
    """A float layer with known weights and without an activation; or with integers of
    the file as weights, and without a bias.
    """
    if node.op not in _LAYERS or "clamp" in node.attrs:
        return False
    if graph.tensor(node.output).dtype is not DType.FLOAT32:
        return False
    if all(not name or graph.known(name) for name in node.inputs[1:]):
        return True
    maker = makers.get(node.inputs[1])
    whole = maker is not None and bool(maker.attrs.get("simulated"))
    return whole and not any(node.inputs[2:])


def _as_it_is(node: Node, graph: Graph, makers: Mapping[str, Node]) -> str:
    """The operand of an addition that integers of the file are, one of each channel: a
    layer may have it as its bias. "": there is none."""
    channels = graph.tensor(node.output).shape[-1:]
    for name in node.inputs if node.op == "add" else ():
        if _integers(name, graph, makers) and graph.tensor(name).shape == channels:
            return name
    return ""


def _integers(name: str, graph: Graph, makers: Mapping[str, Node]) -> Node | None:
    """The node that makes a tensor of integers of the file that are known, or None."""
    maker = makers.get(name)
    if maker is None or maker.op != "dequantize" or not graph.known(maker.inputs[0]):
        return None
    return maker


def _number(name: str, graph: Graph, makers: Mapping[str, Node]) -> Array | None:
    """The value of a tensor that is known, or that integers of the file are."""
    if graph.known(name):
        return graph.constants[name]
    maker = _integers(name, graph, makers)
    if maker is None:
        return None
    held = [graph.constants[maker.inputs[0]]]
    return operator_of(maker, graph).reference(maker, graph, held)[0]


def _per_channel(
    node: Node, graph: Graph, makers: Mapping[str, Node]
) -> tuple[str, Floats | None]:
    """The computed operand, and the constant one as a number per last-axis index."""
    if node.op not in ("add", "sub", "mul") or "clamp" in node.attrs:
        return "", None
    a, b = node.inputs
    known = graph.known(a) or _integers(a, graph, makers) is not None
    if known and node.op != "sub":
        a, b = b, a
    value = _number(b, graph, makers)
    x, y = graph.tensor(a), graph.tensor(node.output)
    if value is None or value.dtype != np.float32 or x.shape != y.shape:
        return "", None
    channels = x.shape[-1] if x.shape else 1
    if value.size not in (1, channels) or value.size != (value.shape or (1,))[-1]:
        return "", None
    numbers: Floats = value.reshape(-1).astype(np.float64)
    return a, np.broadcast_to(numbers, (channels,))


def _fused(edit: Edit, layer: Node, node: Node, row: Floats) -> Node:
    bias = np.zeros(len(row))
    if len(layer.inputs) > 2 and layer.inputs[2]:
        bias = edit.constants[layer.inputs[2]].astype(np.float64)
    if node.op == "mul":
        weights = edit.constants[layer.inputs[1]].astype(np.float64)
        shape = [1] * weights.ndim
        shape[_CHANNEL[layer.op]] = -1
        weights, bias = weights * row.reshape(shape), bias * row
        made = edit.constant(f"{layer.inputs[1]}.fused", weights.astype(np.float32))
        names = [made]
    else:
        bias = bias - row if node.op == "sub" else bias + row
        names = [layer.inputs[1]]
    names.append(edit.constant(f"{layer.name}.bias", bias.astype(np.float32)))
    return replace(layer, inputs=(layer.inputs[0], *names), outputs=node.outputs)
