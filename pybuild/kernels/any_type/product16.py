"""matmul of int16 by int16, both computed, in sums of 64 bits. The epilogue is one
requantisation, by the high half of a 64-by-32-bit product where that is proven equal to
the rule.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pybuild.ir.graph import Graph, Node
from pybuild.ir.loop import (
    INT16,
    INT64,
    Expr,
    Var,
    cast,
    const,
    i32,
    load,
    offset,
)
from pybuild.kernels.any_type.product import Product
from pybuild.kernels.base.candidate import Candidate, Packed
from pybuild.kernels.base.intrin import LONG_MLA, SATURATE16
from pybuild.kernels.epilogues.int16 import LONG_HIGH, WIDE, long_high
from pybuild.ops.contract import WideProduct, product_of


def candidates(node: Node, graph: Graph) -> list[Candidate]:
    """Return the candidate for any core."""
    return [Product16(node, graph).candidate()]


class Product16(Product):
    """The product for any core; subclasses for a core have other blocks and other
    sums."""

    name, doc = "matmul_s16", "one product at a time"
    computes = "y = clamp((a @ b * multiplier) >> shift), int16, of each two matrices"
    elem = turned = INT16
    zero = const(0, INT64)
    cost = 4.0

    def __init__(self, node: Node, graph: Graph) -> None:
        made = product_of(node, graph)
        assert isinstance(made, WideProduct)
        self.made = made
        depth = graph.tensor(node.inputs[0]).shape[-1]
        self.high = long_high(made.multiplier, made.shift, depth << 30)
        if self.high is None:
            self.name += "_wide"
        super().__init__(node, graph)

    @property
    def ends_by(self) -> str:
        if self.high is None:
            return "requantises by one 64-bit product, rounded once"
        return "requantises by the high half of one product of 96 bits, rounded once"

    def begin(self, number: int) -> tuple[Packed, ...]:
        multiplier, shift = self.high or (self.made.multiplier, self.made.shift)
        self.multiplier = self.k.arg("multiplier", multiplier)
        self.shift = self.k.arg("shift", shift)
        return ()

    @property
    def given(self) -> dict[str, Expr]:
        return {"multiplier": self.multiplier, "shift": self.shift}

    def turn(self, value: Expr, total: Var) -> Expr:
        return value

    def turned_all(self, first: Expr, totals: Sequence[Var]) -> None:
        return

    def sums(self, known: Mapping[str, Var], w: Var) -> list[Var]:
        k, sums, (rows, columns) = self.k, self.zeros(), self.tile
        with k.loop("d", known["k"]) as d:
            left = [k.let("p", i32(load(known[f"x{i}"], d))) for i in range(rows)]
            right = [k.let("q", i32(load(w, j))) for j in range(columns)]
            for i, total in enumerate(sums):
                p, q = left[i // columns], right[i % columns]
                k.assign(total, LONG_MLA(p, q, total))
            k.assign(w, offset(w, columns))
        return sums

    def end(
        self, known: Mapping[str, Var], total: Expr, row: int, column: Expr
    ) -> Expr:
        rule = WIDE if self.high is None else LONG_HIGH
        whole = rule(total, known["multiplier"], known["shift"])
        return cast(SATURATE16(whole), INT16)
