"""Replaces bias and scale of channels with a wide range of sums but only one or two
neighbouring outputs by an equivalent pair of fewer bits. Weights that training has left
near zero have a tiny scale, and so a huge bias: 20 million, with sums that differ by
less than a step. Knows no kernel.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from pybuild.dtype import Ints
from pybuild.kernels.epilogues.staircase import REACH
from pybuild.ops.conv import ConvParameters
from pybuild.ops.fixed_point.quant import quantize_multiplier, requantize

_RULES = ("double", "single", "away")
_STEEP = 4  # sums of a step


def with_few_values(
    made: ConvParameters, bias: Ints, least: Ints, most: Ints
) -> tuple[ConvParameters, Ints]:
    """Return the same layer with such channels' biases and scales replaced.

    Shapes  bias [O]; least, most: the sums of each channel, bias left out
    Source  rules of rounding never fall as the sum grows: equal at both ends of a step
            is equal between them
    """
    far = np.maximum(most + np.maximum(bias, 0), -least - np.minimum(bias, 0)) > REACH
    if made.rounding not in _RULES or not far.any():
        return made, bias
    count = len(bias)
    factors = np.broadcast_to(np.asarray(made.multipliers, np.int64), count).copy()
    shifts = np.broadcast_to(np.asarray(made.shifts, np.int64), count).copy()
    found = bias.astype(np.int64)
    for channel in np.flatnonzero(far):
        given = int(factors[channel]), int(shifts[channel]), int(bias[channel])
        new = _replaced(made, given, int(least[channel]), int(most[channel]))
        if new is not None:
            factors[channel], shifts[channel], found[channel] = new
    scales = tuple(factors * 2.0 ** (shifts - 31.0)) if made.scales else ()
    one = replace(
        made,
        multipliers=tuple(factors.tolist()),
        shifts=tuple(shifts.tolist()),
        scales=scales,
    )
    return one, found


def _replaced(
    made: ConvParameters, given: tuple[int, int, int], least: int, most: int
) -> tuple[int, int, int] | None:
    """Return multiplier, shift and bias of one channel; None if no smaller ones
    exist."""

    def value(channel: tuple[int, int, int], total: int) -> int:
        factor, shift, bias = channel
        scaled = int(requantize(total + bias, factor, shift, made.rounding))
        return min(max(scaled, made.low - made.y_zero), made.high - made.y_zero)

    first, last = value(given, least), value(given, most)
    if last - first > 1:
        return None
    # the last sum of the first value, and the first of the second
    under, step = _fall(lambda total: value(given, total) > first, least, most)
    reached = first + 1
    if first == last:
        # as if a step began behind all sums; of the greatest value, with all of them
        top, low = (first == end - made.y_zero for end in (made.high, made.low))
        # what is beyond an end is that end, however steep
        length = _STEEP if top or low else most - least + 2
        step, reached = (least, first) if top else (most + 1, reached)
    else:
        length = max(step - least, most - step) + 1
    factor, shift = quantize_multiplier(1 / (length + (length >> 8)))
    one = factor, shift, 0
    far = (abs(reached) + 1) * 2 * length
    _, begin = _fall(lambda total: value(one, total) >= reached, -far, far)
    new = factor, shift, begin - step
    points = {least, most} | ({under, step} if first < last else set())
    same = all(value(new, point) == value(given, point) for point in points)
    return new if same and abs(new[2]) < abs(given[2]) else None


def _fall(is_beyond: Callable[[int], bool], low: int, high: int) -> tuple[int, int]:
    """The last integer that is not beyond, and the first that is."""
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if is_beyond(middle) else (middle, high)
    return low, high
