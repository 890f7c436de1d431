"""add and sub of int8 by two multiplications, proven equal to the reference.

There are 65536 pairs of values: the form is checked on every one. Knows no kernel.
"""

from __future__ import annotations

import functools
import itertools
from dataclasses import dataclass

import numpy as np

from pybuild.kernels.affine_line import SHIFTS, offset_of
from pybuild.kernels.requant import Ints
from pybuild.ops.eltwise import AddParameters
from pybuild.ops.quant import requantize

_NEAR = (0, 1, -1)  # factors next to the nearest
_INT32 = 1 << 31


@dataclass(frozen=True)
class AffineAdd:
    """y = clamp((a * a_factor + b * b_factor + offset) >> shift), all in int32."""

    a_factor: int
    b_factor: int
    offset: int
    shift: int


@functools.cache
def affine_add(made: AddParameters) -> AffineAdd | None:
    """The cheap form of a layer, where there is one."""
    wanted = _reference(made)
    scale = made.multiplier * 2.0 ** (made.shift - 31 + made.left)
    if made.rounding == "even":
        a, b = made.a_multiplier * scale, made.b_multiplier * scale
    else:
        a = made.a_multiplier * 2.0 ** (made.a_shift - 31) * scale
        b = made.b_multiplier * 2.0 ** (made.b_shift - 31) * scale
    for shift in SHIFTS:
        nearest = (round(a * 2.0**shift), round(made.sign * b * 2.0**shift))
        if 128 * sum(map(abs, nearest)) + (257 << shift) >= _INT32:
            continue
        for near in itertools.product(_NEAR, _NEAR):
            factors = (nearest[0] + near[0], nearest[1] + near[1])
            found = _form(wanted, factors, shift, made)
            if found is not None:
                return found
    return None


def _reference(made: AddParameters) -> Ints:
    """[a, b], both from -128 on, before the clamp."""
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
    """The form with these factors, if an offset keeps every pair where it is."""
    x = np.arange(-128, 128)
    total = x[:, None] * factors[0] + x * factors[1]
    limits = made.low, made.high
    offset = offset_of(total, np.clip(wanted, *limits), shift, limits)
    return None if offset is None else AffineAdd(*factors, offset, shift)
