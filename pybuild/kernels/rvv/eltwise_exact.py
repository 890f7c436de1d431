"""add, sub and mul of int8 and int16 on vectors of any length, by the rule itself: what
has no form that is proven equal and cheaper.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from pybuild.dtype import DType
from pybuild.ir.graph import Graph, Node
from pybuild.ir.loop import INT8, Expr, i32
from pybuild.kernels.base.builder import Builder
from pybuild.kernels.epilogues.exact_add import ExactAdd, exact_add
from pybuild.kernels.epilogues.one_rule import OneRule, one_rule
from pybuild.kernels.rvv.one_rule import Ruled, Stored
from pybuild.kernels.rvv.vectors import Vectors, vectors
from pybuild.ops.eltwise import (
    AddParameters,
    MulParameters,
    add_parameters,
    mul_parameters,
)

# the greatest product of two elements, without their zero points
_PRODUCT = {DType.INT8: 255**2, DType.INT16: 1 << 30}
Values = Callable[[Builder], "ExactSum | ExactProduct"]


def values(node: Node, graph: Graph) -> tuple[Values, str, str] | None:
    """What computes a layer, its key, and that for readers of the C; None where the
    rule of rounding has no form here."""
    elem = graph.tensor(node.output).dtype
    if node.op == "mul":
        product = mul_parameters(node, graph)
        reach = _PRODUCT[elem]
        rule = one_rule(product.rounding, product.multiplier, product.shift, reach)
        if rule is None:
            return None
        key = f"exact_{rule.rule or 'none'}{'_up' * (rule.left > 0)}"
        words = f"the product requantised, {rule.words}"
        return partial(ExactProduct, elem=elem, made=product, rule=rule), key, words
    made = add_parameters(node, graph)
    exact = exact_add(made, elem)
    if exact is None:
        return None
    ends = [("a", exact.a), ("b", exact.b)]
    rules = [f"{n}{t.scaling.rule or 'none'}" for n, t in ends if t.scaling is not None]
    key = "_".join([exact.key, *rules])
    return partial(ExactSum, elem=elem, made=made, exact=exact), key, exact.words


class _Operand:
    """An operand on the way to words: x * unit + start, scaled."""

    def __init__(
        self,
        k: Builder,
        v: Vectors,
        name: str,
        line: tuple[int, int],
        rule: OneRule | None = None,
    ) -> None:
        self.v, (unit, start) = v, line
        self.unit = k.arg(f"{name}_unit", unit) if unit != 1 else None
        self.start = k.arg(f"{name}_start", start) if start else None
        self.ruled = None if rule is None else Ruled(k, v, rule, f"{name}_")

    def all(self, k: Builder, x: Expr, n: Expr) -> Expr:
        """The same value in every lane, of an operand that does not move."""
        value: Expr = i32(x)
        value = value if self.unit is None else value * self.unit
        value = value if self.start is None else value + self.start
        return self._scaled(k.let("same", self.v.ALL(value, n)), n)

    def some(self, x: Expr, n: Expr) -> Expr:
        """Words of n elements."""
        v = self.v
        x = x if self.unit is None else v.TIMES(x, self.unit, n)
        x = x if self.start is None else v.PLUS(x, self.start, n)
        return self._scaled(x, n)

    def _scaled(self, value: Expr, n: Expr) -> Expr:
        return value if self.ruled is None else self.ruled.scaled(value, n)


class _Exact:
    """Two operands, and what is stored of both together."""

    operands: tuple[_Operand, _Operand]

    def __init__(
        self, k: Builder, elem: DType, made: AddParameters | MulParameters
    ) -> None:
        self.k, self.v = k, vectors(16)
        self.end = Stored(k, self.v, elem, made.y_zero, (made.low, made.high))

    def row(self, a: Expr | None, b: Expr | None) -> None:
        """Begins a row; the elements of operands that do not move along it."""
        self.fixed = a, b

    def both(self, a: Expr | None, b: Expr | None, n: Expr) -> tuple[Expr, Expr]:
        """The words of both operands; those that move are given."""
        k, found = self.k, []
        for operand, moving, fixed in zip(
            self.operands, (a, b), self.fixed, strict=True
        ):
            if moving is not None:
                found.append(k.let("term", operand.some(moving, n)))
            else:
                assert fixed is not None
                found.append(k.let("term", operand.all(k, fixed, n)))
        return found[0], found[1]


class ExactSum(_Exact):
    """The bound values of an ExactAdd."""

    def __init__(
        self, k: Builder, elem: DType, made: AddParameters, exact: ExactAdd
    ) -> None:
        super().__init__(k, elem, made)
        a, b = (
            _Operand(k, self.v, name, (term.unit, term.start), term.scaling)
            for name, term in (("a", exact.a), ("b", exact.b))
        )
        self.operands, self.minus = (a, b), exact.b.minus
        self.ruled = Ruled(k, self.v, exact.end)

    def some(self, a: Expr | None, b: Expr | None, n: Expr) -> Expr:
        """The values of n elements, those of operands that move."""
        left, right = self.both(a, b, n)
        total = (self.v.LESS if self.minus else self.v.SUM)(left, right, n)
        return self.end.stored(self.ruled.scaled(total, n), n)


class ExactProduct(_Exact):
    """The bound values of a mul and its rule."""

    def __init__(
        self, k: Builder, elem: DType, made: MulParameters, rule: OneRule
    ) -> None:
        super().__init__(k, elem, made)
        a, b = (
            _Operand(k, self.v, name, (1, -zero if elem is INT8 else 0))
            for name, zero in (("a", made.a_zero), ("b", made.b_zero))
        )
        self.operands, self.ruled = (a, b), Ruled(k, self.v, rule)
        self.up = k.arg("up", 1 << rule.left) if rule.left else None

    def some(self, a: Expr | None, b: Expr | None, n: Expr) -> Expr:
        """The values of n elements, those of operands that move."""
        total = self.v.PRODUCTS(*self.both(a, b, n), n)
        if self.up is not None:
            total = self.v.TIMES(total, self.up, n)
        return self.end.stored(self.ruled.scaled(total, n), n)
