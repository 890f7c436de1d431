"""Nets with norms, attention and GELU, quantised here, are near the float net."""

from __future__ import annotations

import functools
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import pybuild
from tests.models.matrix import example, float_model

SAMPLES, CALIBRATION = 32, 16
# signal to noise of the outputs in decibels; with norms, GELU and attention's shares
# in int8 it was 25 and 30
LEAST = {"vit": 31.0, "conformer": 34.0}


@functools.cache
def nets(name: str) -> tuple[Any, Any]:
    path = Path(tempfile.mkdtemp()) / f"{name}.onnx"
    onnx.save(float_model(name), path)
    model, chance = pybuild.load(path), np.random.default_rng(1)
    some = [example(float_model(name), chance) for _ in range(CALIBRATION)]
    data = {key: np.stack([one[key] for one in some]) for key in some[0]}
    return model, pybuild.quantise(model, data, fit_weights=False)


@pytest.mark.parametrize("name", sorted(LEAST))
def test_near_the_float_net(name: str) -> None:
    model, made = nets(name)
    plain, whole = model.build().host("llvm"), made.model.build().host("llvm")
    chance = np.random.default_rng(99)
    power = noise = 0.0
    for _ in range(SAMPLES):
        given = example(float_model(name), chance)
        [want], [have] = plain.run(**given).values(), whole.run(**given).values()
        power, noise = power + want.var(), noise + ((have - want) ** 2).mean()
    plain.close()
    whole.close()
    assert 10 * np.log10(power / noise) >= LEAST[name]


def test_what_stays_float_is_said() -> None:
    """All of a norm but what it reads; linear layers are integers."""
    made = nets("vit")[1]
    stays = {one.op for one in made.report.floats}
    assert {"mean", "sub", "matmul", "softmax", "map"} <= stays
    assert not {"dense", "conv2d"} & stays
    whys = {one.reason for one in made.report.floats if one.op == "mean"}
    assert whys == {"it stands between functions that have no int8 form here"}


def test_a_norm_of_large_numbers(tmp_path: Path) -> None:
    """The variance of 1,000 +- 1, of which the mean of squares keeps no bit."""
    from tests.frontends.onnx.models import model

    x = (1000 + np.random.default_rng(0).standard_normal((1, 4, 32))).astype(np.float32)
    more = {"g": np.ones(32, np.float32), "b": np.zeros(32, np.float32)}
    nodes: list[Any] = [("LayerNormalization", ["x", "g", "b"], ["y"], {"axis": -1})]
    path = tmp_path / "norm.onnx"
    path.write_bytes(model(nodes, {"x": x}, ["y"], more, 17))
    have = pybuild.load(path).build().host("llvm").run(x=x)["y"]
    wide = x.astype(np.float64)
    centred = wide - wide.mean(-1, keepdims=True)
    want = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5)
    np.testing.assert_allclose(have, want, atol=2e-4)
