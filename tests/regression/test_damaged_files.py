"""Fields of model files that brought down what reads them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import pybuild
from pybuild.errors import BuildError
from pybuild.frontends.tflite import load
from tests.ops.tflite_writer import FileOperator, FileTensor, write
from tests.toolchains import ROOT


def test_an_operator_set_beyond_32_bits(tmp_path: Path) -> None:
    onnx = pytest.importorskip("onnx")
    model = onnx.load(ROOT / "tests" / "exported" / "block.onnx")
    model.opset_import[0].version = 1 << 62
    onnx.save(model, tmp_path / "wild.onnx")
    text = "wild.onnx: there is no operator set 4611686018427387904. Hint: give a"
    with pytest.raises(BuildError, match=text):
        pybuild.load(tmp_path / "wild.onnx")


def test_a_mirrored_axis_of_two_billion_elements() -> None:
    """Its places alone would take sixteen gigabytes."""
    tensors = [
        FileTensor("x", ((1 << 31) - 1,), "UINT8"),
        FileTensor("pads", (1, 2), "INT32", np.array([[3, 0]], np.int32)),
        FileTensor("y", (), "UINT8"),
    ]
    mirrored = FileOperator("MIRROR_PAD", (0, 1), (2,), "MirrorPadOptions", {"Mode": 1})
    data = write(tensors, [mirrored], [0], [2])
    with pytest.raises(BuildError, match="2147483647 elements side by side are too"):
        load("wild.tflite", data, {})
