"""matmul of int8 by int8, both computed: two rows by two columns at a time.

The columns of the second tensor are turned into rows of scratch first, so both are read
forward. Of an odd number the last rows, or columns, are computed again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pybuild.ir.graph import Graph, Node
from pybuild.ir.loop import (
    INT8,
    INT32,
    Expr,
    Var,
    const,
    i32,
    load,
    maximum,
    minimum,
    offset,
)
from pybuild.kernels.any_type.contract import scaled
from pybuild.kernels.any_type.map import form, join, nest
from pybuild.kernels.base.builder import Builder, told
from pybuild.kernels.base.candidate import Candidate, Packed
from pybuild.kernels.base.operands import offer, whole_operands
from pybuild.kernels.epilogues.int8 import ScaledFinish
from pybuild.ops.contract import Product, product_of


def candidates(node: Node, graph: Graph) -> list[Candidate]:
    """The candidate for any core."""
    return [Product8(node, graph).candidate()]


class Product8:
    """The kernel being written; a core's own has other scratch and other sums."""

    name, doc = "matmul_s8", "one product at a time"
    cost: float = 3.0  # estimated instructions of a product
    # of an element of the turned tensor, in scratch
    elem = INT8

    def __init__(self, node: Node, graph: Graph) -> None:
        a, b = (graph.tensor(n) for n in node.inputs)
        y = graph.tensor(node.output)
        made = product_of(node, graph)
        assert isinstance(made, Product)
        self.node, self.graph, self.made = node, graph, made
        self.rows, self.depth, self.columns = a.shape[-2], a.shape[-1], b.shape[-1]
        self.macs = y.size * self.depth
        self.outer = scaled(
            join(y.shape[:-2], [a.shape[:-2], b.shape[:-2]]),
            (self.rows * self.columns, self.rows * self.depth,
             self.depth * self.columns),
        )  # fmt: skip
        self.operands = whole_operands(node, graph)
        self.finish = ScaledFinish((made.scale,), -128, 127, made.y_zero)
        words = told(
            "y = clamp(round(a @ b * scale) + zero), int8, of each pair of matrices",
            f"b is turned into scratch; two rows by two columns at a time, {self.doc}",
            self.finish.words,
        )
        self.k = Builder(f"{self.name}_{form(self.outer)}", words)

    @property
    def pitch(self) -> int:
        """Elements from a turned column to the next."""
        return self.depth

    def candidate(self) -> Candidate:
        k, operands = self.k, self.operands
        pointers = [
            k.row("y", 0, INT8, writable=True),
            k.row("a", operands.numbers[0], INT8),
            k.row("b", operands.numbers[1], INT8),
        ]
        self.end = self.finish.bind(k, const(operands.after))
        self.base = k.row("base", operands.after + 1, INT32, writable=True)
        turned = -(-4 * self.columns // 16) * 4  # after int32[columns] of sums
        scratch = k.row("turned", operands.after + 1, self.elem, writable=True)
        at = k.arg("turned_at", 4 * turned // self.elem.bytes)
        self.turned = k.let("columns", offset(scratch, at))
        self.m, self.n, self.inner = (
            k.arg(w, s)
            for w, s in zip("mnk", (self.rows, self.columns, self.depth), strict=True)
        )
        self.step = k.arg("pitch", self.pitch)
        self.a_zero = k.arg("a_zero", self.made.a_zero)
        self.b_zero = k.arg("b_zero", self.made.b_zero)

        def body(at: Sequence[Expr], index: Sequence[Expr]) -> None:
            to, left, right = (
                k.let(w, offset(p, i))
                for w, p, i in zip(("to", "left", "right"), at, index, strict=True)
            )
            self.turn(right)
            with k.loop("r", self.m, 0, 2) as r:
                rows = self.pair(r, self.m, "row")
                begins = [k.let("x", offset(left, row * self.inner)) for row in rows]
                starts = [self.placed(i, x) for i, x in enumerate(begins)]
                ends = [self.of_row(x) for x in starts]
                with k.loop("c", self.n, 0, 2) as c:
                    columns = self.pair(c, self.n, "column")
                    sums = self.sums(starts, columns)
                    for i, row in enumerate(rows):
                        for j, column in enumerate(columns):
                            total = sums[2 * i + j] + load(self.base, column)
                            value = self.end.apply(total + ends[i], const(0))
                            k.store(to, row * self.n + column, value)

        nest(k, self.outer, pointers, body)
        tables: tuple[Packed, ...] = self.finish.tables()
        found = offer(k, operands, tables=tables, cost=int(self.cost * self.macs))
        size = 4 * turned + self.columns * self.pitch * self.elem.bytes
        return replace(found, scratch=size)

    def pair(self, first: Expr, count: Expr, name: str) -> list[Var]:
        return neighbours(self.k, first, count, name)

    # ---- what cores do in their own way --------------------------------------------

    def turn(self, right: Expr) -> None:
        """Columns as rows, and what each adds to its sums."""
        k = self.k
        with k.loop("c", self.n) as c:
            total = k.let("total", const(0))
            column = k.let("column", offset(self.turned, c * self.step))
            with k.loop("d", self.inner) as d:
                value = k.let("value", load(right, d * self.n + c))
                k.store(column, d, value)
                k.assign(total, total + i32(value))
            both = self.inner * self.a_zero * self.b_zero
            k.store(self.base, c, both - total * self.a_zero)

    def placed(self, index: int, x: Expr) -> Expr:
        """Where a row of two, the first or the second, is read."""
        return x

    def of_row(self, x: Expr) -> Expr:
        """What a row adds to its sums."""
        k = self.k
        total = k.let("total", const(0))
        with k.loop("d", self.inner) as d:
            k.assign(total, total + i32(load(x, d)))
        return k.let("of_row", const(0) - total * self.b_zero)

    def sums(self, rows: Sequence[Expr], columns: Sequence[Expr]) -> list[Var]:
        """Four: of each row by each column."""
        k = self.k
        sums = [k.let("sum", const(0)) for _ in range(4)]
        w = [k.let("w", offset(self.turned, c * self.step)) for c in columns]
        with k.loop("d", self.inner) as d:
            left = [k.let("p", i32(load(x, d))) for x in rows]
            right = [k.let("q", i32(load(x, d))) for x in w]
            for i, p in enumerate(left):
                for j, q in enumerate(right):
                    total = sums[2 * i + j]
                    k.assign(total, total + p * q)
        return sums


def neighbours(k: Builder, first: Expr, count: Expr, name: str) -> list[Var]:
    """Two of them; of an odd number the last two; of one that one twice."""
    one = k.let(name, maximum(minimum(first, count - 2), const(0)))
    return [one, k.let(name, minimum(one + 1, count - 1))]
