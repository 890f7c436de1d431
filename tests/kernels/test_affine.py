"""Requantisation by one high multiplication: every accumulator, every rule."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace

import numpy as np
import pytest

from pybuild.dtype import Array
from pybuild.kernels.epilogues import affine as form
from pybuild.kernels.epilogues import staircase
from pybuild.kernels.epilogues.affine import (
    Affine,
    affine,
    affine_or_exact,
)
from pybuild.kernels.epilogues.exact import Exact
from pybuild.kernels.epilogues.staircase import REACH
from pybuild.ops.conv import ConvParameters
from pybuild.ops.fixed_point.quant import quantize_multiplier, requantize

RULES = ("double", "away", "single")


def made(
    rule: str, scales: list[float], zero: int, low: int, high: int
) -> ConvParameters:
    pairs = [quantize_multiplier(scale) for scale in scales]
    factors, shifts = tuple(m for m, _ in pairs), tuple(s for _, s in pairs)
    return ConvParameters(rule, factors, shifts, (), 0, zero, low, high)


def value(form: Affine, channel: int, acc: Array) -> Array:
    """The form as its documentation has it, in 64 bits; checks that 32 are enough."""
    below = 0 if form.below is None else form.below[channel]
    scaled = 256 * acc + form.offsets[channel] + np.where(acc < 0, below, 0)
    assert np.abs(scaled).max(initial=0) < 1 << 31
    high = ((scaled * form.multipliers[channel]) >> 32) + form.base
    assert np.abs(high).max(initial=0) < 1 << 31
    return np.asarray(np.clip(high >> form.shift, form.low, form.high))


def wrong(params: ConvParameters, form: Affine, low: Array, high: Array) -> int:
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
    ("zero", "low"), [(-128, -128), (4, -128), (-20, -20), (96, 0)]
)
def test_every_reachable_accumulator(rule: str, zero: int, low: int) -> None:
    chance = np.random.default_rng(zero + 300)
    scales = [float(s) for s in 2.0 ** chance.uniform(-11, -4, 12)]
    scales += [2.0**-7, 0.75 * 2.0**-6, 1e-9, 0.0]
    params = made(rule, scales, zero, low, 127)
    ends = chance.integers(20_000, 150_000, (2, len(scales)))
    form = affine(params, -ends[0], ends[1])
    assert form is not None
    assert wrong(params, form, -ends[0], ends[1]) == 0


def test_relu_needs_no_second_offset_and_no_base() -> None:
    params = made("double", [0.003, 0.011, 0.0007], -128, -128, 127)
    ends = np.full(3, 90_000)
    form = affine(params, -ends, ends)
    assert form is not None and form.below is None
    assert (form.base, form.shift, form.clamped) == (0, 9, False)


def test_a_multiplier_one_too_large_is_seen() -> None:
    params = made("double", [0.003], -128, -128, 127)
    ends = np.asarray([90_000])
    form = affine(params, -ends, ends)
    assert form is not None
    off = replace(form, multipliers=form.multipliers + (1 << 10))
    assert wrong(params, off, -ends, ends) > 0


def test_what_has_no_such_form() -> None:
    ends = np.asarray([1000])
    assert affine(made("double", [200.0], 0, -128, 127), -ends, ends) is None


@pytest.mark.parametrize("rule", (*RULES, "even"))
def test_channels_without_a_form_end_by_the_rule(rule: str) -> None:
    chance = np.random.default_rng(len(rule))
    scales = np.float32(2.0 ** chance.uniform(-11, -6, 40)).tolist()
    params = replace(made(rule, scales, -128, -128, 127), scales=tuple(scales))
    low, high = -chance.integers(90_000, 200_000, (2, 40)) * [[1], [-1]]
    low[3], high[7] = -REACH - 1, REACH + 1
    form = affine_or_exact(params, low, high)
    assert isinstance(form, Affine) and form.exact is not None
    hard = form.multipliers < 0
    assert hard[[3, 7]].all() and (rule == "even" or hard.sum() == 2)
    assert hard.sum() < 20
    for channel in np.flatnonzero(~hard):
        acc = np.arange(low[channel], high[channel] + 1)
        if rule == "even":
            factor = np.float32(scales[channel])
            want = np.rint(acc.astype(np.float32) * factor).astype(np.int64)
        else:
            m, s = params.multipliers[channel], params.shifts[channel]
            want = requantize(acc, m, s, rule)
        want = np.clip(want + params.y_zero, params.low, params.high)
        np.testing.assert_array_equal(value(form, channel, acc), want)
    whole = affine_or_exact(params, low - REACH, high)
    assert isinstance(whole, Exact)


def test_accumulators_beyond_the_reach_are_the_callers_to_refuse() -> None:
    assert 256 * REACH == 1 << 30


@pytest.mark.parametrize("rule", RULES)
def test_multipliers_that_real_numbers_allow_are_all_that_fit(
    rule: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beside a search that tries each multiplier with all steps."""
    chance = np.random.default_rng(len(rule))
    apart = 0
    for _ in range(4):
        scales = [float(s) for s in 2.0 ** chance.uniform(-11, -4, 24)]
        params = made(rule, scales, int(chance.integers(-128, 60)), -128, 127)
        ends = chance.integers(100_000, 2_000_000, (2, len(scales)))
        found = []
        for every in (False, True):
            form._proven.cache_clear()
            if every:
                monkeypatch.setattr(staircase, "_between", lambda *given: given[2:])
                monkeypatch.setattr(staircase, "_deciding", lambda *given: given[0])
            found.append(affine(params, -ends[0], ends[1]))
        monkeypatch.undo()
        one, other = found
        assert (one is None) == (other is None)
        if one is None or other is None:
            continue
        apart += one.below is not None
        assert (one.shift, one.base) == (other.shift, other.base)
        np.testing.assert_array_equal(one.columns(ends[0]), other.columns(ends[0]))
        assert wrong(params, one, -ends[0] // 16, ends[1] // 16) == 0
    form._proven.cache_clear()
    assert apart or rule != "double"


def test_quotients_are_those_of_integers() -> None:
    chance = np.random.default_rng(3)
    by = chance.integers(1 << 10, 1 << 31, 100_000)
    whole = chance.integers(-(1 << 31), 1 << 31, len(by)) * by
    for of in (
        whole,
        whole + 1,
        whole - 1,
        chance.integers(-(1 << 62), 1 << 62, len(by)),
    ):
        np.testing.assert_array_equal(staircase._quotients(of, by), -(-of // by))


def test_steps_of_many_channels_take_little_more_memory_than_they_are() -> None:
    scales = [float(s) for s in np.linspace(1e-4, 4e-3, 2048)]
    params = made("double", scales, -3, -128, 127)
    ends = np.full(len(scales), 500_000)
    every = np.ones(len(scales), bool)
    tracemalloc.start()
    stairs = staircase.staircase(params, every, -ends, ends)
    held = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert stairs is not None and held < 5 * stairs.first.nbytes
    for rows in (slice(0, 1), slice(1000, 1300)):
        few = replace(
            params, multipliers=params.multipliers[rows], shifts=params.shifts[rows]
        )
        alone = staircase.staircase(few, every[rows], -ends[rows], ends[rows])
        assert alone is not None
        np.testing.assert_array_equal(stairs.first[rows], alone.first)


def test_multipliers_are_sought_for_some_channels_at_a_time() -> None:
    """Steps that no multiplier has: all are tried, of each channel."""
    count = 2048
    steps = np.tile(np.arange(-127, 128), (count, 1))
    first = steps * 100 + steps % 3
    stairs = staircase.Staircase(
        9, 0, np.full(count, -100_000), np.full(count, 100_000), steps, first
    )
    tracemalloc.start()
    _, missing = staircase.searched(stairs, np.full(count, (1 << 33) // 100), 512)
    held = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert missing.all() and held < 8 * first.nbytes
