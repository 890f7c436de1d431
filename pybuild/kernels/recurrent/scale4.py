"""How four sums are scaled at once, rounded twice (Cortex-M55)."""

from __future__ import annotations

from collections.abc import Mapping

from pybuild.ir.loop import Expr, Var, const
from pybuild.kernels.base.builder import Builder
from pybuild.kernels.base.vector_packs import TWICE_ALL4, TWICE_UP_ALL4
from pybuild.kernels.base.vector_rounds import LIFT4
from pybuild.kernels.base.vectors import ALL4
from pybuild.ops.recurrent import Pair
from pybuild.records import dataclass


@dataclass(frozen=True)
class Scale4:
    """A multiplier, and a shift as `form` says.

    form  "left": of the sums; "right": of the product, by a number below 0; "": none
    """

    form: str
    by: Expr
    shift: Expr

    def given(self, name: str) -> dict[str, Expr]:
        """What a part of the kernel must be given."""
        return {f"{name}_by": self.by, f"{name}_shift": self.shift}

    def inside(self, params: Mapping[str, Var], name: str) -> Scale4:
        """The same in a part that was given that."""
        return Scale4(self.form, params[f"{name}_by"], params[f"{name}_shift"])

    def of(self, v: Expr) -> Expr:
        """Four sums, scaled."""
        if self.form == "right":
            return TWICE_ALL4(v, self.by, self.shift)
        if self.form == "left":
            v = LIFT4(v, ALL4(self.shift))
        return TWICE_UP_ALL4(v, self.by, 0)


def scale4(k: Builder, name: str, pair: Pair) -> Scale4:
    """Bound to arguments of the kernel."""
    multiplier, shift = pair
    by, right = k.arg(f"{name}_by", multiplier), min(max(-shift, 0), 30)
    if shift > 0:
        return Scale4("left", by, k.arg(f"{name}_left", shift))
    if right:
        return Scale4("right", by, k.arg(f"{name}_right", -right))
    return Scale4("", by, const(0))
