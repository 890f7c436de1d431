"""The order of an ONNX file's nodes. ONNX asks that a node stands after those that it
reads; ONNX Runtime sorts a file that does not, so its tools write such files.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from graphlib import CycleError, TopologicalSorter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from onnx import GraphProto, NodeProto


def sort_nodes(graph: GraphProto) -> None:
    """Sort the nodes of a graph where one stands before a node that it reads; other
    graphs, and circles, stay as they are. ONNX Runtime refuses such bodies of branches
    and loops, so they are not sorted."""
    makers = {y: i for i, node in enumerate(graph.node) for y in node.output if y}
    needs = {
        i: sorted({makers[x] for x in _read(node) if x in makers})
        for i, node in enumerate(graph.node)
    }
    if all(maker < i for i, found in needs.items() for maker in found):
        return
    try:
        TopologicalSorter(needs).prepare()
    except CycleError:
        return
    nodes = [graph.node[i] for i in _order(needs)]
    copies = [type(node).FromString(node.SerializeToString()) for node in nodes]
    del graph.node[:]
    graph.node.extend(copies)


def _order(needs: Mapping[int, list[int]]) -> list[int]:
    """The nodes in the file's order, each behind those that it needs."""
    order: dict[int, None] = {}
    for node in needs:
        waiting = [node]
        while waiting:
            left = [i for i in needs[waiting[-1]] if i not in order]
            if left:
                waiting.append(left[0])
            else:
                order[waiting.pop()] = None
    return list(order)


def _read(node: NodeProto) -> set[str]:
    """The values that a node reads, also in its bodies."""
    inner = (_outside(body) for body in bodies([node]))
    return {x for x in node.input if x}.union(*inner)


def _outside(body: GraphProto) -> set[str]:
    """The values that a body reads and does not make."""
    own = {value.name for value in (*body.input, *body.initializer)}
    own.update(y for node in body.node for y in node.output)
    found = {value.name for value in body.output}
    return found.union(*(_read(node) for node in body.node)) - own


def bodies(nodes: Iterable[NodeProto]) -> list[GraphProto]:
    """Return the graphs inside these nodes, without those inside these."""
    found: list[GraphProto] = []
    for node in nodes:
        for attribute in node.attribute:
            if attribute.HasField("g"):
                found.append(attribute.g)
            found.extend(attribute.graphs)
    return found
