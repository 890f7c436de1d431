"""Constant folding: operators whose inputs are all known, computed by their meaning."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from pybuild.ir.graph import Graph
from pybuild.ops.base.function import CALL
from pybuild.ops.interpret import operator_of
from pybuild.ops.shape import MOVING
from pybuild.passes.edit import used
from pybuild.passes.legalise import rounded


def fold_constants(graph: Graph, option: str = "litert") -> Graph:
    """Nodes on constants become constants, rounded as the build option `option` says.

    Not a dequantize that stands for integers: the pass `qdq` wants those; nor a call
    of a user's function, which may do more than compute. Of a parameter only what
    moves its elements: what comes out is a parameter again, with the user's name.
    """
    constants, parameters = dict(graph.constants), dict(graph.parameters)
    nodes = []
    for node in graph.nodes:
        known = all(not name or name in constants for name in node.inputs)
        taken = [parameters[name] for name in node.inputs if name in parameters]
        fixed = not taken or node.op in MOVING
        stays = node.op == CALL or node.attrs.get("simulated")
        if not known or not fixed or stays:
            nodes.append(node)
            continue
        reads = [constants[name] if name else None for name in node.inputs]
        rounds = rounded(node, graph, option)
        with np.errstate(all="ignore"):
            made = operator_of(node, graph).reference(rounds, graph, reads)
        constants.update(zip(node.outputs, made, strict=True))
        parameters.update({name: taken[0] for name in node.outputs if taken})
    made_graph = replace(graph, nodes=tuple(nodes), constants=constants)
    return used(replace(made_graph, parameters=parameters))
