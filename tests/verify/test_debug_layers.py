"""crt debug: the facts of each layer, and the first that leaves the reference."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from pybuild.cli import main
from pybuild.dtype import Array, DType
from pybuild.errors import BuildError
from pybuild.ir.graph import Tensor
from pybuild.library import Library
from pybuild.verify import layers
from pybuild.verify.reference import reference
from tests.graphs.networks import classifier

ROOT = Path(__file__).resolve().parents[2]
INT8 = str(ROOT / "examples" / "digits" / "digits_int8.tflite")
LAYERS = ["stem", "depth", "residual", "pool", "flat", "logits", "scores"]


@pytest.fixture(scope="module")
def library() -> Library:
    return classifier().model().build()


def image() -> Array:
    return np.random.default_rng(0).integers(-128, 128, (1, 8, 8, 3)).astype(np.int8)


@pytest.mark.parametrize("backend", ["llvm", "c"])
def test_all_layers_equal_the_reference(library: Library, backend: str) -> None:
    found = layers.debug("x.test", library, {"image": image()}, "numpy", backend)
    assert found.ok and [row.layer for row in found.layers] == LAYERS
    assert all(row.against is not None and row.against.good for row in found.layers)
    assert found.to_json()["first_layer"] is None


@pytest.mark.parametrize("wrong", [["residual", "logits"], ["scores"], ["stem"]])
def test_the_first_wrong_layer_is_named(
    library: Library, wrong: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def other(*given: object) -> object:
        known = reference(*given)  # type: ignore[arg-type]

        def run(inputs: object) -> dict[str, Array]:
            values = dict(known.run(inputs))  # type: ignore[arg-type]
            for name in wrong:
                values[name] = values[name].copy()
                values[name].flat[-1] ^= 1
            return values

        return replace(known, run=run)

    monkeypatch.setattr(layers, "reference", other)
    found = layers.debug("x.test", library, {"image": image()}, "numpy")
    assert found.first_layer == wrong[0] and not found.ok
    bad = [r.layer for r in found.layers if r.against and r.against.mismatches]
    assert bad == wrong


def test_facts_are_those_of_the_values() -> None:
    tensor = Tensor("t", (2, 3), DType.INT8)
    value = np.int8([[-128, 0, 0], [127, -128, 7]])
    assert layers._facts(tensor, value) == (-128, 127, -122 / 6, 2, 3)
    floats = Tensor("f", (4,), DType.FLOAT32)
    least, most, _, zeros, bad = layers._facts(
        floats, np.float32([0, np.inf, 1, np.nan])
    )
    assert (zeros, bad) == (1, 2)
    assert np.isnan(least) and np.isnan(most)
    flags = Tensor("b", (2,), DType.BOOL)
    assert layers._facts(flags, np.array([True, False])) == (0, 1, 0.5, 1, 0)
    assert layers._facts(Tensor("e", (0,), DType.INT8), np.int8([])) == (0, 0, 0, 0, 0)


def test_a_given_input_is_used_and_must_fit(library: Library, tmp_path: Path) -> None:
    one, two = (
        layers.debug("x", library, {"image": value}) for value in (image(), -image())
    )
    assert one.layers != two.layers and one.reference is None
    with pytest.raises(BuildError) as caught:
        layers.debug("x", library, {"audio": image()})
    assert [str(p) for p in caught.value.problems] == [
        "--data: 'audio' is not an input of the model. Hint: one of image",
        "--data: has no array 'image'",
    ]
    with pytest.raises(
        BuildError, match=r"'image' is int8\[1, 8, 8, 3\], not int8\[1\]"
    ):
        layers.debug("x", library, {"image": np.int8([1])})


def test_lazy_inputs_and_packed_weights_can_be_looked_at() -> None:
    for options in ({"lazy": ("image",)}, {"compress": "lz4-layer"}):
        library = classifier().model().build(**options)
        assert layers.debug("x", library, ref="numpy").ok


def test_the_verb(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    np.savez(tmp_path / "x.npz", image=np.full((1, 8, 8, 1), 5, np.int8))
    words = ["debug", INT8, "--data", str(tmp_path / "x.npz"), "--input", "keep"]
    assert main([*words, "--ref", "numpy", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["ok"] and facts["reference"].startswith("numpy")
    keys = {
        "short",
        "layer",
        "op",
        "tensor",
        "dtype",
        "shape",
        "min",
        "max",
        "mean",
        "zeros",
    }
    assert set(facts["layers"][0]) == keys | {"saturated", "elements", "against"}
    assert main(words) == 0
    table = capsys.readouterr().out
    assert "saturated" in table and "mismatches" not in table
    assert main([*words[:2], "--ref", "numpy"]) == 0
    assert "mismatches" in capsys.readouterr().out
