"""Requantisation by two 32-bit products: every accumulator, every rule."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from pybuild.dtype import Array
from pybuild.kernels.epilogues.affine_split import Split, split
from pybuild.ops.conv import ConvParameters
from pybuild.ops.fixed_point.quant import requantize
from tests.kernels.test_affine import RULES, made


def value(form: Split, channel: int, acc: Array) -> Array:
    """The form as its documentation has it, in 64 bits; checks that 32 are enough."""
    if form.limit is not None:
        acc = np.clip(acc, -form.limit, form.limit)
    below = 0 if form.below is None else form.below[channel]
    upper, lower = acc * form.uppers[channel], acc * form.lowers[channel]
    total = upper + (lower >> form.part)
    ended = total + form.offsets[channel]
    last = ended + np.where(acc < 0, below, 0)
    for step in (upper, lower, total, ended, last):
        assert step.min() >= -(1 << 31) and step.max() < 1 << 31
    return np.asarray(np.clip(last >> form.shifts[channel], form.low, form.high))


def wrong(params: ConvParameters, form: Split, low: Array, high: Array) -> int:
    count = 0
    for channel, (m, s) in enumerate(
        zip(params.multipliers, params.shifts, strict=True)
    ):
        acc = np.arange(low[channel], high[channel] + 1)
        want = requantize(acc, m, s, params.rounding) + params.y_zero
        want = np.clip(want, params.low, params.high)
        count += int(np.count_nonzero(value(form, channel, acc) != want))
    return count


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize(
    ("zero", "low", "most"),
    [(-128, -128, 150_000), (4, -128, 150_000), (-20, -20, 150_000), (96, 0, 2**19)],
)
def test_every_reachable_accumulator(rule: str, zero: int, low: int, most: int) -> None:
    chance = np.random.default_rng(zero + 300)
    scales = [float(s) for s in 2.0 ** chance.uniform(-11, -4, 12)]
    scales += [2.0**-7, 0.75 * 2.0**-6, 1e-9, 0.0]
    params = made(rule, scales, zero, low, 127)
    ends = chance.integers(20_000, most, (2, len(scales)))
    form = split(params, -ends[0], ends[1])
    assert form is not None
    assert wrong(params, form, -ends[0], ends[1]) == 0


def test_accumulators_beyond_the_last_step_are_held() -> None:
    params = made("double", [0.00052, 0.003], -128, -128, 127)
    ends = np.asarray([3_000_000, 3_000_000])
    form = split(params, -ends, ends)
    assert form is not None and form.limit is not None
    assert wrong(params, form, -ends, ends) == 0
    loose = replace(form, limit=None)
    with pytest.raises(AssertionError):
        wrong(params, loose, -ends, ends)


def test_a_multiplier_one_too_large_is_seen() -> None:
    params = made("double", [0.003], -128, -128, 127)
    ends = np.asarray([90_000])
    form = split(params, -ends, ends)
    assert form is not None
    off = replace(form, lowers=form.lowers + (1 << 6))
    assert wrong(params, off, -ends, ends) > 0


def test_what_has_no_such_form() -> None:
    ends = np.asarray([1000])
    assert split(made("double", [2e7], 0, -128, 127), -ends, ends) is None
