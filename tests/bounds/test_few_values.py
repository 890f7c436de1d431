"""Channels of one value or two neighbours: what replaces their bias and scale gives the
same for every sum there is."""

from __future__ import annotations

import numpy as np
import pytest

from pybuild.dtype import Ints
from pybuild.kernels.epilogues.staircase import REACH
from pybuild.kernels.layers.few_values import with_few_values
from pybuild.ops.conv import ConvParameters
from pybuild.ops.fixed_point.quant import quantize_multiplier, requantize

_COUNT = 100


def _layer(rule: str, low: int) -> tuple[ConvParameters, Ints, Ints, Ints]:
    """Channels whose sums differ by up to two steps, hundreds of steps from zero."""
    chance = np.random.default_rng(11)
    least = -chance.integers(1, 3000, _COUNT)
    most = chance.integers(1, 3000, _COUNT)
    steps = chance.uniform(-140, 140, _COUNT)
    length = (most - least) / chance.uniform(0.01, 2, _COUNT) * 2000
    least, most = least * 2000, most * 2000
    bias = np.rint(steps * length).astype(np.int64)
    pairs = [quantize_multiplier(1 / one) for one in length]
    factors, shifts = zip(*pairs, strict=True)
    scales = tuple(f * 2.0 ** (s - 31) for f, s in pairs)
    made = ConvParameters(rule, factors, shifts, scales, 0, -3, low, 127)
    return made, bias, least, most


def _values(made: ConvParameters, channel: int, sums: Ints) -> Ints:
    factor, shift = made.multipliers[channel], made.shifts[channel]
    y = requantize(sums, factor, shift, made.rounding) + made.y_zero
    return np.clip(y, made.low, made.high)


@pytest.mark.parametrize("rule", ("double", "single", "away"))
@pytest.mark.parametrize("low", (-128, -3))
def test_every_sum_ends_as_before(rule: str, low: int) -> None:
    made, bias, least, most = _layer(rule, low)
    far = np.maximum(most + np.maximum(bias, 0), -least - np.minimum(bias, 0)) > REACH
    new, found = with_few_values(made, bias, least, most)
    changed = np.flatnonzero(found != bias)
    assert far[changed].all()
    assert len(changed) > _COUNT // 4
    assert (np.abs(found[changed]) < np.abs(bias[changed])).all()
    two = 0
    for channel in changed.tolist():
        start, stop = int(least[channel]), int(most[channel])
        sums = np.unique(np.linspace(start, stop, 400).astype(np.int64))
        was = _values(made, channel, sums + bias[channel])
        step = int(sums[np.argmax(was > was[0])])  # and each sum about the step
        sums = np.unique(np.concatenate([sums, np.arange(step - 200, step + 200)]))
        sums = sums[(sums >= start) & (sums <= stop)]
        was = _values(made, channel, sums + bias[channel])
        two += int(was[0] != was[-1])
        np.testing.assert_array_equal(_values(new, channel, sums + found[channel]), was)
    assert two > len(changed) // 8


def test_channels_of_more_values_are_left_alone() -> None:
    made = ConvParameters("double", (1 << 30,), (-15,), (), 0, 0, -128, 127)
    bias, far = np.asarray([6 << 20]), np.asarray([70_000])
    new, found = with_few_values(made, bias, -far, far)
    assert (new.shifts, found[0]) == ((-15,), 6 << 20)
    new, found = with_few_values(made, bias, -far // 64, far // 64)
    assert abs(found[0]) < 6 << 20


@pytest.mark.parametrize("rule", ("double", "single", "away"))
@pytest.mark.parametrize("bias", (2**27, -(2**27)))
@pytest.mark.parametrize("y_zero", (0, 100, -100))
def test_a_channel_at_an_end_needs_no_more_than_its_sums(
    rule: str, bias: int, y_zero: int
) -> None:
    """Beyond an end of the clamp any scale will do, one of a few sums a step, too."""
    made = ConvParameters(rule, (1 << 30,), (-10,), (), 0, y_zero, -128, 127)
    far = np.asarray([100_000])
    new, found = with_few_values(made, np.asarray([bias]), -far, far)
    assert abs(int(found[0])) < 102_000
    sums = np.arange(-100_000, 100_001)
    end = 127 if bias > 0 else -128
    assert set(_values(new, 0, sums + found[0]).tolist()) == {end}
