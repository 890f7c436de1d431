"""Constant folding: operators whose inputs are all known, computed by their meaning."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from pybuild.ir.graph import Graph, Node
from pybuild.ops.base.function import CALL
from pybuild.ops.interpret import operator_of
from pybuild.ops.shape import MOVING
from pybuild.params.budget import Budget
from pybuild.passes.edit import used
from pybuild.passes.legalise import rounded

# what takes as long as its values say
_UNBOUNDED = ("roi_align", "suppress")


def fold_constants(graph: Graph, option: str = "litert") -> Graph:
    """Nodes on constants become constants, rounded as the build option `option` says.

    Not a dequantize that stands for integers: the pass `qdq` wants those; nor a call
    of a user's function, which may do more than compute, nor what would take too long.
    Of a parameter only what moves its elements: what comes out is a parameter again,
    with the user's name.

    Errors  TooMuch where the constants would take more bytes than a file may ask for
    """
    constants, parameters = dict(graph.constants), dict(graph.parameters)
    budget = Budget(graph.source, sum(a.nbytes for a in constants.values()))
    nodes = []
    for node in graph.nodes:
        known = all(not name or name in constants for name in node.inputs)
        taken = [parameters[name] for name in node.inputs if name in parameters]
        fixed = not taken or node.op in MOVING
        stays = node.op == CALL or node.attrs.get("simulated")
        if not known or not fixed or stays or not _is_cheap(node, graph, budget):
            nodes.append(node)
            continue
        budget.take_bytes(sum(graph.tensors[name].bytes for name in node.outputs))
        reads = [constants[name] if name else None for name in node.inputs]
        rounds = rounded(node, graph, option)
        with np.errstate(all="ignore"):
            made = operator_of(node, graph).reference(rounds, graph, reads)
        constants.update(zip(node.outputs, made, strict=True))
        parameters.update({name: taken[0] for name in node.outputs if taken})
    made_graph = replace(graph, nodes=tuple(nodes), constants=constants)
    return used(replace(made_graph, parameters=parameters))


def _is_cheap(node: Node, graph: Graph, budget: Budget) -> bool:
    return node.op not in _UNBOUNDED and budget.spares_macs(
        operator_of(node, graph).macs(node, graph)
    )
