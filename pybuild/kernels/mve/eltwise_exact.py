"""add, sub and mul of int8 and int16 and prelu of int8 by the rule itself, on vectors
of four words: the values of four elements.
"""

from __future__ import annotations

from pybuild.dtype import DType
from pybuild.ir.loop import INT8, Expr, const, i32
from pybuild.kernels.base.builder import Builder
from pybuild.kernels.base.vector_rounds import HOLD4
from pybuild.kernels.base.vectors import (
    ADD4,
    ALL4,
    LINE4,
    MAX4,
    MORE4,
    PLUS4,
    TIMES4,
)
from pybuild.kernels.epilogues.exact_add import ExactAdd
from pybuild.kernels.epilogues.one_rule import OneRule
from pybuild.ops.eltwise import AddParameters, MulParameters, PreluParameters


class ExactSum:
    """The bound values of an ExactAdd: y of four elements of a and b."""

    def __init__(self, k: Builder, made: AddParameters, exact: ExactAdd) -> None:
        self.k = k
        self.terms = [
            (
                k.arg(f"{name}_unit", term.unit),
                k.arg(f"{name}_start", term.start),
                term.scaling.bind(k, f"{name}_") if term.scaling else _as_it_is,
            )
            for name, term in (("a", exact.a), ("b", exact.b))
        ]
        self.minus, self.end = exact.b.minus, exact.end.bind(k)
        self.held = _held(k, made)

    def row(self, a: Expr | None, b: Expr | None) -> None:
        """Begins a row; the elements of operands that do not move along it."""
        k = self.k
        self.fixed: list[Expr | None] = []
        self.units: list[Expr] = []
        for x, name, (unit, start, scaling) in zip(
            (a, b), "ab", self.terms, strict=True
        ):
            moves = x is None
            self.units.append(k.let(f"{name}_units", ALL4(unit)) if moves else const(0))
            one = None if x is None else scaling(ALL4(i32(x) * unit + start))
            self.fixed.append(one and k.let(f"{name}_term", one))

    def four(self, a: Expr | None, b: Expr | None) -> Expr:
        """The values of four elements, those of operands that move."""
        left, right = (
            fixed if x is None else scaling(LINE4(x, units, start))
            for x, fixed, units, (_, start, scaling) in zip(
                (a, b), self.fixed, self.units, self.terms, strict=True
            )
        )
        assert left is not None and right is not None
        total = MORE4(left, right, const(-1)) if self.minus else PLUS4(left, right)
        return HOLD4(self.end(total), *self.held)


class ExactProduct:
    """The bound values of a mul and its rule: y of four elements of a and b."""

    def __init__(
        self, k: Builder, made: MulParameters, rule: OneRule, dtype: DType
    ) -> None:
        self.k, self.rule = k, rule.bind(k)
        self.zeros: list[Expr | None] = [None, None]  # int16 has none
        if dtype is INT8:
            zeros = zip("ab", (made.a_zero, made.b_zero), strict=True)
            self.zeros = [k.arg(f"{name}_less", -zero) for name, zero in zeros]
        self.up = k.arg("up", 1 << rule.left) if rule.left else None
        self.held = _held(k, made)

    def row(self, a: Expr | None, b: Expr | None) -> None:
        """Begins a row; the elements of operands that do not move along it."""
        self.fixed = [
            None
            if x is None
            else self.k.let(f"{name}_term", self._less(ALL4(i32(x)), zero))
            for name, x, zero in zip("ab", (a, b), self.zeros, strict=True)
        ]
        if self.up is not None:
            self.ups = self.k.let("ups", ALL4(self.up))

    @staticmethod
    def _less(x: Expr, zero: Expr | None) -> Expr:
        return x if zero is None else ADD4(x, zero)

    def four(self, a: Expr | None, b: Expr | None) -> Expr:
        """The values of four elements, those of operands that move."""
        left, right = (
            self._less(x, zero) if x is not None else fixed
            for x, zero, fixed in zip((a, b), self.zeros, self.fixed, strict=True)
        )
        assert left is not None and right is not None
        total = TIMES4(left, right)
        if self.up is not None:
            total = TIMES4(total, self.ups)
        return HOLD4(self.rule(total), *self.held)


class Sloped:
    """The bound values of a prelu: y of four elements of x and slopes."""

    def __init__(
        self, k: Builder, made: PreluParameters, above: OneRule, below: OneRule
    ) -> None:
        self.k = k
        self.x_less = k.arg("x_less", -made.x_zero)
        self.unit = k.arg("slope_unit", 1 << below.left)
        self.start = k.arg("slope_start", -made.slope_zero << below.left)
        self.up = k.arg("up", 1 << above.left) if above.left else None
        self.above, self.below = above.bind(k, "above_"), below.bind(k, "below_")
        self.held = _held(k, made)

    def row(self, a: Expr | None, b: Expr | None) -> None:
        """Begins a row; the elements of operands that do not move along it."""
        k = self.k
        self.zeros = k.let("zeros", ALL4(0))
        self.ups = None if self.up is None else k.let("ups", ALL4(self.up))
        self.x = None if a is None else k.let("x_term", ALL4(i32(a) + self.x_less))
        self.units = k.let("units", ALL4(self.unit))
        fixed = None if b is None else ALL4(i32(b) * self.unit + self.start)
        self.slope = fixed and k.let("slope_term", fixed)

    def four(self, a: Expr | None, b: Expr | None) -> Expr:
        """The values of four elements, those of operands that move."""
        k = self.k
        x = self.x if a is None else k.let("x", ADD4(a, self.x_less))
        slope = self.slope if b is None else LINE4(b, self.units, self.start)
        assert x is not None and slope is not None
        positive = k.let("positive", MAX4(x, self.zeros))
        negative = MORE4(x, positive, const(-1))
        lifted = positive if self.ups is None else TIMES4(positive, self.ups)
        total = PLUS4(self.above(lifted), self.below(TIMES4(negative, slope)))
        return HOLD4(total, *self.held)


def _as_it_is(value: Expr) -> Expr:
    return value


def _held(
    k: Builder, made: AddParameters | MulParameters | PreluParameters
) -> tuple[Expr, Expr, Expr]:
    zero = made.y_zero
    return (
        k.arg("lowest", made.low - zero),
        k.arg("most", made.high - zero),
        k.arg("y_zero", zero),
    )
