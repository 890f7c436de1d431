"""int16 averages on vectors: a sum divided by a number of cells, as one high product.
Knows no node.
"""

from __future__ import annotations

from collections.abc import Callable

from pybuild.ir.loop import Expr, const
from pybuild.kernels.base.builder import Builder
from pybuild.kernels.base.vector_packs import ONCE_ALL4
from pybuild.kernels.base.vectors import ALL4, TIMES4
from pybuild.records import dataclass

# bits by which a sum is larger in the product
MORE = 4
_REACH = 1 << 15  # of a value


@dataclass(frozen=True)
class Quotient:
    """sum / cells to nearest, ties away from zero: sum * 16 * factor / 2^(32 + shift),
    ties up. The factor is a little more than the inverse, so no tie is left.
    """

    factor: int
    shift: int
    low: int
    high: int
    words = "divided by the number of cells, rounded to nearest, ties away from zero"

    @property
    def key(self) -> str:
        """The key that distinguishes the code of two layers."""
        return "clamped" if (self.low, self.high) != (-_REACH, _REACH - 1) else ""

    def bind(self, k: Builder) -> Callable[[Expr], Expr]:
        """Return a function that divides four sums; results are not clamped."""
        factor = k.arg("factor", self.factor)
        return by_factor(k, factor, k.arg("shift", -self.shift))


def by_factor(k: Builder, factor: Expr, shift: Expr) -> Callable[[Expr], Expr]:
    """What divides a vector of sums; `shift`: minus the bits to the right."""
    more = k.let("more", ALL4(const(1 << MORE)))
    return lambda total: ONCE_ALL4(TIMES4(total, more), factor, shift)


def quotient(cells: int, limits: tuple[int, int]) -> Quotient | None:
    """Return the quotient; None for more cells than it is proven for, some 4096."""
    scaled = cells << MORE
    bits = 30 + scaled.bit_length() - 1
    factor = (1 << bits) // scaled + 1
    # the product exceeds the quotient by less than 1 / (2 * cells): what is no tie
    # stays on its side of one, and a tie is beyond it
    error = factor * scaled - (1 << bits)
    if cells > 1 << 12 or 2 * _REACH * cells * error >= 1 << bits:
        return None
    return Quotient(factor, bits - 32, *limits)
