"""matmul of int16 by int16, both computed, with eight products in one instruction,
which adds them to a sum of 64 bits (VMLALDAVA).
"""

from __future__ import annotations

from pybuild.ir.graph import Graph, Node
from pybuild.kernels.any_type.product16 import Product16
from pybuild.kernels.base.candidate import Candidate
from pybuild.kernels.base.vectors import LONG_DOT8, halves_at
from pybuild.kernels.mve.product import Vectors

_LEAST = 4  # products in a sum, below which one by one is cheaper


def candidates(node: Node, graph: Graph) -> list[Candidate]:
    """None where there are fewer than four products in a sum."""
    if graph.tensor(node.inputs[0]).shape[-1] < _LEAST:
        return []
    return [_Product(node, graph).candidate()]


class _Product(Vectors, Product16):
    name, doc = "matmul_s16_mve", "eight products of each a turn"
    lanes = 8
    at, dot = staticmethod(halves_at), LONG_DOT8
