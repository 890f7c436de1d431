"""Requantisation with one multiplier for all, on vectors of any length, inside a kernel
that is being written: by the rule itself, and the way from words to the output's type.
"""

from __future__ import annotations

from pybuild.dtype import DType
from pybuild.ir.loop import INT8, Expr
from pybuild.kernels.base.builder import Builder
from pybuild.kernels.epilogues.one_rule import OneRule
from pybuild.kernels.rvv.vectors import Vectors


class Ruled:
    """The bound values of a OneRule; values were shifted left before, if it says so."""

    def __init__(self, k: Builder, v: Vectors, rule: OneRule, name: str = "") -> None:
        self.v, self.rule = v, rule
        if rule.rule:
            self.multiplier = k.arg(f"{name}multiplier", rule.multiplier)
        if rule.rule in ("double", "single"):
            self.right = k.arg(f"{name}right", rule.right)

    def scaled(self, value: Expr, n: Expr) -> Expr:
        """n values, scaled."""
        v = self.v
        match self.rule.rule:
            case "double":
                return v.TWICE_ONE(value, self.multiplier, self.right, n)
            case "single":
                return v.ONCE_ONE(value, self.multiplier, self.right, n)
            case "lifted":
                return v.UP_ONE(value, self.multiplier, n)
        return value


class Stored:
    """What makes elements of scaled values: a zero point, if the type has one, and
    limits, where they are not its own."""

    def __init__(
        self, k: Builder, v: Vectors, elem: DType, zero: int, limits: tuple[int, int]
    ) -> None:
        self.v, self.elem = v, elem
        self.zero = k.arg("y_zero", zero) if elem is INT8 else None
        self.limits: tuple[Expr, Expr] | None = None
        if limits != (elem.low, elem.high):
            self.limits = k.arg("low", limits[0]), k.arg("high", limits[1])

    def stored(self, value: Expr, n: Expr) -> Expr:
        """n elements."""
        v = self.v
        if self.zero is None:
            made = v.SHORT(value, 0, n)
        else:
            made = v.RAISED(value, self.zero, n)
        return made if self.limits is None else v.HELD[self.elem](made, *self.limits, n)
