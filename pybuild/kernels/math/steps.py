"""The number of steps of a scale in a float32, by integers: for cores on which a
division is a function of hundreds of instructions. Knows no rule of rounding.
"""

from __future__ import annotations

import math

import numpy as np

from pybuild.ir.loop import INT32, Bitcast, Expr, Var, const, equal, minimum, select
from pybuild.kernels.base.builder import Builder
from pybuild.kernels.base.intrin import MULHI
from pybuild.records import dataclass

_BITS = 12  # of a quotient behind its point
# a quotient is cut off three times, each within a last bit of it; the float32 nearest
# to it is within 2^-24 of it, which is 16 such bits of a number of 16
_NEAR = 32
_INVERSE = 30


@dataclass(frozen=True)
class Steps:
    """x / scale in Q12, of |x| with a mantissa m below 2^24 and an exponent:

    mulhi(m << 7, inverse) >> (first - exponent)

    inverse  2^30 over the scale's mantissa, which is 1 to 2
    first    where that is negative, there are 2^18 steps or more, or x is not a number
    """

    inverse: int
    first: int

    def bind(self, k: Builder) -> BoundSteps:
        return BoundSteps(k, k.arg("inverse", self.inverse), k.arg("first", self.first))


def steps_of(scale: float) -> Steps | None:
    """None where the exponent of a number of no steps could be 0, or none is as large
    as 2^18."""
    fraction, power = math.frexp(float(np.float32(scale)))
    if fraction <= 0 or not math.isfinite(fraction):
        return None
    inverse = round(2.0 ** (_INVERSE - 1) / fraction)
    first = 16 + 127 + power - 1
    return Steps(inverse, first) if 33 <= first < 255 else None


@dataclass(frozen=True)
class BoundSteps:
    k: Builder
    inverse: Expr
    first: Expr

    def nearest(self, x: Expr) -> tuple[Var, Expr]:
        """The nearest number of steps, and whether that is not sure: where float32
        could round the quotient to a tie or over one, or where steps are too many."""
        k = self.k
        bits = k.let("bits", Bitcast(x, INT32))
        mantissa = ((bits & 0x7FFFFF) | 0x800000) << 7
        shift = k.let("shift", self.first - ((bits >> 23) & 0xFF))
        size = MULHI(mantissa, self.inverse)
        # a shift below 0 is none: what it makes is not taken
        many = k.let("many", size >> (minimum(shift, 31) & 31))
        half = 1 << (_BITS - 1)
        whole = k.let("whole", (many + half) >> _BITS)
        from_tie = (many - (half - _NEAR)) & ((1 << _BITS) - 1)
        near = select(from_tie < 2 * _NEAR, const(1), const(0))
        far = select(shift < 0, const(1), near)
        return k.let("steps", select(bits < 0, 0 - whole, whole)), equal(far, 1)
