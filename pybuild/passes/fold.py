"""Constant folding: operators whose inputs are all known, computed by their meaning."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from pybuild.graph import Graph
from pybuild.ops.interpret import operator_of
from pybuild.passes.edit import used


def fold_constants(graph: Graph) -> Graph:
    """Nodes on constants become constants.

    Not a dequantize that stands for integers: the pass `qdq` wants those.
    """
    constants = dict(graph.constants)
    nodes = []
    for node in graph.nodes:
        known = all(not name or name in constants for name in node.inputs)
        if not known or node.attrs.get("simulated"):
            nodes.append(node)
            continue
        reads = [constants[name] if name else None for name in node.inputs]
        with np.errstate(all="ignore"):
            made = operator_of(node, graph).reference(node, graph, reads)
        constants.update(zip(node.outputs, made, strict=True))
    return used(replace(graph, nodes=tuple(nodes), constants=constants))
