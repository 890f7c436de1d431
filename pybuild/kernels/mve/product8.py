"""matmul of int8 by int8, both computed, with sixteen products in one instruction."""

from __future__ import annotations

from pybuild.ir.graph import Graph, Node
from pybuild.ir.loop import Expr, const
from pybuild.kernels.any_type.product8 import Product8
from pybuild.kernels.base.candidate import Candidate
from pybuild.kernels.base.vectors import ALL16, DOT16, bytes_at
from pybuild.kernels.mve.product import Vectors

_LEAST = 8  # products in a sum, below which one by one is cheaper


def candidates(node: Node, graph: Graph) -> list[Candidate]:
    """None where there are fewer than eight products in a sum."""
    if graph.tensor(node.inputs[0]).shape[-1] < _LEAST:
        return []
    return [_Product(node, graph).candidate()]


class _Product(Vectors, Product8):
    name, doc = "matmul_s8_mve", "sixteen products of each a turn"
    lanes = 16
    at, dot = staticmethod(bytes_at), DOT16

    def of_row(self, index: int, x: Expr) -> dict[str, Expr]:
        k = self.k
        ones, total = k.let("ones", ALL16(const(1))), k.let("total", const(0))
        with k.loop("d", self.step, 0, self.lanes) as d:
            k.assign(total, DOT16(total, bytes_at(x, d), ones))
        return {f"end{index}": k.let("of_row", const(0) - total * self.b_zero)}
