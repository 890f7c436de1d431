"""matmul of int8 by int8, both computed, with two products in one instruction.

The turned columns are int16, less their zero point, in the order in which four bytes of
a row are taken apart: 0, 2, 1, 3. What is left of a row is multiplied one by one.
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
    load,
    offset,
    wide,
)
from pybuild.kernels.any_type.product8 import Product8
from pybuild.kernels.base.candidate import Candidate
from pybuild.kernels.base.intrin import DOT2, EVEN_BYTES, ODD_BYTES


def candidates(node: Node, graph: Graph) -> list[Candidate]:
    """None where there are fewer than four products in a sum."""
    if graph.tensor(node.inputs[0]).shape[-1] < 4:
        return []
    return [_Product(node, graph).candidate()]


class _Product(Product8):
    name, doc = "matmul_s8_dsp", "four products of each a turn"
    cost = 1.5
    elem = INT16

    @property
    def pitch(self) -> int:
        return -(-self.depth // 4) * 4

    def turn(self, right: Expr) -> None:
        k = self.k
        with k.loop("c", self.n) as c:
            total = k.let("total", const(0))
            column = k.let("column", offset(self.turned, c * self.step))
            with k.loop("d", self.inner) as d:
                value = i32(load(right, d * self.n + c)) - self.b_zero
                number = k.let("value", value)
                k.assign(total, total + number)
                # of four the two in the middle change places
                place = k.let("place", (d & 1) * 2 + ((d >> 1) & 1))
                whole = (d & -4) + place
                k.store(column, whole, cast(number, INT16))
            k.store(self.base, c, const(0) - total * self.a_zero)

    def of_row(self, x: Expr) -> Expr:
        return const(0)

    def sums(self, rows: Sequence[Expr], columns: Sequence[Expr]) -> list[Var]:
        k = self.k
        sums = [k.let("sum", const(0)) for _ in range(4)]
        w = [k.let("w", offset(self.turned, c * self.step)) for c in columns]
        full = k.let("full", self.inner & -4)
        with k.loop("d", full, 0, 4) as d:
            words = [k.let("word", wide(x, d)) for x in rows]
            for half, take in enumerate((EVEN_BYTES, ODD_BYTES)):
                left = [k.let("p", take(word)) for word in words]
                right = [k.let("q", WideLoad(x, d + 2 * half, INT32, 4)) for x in w]
                for i, p in enumerate(left):
                    for j, q in enumerate(right):
                        k.assign(sums[2 * i + j], DOT2(p, q, sums[2 * i + j]))
        with k.loop("d", self.inner, full) as d:
            at = k.let("at", (d & -4) + (d & 1) * 2 + ((d >> 1) & 1))
            for i, x in enumerate(rows):
                p = k.let("p", i32(load(x, d)))
                for j, y in enumerate(w):
                    total = sums[2 * i + j]
                    k.assign(total, total + p * i32(load(y, at)))
        return sums
