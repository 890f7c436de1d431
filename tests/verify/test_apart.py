"""A reference that crashes or hangs is a verdict; this process goes on."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import pybuild
from pybuild.cli import main
from pybuild.verify import apart
from pybuild.verify.apart import ReferenceCrashed
from pybuild.verify.check import check
from pybuild.verify.wide import wide_sample
from tests.frontends.dead_channels import drawn, tflite

FAKE = {
    "crash": "import os\nos.abort()\n",
    "hang": "import time\ntime.sleep(60)\n",
}


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "m.tflite"
    path.write_bytes(tflite("dense", drawn("dense", [], 0)))
    return path


def faked(monkeypatch: pytest.MonkeyPatch, folder: Path, code: str) -> None:
    """LiteRT as this code, in the process that is started next."""
    package = folder / "fake" / "ai_edge_litert"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("__version__ = '0'\n")
    (package / "interpreter.py").write_text(code)
    monkeypatch.syspath_prepend(str(package.parent))
    apart.close()


def test_a_crash_is_a_verdict(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    with monkeypatch.context() as patch:
        faked(patch, tmp_path, FAKE["crash"])
        assert main(["check", str(model), "--backend", "llvm"]) == apart.CRASHED == 4
    said = capsys.readouterr().err
    assert "m.tflite: LiteRT crashed (" in said and "Hint: --ref numpy" in said
    assert "Traceback" not in said
    assert check(model, pybuild.build(model), ("llvm",), "litert", 2).ok


def test_what_hangs_is_ended(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = pybuild.build(model)
    with monkeypatch.context() as patch:
        faked(patch, tmp_path, FAKE["hang"])
        patch.setattr(apart, "SECONDS", 3.0)
        with pytest.raises(ReferenceCrashed, match="gave no answer in 3 seconds"):
            check(model, library, ("llvm",), "litert", 2)
    assert check(model, library, ("llvm",), "litert", 2).ok


def test_a_float_input_has_a_wide_sample() -> None:
    b = pybuild.GraphBuilder("wide")
    x = b.input("x", (1, 64))
    b.output(b.op("tanh", x), "y")
    wide = wide_sample(b.build())
    assert wide is not None and wide.most == 1e30
    values = wide.sample.inputs["x"]
    assert np.isfinite(values).all() and (values > 0).any() and (values < 0).any()
    assert np.abs(values).max() > 1e20 and np.abs(values).min() < 1e-20
    made = check("wide", pybuild.build(b.build()), ("llvm",), "numpy", 2)
    assert made.to_json()["wide"]["inputs"] == ["x"]
