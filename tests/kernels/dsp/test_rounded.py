"""Requantisation by the rule itself in a few instructions: every sum, every rule that
it has; and clamps that are raised to the high end of int8."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from pybuild.dtype import Array
from pybuild.ir.graph import Quant
from pybuild.kernels.epilogues.affine import Affine
from pybuild.kernels.epilogues.rounded import Rounded, rounded, value, with_exact
from pybuild.kernels.layers.known_sums import ended_sums
from pybuild.kernels.layers.weights import kernels_of
from pybuild.ops.conv import ConvParameters
from pybuild.ops.fixed_point.quant import quantize_multiplier, requantize
from tests.kernels.kernel_cases import INT8, INT32, Case, case, tensor

RULES = ("double", "single", "away")


def _made(rule: str, scales: list[float], zero: int = 0) -> ConvParameters:
    pairs = [quantize_multiplier(scale) for scale in scales]
    factors, shifts = tuple(m for m, _ in pairs), tuple(s for _, s in pairs)
    return ConvParameters(rule, factors, shifts, (), 0, zero, -128, 127)


def _want(made: ConvParameters, channel: int, acc: Array) -> Array:
    m, s = made.multipliers[channel], made.shifts[channel]
    y = requantize(acc, m, s, made.rounding) + made.y_zero
    return np.asarray(np.clip(y, made.low, made.high))


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("zero", [-128, -3, 127])
def test_every_sum(rule: str, zero: int) -> None:
    chance = np.random.default_rng(zero + 300)
    scales = [float(s) for s in 2.0 ** chance.uniform(-14, -1.01, 24)]
    ties = [2.0**-2, 2.0**-9, 3 * 2.0**-12, 2.0**-17]
    made = _made(rule, scales + ties + [2.0**-22, 2.0**-25, 1e-12, 0.0], zero)
    ends = np.full(len(made.multipliers), 150_000)
    found = rounded(made, -ends, ends)
    assert found is not None
    form, missing = found
    # that rule has ties below zero at sums of these
    assert missing.sum() == (len(ties) if rule == "away" else 0)
    acc = np.arange(-150_000, 150_001)
    for channel in np.flatnonzero(~missing):
        np.testing.assert_array_equal(
            value(form, channel, acc), _want(made, channel, acc)
        )


@pytest.mark.parametrize("rule", RULES)
def test_ties_and_the_ends_of_what_it_may_sum(rule: str) -> None:
    made = _made(rule, [3 * 2.0**-n for n in range(3, 30)], 5)
    most = (1 << 23) - (1 << 17)
    ends = np.full(len(made.multipliers), most)
    found = rounded(made, -ends if rule != "away" else 0 * ends, ends)
    assert found is not None and not found[1].any()
    for channel, shift in enumerate(made.shifts):
        half = 1 << min(max(-shift, 0) + 1, 23)
        ties = np.arange(-200, 201) * half + np.asarray([[-1], [0], [1]])
        acc = np.concatenate([ties.ravel(), [most, most - 1, -most, 1 - most]])
        acc = acc[(np.abs(acc) <= most) & ((acc >= 0) | (rule != "away"))]
        got = value(found[0], channel, acc)
        np.testing.assert_array_equal(got, _want(made, channel, acc))


def test_a_zero_point_of_many_half_steps() -> None:
    # as a clamp to one value raises it
    made = _made("double", [3 * 2.0**-n for n in range(3, 26)], 380)
    ends = np.full(len(made.multipliers), 1 << 20)
    found = rounded(made, -ends, ends)
    assert found is not None
    form, missing = found
    assert form.below is not None and missing.tolist() == [False] * 22 + [True]
    most = (form.base << int(form.below[~missing].max())) + (1 << 23)
    assert most < 1 << 31 <= (form.base << 22) + (1 << 23)


@pytest.mark.parametrize("rule", RULES)
def test_what_it_does_not_fit(rule: str) -> None:
    made = _made(rule, [0.5, 0.75, 2.0, 0.01, 0.01, 0.01])
    ends = np.full(6, 1000)
    low, high = -ends, ends.copy()
    low[3], high[4] = -(1 << 23), 1 << 23
    found = rounded(made, low, high)
    assert found is not None
    # 0.5 is 2^30 shifted by none, as are those from it on
    assert found[1].tolist() == [True, True, True, True, True, False]
    form = with_exact(*found, made)
    assert form.exact is not None
    assert (form.multipliers < 0).tolist() == found[1].tolist()
    assert rounded(replace(made, rounding="even"), low, high) is None


def _layer(
    bias: list[int], clamp: tuple[float | None, float | None], rule: str
) -> Case:
    outs = len(bias)
    weights = np.random.default_rng(outs).integers(-127, 128, (outs, 40))
    scales = tuple(np.float32(np.linspace(0.002, 0.02, outs)).tolist())
    inputs = (
        tensor((2, 40), INT8, 0.05, -7),
        ((outs, 40), INT8, Quant(scales, (0,) * outs, 0)),
        ((outs,), INT32, None),
    )
    constants = {1: weights.astype(np.int8), 2: np.asarray(bias, np.int32)}
    out = tensor((), INT8, 0.05, -9)
    return case("dense", inputs, out, constants, rounding=rule, clamp=clamp)


@pytest.mark.parametrize("rule", RULES)
def test_what_layers_end_by(rule: str) -> None:
    one = _layer([5] * 24, (-5.0, 5.0), rule)
    _, end = ended_sums(one.node, one.graph, kernels_of(one.node, one.graph))
    assert isinstance(end, Affine) and end.raised is not None and end.exact is None
    assert isinstance(end, Rounded) == (rule == "double")
    narrow = _layer([5] * 24, (0.0, 1.0), rule)
    _, end = ended_sums(narrow.node, narrow.graph, kernels_of(one.node, one.graph))
    assert isinstance(end, Affine) and end.raised is None and end.clamped
