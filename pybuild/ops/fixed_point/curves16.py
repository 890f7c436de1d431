"""logistic and tanh of int16 in fixed point of 16 bits: the gates of LiteRT's LSTM.

Source  gemmlowp fixedpoint.h: exp by a polynomial of fourth degree around -1/8 and a
        product for each further bit, 1 / (1 + exp) by three steps of Newton's method
"""

from __future__ import annotations

import numpy as np

from pybuild.dtype import Ints
from pybuild.ops.fixed_point.quant import shift_away

ONE = (1 << 15) - 1
# exp(-1/8) and 1/3 in Q0.15
EIGHTH, THIRD = 28918, 10923
# exp(-1/4), exp(-1/2), exp(-1), ... exp(-16), in Q0.15
POWERS = (25520, 19875, 12055, 4435, 600, 11, 0)
# 48/17 and -32/17 in Q2.13
FIRST, SLOPE = 23130, -15420
ONE_Q2 = 1 << 13
_LOW = -(1 << 15)


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
    """Of Q3.12, in Q0.15."""
    made = _held(_reciprocal(_exp(np.minimum(x, -x), 3)) << 1)
    return np.where(x == 0, 1 << 14, np.where(x > 0, made, ONE - made))


def tanh16(x: Ints, bits: int) -> Ints:
    """Of numbers with so many bits before the point, 0 to 6, in Q0.15."""
    power = _exp(np.minimum(x, -x), bits + 1)
    made = _held((_reciprocal(power) - ONE_Q2) << 2)
    return np.where(x == 0, 0, np.where(x < 0, -made, made))
