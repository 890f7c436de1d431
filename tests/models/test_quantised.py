"""Quantised after training, here and by onnxruntime.quantization: as right as that."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.bench import quantising
from tests.bench.quantising import METHODS
from tests.conftest import ROOT, model_path
from tests.toolchains import require_module


@pytest.mark.parametrize("method", METHODS)
def test_digits_beside_onnxruntime(method: str) -> None:
    require_module("onnxruntime")
    chosen = quantising.digits()
    (mine, whole), other = (
        f(chosen, method) for f in (quantising.ours, quantising.theirs)
    )
    assert mine.right >= other.right
    assert mine.right >= whole - 0.005 * len(chosen.test["labels"])
    assert mine.error < other.error


@pytest.mark.sweep
@pytest.mark.parametrize("method", METHODS)
def test_scenes_beside_onnxruntime(method: str) -> None:
    """As right up to chance: each differs from the float network in some 110 scenes."""
    require_module("onnxruntime")
    chosen = quantising.scenes()
    (mine, _), other = (f(chosen, method) for f in (quantising.ours, quantising.theirs))
    assert mine.right >= other.right - 0.0005 * len(chosen.test["labels"])
    assert mine.error < 0.9 * other.error


@pytest.mark.sweep
def test_a_real_network_beside_onnxruntime() -> None:
    require_module("onnxruntime")
    for kind in ("f32.onnx", "int8.tflite"):
        model_path(f"kws_{kind}")
    chosen = quantising.real_one("kws", 64, 64)
    (mine, whole), other = (
        f(chosen, "minmax") for f in (quantising.ours, quantising.theirs)
    )
    assert whole == 64 and mine.right >= 62
    assert mine.error < other.error


@pytest.mark.sweep
def test_other_machines_make_the_same_files(tmp_path: Path) -> None:
    """OpenBLAS as on an older core, in two threads; numpy without its wide vectors."""
    other = {
        "OPENBLAS_CORETYPE": "Prescott",
        "OPENBLAS_NUM_THREADS": "2",
        "NPY_DISABLE_CPU_FEATURES": "X86_V3 X86_V4",
    }
    folder = ROOT / "examples" / "scenes"
    made = []
    for name, more in (("own", {"OPENBLAS_NUM_THREADS": "1"}), ("other", other)):
        words = [sys.executable, "-m", "pybuild.cli", "build", "--name", "scenes"]
        words += [str(folder / "scenes_f32.onnx"), "-o", str(tmp_path / name)]
        words += ["--quantise", str(folder / "scenes_calibration.npz")]
        subprocess.run(words, cwd=ROOT, env=os.environ | more, check=True)
        files = [f for f in (tmp_path / name).rglob("*") if f.is_file()]
        made.append({f.relative_to(tmp_path / name): f.read_bytes() for f in files})
    assert len(made[0]) > 3 and made[0] == made[1]
