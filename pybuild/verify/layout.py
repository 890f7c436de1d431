"""Tensors of an ONNX file as a build holds them: int8 for uint8, channels last.

Knows the file's order of axes and the graph's; no interpreter.
"""

from __future__ import annotations

import math

import numpy as np

from pybuild.dtype import Array
from pybuild.ir.graph import Graph

# these read and make channels last; every other operator keeps its order of axes,
# but for the two that are there to change it
_SPATIAL = ("conv2d", "depthwise_conv2d", "avg_pool2d", "max_pool2d")
_REORDER = ("reshape", "transpose")


def channels_last(graph: Graph) -> frozenset[str]:
    """The tensors of an ONNX model that a build holds in another order than the file:
    those of spatial operators, and what is computed from or into them axis by axis.
    """
    found: set[str] = set()
    grew = True
    while grew:
        before = len(found)
        for node in (*graph.nodes, *reversed(graph.nodes)):
            if node.op in _REORDER:
                continue
            count = 1 if node.op in _SPATIAL else len(node.inputs)
            near = [n for n in (*node.inputs[:count], *node.outputs) if n]
            near = [n for n in near if n not in graph.constants]
            ranks = {len(graph.tensor(n).shape) for n in near}
            alike = len(ranks) == 1 and min(ranks) >= 3
            if node.op in _SPATIAL or (alike and found & set(near)):
                found.update(near)
        grew = len(found) > before
    return frozenset(found)


def flattened(graph: Graph, last: frozenset[str]) -> frozenset[str]:
    """The tensors that a reshape made of channels-last values, in an order that the
    file does not have; the weights of the dense layer that reads them are in that order
    too.
    """
    found: set[str] = set()
    for node in graph.nodes:
        reads = next((n for n in node.inputs if n in last | found), "")
        if not reads or node.op in ("dense", "transpose"):
            continue
        *outer, channels = graph.tensor(reads).shape
        same = channels == 1 or math.prod(outer[1:]) == 1
        if reads in found or (node.op == "reshape" and not same):
            found.update(node.outputs)
    return frozenset(found)


def rows_of_planes(graph: Graph) -> frozenset[str]:
    """Inputs with a row of each plane after the other (`--layout INPUT=nhcw`), and what
    they are quantised to: their transpose moves channels to the end."""
    users, found = graph.consumers(), set[str]()
    for name in graph.inputs:
        names = [name]
        for at in names:
            names += [n.output for n in users[at] if n.op == "quantize"]
        ends = (node for at in names for node in users[at] if node.op == "transpose")
        if any(tuple(node.attrs["perm"]) == (0, 1, 3, 2) for node in ends):
            found |= {*names}
    return frozenset(found)


def channels_first(value: Array) -> Array:
    return np.ascontiguousarray(np.moveaxis(value, -1, 1))


def as_given(value: Array, graph: Graph, name: str, last: frozenset[str]) -> Array:
    """A value of an input as the file has it: channels first."""
    if name in last:
        return channels_first(value)
    if name in rows_of_planes(graph):
        return np.ascontiguousarray(np.swapaxes(value, 1, 2))
    return value


def as_ours(value: Array, graph: Graph, name: str, last: frozenset[str]) -> Array:
    """A value of ONNX Runtime as our tensor holds it: int8, not uint8; channels last,
    where `last` has it, also those that ours lost. Signals [N,C,L] are [N,L,1,C]
    inside.
    """
    tensor = graph.tensor(name)
    if name in last and value.ndim >= 3 and 0 not in value.shape:
        outer, channels = tensor.shape[:-1], value.shape[1]
        if value.size == channels * math.prod(outer):
            value = np.moveaxis(value, 1, -1).reshape(*outer, channels)
    if value.shape != tensor.shape and name in rows_of_planes(graph):
        value = np.swapaxes(value, 1, 2)
    if value.dtype == np.uint8 and tensor.dtype.value == "int8":
        return (value.astype(np.int16) - 128).astype(np.int8)
    return value


def as_theirs(
    value: Array, graph: Graph, name: str, last: frozenset[str], like: Array
) -> Array | None:
    """A value of ours as the file has it, whose own is `like`; None: there is no way
    back, since channels are lost or axes of another order.
    """
    if value.size != like.size:
        return None
    if name in last and like.ndim >= 3 and 0 not in like.shape:
        batch, channels, *rest = like.shape
        value = np.moveaxis(value.reshape(batch, *rest, channels), -1, 1)
    if like.dtype == np.uint8 and value.dtype == np.int8:
        value = (value.astype(np.int16) + 128).astype(np.uint8)
    value = value.reshape(like.shape)
    back = as_ours(value, graph, name, last)
    same = back.shape == graph.tensor(name).shape
    return value if same else None
