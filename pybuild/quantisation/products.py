"""Sums of products and Cholesky's factor with the same bits on every machine.

BLAS adds in an order that differs from core to core and with the number of threads,
LAPACK too. What no order can change are sums that are exact: numbers are split into
parts so short that no sum of products of two parts is rounded.
"""

from __future__ import annotations

import numpy as np

from pybuild.quantisation.ranges import Floats

# of a float64
_BITS = 53
# columns whose factor is made one by one, before all others take them in
_BLOCK = 64


def gram(rows: Floats) -> Floats:
    """[G,K,K]: rows.transpose(0, 2, 1) @ rows of [G,N,K], which are rounded before: to
    20 bits where N is a few thousand.
    """
    short = _coarse(rows, rows.shape[1])
    return np.asarray(short.transpose(0, 2, 1) @ short)


def product(a: Floats, b: Floats) -> Floats:
    """a @ b of [G,M,K] and [G,K,N], to about 2^-40 of the greatest products."""
    terms = a.shape[2]
    high, other = _coarse(a, terms), _coarse(b, terms)
    low, rest = _coarse(a - high, terms), _coarse(b - other, terms)
    return np.asarray(high @ other + (high @ rest + low @ other))


def _coarse(value: Floats, terms: int) -> Floats:
    """Rounded so that no sum of `terms` products of two such is, whatever its order."""
    bits = (_BITS - terms.bit_length()) // 2
    greatest = np.abs(value).max((1, 2), keepdims=True, initial=0.0)
    exponent = np.frexp(greatest)[1]
    steps = np.rint(np.ldexp(value, bits - exponent))
    return np.asarray(np.ldexp(steps, exponent - bits))


def triangle(square: Floats) -> Floats:
    """Upper U [G,K,K] with positive diagonals, square = U @ U.transpose(0, 2, 1).

    square  symmetric, positive definite [G,K,K]
    """
    left = square[:, ::-1, ::-1].copy()
    size = left.shape[1]
    for first in range(0, size, _BLOCK):
        last = min(first + _BLOCK, size)
        panel = left[:, first:, first:last]
        for i in range(last - first):
            panel[:, i:, i] /= np.sqrt(panel[:, i, i, None])
            column = panel[:, i + 1 :, i]
            across = column[:, None, : last - first - i - 1]
            panel[:, i + 1 :, i + 1 :] -= column[:, :, None] * across
        below = panel[:, last - first :]
        left[:, last:, last:] -= product(below, below.transpose(0, 2, 1))
    return np.tril(left)[:, ::-1, ::-1]
