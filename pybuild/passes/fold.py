"""Constant folding: operators whose inputs are all known, computed by their meaning."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from pybuild.graph import Graph, Node
from pybuild.ops.function import CALL
from pybuild.ops.interpret import operator_of
from pybuild.passes.edit import used


def fold_constants(graph: Graph) -> Graph:
    """Nodes on constants become constants.

    Not a dequantize that stands for integers: the pass `qdq` wants those; nor a call
    of a user's function, which may do more than compute. Of a parameter only what
    moves its elements: what comes out is a parameter again.
    """
    constants, parameters = dict(graph.constants), dict(graph.parameters)
    nodes = []
    for node in graph.nodes:
        known = all(not name or name in constants for name in node.inputs)
        taken = [parameters[name] for name in node.inputs if name in parameters]
        fixed = not taken or _only_moves(node, graph)
        stays = node.op == CALL or node.attrs.get("simulated")
        if not known or not fixed or stays:
            nodes.append(node)
            continue
        reads = [constants[name] if name else None for name in node.inputs]
        with np.errstate(all="ignore"):
            made = operator_of(node, graph).reference(node, graph, reads)
        constants.update(zip(node.outputs, made, strict=True))
        parameters.update({name: taken[0] for name in node.outputs if taken})
    made_graph = replace(graph, nodes=tuple(nodes), constants=constants)
    return used(replace(made_graph, parameters=parameters))


def _only_moves(node: Node, graph: Graph) -> bool:
    """Whether each element of the input is one of the output; of a slice, backwards."""
    sizes = {graph.tensor(name).size for name in (node.inputs[0], node.output)}
    whole = node.op == "slice" and len(sizes) == 1
    return whole or node.op in ("reshape", "transpose")
