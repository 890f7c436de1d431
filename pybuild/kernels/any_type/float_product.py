"""matmul of float32: some rows by some columns at a time, each sum in a register.

Each sum adds its products in order, so its bits are those of one sum at a time. If
rows or columns are not a multiple of a block, the last block overlaps the end of the
one before.
"""

from __future__ import annotations

from collections.abc import Sequence

from pybuild.ir.graph import Graph, Node
from pybuild.ir.loop import FLOAT32, Expr, Var, const, load, offset
from pybuild.kernels.any_type import contract
from pybuild.kernels.any_type.map import form, join, nest
from pybuild.kernels.any_type.product import first_of_block
from pybuild.kernels.base.builder import Builder, told
from pybuild.kernels.base.candidate import Candidate
from pybuild.kernels.base.operands import offer, whole_operands
from pybuild.ops.contract import Sizes, sizes_of
from pybuild.targets.target import Target

# rows and columns whose sums, and what they are made of, a core's registers hold; on
# one with vectors compilers join sums, which takes a row at a time where b has rows
_BLOCK, _ROW = (4, 4), (1, 4)


def matmul(node: Node, graph: Graph, target: Target) -> list[Candidate]:
    """The candidates for matmul of float32."""
    plain = contract.matmul(node, graph, target)
    sizes = sizes_of(node, graph)
    block = _ROW if sizes.transposed and "mve" in target.features else _BLOCK
    rows, columns = min(block[0], sizes.rows), min(block[1], sizes.columns)
    if target.float_calls or rows * columns == 1:
        return plain
    operands, y = whole_operands(node, graph), graph.tensor(node.output)
    a, b = (graph.tensor(name) for name in node.inputs)
    axes = join(y.shape[:-2], [a.shape[:-2], b.shape[:-2]])
    outer = contract.scaled(axes, sizes.each)
    code = _Code(sizes, rows, columns)
    doc = told(
        "y = a @ b of each pair of matrices, float32",
        f"{rows} by {columns} sums at a time; b is read "
        + ("along its rows" if sizes.transposed else "down its columns"),
    )
    k = Builder(f"matmul_f32_{code.key}_{form(outer)}", doc)
    numbers = (0, *operands.numbers)
    pointers = [
        k.row(name, number, FLOAT32, writable=name == "y")
        for name, number in zip("yab", numbers, strict=True)
    ]
    each = (sizes.rows, sizes.columns, sizes.depth)
    m, n, inner = (k.arg(w, s) for w, s in zip("mnk", each, strict=True))
    nest(k, outer, pointers, lambda at, index: code.write(k, at, index, (m, n, inner)))
    loads = (rows + columns) / (rows * columns)
    macs = y.size * sizes.depth
    return [*plain, offer(k, operands, cost=int((2 + 1.5 * loads) * macs))]


class _Code:
    """The code for one pair of matrices."""

    def __init__(self, sizes: Sizes, rows: int, columns: int) -> None:
        self.sizes, self.rows, self.columns = sizes, rows, columns

    @property
    def key(self) -> str:
        sizes = self.sizes
        over = "_over" * (sizes.rows % self.rows > 0)
        last = "_last" * (sizes.columns % self.columns > 0)
        mark = "_transposed" * sizes.transposed
        return f"{self.rows}x{self.columns}{over}{last}{mark}"

    def write(
        self, k: Builder, at: Sequence[Expr], index: Sequence[Expr],
        counts: tuple[Expr, Expr, Expr],
    ) -> None:  # fmt: skip
        m, n, inner = counts
        to, left, right = (
            k.let(w, offset(p, i))
            for w, p, i in zip(("to", "left", "right"), at, index, strict=True)
        )
        with k.loop("r", m, 0, self.rows) as r:
            row = first_of_block(k, r, m, self.sizes.rows, self.rows)
            with k.loop("c", n, 0, self.columns) as c:
                column = first_of_block(k, c, n, self.sizes.columns, self.columns)
                sums = self._sums(
                    k, offset(left, row * inner), right, column, (n, inner)
                )
                y = k.let("out", offset(to, row * n + column))
                for i, total in enumerate(sums):
                    down, along = divmod(i, self.columns)
                    k.store(y, down * n + along, total)

    def _sums(
        self, k: Builder, left: Expr, right: Expr, column: Expr,
        counts: tuple[Expr, Expr],
    ) -> list[Var]:  # fmt: skip
        n, inner = counts
        xs = [k.let("x", offset(left, i * inner)) for i in range(self.rows)]
        if self.sizes.transposed:
            ws = [k.let("w", offset(right, (column + j) * inner))
                  for j in range(self.columns)]  # fmt: skip
        else:
            ws = [k.let("w", offset(right, column))]
        zero = const(0, FLOAT32)
        sums = [k.let("sum", zero) for _ in range(self.rows * self.columns)]
        with k.loop("d", inner):
            ps = [k.let("p", load(x)) for x in xs]
            qs = [k.let("q", load(ws[-1], j) if len(ws) == 1 else load(ws[j]))
                  for j in range(self.columns)]  # fmt: skip
            for i, total in enumerate(sums):
                down, along = divmod(i, self.columns)
                k.assign(total, total + ps[down] * qs[along])
            for x in xs:
                k.assign(x, offset(x, 1))
            for w in ws:
                k.assign(w, offset(w, 1 if self.sizes.transposed else n))
        return sums
