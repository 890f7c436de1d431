"""Inputs that are converted when they are set: of a float image that is only quantised
the instance then holds the integers alone. Knows no plan.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from pybuild.ir.graph import Graph, Node
from pybuild.ops.base.signatures import WHEN_SET


def conversions(graph: Graph) -> Mapping[str, str]:
    """The result of each input that is converted when it is set."""
    nodes = (node for node in graph.nodes if node.attrs.get(WHEN_SET))
    return {node.inputs[0]: node.output for node in nodes}


def converted(graph: Graph, lazy: Collection[str]) -> Graph | None:
    """The graph in which inputs that are only quantised, to a smaller type, are
    converted when they are set. None: there is no such input.

    lazy  inputs that stay in memory of the caller's
    """
    if graph.is_placed or graph.storage or graph.windows:
        return None
    users = graph.consumers()
    found: list[Node] = []
    for name in graph.inputs:
        readers = users[name]
        other = (*graph.outputs, *graph.state, graph.sampled, *lazy)
        if name in other or len(readers) != 1:
            continue
        (node,) = readers
        smaller = graph.tensor(node.output).bytes < graph.tensor(name).bytes
        if node.op == "quantize" and smaller and node.output not in graph.outputs:
            found.append(node)
    if not found:
        return None
    marked = [replace(n, attrs={**n.attrs, WHEN_SET: True}) for n in found]
    rest = [node for node in graph.nodes if node not in found]
    return replace(graph, nodes=(*marked, *rest))
