"""matmul of int8 by int8, both computed, with sixteen products in one instruction.

Rows that end within a vector are copied into scratch first, with zeros behind them:
nothing is read behind the last one, and what a turned column ends with counts nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pybuild.ir.graph import Graph, Node
from pybuild.ir.loop import Expr, Var, const, load, offset
from pybuild.kernels.any_type.product8 import Product8
from pybuild.kernels.base.candidate import Candidate
from pybuild.kernels.base.vectors import ALL16, DOT16, bytes_at, words_at

_STEP = 16
_LEAST = 8  # products in a sum, below which one by one is cheaper


def candidates(node: Node, graph: Graph) -> list[Candidate]:
    """None where there are fewer than eight products in a sum."""
    if graph.tensor(node.inputs[0]).shape[-1] < _LEAST:
        return []
    return [_Product(node, graph).candidate()]


class _Product(Product8):
    name, doc = "matmul_s8_mve", "sixteen products of each a turn"

    def __init__(self, node: Node, graph: Graph) -> None:
        depth = graph.tensor(node.inputs[0]).shape[-1]
        self.is_copied = depth % _STEP > 0
        if self.is_copied:
            self.name += "_copied"
            self.doc += ", of rows that are copied before"
        # a vector's loads and products, the end of each sum, and the turned columns
        self.cost = 0.2 * -(-depth // _STEP) * _STEP / depth + 16 / depth
        super().__init__(node, graph)

    @property
    def pitch(self) -> int:
        return -(-self.depth // _STEP) * _STEP

    def candidate(self) -> Candidate:
        found = super().candidate()
        rows = 2 * self.pitch if self.is_copied else 0
        return replace(found, scratch=found.scratch + rows)

    def turn(self, right: Expr) -> None:
        k = self.k
        if self.is_copied:
            zeros = k.let("zeros", ALL16(const(0)))
            self.copies = k.let("copies", offset(self.turned, self.n * self.step))
            for i in range(2):
                k.store(self.copies, self.step * (i + 1) - _STEP, zeros)
        super().turn(right)

    def placed(self, index: int, x: Expr) -> Expr:
        if not self.is_copied:
            return x
        k = self.k
        to = k.let("copy", offset(self.copies, self.step * index))
        full = k.let("full", self.inner & -4)
        with k.loop("d", full, 0, 4) as d:
            k.store(to, d, words_at(x, d))
        with k.loop("d", self.inner, full) as d:
            k.store(to, d, load(x, d))
        return to

    def of_row(self, x: Expr) -> Expr:
        k = self.k
        ones, total = k.let("ones", ALL16(const(1))), k.let("total", const(0))
        with k.loop("d", self.step, 0, _STEP) as d:
            k.assign(total, DOT16(total, bytes_at(x, d), ones))
        return k.let("of_row", const(0) - total * self.b_zero)

    def sums(self, rows: Sequence[Expr], columns: Sequence[Expr]) -> list[Var]:
        k = self.k
        sums = [k.let("sum", const(0)) for _ in range(4)]
        w = [k.let("w", offset(self.turned, c * self.step)) for c in columns]
        with k.loop("d", self.step, 0, _STEP) as d:
            left = [k.let("p", bytes_at(x, d)) for x in rows]
            right = [k.let("q", bytes_at(x, d)) for x in w]
            for i, p in enumerate(left):
                for j, q in enumerate(right):
                    k.assign(sums[2 * i + j], DOT16(sums[2 * i + j], p, q))
        return sums
