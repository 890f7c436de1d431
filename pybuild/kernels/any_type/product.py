"""matmul of two computed tensors of integers, in blocks of a few rows by a few columns.
The columns of the second tensor are first transposed into scratch, so that one pointer
reads a block's columns forwards. The last block overlaps the one before if rows or
columns are not a multiple of a block. Knows no type and no core.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace

from pybuild.dtype import DType
from pybuild.ir.graph import Graph, Node
from pybuild.ir.loop import Expr, Var, const, load, minimum, offset
from pybuild.kernels.any_type.contract import scaled
from pybuild.kernels.any_type.map import form, join, nest
from pybuild.kernels.base.builder import Builder, told
from pybuild.kernels.base.candidate import Candidate, Packed
from pybuild.kernels.base.operands import offer, whole_operands
from pybuild.ops.contract import sizes_of


class Product(ABC):
    """The kernel being written; subclasses have the epilogue of a type and the sums of
    a core.

    tile    the most rows and columns of a block
    lanes   values of a transposed column that are multiplied together
    turned  the element type of the transposed columns in scratch
    zero    the start value of sums
    """

    name: str
    doc: str
    computes: str
    elem: DType
    turned: DType
    tile = (2, 2)
    lanes = 1
    zero = const(0)
    cost: float = 3.0  # estimated instructions of a product

    def __init__(self, node: Node, graph: Graph) -> None:
        a, b = (graph.tensor(n) for n in node.inputs)
        y = graph.tensor(node.output)
        sizes = sizes_of(node, graph)
        self.rows, self.depth, self.columns = sizes.rows, sizes.depth, sizes.columns
        self.transposed = sizes.transposed
        self.macs = y.size * self.depth
        self.tile = min(self.tile[0], self.rows), min(self.tile[1], self.columns)
        joined = join(y.shape[:-2], [a.shape[:-2], b.shape[:-2]])
        self.outer = scaled(joined, sizes.each)
        self.operands = whole_operands(node, graph)
        which = (
            "rows of b, its columns transposed," if self.transposed else "columns of b"
        )
        order = (
            f"{which} are turned into scratch; "
            f"{_some(self.tile[0], 'row')} by {_some(self.tile[1], 'column')} at a "
            f"time, {self.doc}"
        )
        words = told(self.computes, order, self.ends_by)
        self.name += f"_{self.tile[0]}x{self.tile[1]}"
        self.name += "_over" * (self.rows % self.tile[0] > 0)
        self.name += "_last" * (self.columns % self.tile[1] > 0)
        self.name += "_transposed" * self.transposed
        self.k = Builder(f"{self.name}_{form(self.outer)}", words)

    @property
    def pitch(self) -> int:
        """The elements of scratch for one transposed column."""
        return -(-self.depth // self.lanes) * self.lanes

    @property
    def base(self) -> int:
        """Bytes of scratch before the turned columns."""
        return 0

    @property
    def scratch(self) -> int:
        blocks = -(-self.columns // self.tile[1]) * self.tile[1]
        return self.base + blocks * self.pitch * self.turned.bytes

    def candidate(self) -> Candidate:
        k, operands = self.k, self.operands
        pointers = [
            k.row("y", 0, self.elem, writable=True),
            k.row("a", operands.numbers[0], self.elem),
            k.row("b", operands.numbers[1], self.elem),
        ]
        tables = self.begin(operands.after)
        number = operands.after + len(tables)
        self.space = k.row("scratch", number, self.turned, writable=True)
        self.m, self.n, self.inner = (
            k.arg(w, s)
            for w, s in zip("mnk", (self.rows, self.columns, self.depth), strict=True)
        )
        self.step = self.inner
        if self.lanes > 1:
            self.step = k.arg("pitch", self.pitch)

        def body(at: Sequence[Expr], index: Sequence[Expr]) -> None:
            to, left, right = (
                k.let(w, offset(p, i))
                for w, p, i in zip(("to", "left", "right"), at, index, strict=True)
            )
            turned = self.space
            if self.base:
                at_ = k.arg("turned_at", self.base // self.turned.bytes)
                turned = k.let("turned", offset(self.space, at_))
            self._turn(right, turned)
            with k.loop("r", self.m, 0, self.tile[0]) as r:
                row = first_of_block(k, r, self.m, self.rows, self.tile[0])
                self._of_rows(row, left, to, turned)

        nest(k, self.outer, pointers, body)
        cost = int(self.cost * self.macs)
        found = offer(k, operands, tables=tables, cost=cost)
        return replace(found, scratch=self.scratch)

    def _turn(self, right: Expr, turned: Expr) -> None:
        """Transpose the columns of each block into scratch, interleaved value by
        value."""
        k, count = self.k, self.tile[1]
        to = k.let("block", turned)
        with k.loop("c", self.n, 0, count) as c:
            first = first_of_block(k, c, self.n, self.columns, count)
            totals = [k.let("total", const(0)) for _ in range(count)]
            self.clear(to)
            with self._lanes() as (d, place):
                begin: Expr = d * self.n + first
                step: Expr = const(1)
                if self.transposed:
                    begin, step = first * self.inner + d, self.inner
                at = k.let("at", offset(right, begin))
                for i, total in enumerate(totals):
                    value = self.turn(load(at, i * step), total)
                    k.store(to, place + i * self.beside, value)
            self.turned_all(first, totals)
            k.assign(to, offset(to, self.step * count))

    @contextmanager
    def _lanes(self) -> Iterator[tuple[Expr, Expr]]:
        """Loop over the values of a block's first column; yield each one's index and
        offset."""
        k, count = self.k, self.tile[1]
        if self.lanes == 1:
            with k.loop("d", self.inner) as d:
                yield d, d * count
            return
        with k.loop("turn", self.inner, 0, self.lanes) as turn:
            many: Expr = const(self.lanes)
            if self.depth % self.lanes:
                many = k.let("many", minimum(self.inner - turn, self.lanes))
            with k.loop("lane", many) as lane:
                place = turn * count + self.lane(lane, many)
                yield turn + lane, k.let("place", place)

    @property
    def beside(self) -> int:
        """The distance between neighbouring columns of a block, in elements."""
        return self.lanes

    def _of_rows(self, row: Expr, left: Expr, to: Expr, turned: Expr) -> None:
        """Computes some rows by all columns, in a separate function."""
        k, (rows, count) = self.k, self.tile
        given: dict[str, Expr] = {"w": turned, "n": self.n, "k": self.inner}
        given["pitch"] = self.step
        for i in range(rows):
            x = self.placed(i, k.let("x", offset(left, (row + i) * self.inner)))
            given |= {f"x{i}": x, f"y{i}": offset(to, (row + i) * self.n)}
            given |= self.of_row(i, x)
        given |= self.given
        doc = told(f"{_some(rows, 'row')} of y", self.doc, self.ends_by)
        with k.part(f"{self.name}_rows", doc, **given) as params:
            known = {p.name: p for p in params}
            w = k.let("at", known["w"])
            with k.loop("c", known["n"], 0, count, rolled=True) as c:
                first = first_of_block(k, c, known["n"], self.columns, count)
                sums = self.sums(known, w)
                for i in range(rows):
                    y = k.let("out", offset(known[f"y{i}"], first))
                    self.ends(known, sums[count * i : count * (i + 1)], i, (y, first))

    def ends(
        self,
        known: Mapping[str, Var],
        sums: Sequence[Var],
        row: int,
        at: tuple[Expr, Expr],
    ) -> None:
        """Store the results of a row's sums; `at`: the pointer, and the first sum's
        column."""
        y, first = at
        for j, total in enumerate(sums):
            self.k.store(y, j, self.end(known, total, row, first + j))

    # ---- what types and cores do in their own way ----------------------------------

    @property
    @abstractmethod
    def ends_by(self) -> str:
        """The epilogue, for readers of the C."""

    @property
    @abstractmethod
    def given(self) -> dict[str, Expr]:
        """The arguments that the epilogue of a sum needs."""

    def begin(self, number: int) -> tuple[Packed, ...]:
        """Bind arguments and tables; the first table has pointer `number`."""
        return ()

    @abstractmethod
    def turn(self, value: Expr, total: Var) -> Expr:
        """The stored form of a column's value, and its contribution to the column's
        total."""

    @abstractmethod
    def turned_all(self, first: Expr, totals: Sequence[Var]) -> None:
        """Code that follows the values of a block of columns."""

    def clear(self, block: Var) -> None:
        """Clear the elements of a block that are read but never written."""
        return

    def lane(self, number: Expr, many: Expr) -> Expr:
        """The offset of one of `many` values that are multiplied together."""
        return number

    def placed(self, index: int, x: Expr) -> Expr:
        """The offset at which a row of a block is read."""
        return x

    def of_row(self, index: int, x: Expr) -> dict[str, Expr]:
        """The terms that a row of a block adds to each of its sums, by name."""
        return {}

    @abstractmethod
    def sums(self, known: Mapping[str, Var], w: Var) -> list[Var]:
        """The sums of each row by each column of a block; moves `w` on to the next
        block."""

    def zeros(self) -> list[Var]:
        """The zeroed sums of a block."""
        return [self.k.let("sum", self.zero) for _ in range(math.prod(self.tile))]

    @abstractmethod
    def end(
        self, known: Mapping[str, Var], total: Expr, row: int, column: Expr
    ) -> Expr:
        """The value that is stored for a sum."""


class Turns(Product):
    """A product of four values per iteration. If a row is not a multiple of four, the
    last iteration begins earlier, and the transposed columns hold zeros for values
    already used."""

    lanes = 4

    def __init__(self, node: Node, graph: Graph) -> None:
        self.rest = graph.tensor(node.inputs[0]).shape[-1] % self.lanes
        if self.rest:
            self.name += "_rest"
        super().__init__(node, graph)

    def clear(self, block: Var) -> None:
        if self.rest:
            size = self.lanes * self.tile[1]
            last = self.k.let("last", offset(block, self.step * self.tile[1] - size))
            for at in range(size):
                self.k.store(last, at, const(0, self.turned))

    def lane(self, number: Expr, many: Expr) -> Expr:
        return self.turned_lane(number + (self.lanes - many))

    def turned_lane(self, number: Expr) -> Expr:
        """Return the position of value 0 to 3 within an iteration."""
        return number

    def sums(self, known: Mapping[str, Var], w: Var) -> list[Var]:
        k = self.k
        sums, size = self.zeros(), self.lanes * self.tile[1]
        rows = [known[f"x{i}"] for i in range(self.tile[0])]
        full = known["k"]
        if self.rest:
            full = k.let("full", known["k"] & -self.lanes)
        with k.loop("d", full, 0, self.lanes, rolled=True) as d:
            self.add(sums, rows, d, w)
            k.assign(w, offset(w, size))
        if self.rest:
            self.add(sums, rows, known["k"] - self.lanes, w)
            k.assign(w, offset(w, size))
        return sums

    @abstractmethod
    def add(self, sums: Sequence[Var], rows: Sequence[Expr], d: Expr, w: Expr) -> None:
        """Add four products for each row and each column."""


def first_of_block(
    k: Builder, at: Expr, count: Expr, known: int, together: int
) -> Expr:
    """The first index of a block; the last block ends with the rows or columns."""
    if known % together == 0:
        return at
    return k.let("first", minimum(at, count - together))


def _some(count: int, what: str) -> str:
    number = ("no", "one", "two", "three", "four")[count]
    return f"{number} {what}{'s' * (count > 1)}"
