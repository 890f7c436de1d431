"""What inspect and build say of a model beside its figures: flash as a share of the
file, what is large where flash is larger, and what takes general operators."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import pybuild
from pybuild.cli import main
from pybuild.errors import BuildError
from pybuild.graph_builder import GraphBuilder
from pybuild.package.page import report_page
from pybuild.package.report import Report
from tests.conftest import ROOT
from tests.frontends.onnx.models import model

FOLDER = ROOT / "tests" / "exported"
DIMS = {"mobile.onnx": {"batch": 1}}


def lines(report: Report) -> list[str]:
    return [one for one in report_page(report) if isinstance(one, str)]


def padded() -> bytes:
    """A convolution of two channels whose row of padding is larger than its weights."""
    w = np.ones((2, 2, 3, 3), np.float32)
    spec = [("Conv", ["x", "w"], ["y"], {"pads": [1, 1, 1, 1]})]
    x = np.zeros((1, 2, 4, 200), np.float32)
    return model(spec, {"x": x}, ["y"], {"w": w})


@pytest.mark.parametrize("name", ["beside.onnx", "dynamic.pt2", "keras_gru.tflite"])
def test_the_share_is_that_of_all_files(name: str) -> None:
    """Weights of .onnx may be in a second one."""
    report = pybuild.load(FOLDER / name).build().report
    size = sum(p.stat().st_size for p in FOLDER.glob(f"{name}*"))
    assert report.file_bytes == size
    held = report.flash.weights + report.flash.tables
    (line,) = (one for one in lines(report) if one.startswith("flash "))
    assert f"bytes ({held / size:.2f} of the file), code" in line


def test_what_is_large_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    data = padded()
    report = pybuild.load(data).build().report
    assert report.file_bytes == len(data)
    (note,) = (one for one in lines(report) if "larger than the file" in one)
    largest = max(report.weights, key=lambda one: one.bytes)
    assert f"file: {largest.symbol} {largest.bytes:,}, " in note
    assert main(["inspect", str(FOLDER / "dynamic.pt2")]) == 0
    said = capsys.readouterr().out
    assert "of the file)" in said and "larger than the file" not in said


def test_a_graph_of_no_file_has_none() -> None:
    net = GraphBuilder("net")
    net.output(net.op("tanh", net.input("x", (1, 4))), "y")
    report = pybuild.build(net.build()).report
    assert report.file_bytes == 0
    assert not [one for one in lines(report) if "the file" in one]


def test_general_operators_are_told_with_their_share() -> None:
    """A convolution of two tensors and a function, beside a layer that has a kernel."""
    spec = [
        ("ConvInteger", ["q", "w"], ["sums"], {}),
        ("Cast", ["sums"], ["real"], {"to": 1}),
        ("Erf", ["real"], ["y"], {}),
        ("Conv", ["x", "k"], ["z"], {}),
    ]
    inputs = {
        "q": np.zeros((1, 2, 8, 8), np.uint8), "w": np.zeros((3, 2, 3, 3), np.uint8),
        "x": np.zeros((1, 4, 8, 8), np.float32),
    }  # fmt: skip
    data = model(spec, inputs, ["y", "z"], {"k": np.ones((4, 4, 3, 3), np.float32)})
    report = pybuild.load(data).build().report
    (first, second) = [one for one in lines(report) if one.startswith(("slow", "   "))]
    share = float(first.split()[1].rstrip("%")) / 100
    ops = {row.name: row.op for row in report.layers}
    spent = [row.instructions for row in report.kernels if ops[row.layer] != "conv2d"]
    whole = sum(row.instructions for row in report.kernels)
    assert abs(share - sum(spent) / whole) < 0.06
    assert "conv 1 (a convolution of types that no layer has)" in first
    assert "(element by element)" in first and "most in sums" in second


def test_nets_of_layers_have_none() -> None:
    for name in ("dynamic.pt2", "mobile.onnx"):
        report = pybuild.load(FOLDER / name, input_dims=DIMS.get(name)).build().report
        assert not [one for one in lines(report) if one.startswith("slow")]


def test_a_mistyped_path_leads_to_the_model(tmp_path: Path) -> None:
    for name in ("kws_int8.tflite", "kws_int8.txt", "other.onnx"):
        (tmp_path / name).write_bytes(b"")
    said = f"did you mean '{tmp_path / 'kws_int8.tflite'}'"
    with pytest.raises(BuildError) as error:
        pybuild.load(tmp_path / "kws_int.tflite")
    assert said in str(error.value)
    with pytest.raises(BuildError, match="there is no folder"):
        pybuild.load(tmp_path / "models" / "kws_int8.tflite")
    with pytest.raises(BuildError) as error:
        pybuild.load(tmp_path / "zzz")
    assert "did you mean" not in str(error.value)
