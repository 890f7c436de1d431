"""Quantised arithmetic against exact fractions and float64."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from pybuild.dtype import DType
from pybuild.ir.graph import Quant, Tensor
from pybuild.ops.fixed_point.quant import (
    accumulator_bound,
    away_multiplier,
    quantize_multiplier,
    quantized,
    quantized_clamp,
    requantize,
    rounded_away,
)

_RNG = np.random.default_rng(11)


def _int8(scale: float, zero: int) -> Tensor:
    return Tensor("t", (4,), DType.INT8, Quant((scale,), (zero,)))


@pytest.mark.parametrize("scale", [1e-9, 0.001234, 0.25, 0.5, 0.99999, 1.0, 7.3])
def test_multiplier_is_near(scale: float) -> None:
    multiplier, shift = quantize_multiplier(scale)
    assert 1 << 30 <= multiplier < 1 << 31
    assert math.isclose(multiplier * 2.0 ** (shift - 31), scale, rel_tol=2**-31)


def test_multiplier_of_nothing_and_of_too_much() -> None:
    assert quantize_multiplier(0.0) == (0, 0)
    assert quantize_multiplier(1e-12) == (0, 0)
    assert quantize_multiplier(1e30) == ((1 << 31) - 1, 30)
    # rounds up to 2^31, which is halved
    assert quantize_multiplier(1 - 2**-40) == (1 << 30, 1)


def _nearest(number: Fraction, rule: str) -> int:
    """round() by the rule, in exact arithmetic."""
    low = math.floor(number)
    rest = number - low
    if rest != Fraction(1, 2):
        return low + (rest > Fraction(1, 2))
    match rule:
        case "single":
            return low + 1
        case "away":
            return low + (number > 0)
    return low + low % 2


@pytest.mark.parametrize("rule", ["single", "away", "even"])
@pytest.mark.parametrize("scale", [0.5, 0.125, 0.0371, 0.9, 3.0])
def test_one_rounding_is_exact(rule: str, scale: float) -> None:
    acc = np.concatenate([np.arange(-300, 301), _RNG.integers(-(2**24), 2**24, 200)])
    multiplier, shift = quantize_multiplier(scale)
    found = requantize(acc, multiplier, shift, rule)
    factor = Fraction(multiplier, 1 << (31 - shift))
    assert found.tolist() == [_nearest(int(a) * factor, rule) for a in acc]


@pytest.mark.parametrize("scale", [0.5, 0.125, 0.0371, 0.9, 3.0])
def test_double_rounds_the_product_then_the_shift(scale: float) -> None:
    acc = np.concatenate([np.arange(-300, 301), _RNG.integers(-(2**24), 2**24, 200)])
    multiplier, shift = quantize_multiplier(scale)
    expected = []
    for a in acc.tolist():
        product = Fraction((a << max(shift, 0)) * multiplier, 1 << 31)
        high = _nearest(product, "single")
        expected.append(_nearest(Fraction(high, 1 << max(-shift, 0)), "away"))
    assert requantize(acc, multiplier, shift, "double").tolist() == expected


def test_every_rule_is_known() -> None:
    with pytest.raises(ValueError, match="upwards"):
        requantize([1], 1 << 30, 0, "upwards")


def _wrong(scale: float) -> int:
    """Accumulators next to k + 1/2 where the integers differ from float64."""
    multiplier, shift = away_multiplier(scale)
    ties = np.round((np.arange(-256, 256) + 0.5) / scale).astype(np.int64)
    acc = np.concatenate([ties + step for step in (-1, 0, 1)])
    acc = acc[np.abs(acc) < 1 << 31]
    expected = rounded_away(acc * scale)
    differs = requantize(acc, multiplier, shift, "away") != expected
    return int(np.count_nonzero(differs & (np.abs(expected) <= 255)))


@pytest.mark.parametrize("seed", range(4))
def test_away_equals_float64_at_every_tie(seed: int) -> None:
    rng = np.random.default_rng(seed)
    scales = [0.00123, 0.1, 0.25, 0.3, *10.0 ** rng.uniform(-2.5, 0, 60)]
    assert [s for s in scales if _wrong(s)] == []


@pytest.mark.parametrize("seed", range(4))
def test_away_is_nearly_float64_for_small_scales(seed: int) -> None:
    """A few accumulators out of tens of thousands to millions."""
    rng = np.random.default_rng(seed)
    found = [_wrong(s) for s in 10.0 ** rng.uniform(-5, -2.5, 60)]
    assert max(found) <= 8
    assert sum(count > 0 for count in found) <= 20


def test_away_needs_more_than_the_nearest_multiplier() -> None:
    assert away_multiplier(0.00123) != quantize_multiplier(0.00123)


def test_rounded_away_is_c_round() -> None:
    x = np.asarray([-2.5, -0.5, -0.49999999999999994, 0.5, 1.5, 2.4999])
    assert rounded_away(x).tolist() == [-3, -1, 0, 1, 2, 2]


def test_quantized_ties() -> None:
    x = np.asarray([-1.5, -0.5, 0.5, 1.5, 2.5, np.inf, -np.inf, np.nan], np.float32)
    tensor = _int8(1.0, 1)
    away = [-1, 0, 2, 3, 4, 127, -128, 1]
    even = [-1, 1, 1, 3, 3, 127, -128, 1]
    assert quantized(x, tensor, "double").tolist() == away
    assert quantized(x, tensor, "even").tolist() == even


def test_clamp_in_integers() -> None:
    tensor = _int8(0.1, -10)
    assert quantized_clamp((None, None), tensor) == (-128, 127)
    assert quantized_clamp((0.0, None), tensor) == (-10, 127)
    assert quantized_clamp((0.0, 6.0), tensor) == (-10, 50)
    assert quantized_clamp((-1.0, 1.0), tensor) == (-20, 0)
    assert quantized_clamp((50.0, 60.0), tensor) == (127, 127)


def test_accumulator_bound_is_tight() -> None:
    w = np.asarray([[3, -2], [0, 5]], np.int8)
    bias = np.asarray([100, -7], np.int32)
    least, most = accumulator_bound(w, bias, 28)
    # x - 28 is within -156..99
    assert least.tolist() == [3 * -156 - 2 * 99, 5 * -156 - 7]
    assert most.tolist() == [100 + 3 * 99 + 2 * 156, 5 * 99]
