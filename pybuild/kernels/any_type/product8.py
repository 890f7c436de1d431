"""matmul of int8 by int8, both computed: sums of 32 bits, corrected for zero points. Of
sum((a - a_zero) * (b - b_zero)), the column's part is kept in scratch, and a row adds
its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from pybuild.ir.graph import Graph, Node
from pybuild.ir.loop import INT8, INT32, Expr, Var, const, i32, load, offset
from pybuild.kernels.any_type.product import Product
from pybuild.kernels.base.candidate import Candidate, Packed
from pybuild.kernels.epilogues.int8 import Finish, Int8Finish, ScaledFinish, carried
from pybuild.kernels.epilogues.requantise import requant
from pybuild.ops.contract import Product as Parameters
from pybuild.ops.contract import product_of

# what the function of some rows calls them
_WORDS = {"scales": "scale", "zero_point": "zero"}


def candidates(node: Node, graph: Graph) -> list[Candidate]:
    """Return the candidate for any core."""
    return [Product8(node, graph).candidate()]


class Product8(Product):
    """The product for any core; subclasses for a core have other scratch and other
    sums."""

    name, doc = "matmul_s8", "one product at a time"
    computes = "y = clamp(round(a @ b * scale) + zero), int8, of each pair of matrices"
    elem = turned = INT8
    tile = (2, 2)

    def __init__(self, node: Node, graph: Graph) -> None:
        made = product_of(node, graph)
        assert isinstance(made, Parameters)
        self.made = made
        self.finish: Finish = ScaledFinish((made.scale,), -128, 127, made.y_zero)
        if made.rounding != "even":
            steps, ends = (made.multiplier, made.shift), (-128, 127)
            rule = requant(made.rounding, *steps, ends, made.y_zero)
            self.finish = Int8Finish(rule)
            self.name = f"{self.name}_{rule.key.removeprefix('tensor_')}"
        super().__init__(node, graph)

    @property
    def ends_by(self) -> str:
        return self.finish.words

    @property
    def base(self) -> int:
        """int32[columns], whole vectors of them."""
        return -(-4 * self.columns // 16) * 16

    def begin(self, number: int) -> tuple[Packed, ...]:
        k, tables = self.k, self.bind_end(number)
        self.totals = k.row("base", number + len(tables), INT32, writable=True)
        self.a_zero = k.arg("a_zero", self.made.a_zero)
        self.b_zero = k.arg("b_zero", self.made.b_zero)
        return tables

    def bind_end(self, number: int) -> tuple[Packed, ...]:
        """Bind the epilogue's tables; the first one has pointer `number`."""
        self.bound = self.finish.bind(self.k, const(number))
        return self.finish.tables()

    @property
    def bound_end(self) -> dict[str, Expr]:
        """The bound values of the epilogue."""
        return {_WORDS.get(n, n): v for n, v in carried(self.bound).items()}

    @property
    def given(self) -> dict[str, Expr]:
        return {"base": self.totals, **self.bound_end}

    def turn(self, value: Expr, total: Var) -> Expr:
        number = self.k.let("value", value)
        self.k.assign(total, total + i32(number))
        return number

    def turned_all(self, first: Expr, totals: Sequence[Var]) -> None:
        both = self.k.let("both", self.inner * self.a_zero * self.b_zero)
        for i, total in enumerate(totals):
            self.k.store(self.totals, first + i, both - total * self.a_zero)

    def of_row(self, index: int, x: Expr) -> dict[str, Expr]:
        k = self.k
        total = k.let("total", const(0))
        with k.loop("d", self.inner) as d:
            k.assign(total, total + i32(load(x, d)))
        return {f"end{index}": k.let("of_row", const(0) - total * self.b_zero)}

    def sums(self, known: Mapping[str, Var], w: Var) -> list[Var]:
        k, sums, (rows, columns) = self.k, self.zeros(), self.tile
        with k.loop("d", known["k"]) as d:
            left = [k.let("p", i32(load(known[f"x{i}"], d))) for i in range(rows)]
            right = [k.let("q", i32(load(w, j))) for j in range(columns)]
            for i, total in enumerate(sums):
                product = left[i // columns] * right[i % columns]
                k.assign(total, total + product)
            k.assign(w, offset(w, columns))
        return sums

    def end(
        self, known: Mapping[str, Var], total: Expr, row: int, column: Expr
    ) -> Expr:
        acc = total + load(known["base"], column)
        if f"end{row}" in known:
            acc = acc + known[f"end{row}"]
        bound: Any = self.bound
        there = {n: known[_WORDS.get(n, n)] for n in carried(bound)}
        stored: Expr = replace(bound, **there).apply(acc, const(0))
        return stored
