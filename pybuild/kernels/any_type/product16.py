"""matmul of int16 by int16, both computed, in sums of 64 bits: two rows by two columns
at a time. The columns of the second tensor are turned into rows of scratch first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pybuild.ir.graph import Graph, Node
from pybuild.ir.loop import (
    INT16,
    INT64,
    Expr,
    cast,
    const,
    i32,
    i64,
    load,
    maximum,
    minimum,
    offset,
)
from pybuild.kernels.any_type.contract import scaled
from pybuild.kernels.any_type.map import form, join, nest
from pybuild.kernels.any_type.product8 import neighbours
from pybuild.kernels.base.builder import Builder, told
from pybuild.kernels.base.candidate import Candidate
from pybuild.kernels.base.operands import offer, whole_operands
from pybuild.kernels.epilogues.int16 import WIDE
from pybuild.ops.contract import WideProduct

_COST = 4  # estimated instructions of a product


def candidates(node: Node, graph: Graph, made: WideProduct) -> list[Candidate]:
    """The candidate for any core."""
    a, b = (graph.tensor(n) for n in node.inputs)
    y = graph.tensor(node.output)
    rows, depth, columns = a.shape[-2], a.shape[-1], b.shape[-1]
    outer = scaled(
        join(y.shape[:-2], [a.shape[:-2], b.shape[:-2]]),
        (rows * columns, rows * depth, depth * columns),
    )
    operands = whole_operands(node, graph)
    words = told(
        "y = clamp((a @ b * multiplier) >> shift), int16, of each pair of matrices",
        "b is turned into scratch; two rows by two columns at a time, one product at a "
        "time",
        "requantises by one 64-bit product, rounded once",
    )
    k = Builder(f"matmul_s16_{form(outer)}", words)
    pointers = [
        k.row("y", 0, INT16, writable=True),
        k.row("a", operands.numbers[0], INT16),
        k.row("b", operands.numbers[1], INT16),
    ]
    turned = k.row("turned", operands.after, INT16, writable=True)
    m, n, inner = (
        k.arg(w, s) for w, s in zip("mnk", (rows, columns, depth), strict=True)
    )
    multiplier, shift = k.arg("multiplier", made.multiplier), k.arg("shift", made.shift)

    def body(at: Sequence[Expr], index: Sequence[Expr]) -> None:
        to, left, right = (
            k.let(w, offset(p, i))
            for w, p, i in zip(("to", "left", "right"), at, index, strict=True)
        )
        with k.loop("c", n) as c:
            column = k.let("column", offset(turned, c * inner))
            with k.loop("d", inner) as d:
                k.store(column, d, load(right, d * n + c))
        with k.loop("r", m, 0, 2) as r:
            lines = neighbours(k, r, m, "row")
            x = [k.let("x", offset(left, row * inner)) for row in lines]
            with k.loop("c", n, 0, 2) as c:
                places = neighbours(k, c, n, "column")
                w = [k.let("w", offset(turned, column * inner)) for column in places]
                sums = [k.let("sum", const(0, INT64)) for _ in range(4)]
                with k.loop("d", inner) as d:
                    p = [k.let("p", i32(load(one, d))) for one in x]
                    q = [k.let("q", i32(load(one, d))) for one in w]
                    for i, total in enumerate(sums):
                        k.assign(total, total + i64(p[i // 2]) * i64(q[i % 2]))
                for i, total in enumerate(sums):
                    whole = WIDE(total, multiplier, shift)
                    held = minimum(maximum(whole, INT16.low), INT16.high)
                    k.store(to, lines[i // 2] * n + places[i % 2], cast(held, INT16))

    nest(k, outer, pointers, body)
    found = offer(k, operands, cost=_COST * y.size * depth)
    return [replace(found, scratch=2 * columns * depth)]
