"""matmul of int8 by int8, both computed, on vectors of any length: a lane for each
column of the result, a value of the left matrix at a time (vwmacc.vx).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from pybuild.ir.graph import Graph, Node
from pybuild.ir.loop import INT8, Expr, Var, const, i32, load, offset
from pybuild.kernels.any_type.contract import scaled
from pybuild.kernels.any_type.map import form, join, nest
from pybuild.kernels.any_type.product import first_of_block
from pybuild.kernels.base.builder import Builder, told
from pybuild.kernels.base.candidate import Candidate
from pybuild.kernels.base.operands import offer, whole_operands
from pybuild.kernels.epilogues.one_rule import OneRule, one_rule
from pybuild.kernels.rvv.loops import Steps
from pybuild.kernels.rvv.one_rule import Ruled, Stored
from pybuild.kernels.rvv.vectors import FEATURE, vectors
from pybuild.ops.contract import Product as Parameters
from pybuild.ops.contract import product_of, sizes_of
from pybuild.targets.target import Target

_LEAST = 4  # columns
_ROWS = 4  # at a time, at most
_v = partial(vectors, 16)  # made when it is first used


def candidates(node: Node, graph: Graph, target: Target) -> list[Candidate]:
    """None where the core has no vectors, the rule of rounding is one of floats, or
    there are fewer than four columns."""
    made = product_of(node, graph)
    assert isinstance(made, Parameters)
    few = graph.tensor(node.output).shape[-1] < _LEAST
    if FEATURE not in target.features or few or made.rounding == "even":
        return []
    reach = 255**2 * graph.tensor(node.inputs[0]).shape[-1]
    rule = one_rule(made.rounding, made.multiplier, made.shift, reach)
    return [] if rule is None else [_Product(node, graph, made, rule).candidate()]


class _Product:
    """The kernel being written."""

    def __init__(
        self, node: Node, graph: Graph, made: Parameters, rule: OneRule
    ) -> None:
        a, b = (graph.tensor(n) for n in node.inputs)
        y, self.sizes = graph.tensor(node.output), sizes_of(node, graph)
        self.made, self.rule = made, rule
        self.together = min(_ROWS, self.sizes.rows)
        self.operands = whole_operands(node, graph)
        joined = join(y.shape[:-2], [a.shape[:-2], b.shape[:-2]])
        self.outer = scaled(joined, self.sizes.each)
        self.matrices = y.size // (self.sizes.rows * self.sizes.columns)
        parts = (
            f"matmul_s8_rvv_{self.together}",
            "over" if self.sizes.rows % self.together else "",
            "transposed" if self.sizes.transposed else "",
            rule.rule or "none",
            "up" if rule.left else "",
            form(self.outer),
        )
        self.k = Builder("_".join(p for p in parts if p), self._doc())

    def _doc(self) -> str:
        turned = "b is turned into scratch; " * self.sizes.transposed
        return told(
            "y = clamp(round(a @ b * scale) + zero), int8, of each pair of matrices",
            f"{turned}{self.together} rows of a vector of columns at a time",
            self.rule.words,
        )

    def candidate(self) -> Candidate:
        k, operands, sizes, made = self.k, self.operands, self.sizes, self.made
        pointers = [
            k.row("y", 0, INT8, writable=True),
            k.row("a", operands.numbers[0], INT8),
            k.row("b", operands.numbers[1], INT8),
        ]
        self.turned: Var | None = None
        if sizes.transposed:
            self.turned = k.row("turned", operands.after, INT8, writable=True)
        self.rows, self.columns, self.depth = (
            k.arg(word, size)
            for word, size in zip(
                "mnk", (sizes.rows, sizes.columns, sizes.depth), strict=True
            )
        )
        self.a_less, self.b_zero = (
            k.arg("a_less", -made.a_zero),
            k.arg("b_zero", made.b_zero),
        )
        self.up = k.arg("up", 1 << self.rule.left) if self.rule.left else None
        self.ruled = Ruled(k, _v(), self.rule)
        self.end = Stored(k, _v(), INT8, made.y_zero, (INT8.low, INT8.high))
        self.steps = Steps(k, _v(), self.columns)
        nest(k, self.outer, pointers, self._pair)
        scratch = sizes.depth * sizes.columns if sizes.transposed else 0
        found = offer(k, operands, cost=self._cost)
        return replace(found, scratch=scratch)

    @property
    def _cost(self) -> int:
        sizes, n = self.sizes, self.together
        vectors_ = -(-sizes.columns // _v().lanes)
        blocks = vectors_ * -(-sizes.rows // n)
        turned = 9 * vectors_ * sizes.depth * sizes.transposed
        each = blocks * ((5 + 3 * n) * sizes.depth + 12 * n) + turned
        return int(self.matrices * each)

    def _pair(self, at: Sequence[Expr], index: Sequence[Expr]) -> None:
        """One product of two matrices."""
        k, count = self.k, self.together
        to, left, right = (
            k.let(w, offset(p, i))
            for w, p, i in zip(("to", "left", "right"), at, index, strict=True)
        )
        if self.turned is not None:
            self._turn(right, self.turned)
        source: Expr = right if self.turned is None else self.turned
        with k.loop("r", self.rows, 0, count, rolled=True) as r:
            row = first_of_block(k, r, self.rows, self.sizes.rows, count)
            x = k.let("x_row", offset(left, row * self.depth))
            y = k.let("y_row", offset(to, row * self.columns))
            with self.steps.each() as (first, n):
                self._block(x, offset(source, first), offset(y, first), n)

    def _turn(self, right: Expr, turned: Var) -> None:
        k = self.k
        to = k.let("turned_to", turned)
        with k.loop("d", self.depth, rolled=True) as d:
            with self.steps.each() as (first, n):
                at = offset(right, first * self.depth + d)
                k.store(to, first, _v().APART_BYTES(at, self.depth, n), count=n)
            k.assign(to, offset(to, self.columns))

    def _block(self, x: Expr, b: Expr, y: Expr, n: Expr) -> None:
        """Some rows of a vector of columns."""
        k, count = self.k, self.together
        start = k.let("start", _v().ALL(const(0), n))
        sums = [k.let(f"sum{i}", start) for i in range(count)]
        w, x = k.let("w", b), k.let("x", x)
        with k.loop("step", self.depth, rolled=True):
            columns = k.let("columns", _v().LOWERED(w, self.b_zero, n))
            for i, total in enumerate(sums):
                value = i32(load(x, i * self.depth)) + self.a_less
                k.assign(total, _v().MAC_ONE(total, value, columns, n))
            k.assign(w, offset(w, self.columns))
            k.assign(x, offset(x, 1))
        for i, total in enumerate(sums):
            value = total if self.up is None else _v().TIMES(total, self.up, n)
            made = self.end.stored(self.ruled.scaled(value, n), n)
            k.store(y, i * self.columns, made, count=n)
