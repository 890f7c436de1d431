"""matmul of int16 by int16, both computed, with two products in one instruction, which
adds them to a sum of 64 bits (SMLALD).

One row by three columns: their sums are six of a core's thirteen registers.
"""

from __future__ import annotations

from collections.abc import Sequence

from pybuild.ir.graph import Graph, Node
from pybuild.ir.loop import INT32, Expr, Var, WideLoad, const, wide
from pybuild.kernels.any_type.product import Turns
from pybuild.kernels.any_type.product16 import Product16
from pybuild.kernels.base.candidate import Candidate
from pybuild.kernels.base.intrin import LONG_DOT2


def candidates(node: Node, graph: Graph) -> list[Candidate]:
    """None where there are fewer than four products in a sum."""
    if graph.tensor(node.inputs[0]).shape[-1] < Turns.lanes:
        return []
    return [_Product(node, graph).candidate()]


class _Product(Turns, Product16):
    name, doc = "matmul_s16_dsp", "four products of each a turn"
    tile = (1, 3)
    cost = 1.6

    @property
    def beside(self) -> int:
        return 2

    def turned_lane(self, number: Expr) -> Expr:
        """The pairs of all columns, then their second ones."""
        return (number & 2) * self.tile[1] + (number & 1)

    def add(self, sums: Sequence[Var], rows: Sequence[Expr], d: Expr, w: Expr) -> None:
        k, count = self.k, self.tile[1]
        for at in range(0, self.lanes, 2):
            left = [k.let("p", wide(x, d + at)) for x in rows]
            for j in range(count):
                q = k.let("q", WideLoad(w, const(count * at + 2 * j), INT32, 4))
                for i, p in enumerate(left):
                    total = sums[count * i + j]
                    k.assign(total, LONG_DOT2(p, q, total))
