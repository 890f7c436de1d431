"""matmul of int8 by int8, both computed, with sixteen products in one instruction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pybuild.ir.graph import Graph, Node
from pybuild.ir.loop import Expr, Var, const
from pybuild.kernels.any_type.product8 import Product8
from pybuild.kernels.base.candidate import Candidate, Packed
from pybuild.kernels.base.vector_rounds import HOLD4
from pybuild.kernels.base.vectors import (
    ADD4,
    ALL4,
    ALL16,
    DOT16,
    LANES,
    PLUS4,
    TIMES4,
    bytes_at,
    words_at,
)
from pybuild.kernels.epilogues.one_rule import OneRule, one_rule
from pybuild.kernels.mve.product import Vectors
from pybuild.ops.contract import Product as Parameters
from pybuild.ops.contract import product_of

_LEAST = 8  # products in a sum, below which one by one is cheaper


def candidates(node: Node, graph: Graph) -> list[Candidate]:
    """None where there are fewer than eight products in a sum."""
    if graph.tensor(node.inputs[0]).shape[-1] < _LEAST:
        return []
    made = product_of(node, graph)
    assert isinstance(made, Parameters)
    rule = None
    if made.rounding != "even":
        reach = _reach(node, graph)
        rule = one_rule(made.rounding, made.multiplier, made.shift, reach)
    if rule is None or graph.tensor(node.output).shape[-1] < _Fours.tile[1]:
        return [_Product(node, graph).candidate()]
    return [_Fours(node, graph, rule).candidate()]


def _reach(node: Node, graph: Graph) -> int:
    """How far a sum may be from 0."""
    return int(255**2 * graph.tensor(node.inputs[0]).shape[-1])


class _Product(Vectors, Product8):
    name, doc = "matmul_s8_mve", "sixteen products of each a turn"
    lanes = 16
    at, dot = staticmethod(bytes_at), DOT16

    def of_row(self, index: int, x: Expr) -> dict[str, Expr]:
        k = self.k
        ones, total = k.let("ones", ALL16(const(1))), k.let("total", const(0))
        with k.loop("d", self.step, 0, self.lanes) as d:
            k.assign(total, DOT16(total, bytes_at(x, d), ones))
        return {f"end{index}": k.let("of_row", const(0) - total * self.b_zero)}


class _Fours(_Product):
    """Sums of four columns end together, in a vector."""

    tile = (2, 4)

    def __init__(self, node: Node, graph: Graph, rule: OneRule) -> None:
        self.rule = rule
        form = {"lifted": "_lifted", "": "_none"}.get(rule.rule, "")
        self.name += f"_fours{form}{'_up' * (rule.left > 0)}"
        super().__init__(node, graph)

    @property
    def ends_by(self) -> str:
        return f"four together, {self.rule.words}"

    def bind_end(self, number: int) -> tuple[Packed, ...]:
        k, rule, zero = self.k, self.rule, self.made.y_zero
        values = {"lowest": -128 - zero, "most": 127 - zero, "y_zero": zero}
        if rule.rule:
            values |= {"multiplier": rule.multiplier, "right": rule.right}
        if rule.left:
            values["up"] = 1 << rule.left
        self.values: dict[str, Expr] = {n: k.arg(n, v) for n, v in values.items()}
        return ()

    @property
    def bound_end(self) -> dict[str, Expr]:
        return self.values

    def ends(
        self,
        known: Mapping[str, Var],
        sums: Sequence[Var],
        row: int,
        at: tuple[Expr, Expr],
    ) -> None:
        y, first = at
        four = PLUS4(LANES(*sums), words_at(known["base"], first))
        total: Expr = ADD4(four, known[f"end{row}"])
        if self.rule.left:
            total = TIMES4(total, ALL4(known["up"]))
        if self.rule.rule:
            total = self.rule.apply(total, known["multiplier"], known["right"])
        held = HOLD4(total, known["lowest"], known["most"], known["y_zero"])
        self.k.store(y, 0, held)
