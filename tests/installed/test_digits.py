"""The committed digits models: their accuracy here and in the interpreters."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import pybuild
from pybuild.install import host_compiler
from pybuild.verify.check import check
from tests.toolchains import require_module

ROOT = Path(__file__).resolve().parents[2]
DIGITS = ROOT / "examples" / "digits"
FLOAT_RIGHT = 355 / 360
FILES = ("digits_int8.tflite", "digits_int8.onnx", "digits_f32.onnx")
BACKENDS = [pytest.param("llvm", marks=pytest.mark.bare)]
if host_compiler():
    BACKENDS.append(pytest.param("c", marks=pytest.mark.everywhere))


@pytest.fixture(scope="module")
def held_out() -> tuple[np.ndarray, np.ndarray]:
    test = np.load(DIGITS / "digits_test.npz")
    return test["images"].astype(np.float32) / 16, test["labels"]


@pytest.fixture(scope="module")
def library(request: pytest.FixtureRequest) -> pybuild.Library:
    return pybuild.load(DIGITS / request.param).build()


def as_input(library: pybuild.Library, images: np.ndarray) -> Iterator[np.ndarray]:
    (image,) = library.report.inputs
    for value in images:
        if image.scale is not None and image.dtype == "int8":
            q = np.rint(value / np.float32(image.scale)) + image.zero_point
            value = np.clip(q, -128, 127).astype(np.int8)
        yield value.reshape(image.shape)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("library", FILES, indirect=True)
def test_accuracy(
    library: pybuild.Library, backend: str, held_out: tuple[np.ndarray, np.ndarray]
) -> None:
    """Every file, on both back ends, reads at most 1 % fewer digits than float."""
    images, labels = held_out
    net = library.host(backend)
    said = []
    for value in as_input(library, images):
        net.run(image=value)
        said.append(net.get_output("scores").argmax())
    assert np.mean(np.array(said) == labels) >= max(0.97, FLOAT_RIGHT - 0.01)


@pytest.mark.parametrize("library", FILES, indirect=True)
def test_equals_its_interpreter(
    library: pybuild.Library, request: pytest.FixtureRequest
) -> None:
    path = DIGITS / request.node.callspec.params["library"]
    ref, package = ("litert", "ai_edge_litert")
    if path.suffix == ".onnx":
        ref, package = ("ort", "onnxruntime")
    require_module(package)
    result = check(path, library, ref=ref, samples=10, per_layer=True)
    assert result.ok, result.to_json()
    assert result.tensors >= 4


@pytest.mark.bare
def test_the_integer_files_hold_the_same_network() -> None:
    """One set of weights: the two int8 files agree on every int8 constant."""
    one, two = (
        pybuild.load(DIGITS / f"digits_int8{suffix}").lower()
        for suffix in (".tflite", ".onnx")
    )

    def weights(graph: pybuild.ir.graph.Graph) -> list[list[int]]:
        kept = [v for v in graph.constants.values() if v.dtype == np.int8]
        return sorted(sorted(v.ravel().tolist()) for v in kept)

    assert weights(one) == weights(two)


@pytest.mark.everywhere
def test_the_demo_runs() -> None:
    """As a reader would run it, from another folder."""
    script = [sys.executable, str(DIGITS / "demo.py")]
    done = subprocess.run(script, capture_output=True, text=True, cwd=DIGITS)
    assert done.returncode == 0, done.stderr
    assert "356 of 360 held-out digits right" in done.stdout
    assert "says" in done.stdout
    if host_compiler() and shutil.which("make"):
        assert "compiled example in build/digits" in done.stdout


@pytest.mark.bare
def test_the_generator_runs(tmp_path: Path) -> None:
    script = [sys.executable, str(ROOT / "examples" / "codegen" / "generate.py")]
    done = subprocess.run(
        [*script, "-o", str(tmp_path)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == 9
    assert (tmp_path / "digits_int8_keep" / "digits_int8_keep.h").is_file()
