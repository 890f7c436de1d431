"""Requantisation by the rule itself on vectors of four words, with one multiplier for
all: for elementwise layers without a cheaper proven form.
"""

from __future__ import annotations

from collections.abc import Callable

from pybuild.ir.loop import Expr, Intrin, const
from pybuild.kernels.base.builder import Builder
from pybuild.kernels.base.vector_packs import ONCE_ALL4, TWICE_ALL4, TWICE_UP_ALL4
from pybuild.records import dataclass

HALF = 1 << 30  # as a Q31 multiplier
_INT32 = 1 << 31
_RULES: dict[str, Intrin] = {
    "double": TWICE_ALL4,
    "lifted": TWICE_UP_ALL4,
    "single": ONCE_ALL4,
}
_WORDS = {
    "": "which is exact",
    "double": "by two roundings: of the product's high half, then of a shift",
    "lifted": "by one rounding: of the product's high half",
    "single": "by one rounding of the product, half up",
}


@dataclass(frozen=True)
class OneRule:
    """`rule` applied to value * 2^left; `rule` is a name of _RULES, or "" for none.

    right  the right shift, negated, as its instruction expects it
    """

    rule: str
    multiplier: int
    right: int
    left: int

    @property
    def words(self) -> str:
        """The words for the comment in the C."""
        return _WORDS[self.rule]

    def bind(self, k: Builder, name: str = "") -> Callable[[Expr], Expr]:
        """Return a function that scales a vector that was shifted left."""
        if not self.rule:
            return lambda value: value
        multiplier = k.arg(f"{name}multiplier", self.multiplier)
        right: Expr = const(0)
        if self.right:
            right = k.arg(f"{name}right", self.right)
        return lambda value: self.apply(value, multiplier, right)

    def apply(self, value: Expr, multiplier: Expr, right: Expr) -> Expr:
        """Scale a vector that was shifted left."""
        return _RULES[self.rule](value, multiplier, right) if self.rule else value


def one_rule(rounding: str, multiplier: int, shift: int, reach: int) -> OneRule | None:
    """Return the rule for a multiplier and a shift as in ops/fixed_point/quant.py.

    reach  the greatest absolute value
    """
    if multiplier == 0:
        return OneRule("double", 0, -1, 0)
    if (multiplier, shift) == (HALF, 1):
        return OneRule("", 0, 0, 0)
    match rounding:
        case "double":
            left, right = max(shift, 0), min(shift, 0)
            form = OneRule("double" if right else "lifted", multiplier, right, left)
        case "single":
            # the product's high half is shifted by one bit at least
            left = max(shift + 2, 0)
            form = OneRule("single", multiplier, shift + 1 - left, left)
        case _:
            return None
    return form if reach << form.left < _INT32 else None
