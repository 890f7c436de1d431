"""Dead code: nodes that no output needs."""

from __future__ import annotations

from dataclasses import replace

from pybuild.ir.graph import Graph
from pybuild.passes.edit import used


def remove_dead(graph: Graph) -> Graph:
    """Removes nodes that are on no way to an output; inputs always remain."""
    needed = set(graph.outputs)
    kept = []
    for node in reversed(graph.nodes):
        if needed & set(node.outputs):
            needed |= set(node.inputs)
            kept.append(node)
    return used(replace(graph, nodes=tuple(reversed(kept))))
