"""Which kernels serve softmax: any core's, and those on vectors."""

from __future__ import annotations

from pybuild.ir.graph import Graph, Node
from pybuild.ir.loop import INT16
from pybuild.kernels.base.candidate import Candidate
from pybuild.kernels.mve.int16 import softmax as vectors
from pybuild.kernels.portable import softmax as portable
from pybuild.kernels.rvv import softmax as softmax_rvv
from pybuild.targets.target import Target


def softmax(node: Node, graph: Graph, target: Target) -> list[Candidate]:
    """The candidates for softmax.

    Errors  BuildError where an int32 sum could overflow
    """
    found = portable.softmax(node, graph, target)
    narrow = graph.tensor(node.output).dtype is INT16 and not node.attrs.get("wide")
    if "mve" in target.features and narrow:
        found += vectors.softmax(node, graph)
    return found + softmax_rvv.candidates(node, graph, target)
