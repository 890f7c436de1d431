"""Activation fusion: a clip goes into the operator before it, where that is exact."""

from __future__ import annotations

from dataclasses import replace

from pybuild.dtype import DType
from pybuild.ir.graph import Graph, Node
from pybuild.ops.base.operator import clamp_of
from pybuild.passes.edit import Edit, only_reader

_CLAMPED = (
    "conv2d", "depthwise_conv2d", "dense", "add", "sub", "mul", "avg_pool2d",
    "max_pool2d", "clip", "group_norm",
)  # fmt: skip

Clamp = tuple[float | None, float | None]


def fuse_activation(graph: Graph) -> Graph:
    """float32 always; int8 where the clip keeps scale and zero point."""
    edit = Edit(graph)
    users = graph.consumers()
    places: dict[str, int] = {}
    for node in graph.nodes:
        source = node.inputs[0] if node.inputs else ""
        at = places.get(source, -1) if node.op == "clip" else -1
        if at >= 0 and only_reader(graph, users, source) and _alike(node, graph):
            both = combined(clamp_of(edit.nodes[at]), clamp_of(node))
            if both is not None:
                made = edit.nodes[at].with_attrs(clamp=both)
                edit.nodes[at] = replace(made, outputs=node.outputs)
                places[node.output] = at
                continue
        edit.keep(node)
        if node.op in _CLAMPED:
            places[node.output] = len(edit.nodes) - 1
    return edit.done()


def _alike(node: Node, graph: Graph) -> bool:
    x, y = graph.tensor(node.inputs[0]), graph.tensor(node.output)
    return x.dtype is DType.FLOAT32 or x.quant == y.quant


def combined(first: Clamp, second: Clamp) -> Clamp | None:
    """The clamp that equals `first`, then `second`; None if they do not overlap."""
    lows = [low for low in (first[0], second[0]) if low is not None]
    highs = [high for high in (first[1], second[1]) if high is not None]
    low, high = max(lows, default=None), min(highs, default=None)
    if low is not None and high is not None and low > high:
        return None
    return low, high
