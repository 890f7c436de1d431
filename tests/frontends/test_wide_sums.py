"""Layers of 16x8 whose sums are far from 32 bits: what LiteRT computes is built, bit by
bit; where its own arithmetic overflows, the channel is named.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import pybuild
from pybuild.errors import BuildError
from pybuild.verify.check import check
from tests.frontends.dead_channels import LAYERS, Layer, drawn, tflite

_CHANCE = np.random.default_rng(9)
# bits of a sum; of others 15 go to a factor, and one to the sign
_MOST = {"dense": 55}


def _live(layer: str, wide: int = 64) -> Layer:
    """Channels that give other values for other inputs, of scales 1."""
    made = drawn(layer, [], wide)
    return replace(made, scales=np.ones_like(made.scales), x_scale=1.0, y_scale=1.0)


def _must_be_litert_s(layer: str, made: Layer, tmp_path: Path) -> None:
    path = tmp_path / "wide.tflite"
    path.write_bytes(tflite(layer, made))
    found = check(path, pybuild.build(path), ref="litert", samples=4)
    assert found.ok and found.reference.startswith("LiteRT"), found
    assert set(found.backends) == {"c", "llvm"}


@pytest.mark.parametrize("layer", LAYERS)
def test_biases_of_many_bits(layer: str, tmp_path: Path) -> None:
    """Each of more bits than the one before, scaled to within int16 or just out."""
    made = _live(layer)
    count = len(made.scales)
    bits = np.linspace(24, _MOST.get(layer, 46), count)
    made.scales[:] = 2.0 ** (14.5 - bits + np.arange(count) % 3)
    made.bias[:] = _CHANCE.choice([-1, 1], count) * (2.0**bits).astype(np.int64)
    _must_be_litert_s(layer, made, tmp_path)


@pytest.mark.parametrize("layer", LAYERS)
def test_scales_of_any_size(layer: str, tmp_path: Path) -> None:
    """From steps that nothing reaches to those of which a sum is hundreds."""
    made = _live(layer)
    made.scales[:] = 2.0 ** np.linspace(-33, 2, len(made.scales))
    made.w[:] = np.clip(made.w, -3, 3)
    made.bias[:] = _CHANCE.integers(-99, 99, len(made.bias))
    _must_be_litert_s(layer, made, tmp_path)


def test_products_that_float64_rounds_to_a_tie(tmp_path: Path) -> None:
    """Sums of 3, 9, 15 sixths, the float64 sixth being less than one: LiteRT 2.3 rounds
    them up, all bits of the scale would not.
    """
    made = replace(_live("dense"), y_scale=6.0)
    made.w[:] = np.clip(made.w, -1, 1)
    made.bias[:] = 3
    assert 3 * Fraction(1 / 6) < Fraction(1, 2)
    path = tmp_path / "sixths.tflite"
    path.write_bytes(tflite("dense", made))
    net = pybuild.build(path).host("llvm")
    net.run(x=np.zeros(made.x, np.int16))
    assert np.unique(net.get_output("y")).tolist() == [1]
    _must_be_litert_s("dense", made, tmp_path)


def _refused(layer: str, made: Layer) -> str:
    with pytest.raises(BuildError) as caught:
        pybuild.build(tflite(layer, made))
    return str(caught.value)


@pytest.mark.parametrize(
    ("layer", "wide", "bias", "scale", "what"),
    [
        ("conv", 64, 2**50, 2.0**-28, "the scaled sum of output channel 2 could leave "
                                      "64 bits. Hint: a smaller bias"),
        ("depthwise", 64, -(2**63), 2.0**-30, "the 64-bit sum of output channel 2"),
        ("dense", 64, 2**63 - 1, 2.0**-20, "the 64-bit sum of output channel 2"),
        ("conv", 64, 2**36, 2.0**-3, "output channel 2 are too far apart for 32 bits"),
        ("dense", 64, 2**36, 2.0**-3, "output channel 2 are too far apart for 32 bits"),
        ("transpose", 64, 1, 2.0**14, "output channel 2 are too far apart for 32 bits"),
        ("conv", 32, 2**31 - 1, 2.0**-18, "the int32 sum of output channel 2 could"),
        ("dense", 32, -(2**31), 2.0**-18, "the int32 sum of output channel 2 could"),
    ],
)  # fmt: skip
def test_what_overflows_there_names_its_channel(
    layer: str, wide: int, bias: int, scale: float, what: str
) -> None:
    made = _live(layer, wide)
    made.scales[:] = 2.0**-18
    made.bias[:] = 0
    made.scales[2], made.bias[2] = scale, bias
    if scale > 1:
        made.w[2] = 0
        made.w[2, 0, 0, 0] = 1
    assert what in _refused(layer, made)


def test_an_int32_bias_that_just_fits(tmp_path: Path) -> None:
    """A dense layer's sums are int32 in LiteRT where its bias is."""
    made = _live("dense", 32)
    made.scales[:] = 2.0**-18
    made.w[2] = (1, -1, 0, 0)
    made.bias[2] = 2**31 - 1 - 2**16
    _must_be_litert_s("dense", made, tmp_path)
    made.bias[2] += 2**16
    assert "the int32 sum of output channel 2 could" in _refused("dense", made)
