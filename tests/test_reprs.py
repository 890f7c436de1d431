"""What Python users see of a value that is printed: one short line."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import pybuild
from pybuild.host.native import Net
from pybuild.library import Library

DIGITS = Path(__file__).resolve().parents[1] / "examples" / "digits"
INT8, F32 = DIGITS / "digits_int8.tflite", DIGITS / "digits_f32.onnx"


@pytest.fixture(scope="module")
def library() -> Library:
    return pybuild.load(INT8).build(name="digits")


@pytest.fixture(scope="module")
def net(library: Library) -> Net:
    return library.host()


def test_reprs_are_one_short_line(library: Library, net: Net) -> None:
    model = library.model
    image = pybuild.build_image({"a": model, "b": model}, name="both")
    ends = "image int8[1,8,8,1] -> scores int8[1,10]"
    report = library.report
    ram = report.ram.arena + report.ram.instance
    flash = report.flash.weights + report.flash.tables
    costs = f"RAM {ram:,}, flash {flash:,} bytes"
    assert repr(library) == f"Library('digits', {ends}, {costs})"
    assert repr(net) == f"Net({ends})"
    constants = "6 layers, constants 3,000 bytes"
    assert repr(model) == f"Model('digits_int8.tflite', {ends}, {constants})"
    assert repr(pybuild.build({"a": model, "b": model})) == "Package(a, b)"
    assert repr(image).startswith("Image('both', a, b, RAM ")
    assert repr(image["a"]).startswith(f"Member('a', {ends}, RAM ")


def test_results_are_one_short_line(library: Library) -> None:
    report = library.report
    said = repr(library).replace("Library('digits'", "Report('digits'")
    assert repr(report) == re.sub("image .*10], RAM", "RAM", said)
    checked = pybuild.check(library, samples=2, backends=["llvm"], ref="numpy")
    against = f"'digits_int8.tflite' against numpy {np.__version__}"
    said = "2 samples, max |diff| 0, equal"
    assert repr(checked) == f"CheckResult({against}, {said})"
    module = library["default"](pybuild.cpu())
    ends = "image int8[1,8,8,1] -> scores int8[1,10]"
    assert repr(module) == f"GraphModule({ends}, on cpu(0))"


def test_a_remote_says_where_it_is() -> None:
    from pybuild.rpc.remote import Wired

    remote = Wired.__new__(Wired)
    remote.name, remote._board = "serial:/dev/ttyUSB0", None
    remote._is_closed = False
    assert repr(remote) == "Wired('serial:/dev/ttyUSB0', not connected)"


def test_reprs_are_short_whatever_the_names(tmp_path: Path) -> None:
    from pybuild.ir.graph import Tensor, signature

    name = "StatefulPartitionedCall/" + "x" * 300
    tensors = [Tensor(name, (1, 2), pybuild.load(INT8).graph.tensor("image").dtype)]
    said = signature(tensors * 50, ())
    assert said.endswith("x int8[1,2], 46 more -> nothing")
    assert len(said) < 200


def test_a_loaded_library_says_what_it_is(library: Library, tmp_path: Path) -> None:
    library.export_library(tmp_path / "digits.zip")
    said = repr(pybuild.load_module(tmp_path / "digits.zip"))
    assert said == "Loaded('digits', image int8[1,8,8,1] -> scores int8[1,10])"


def test_quantised_says_its_error() -> None:
    made = pybuild.quantise(pybuild.load(F32), DIGITS / "digits_calibration.npz")
    assert repr(made) == f"Quantised({made.model!r}, error {made.report.error:.2%})"
    said = f"4 layers int8, error {made.report.error:.2%}"
    assert repr(made.report) == f"Quantisation({said})"
    assert repr(made.build(name="q")).startswith("Library('q', ")
