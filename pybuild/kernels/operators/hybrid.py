"""The kernels that serve layers whose output is int32 sums: those of the layers,
without an epilogue."""

from __future__ import annotations

from dataclasses import replace

from pybuild.ir.graph import Graph, Node
from pybuild.kernels.base.candidate import Candidate
from pybuild.kernels.operators.conv2d import conv2d, dense
from pybuild.kernels.operators.depthwise_conv2d import depthwise_conv2d
from pybuild.targets.target import Target

_LAYERS = {
    "conv2d_sums": conv2d,
    "dense_sums": dense,
    "depthwise_conv2d_sums": depthwise_conv2d,
}


def sums(node: Node, graph: Graph, target: Target, optimise: str) -> list[Candidate]:
    """The candidates for a node of SUMS."""
    layer = replace(node, op=node.op.removesuffix("_sums"))
    return _LAYERS[node.op](layer, graph, target, optimise)
