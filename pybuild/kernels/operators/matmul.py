"""Which kernels serve matmul: any type's, and those of two computed
tensors of int8 or int16."""

from __future__ import annotations

from pybuild.ir.graph import Graph, Node
from pybuild.kernels.any_type import contract, product8, product16
from pybuild.kernels.base.candidate import Candidate
from pybuild.kernels.dsp import product8 as product_dsp
from pybuild.kernels.mve import product8 as product_mve
from pybuild.ops.contract import WideProduct, product_of
from pybuild.targets.target import Target


def matmul(node: Node, graph: Graph, target: Target) -> list[Candidate]:
    """The candidates for a matmul node."""
    made = product_of(node, graph)
    if made is None:
        return contract.matmul(node, graph, target)
    if isinstance(made, WideProduct):
        return product16.candidates(node, graph, made)
    found = product8.candidates(node, graph)
    if "dsp" in target.features:
        found += product_dsp.candidates(node, graph)
    if "mve" in target.features:
        found += product_mve.candidates(node, graph)
    return found
