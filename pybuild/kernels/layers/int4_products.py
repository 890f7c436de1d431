"""Products of vectors of bytes with weights of 4 bits: a byte has those of two output
channels, 16 * a + b. A product with b alone, as 16 * b, tells the sums apart.

Where a is -8 and b is negative, 16 * a + b is no int8. So a layer that has a -8 keeps
a and b as they are in the halves of the byte, and a is shifted to be alone, too.
"""

from __future__ import annotations

from pybuild.ir.loop import Expr, Var, offset, wide
from pybuild.kernels.base.builder import Builder
from pybuild.kernels.base.vectors import BYTES, DOT16, HIGH_INT4, LOW_INT4

_STEP = 16  # bytes of a vector

Sums = list[list[Var]]


def multiply(k: Builder, sums: Sums, values: list[Var], w: Var, joint: bool) -> None:
    """Add the products of each pixel's vector with the weights of all channels.

    sums   for each pixel, for each channel
    joint  whether the byte is 16 * a + b
    """
    pairs = len(sums[0]) // 2
    for c in range(pairs):
        both = k.let("weight", wide(w, _STEP * c, BYTES))
        high = both if joint else k.let("high", HIGH_INT4(both))
        for each, x in zip(sums, values, strict=True):
            k.assign(each[2 * c], DOT16(each[2 * c], x, high))
        low = k.let("low", LOW_INT4(both))
        for each, x in zip(sums, values, strict=True):
            k.assign(each[2 * c + 1], DOT16(each[2 * c + 1], x, low))
    k.assign(w, offset(w, pairs * _STEP))


def lower(k: Builder, sums: Sums, joint: bool) -> None:
    """Separate the sums of two channels that `multiply` made; if joint, they are 16
    times as large."""
    for both, low in sums:
        if joint:
            k.assign(both, both - (low >> 4))
        else:
            k.assign(low, low >> 4)


def apart(k: Builder, sums: Sums, joint: bool) -> Sums:
    """Return the sums of each channel from those that `multiply` made."""
    found = []
    for pixel in sums:
        its: list[Var] = []
        for both, sixteenfold in zip(pixel[::2], pixel[1::2], strict=True):
            low = k.let("low", sixteenfold >> 4)
            high: Expr = both - low >> 4 if joint else both
            its += [k.let("high", high), low]
        found.append(its)
    return found
