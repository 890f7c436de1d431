"""Curves of int16: logistic and tanh in fixed point of 16 bits, the gates of LiteRT's
LSTM; any other between 513 points.

Source  gemmlowp fixedpoint.h: exp by a polynomial of fourth degree around -1/8 and a
        product for each further bit, 1 / (1 + exp) by three steps of Newton's method
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from pybuild.dtype import Ints
from pybuild.ops.fixed_point.quant import rounded_away, shift_away

Floats = npt.NDArray[np.floating]

ONE = (1 << 15) - 1
# exp(-1/8) and 1/3 in Q0.15
EIGHTH, THIRD = 28918, 10923
# exp(-1/4), exp(-1/2), exp(-1), ... exp(-16), in Q0.15
POWERS = (25520, 19875, 12055, 4435, 600, 11, 0)
# 48/17 and -32/17 in Q2.13
FIRST, SLOPE = 23130, -15420
ONE_Q2 = 1 << 13
_LOW = -(1 << 15)


def points_of(here: Floats, middle: Floats) -> Ints:
    """int16[513]: a function at 513 points, each moved half of the middle's error.

    Shapes  here [513]; middle [512], half way to the next
    Source  LiteRT gen_lut
    """
    at, following = rounded_away(here[:-1]), here[1:]
    between = rounded_away((following + at) / 2)
    moved = at - rounded_away((between - rounded_away(middle)) / 2)
    whole = np.concatenate([moved, rounded_away(here[-1:])])
    return np.asarray(np.clip(whole, -32768, 32767), np.int64)


def curve_between(points: npt.ArrayLike, v: Ints) -> Ints:
    """Linear between the points; v from 0 to 65535."""
    table, at = np.asarray(points, np.int64), v >> 7
    rise = (table[at + 1] - table[at]) * (v & 127)
    return np.asarray(table[at] + ((rise + 64) >> 7))


def _high(a: Ints, b: Ints | int) -> Ints:
    return np.asarray((a * b + (1 << 14)) >> 15)


def _held(a: Ints) -> Ints:
    return np.clip(a, _LOW, ONE)


def _exp(n: Ints, bits: int) -> Ints:
    """exp of numbers up to 0 with so many bits before the point, in Q0.15."""
    quarter = 1 << (13 - bits)
    part = (n & (quarter - 1)) - quarter
    left = part - n
    x = (part << bits) + (1 << 12)
    square = _high(x, x)
    cube, fourth = _high(square, x), shift_away(_high(square, square), 2)
    rest = shift_away(_high(fourth + cube, THIRD) + square, 1)
    made = _held(EIGHTH + _high(x + rest, EIGHTH))
    for index, power in enumerate(POWERS):
        further = (left >> (13 - bits + index)) & 1
        made = np.where(further == 1, _high(made, power), made)
    made = np.where(n < -(32 << (15 - bits)), 0, made)
    return np.where(n == 0, ONE, made)


def _reciprocal(a: Ints) -> Ints:
    """2 / (1 + a) of a in Q0.15, in Q2.13."""
    half = (a + ONE + 1) >> 1
    x = FIRST + _high(half, SLOPE)
    for _ in range(3):
        x = x + _held(_high(x, ONE_Q2 - _high(half, x)) << 2)
    return x


def logistic16(x: Ints) -> Ints:
    """The logistic function of Q3.12, in Q0.15."""
    made = _held(_reciprocal(_exp(np.minimum(x, -x), 3)) << 1)
    return np.where(x == 0, 1 << 14, np.where(x > 0, made, ONE - made))


def tanh16(x: Ints, bits: int) -> Ints:
    """tanh of numbers with so many bits before the point, 0 to 6, in Q0.15."""
    power = _exp(np.minimum(x, -x), bits + 1)
    made = _held((_reciprocal(power) - ONE_Q2) << 2)
    return np.where(x == 0, 0, np.where(x < 0, -made, made))
