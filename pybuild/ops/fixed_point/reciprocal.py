"""The reciprocal of fixed-point numbers, as gemmlowp computes it: in int32."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from pybuild.dtype import Ints

_Q31 = 1 << 31
# gemmlowp's first guess by Newton's method, Q2.29: 48/17, -32/17, 1
_FIRST, _SLOPE, _ONE = 1515870810, -1010580540, 1 << 29


def mulhi(a: npt.ArrayLike, b: npt.ArrayLike) -> Ints:
    """High half of twice the product, rounded ties up."""
    product = np.asarray(a, np.int64) * np.asarray(b, np.int64)
    return np.asarray((product + (1 << 30)) >> 31)


def reciprocal(half: Ints) -> Ints:
    """2^61 / half in Q0.31 of a half to 1, by three steps of Newton's method."""
    t = _FIRST + mulhi(half, _SLOPE)
    for _ in range(3):
        t = t + (mulhi(t, _ONE - mulhi(half, t)) << 2)
    return np.asarray(np.minimum(t << 1, _Q31 - 1))
