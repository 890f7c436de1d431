"""matmul of int8 by int8, both computed, with two products in one instruction.

The turned columns are int16, less their zero point, in the order in which four bytes of
a row are taken apart: 0, 2, 1, 3.
"""

from __future__ import annotations

from collections.abc import Sequence

from pybuild.ir.graph import Graph, Node
from pybuild.ir.loop import (
    INT16,
    INT32,
    Expr,
    Var,
    WideLoad,
    cast,
    const,
    i32,
    wide,
)
from pybuild.kernels.any_type.product import Turns
from pybuild.kernels.any_type.product8 import Product8
from pybuild.kernels.base.candidate import Candidate
from pybuild.kernels.base.intrin import DOT2, EVEN_BYTES, ODD_BYTES


def candidates(node: Node, graph: Graph) -> list[Candidate]:
    """None where there are fewer than four products in a sum."""
    if graph.tensor(node.inputs[0]).shape[-1] < Turns.lanes:
        return []
    return [_Product(node, graph).candidate()]


class _Product(Turns, Product8):
    name, doc = "matmul_s8_dsp", "four products of each a turn"
    cost = 1.5
    turned = INT16

    def turn(self, value: Expr, total: Var) -> Expr:
        number = self.k.let("value", i32(value) - self.b_zero)
        self.k.assign(total, total + number)
        return cast(number, INT16)

    def turned_all(self, first: Expr, totals: Sequence[Var]) -> None:
        for i, total in enumerate(totals):
            self.k.store(self.totals, first + i, const(0) - total * self.a_zero)

    def turned_lane(self, number: Expr) -> Expr:
        """The number of a lane with the middle two of four exchanged."""
        return (number & 1) * 2 + (number >> 1)

    def of_row(self, index: int, x: Expr) -> dict[str, Expr]:
        return {}

    def add(self, sums: Sequence[Var], rows: Sequence[Expr], d: Expr, w: Expr) -> None:
        k, count = self.k, self.tile[1]
        words = [k.let("word", wide(x, d)) for x in rows]
        for half, take in enumerate((EVEN_BYTES, ODD_BYTES)):
            left = [k.let("p", take(word)) for word in words]
            for j in range(count):
                q = k.let("q", WideLoad(w, const(4 * j + 2 * half), INT32, 4))
                for i, p in enumerate(left):
                    total = sums[count * i + j]
                    k.assign(total, DOT2(p, q, total))
