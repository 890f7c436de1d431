"""Requantisation by two 32-bit products: every accumulator, every rule."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from pybuild.dtype import Array
from pybuild.kernels.epilogues import affine_split
from pybuild.kernels.epilogues.affine_split import (
    PARTS,
    Split,
    split,
    split_or_exact,
)
from pybuild.kernels.epilogues.exact import Exact
from pybuild.kernels.epilogues.staircase import Staircase, staircase
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


@pytest.mark.parametrize("rule", RULES)
def test_a_layer_whose_clamp_leaves_one_value(rule: str) -> None:
    params = made(rule, [2.0**-7, 0.3], 127, 127, 127)
    high = np.array([90_000, 120_000])
    form = split(params, -high, high)
    assert form is not None and wrong(params, form, -high, high) == 0


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


def _plainly(
    stairs: Staircase, channel: int, real: float, part: int, reach: int
) -> list[int] | None:
    """Multiplier, offsets from 0 on and below, shift: one after the other, by all
    steps."""
    most = min(2 * part - int(np.ceil(np.log2(real))), 22 + part) - part
    first, low = stairs.first[channel], stairs.low[channel]
    at, before = first <= stairs.high[channel], first > low
    for apart, lost in ((a, b) for a in (False, True) for b in range(3)):
        shift = most - lost
        nearest = int(np.rint(real * 2.0 ** (part + shift))) if shift >= 0 else 0
        for m in (nearest + d for d in sorted(range(-8, 9), key=abs)):
            wanted = stairs.steps[channel] << max(shift, 0)
            least = wanted - (first * m >> part)
            last = wanted - 1 - ((first - 1) * m >> part)
            up, down = (
                (
                    least[at & a].max(initial=-1 << 30),
                    last[before & b].min(initial=1 << 30),
                )
                for a, b in ((first >= 0, first >= 1), (first < 0, first < 1))
            )
            if not apart:
                up = down = max(up[0], down[0]), min(up[1], down[1])
            if shift < 0 or up[0] > up[1] or down[0] > down[1]:
                continue
            above, under = (int(a + b) >> 1 for a, b in (up, down))
            offset = max(abs(above), abs(under), abs(under - above))
            if m > 0 and reach * ((m >> part) + 2) + offset < 1 << 31:
                return [m, above, under, shift]
            break
    return None


@pytest.mark.parametrize("rule", RULES)
def test_multipliers_beside_the_nearest_are_found_as_one_after_the_other(
    rule: str,
) -> None:
    chance = np.random.default_rng(7)
    scales = [float(s) for s in 2.0 ** chance.uniform(-12, -8, 48)]
    params = made(rule, scales, -128, -128, 127)
    ends = chance.integers(100_000, 1_000_000, (2, len(scales)))
    real = np.asarray(params.multipliers) * 2.0 ** (np.asarray(params.shifts) - 31.0)
    stairs = staircase(params, np.ones(len(scales), bool), -ends[0], ends[1])
    assert stairs is not None
    reach, beside, counts = int(ends.max()) + 1, 0, []
    for part in PARTS:
        found = affine_split._Search(stairs, real, part, reach)
        found.try_some(np.arange(len(scales)))
        fits = reach << part <= 1 << 31
        plain = [_plainly(stairs, c, float(real[c]), part, reach) if fits else None
                 for c in range(len(scales))]  # fmt: skip
        assert found.missing.tolist() == [row is None for row in plain]
        rows = [found.rows[:, c].tolist() for c, row in enumerate(plain) if row]
        assert rows == [row for row in plain if row]
        beside += sum(row[0] != np.rint(real[c] * 2.0 ** (part + row[3]))
                      for c, row in enumerate(plain) if row)  # fmt: skip
        counts.append(int(found.missing.sum()))
    assert beside > 1
    form = split_or_exact(params, -ends[0], ends[1])
    mine = len(scales) if isinstance(form, Exact) else int((form.uppers < 0).sum())
    assert mine <= min(counts) < counts[0]
