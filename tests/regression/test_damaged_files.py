"""Fields of model files that brought down what reads them."""

from __future__ import annotations

from pathlib import Path

import pytest

import pybuild
from pybuild.errors import BuildError
from tests.toolchains import ROOT


def test_an_operator_set_beyond_32_bits(tmp_path: Path) -> None:
    onnx = pytest.importorskip("onnx")
    model = onnx.load(ROOT / "tests" / "exported" / "block.onnx")
    model.opset_import[0].version = 1 << 62
    onnx.save(model, tmp_path / "wild.onnx")
    text = "wild.onnx: there is no operator set 4611686018427387904. Hint: give a"
    with pytest.raises(BuildError, match=text):
        pybuild.load(tmp_path / "wild.onnx")
