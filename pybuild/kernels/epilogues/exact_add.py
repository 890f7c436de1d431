"""add and sub of int8 and int16 by their own rule: operands are scaled to a common
unit, a fraction of the output's, added, and scaled to the output. Scalings that are
exact anyway are left out. Knows no core.
"""

from __future__ import annotations

from pybuild.dtype import DType
from pybuild.kernels.epilogues.one_rule import HALF, OneRule, one_rule
from pybuild.ops.eltwise import AddParameters
from pybuild.records import dataclass

_REACH = {DType.INT8: 255, DType.INT16: 1 << 15}


@dataclass(frozen=True)
class Term:
    """x * unit + start, then scaled by `scaling`; the operand with the greater scale
    needs none.

    minus  whether it is subtracted from the other; without a scaling, its unit is
           negative instead
    """

    unit: int
    start: int
    scaling: OneRule | None
    minus: bool


@dataclass(frozen=True)
class ExactAdd:
    """y = clamp(end(a + b) + y_zero)"""

    a: Term
    b: Term
    end: OneRule

    @property
    def key(self) -> str:
        """The key that distinguishes the code of two layers."""
        kinds = "".join(
            name + "half" * (t.scaling is None) + "minus" * t.minus
            for name, t in (("a", self.a), ("b", self.b))
        )
        return f"exact_{kinds}_{self.end.rule or 'shifted'}"

    @property
    def words(self) -> str:
        """`key` for readers of the C."""
        return (
            "operands to one unit, of which the smaller scale is rounded; their sum "
            f"requantised, {self.end.words}"
        )


def exact_add(made: AddParameters, dtype: DType) -> ExactAdd | None:
    """Return the form, or None for rules that add and sub of files do not have, and for
    scales so far apart that a scaling has no form in words."""
    reach = _REACH[dtype] << made.left
    a = _term(made, made.a_zero, made.a_multiplier, made.a_shift, 1, reach)
    b = _term(made, made.b_zero, made.b_multiplier, made.b_shift, made.sign, reach)
    end = one_rule(made.rounding, made.multiplier, made.shift, reach)
    if a is None or b is None or end is None or end.left:
        return None
    return ExactAdd(a, b, end)


def _term(
    made: AddParameters, zero: int, multiplier: int, shift: int, sign: int, reach: int
) -> Term | None:
    if (multiplier, shift) == (HALF, 0):
        unit = sign << (made.left - 1)
        return Term(unit, -zero * unit, None, False)
    # -2^31 is in reach, too
    scaling = one_rule(made.rounding, multiplier, shift, reach - 1)
    if scaling is None:
        return None
    unit = 1 << (made.left + scaling.left)
    return Term(unit, -zero * unit, scaling, sign < 0)
