"""Zero points for 9-bit weights, which make bytes of them. Knows no node."""

from __future__ import annotations

from pybuild.dtype import Array, DType

HALF = 128  # what makes an int8 a uint8
# inputs of a sum: with weights of eight bits more than each of them has
_MOST_COUNTED = 1 << 13


def weights_zero(kernels: Array) -> int | None:
    """Return the number that makes uint8 of 9-bit weights; None if there is none, or if
    its share of a sum could leave int32.

    Shapes  kernels [O, taps]
    """
    if kernels.shape[-1] > _MOST_COUNTED:
        return None
    low, high = int(kernels.min(initial=0)), int(kernels.max(initial=0))
    return -low if high - low <= DType.UINT8.high else None


def half_zero(zero: int | None) -> int:
    """What makes int8 of weights with that zero point; None: they are."""
    return 0 if zero is None else zero - HALF
