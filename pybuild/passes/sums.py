"""Sums of two tensors as the epilogue of the layer that makes one of them."""

from __future__ import annotations

from dataclasses import replace

from pybuild.dtype import DType
from pybuild.graph import Graph, Node

_LAYERS = ("conv2d", "depthwise_conv2d", "dense")
_SUMS = ("add", "sub")


def with_sums(graph: Graph) -> Graph:
    """Layers that only a sum reads, one node with it, for the plan alone: tensors of
    one shape, on one device. Of two such layers the one that reads less is last.
    """
    if graph.storage:
        return graph
    makers, readers = graph.producers(), graph.consumers()
    kept = {*graph.outputs, *(state.next for state in graph.state.values())}

    def ends(total: Node) -> Node | None:
        found = []
        for name in total.inputs:
            layer = makers.get(name)
            known = layer is not None and layer.op in _LAYERS and name not in kept
            if layer is None or not known or len(readers[name]) > 1:
                continue
            if layer.device == total.device:
                found.append(layer)
        return min(found, key=lambda n: graph.tensor(n.inputs[0]).bytes, default=None)

    made: dict[str, Node] = {}
    for total in graph.nodes:
        layer = ends(total) if _plain(total, graph) else None
        if layer is not None:
            made[total.output] = _joined(layer, total)
    gone = {node.of[0].output for node in made.values()}
    nodes = [made.get(n.output, n) for n in graph.nodes if n.output not in gone]
    return replace(graph, nodes=tuple(nodes))


def _plain(node: Node, graph: Graph) -> bool:
    """A sum of two tensors of its own shape that are computed; one of floats with
    limits reads a table of them, for which layers have no pointer."""
    if node.op not in _SUMS or any(n in graph.constants for n in node.inputs):
        return False
    if graph.tensor(node.output).dtype is DType.FLOAT32 and node.attrs.get("clamp"):
        return False
    return len({graph.tensor(n).shape for n in (*node.inputs, node.output)}) == 1


def _joined(layer: Node, total: Node) -> Node:
    (other,) = (name for name in total.inputs if name != layer.output)
    return replace(
        total,
        op=f"{layer.op}+{total.op}",
        inputs=(*layer.inputs, other),
        of=(layer, total),
    )


def apart(graph: Graph) -> Graph:
    """The graph with the nodes that `with_sums` put together."""
    nodes = [one for node in graph.nodes for one in node.of or (node,)]
    return replace(graph, nodes=tuple(nodes))
