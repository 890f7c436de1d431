"""The kernels that serve matmul: for any type, and for two computed tensors of float32,
int8 or int16."""

from __future__ import annotations

from pybuild.ir.graph import Graph, Node
from pybuild.ir.loop import FLOAT32
from pybuild.kernels.any_type import contract, float_product, product8, product16
from pybuild.kernels.base.candidate import Candidate
from pybuild.kernels.dsp import product8 as dsp8
from pybuild.kernels.dsp import product16 as dsp16
from pybuild.kernels.mve import product8 as mve8
from pybuild.kernels.mve import product16 as mve16
from pybuild.kernels.rvv import product8 as rvv8
from pybuild.kernels.scalar import product16 as scalar16
from pybuild.ops.contract import WideProduct, product_of
from pybuild.targets.target import Target


def matmul(node: Node, graph: Graph, target: Target) -> list[Candidate]:
    """The candidates for a matmul node."""
    made = product_of(node, graph)
    if made is None and graph.tensor(node.output).dtype is FLOAT32:
        return float_product.matmul(node, graph, target)
    if made is None:
        return contract.matmul(node, graph, target)
    if isinstance(made, WideProduct):
        return _wide(node, graph, target)
    found = product8.candidates(node, graph)
    if "dsp" in target.features:
        found += dsp8.candidates(node, graph)
    if "mve" in target.features:
        found += mve8.candidates(node, graph)
    return found + rvv8.candidates(node, graph, target)


def _wide(node: Node, graph: Graph, target: Target) -> list[Candidate]:
    """That of the core's instructions, which is in all ways the better one."""
    found: list[Candidate] = []
    if "dsp" in target.features:
        found = dsp16.candidates(node, graph)
    elif "mve" in target.features:
        found = mve16.candidates(node, graph)
    else:
        found = scalar16.candidates(node, graph, target)
    return found or product16.candidates(node, graph)
