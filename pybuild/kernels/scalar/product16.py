"""matmul of int16 by int16, both computed, in blocks whose sums of 64 bits, two
registers each, stay in registers.
"""

from __future__ import annotations

from collections.abc import Sequence

from pybuild.ir.graph import Graph, Node
from pybuild.ir.loop import Expr, Var, const, i32, i64, load
from pybuild.kernels.any_type.product import Turns
from pybuild.kernels.any_type.product16 import Product16
from pybuild.kernels.base.candidate import Candidate
from pybuild.kernels.base.intrin import LONG_MLA
from pybuild.targets.target import Target


def candidates(node: Node, graph: Graph, target: Target) -> list[Candidate]:
    """None where fewer than four products are in a sum, and for cores of which it is
    not known how many sums fit."""
    if not target.sums or graph.tensor(node.inputs[0]).shape[-1] < Turns.lanes:
        return []
    most = max(channels * pixels for channels, pixels in target.sums) // 2
    return [_Product(node, graph, most, "words" in target.features).candidate()]


class _Product(Turns, Product16):
    """most  sums that fit; long: the core has SMLAL"""

    doc = "four products of each a turn, one by one"

    def __init__(self, node: Node, graph: Graph, most: int, long: bool) -> None:
        self.tile = {2: (1, 1), 4: (1, 3)}.get(most, (2, 2))
        self.long = long
        self.name = "matmul_s16_block" if long else "matmul_s16_block32"
        super().__init__(node, graph)

    @property
    def beside(self) -> int:
        return 1

    def turned_lane(self, number: Expr) -> Expr:
        return number * self.tile[1]

    def add(self, sums: Sequence[Var], rows: Sequence[Expr], d: Expr, w: Expr) -> None:
        k, count = self.k, self.tile[1]
        for at in range(self.lanes):
            left = [k.let("p", i32(load(x, d + at))) for x in rows]
            for j in range(count):
                q = k.let("q", i32(load(w, const(count * at + j))))
                for i, p in enumerate(left):
                    total = sums[count * i + j]
                    more = total + i64(p * q)
                    k.assign(total, LONG_MLA(p, q, total) if self.long else more)
