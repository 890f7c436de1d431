"""(colour - mean) / std folded into the weights and the bias of a net's first layer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from pybuild.dtype import Array, DType
from pybuild.errors import BuildError
from pybuild.ir.graph import Graph, Node, Tensor, verify
from pybuild.ops import OPERATORS

_HINT = "images(..., mean=, std=) makes a quantised net's own integers instead"


def folded(net: Graph, mean: Sequence[float], std: Sequence[float]) -> Graph:
    """The net whose input is colours from 0 to 1 instead of (colour - mean) / std.

    net      of float32, after all passes: its input goes into one convolution alone
    Returns  input [1, H, W, channels]; where the convolution pads and a mean is not 0,
             a last channel of ones says what is inside of the picture
    Errors   BuildError for another net
    """
    first, height, width = _first(net)
    source, w_name, *rest = first.inputs
    weights, x = net.constants[w_name], net.tensor(net.inputs[0])
    colours = weights.shape[3]
    if len(mean) != colours or len(std) != colours or min(std) <= 0:
        what = f"mean {tuple(mean)} and std {tuple(std)} of {colours} colours"
        raise BuildError(net.source, what, "a number above 0 for each of std")
    scaled = weights / np.asarray(std)
    moved = -(scaled * np.asarray(mean))
    bias = net.constants[rest[0]] if rest and rest[0] else np.zeros(len(weights))
    ones = bool(any(first.attrs.get("pads", ())) and any(mean))
    if ones:
        scaled = np.concatenate([scaled, moved.sum(3, keepdims=True)], 3)
    else:
        bias = bias + moved.sum((1, 2, 3))
    shape = (1, height, width, colours + ones)
    named = {f"{first.name}.weights": scaled, f"{first.name}.bias": bias}
    constants: dict[str, Array] = {
        name: value.astype(np.float32) for name, value in named.items()
    }
    gone = {node.name for node in _before(net, source)}
    layer = replace(first, inputs=(x.name, *constants))
    nodes = [layer if n is first else n for n in net.nodes if n.name not in gone]
    tensors = dict(net.tensors)
    tensors[x.name] = Tensor(x.name, shape, DType.FLOAT32)
    for name, value in constants.items():
        tensors[name] = Tensor(name, value.shape, DType.FLOAT32)
    used = {name for node in nodes for name in node.inputs}
    kept = {n: v for n, v in {**net.constants, **constants}.items() if n in used}
    made = {name for node in nodes for name in node.outputs}
    known = {*kept, *made, *net.inputs, *net.outputs, *net.state}
    graph = replace(
        net, nodes=tuple(nodes), constants=kept, windows={},
        tensors={n: t for n, t in tensors.items() if n in known},
        parameters={n: p for n, p in net.parameters.items() if n in kept},
    )  # fmt: skip
    verify(graph)
    return graph


def _first(net: Graph) -> tuple[Node, int, int]:
    """The convolution that alone reads the input; the picture's height and width."""
    if len(net.inputs) != 1 or net.tensor(net.inputs[0]).dtype is not DType.FLOAT32:
        raise BuildError(net.source, "has not one input of float32", _HINT)
    name = net.inputs[0]
    while True:
        readers = [node for node in net.nodes if name in node.inputs]
        node = readers[0] if len(readers) == 1 else None
        if node is None or node.op not in ("reshape", "transpose", "conv2d"):
            what = f"'{name}' is not read by one convolution alone"
            raise BuildError(net.source, what, _HINT)
        if node.op == "conv2d":
            break
        name = node.output
    shape = net.tensor(name).shape
    if not _is_picture(net, name):
        what = f"the input {list(net.tensor(net.inputs[0]).shape)} is turned"
        raise BuildError(
            net.source, what, "[1, height, width, colours] or colours first"
        )
    known = all(n in net.constants for n in node.inputs[1:] if n)
    if shape[0] != 1 or node.attrs.get("groups", 1) != 1 or not known:
        what = f"'{net.called(node)}' has groups, a batch, or weights that are computed"
        raise BuildError(net.source, what, _HINT)
    return node, shape[1], shape[2]


def _is_picture(net: Graph, name: str) -> bool:
    """True if what a convolution reads is the input, or the input with colours last."""
    x, shape = net.tensor(net.inputs[0]), net.tensor(name).shape
    given = np.arange(x.size, dtype=np.float32)
    values: dict[str, Array] = {x.name: given.reshape(x.shape)}
    for node in reversed(_before(net, name)):
        reads = [values[node.inputs[0]]]
        (values[node.output],) = OPERATORS[node.op].reference(node, net, reads)
    turned = given.reshape(shape[0], shape[3], *shape[1:3]).transpose(0, 2, 3, 1)
    return any((values[name] == one).all() for one in (given.reshape(shape), turned))


def _before(net: Graph, name: str) -> list[Node]:
    """The nodes between the input and a tensor."""
    found = []
    while name not in net.inputs:
        (node,) = (one for one in net.nodes if name in one.outputs)
        found.append(node)
        name = node.inputs[0]
    return found
