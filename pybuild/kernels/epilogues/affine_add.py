"""add and sub of int8 by two multiplications, proven equal to the reference. There are
65536 pairs of values: the form is checked for each of them. Knows no kernel.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator

import numpy as np

from pybuild.dtype import Ints
from pybuild.kernels.epilogues.affine_line import SHIFTS, offset_of
from pybuild.ops.eltwise import AddParameters
from pybuild.ops.fixed_point.quant import requantize
from pybuild.records import dataclass

_NEAR = (0, 1, -1)  # factors next to the nearest
# how much greater both factors may be, in halvings
_OUTWARD = (12, 11, 10, 14, 16)
_INT32 = 1 << 31


@dataclass(frozen=True)
class AffineAdd:
    """y = clamp((a * a_factor + b * b_factor + offset) >> shift), all in int32.

    base  None: rounding is in the offset; else the shift rounds, half to even, and base
          is added
    """

    a_factor: int
    b_factor: int
    offset: int
    shift: int
    base: int | None = None

    @property
    def key(self) -> str:
        """The key that distinguishes the code of two layers."""
        return f"shift{self.shift}" + ("" if self.base is None else "_even")

    @property
    def words(self) -> str:
        """`key` in words, for readers of the C."""
        ties = "" if self.base is None else ", ties to even"
        return (
            "each operand times a factor of its own, their sum shifted to the right"
            f"{ties}; proven equal to the rule for all pairs"
        )


@functools.cache
def affine_add(made: AddParameters) -> AffineAdd | None:
    """Return the cheap form of a layer, or None."""
    wanted = _reference(made)
    scale = made.multiplier * 2.0 ** (made.shift - 31 + made.left)
    if made.rounding == "even":
        a, b = made.a_multiplier * scale, made.b_multiplier * scale
    else:
        a = made.a_multiplier * 2.0 ** (made.a_shift - 31) * scale
        b = made.b_multiplier * 2.0 ** (made.b_shift - 31) * scale
    for shift in SHIFTS:
        exact = a * 2.0**shift, made.sign * b * 2.0**shift
        for factors in _factors(*exact, made.rounding != "even"):
            if 128 * sum(map(abs, factors)) + (257 << shift) >= _INT32:
                continue
            found = _form(wanted, factors, shift, made)
            if found is not None:
                return found
    return _to_even(made) if made.rounding == "even" else None


def _to_even(made: AddParameters) -> AffineAdd:
    """Return the rule unchanged: its single sum, shifted once."""
    a, b = made.a_multiplier, made.sign * made.b_multiplier
    start = -(made.a_zero * a + made.b_zero * b)
    return AffineAdd(a, b, start, 31 - made.shift, made.y_zero)


def _factors(a: float, b: float, outward: bool) -> Iterator[tuple[int, int]]:
    """Yield factors near a and b; then both made greater by the same share, so that
    ties, which are far apart, are rounded away from zero."""
    for near in itertools.product(_NEAR, _NEAR):
        yield round(a) + near[0], round(b) + near[1]
    for bits in _OUTWARD if outward else ():
        yield round(a + a * 2.0**-bits), round(b + b * 2.0**-bits)


def _reference(made: AddParameters) -> Ints:
    """Return the reference results [a, b], both from -128 on, before the clamp."""
    x = np.arange(-128, 128)
    a, b = x - made.a_zero, x - made.b_zero
    if made.rounding == "even":
        a, b = a * made.a_multiplier, b * made.b_multiplier
    else:
        a, b = (
            requantize(t << made.left, multiplier, shift, made.rounding)
            for t, multiplier, shift in (
                (a, made.a_multiplier, made.a_shift),
                (b, made.b_multiplier, made.b_shift),
            )
        )
    total = a[:, None] + made.sign * b
    return requantize(total, made.multiplier, made.shift, made.rounding) + made.y_zero


def _form(
    wanted: Ints, factors: tuple[int, int], shift: int, made: AddParameters
) -> AffineAdd | None:
    """Return the form with these factors if an offset gives every pair its value, else
    None."""
    x = np.arange(-128, 128)
    total = x[:, None] * factors[0] + x * factors[1]
    limits = made.low, made.high
    offset = offset_of(total, np.clip(wanted, *limits), shift, limits)
    return None if offset is None else AffineAdd(*factors, offset, shift)
