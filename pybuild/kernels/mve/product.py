"""The common part of products of two computed tensors on vectors.

Rows that end within a vector are copied into scratch first, with zeros behind them:
nothing is read behind the last one, and what a turned column ends with counts nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pybuild.ir.graph import Graph, Node
from pybuild.ir.loop import Expr, Intrin, Var, const, load, offset
from pybuild.kernels.any_type.product import Product
from pybuild.kernels.base.candidate import Packed
from pybuild.kernels.base.vectors import ALL4, words_at


class Vectors(Product):
    """A product whose sums are made of vectors of `lanes` numbers.

    at   a vector of a pointer and an index
    dot  a sum and two vectors as their sum
    """

    at: Callable[[Expr, Expr], Expr]
    dot: Intrin

    def __init__(self, node: Node, graph: Graph) -> None:
        depth = graph.tensor(node.inputs[0]).shape[-1]
        self.is_copied = depth % self.lanes > 0
        if self.is_copied:
            self.name += "_copied"
            self.doc += ", of rows that are copied before"
        # a vector's loads and products, the end of each sum, and the turned columns
        vectors = -(-depth // self.lanes)
        self.cost = (3.2 * vectors + 16) / depth
        super().__init__(node, graph)

    @property
    def copies(self) -> int:
        """The offset of the copies of a block's rows."""
        return super().scratch

    @property
    def scratch(self) -> int:
        rows = self.tile[0] * self.pitch * self.turned.bytes if self.is_copied else 0
        return self.copies + rows

    def begin(self, number: int) -> tuple[Packed, ...]:
        tables = super().begin(number)
        if self.is_copied:
            k = self.k
            number += len(tables)
            space = k.row("copied", number, self.turned, writable=True)
            at = k.arg("copied_at", self.copies // self.turned.bytes)
            self.copy = k.let("copies", offset(space, at))
        return tables

    def placed(self, index: int, x: Expr) -> Expr:
        if not self.is_copied:
            return x
        k = self.k
        to = k.let("copy", offset(self.copy, self.step * index))
        with k.loop("d", self.step, self.step - self.lanes, 4) as d:
            k.store(to, d, ALL4(const(0)))
        full = k.let("full", self.inner & -4)
        with k.loop("d", full, 0, 4) as d:
            k.store(to, d, words_at(x, d))
        with k.loop("d", self.inner, full) as d:
            k.store(to, d, load(x, d))
        return to

    def sums(self, known: Mapping[str, Var], w: Var) -> list[Var]:
        k, sums, (rows, columns) = self.k, self.zeros(), self.tile
        with k.loop("d", known["pitch"], 0, self.lanes, rolled=True) as d:
            left = [k.let("p", self.at(known[f"x{i}"], d)) for i in range(rows)]
            for j in range(columns):
                q = k.let("q", self.at(w, const(j * self.lanes)))
                for i, p in enumerate(left):
                    total = sums[columns * i + j]
                    k.assign(total, self.dot(total, p, q))
            k.assign(w, offset(w, columns * self.lanes))
        return sums
