"""Flash beside the model's file: the share that inspect and build show, and what is
large where flash is larger than the file."""

from __future__ import annotations

import numpy as np
import pytest

import pybuild
from pybuild.cli import main
from pybuild.graph_builder import GraphBuilder
from pybuild.package.page import report_page
from pybuild.package.report import Report
from tests.conftest import ROOT
from tests.frontends.onnx.models import model

FOLDER = ROOT / "tests" / "exported"


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
