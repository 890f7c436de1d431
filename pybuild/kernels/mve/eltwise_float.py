"""add, sub and mul of float32 on vectors: the arithmetic of mve/eltwise.py's rows."""

from __future__ import annotations

from pybuild.ir.loop import Expr, Intrin
from pybuild.kernels.base.builder import Builder
from pybuild.kernels.base.floats import ADD_REALS4, ALL_REALS4, MUL_REALS4, SUB_REALS4
from pybuild.kernels.base.real_vectors import MVE
from pybuild.kernels.epilogues.int8 import FloatClamp

OPERATIONS = {"add": ADD_REALS4, "sub": SUB_REALS4, "mul": MUL_REALS4}


class Reals:
    """The bound epilogue of a layer: y of four elements of a and b."""

    load = staticmethod(MVE.at)

    def __init__(
        self, k: Builder, operation: Intrin, finish: FloatClamp, limits: Expr
    ) -> None:
        self.k, self.operation = k, operation
        self.low, self.high = finish.bind_ends(k, limits)

    def row(self, a: Expr | None, b: Expr | None) -> None:
        """Begins a row; the elements of operands that do not move along it."""
        k = self.k
        if a is not None:
            self.left = k.let("left_value", ALL_REALS4(a))
        if b is not None:
            self.right = k.let("right_value", ALL_REALS4(b))

    def four(self, a: Expr | None, b: Expr | None) -> Expr:
        """The values of four elements, those of operands that move."""
        left = a if a is not None else self.left
        right = b if b is not None else self.right
        return MVE.clamped(self.operation(left, right), self.low, self.high)
