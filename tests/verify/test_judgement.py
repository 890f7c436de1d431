"""Where ONNX Runtime and a build differ: who is right by the file's own nodes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from pybuild.dtype import DType
from pybuild.entry import load
from pybuild.host.native import Net
from pybuild.ir.graph import Graph, Tensor
from pybuild.verify.check import CheckResult, check
from pybuild.verify.judgement import _steps
from pybuild.verify.onnx_reference import unfused
from tests.frontends.onnx.models import model
from tests.frontends.onnx.quantised_nets import quantised
from tests.toolchains import require_module

LINES = "equal to the standard; ONNX Runtime differs here by"


def checked(path: Path, **options: Any) -> CheckResult:
    require_module("onnxruntime")
    library = load(path).build()
    return check(path, library, ["llvm"], samples=4, **options)


@pytest.fixture
def pooled(tmp_path: Path) -> Path:
    """ONNX Runtime's own pool of integers does not round as the file says."""
    path = tmp_path / "pooled.onnx"
    path.write_bytes(quantised("AveragePool", "qdq"))
    return path


@pytest.mark.parametrize("per_layer", [False, True])
def test_equal_to_the_standard(pooled: Path, per_layer: bool) -> None:
    found = checked(pooled, per_layer=per_layer)
    note = next(note for note in found.notes if note.startswith(LINES))
    assert "steps in" in note
    assert note.endswith("because it has kernels of its own for AVERAGEPOOL")
    assert found.ok
    assert found.reference == "the standard (every node of the file in float64)"
    assert found.backends["llvm"].mismatches == 0


def test_the_standard_as_reference(pooled: Path) -> None:
    assert checked(pooled, ref="standard").ok


def test_a_build_that_is_wrong_is_told_so(
    pooled: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    true = Net.run

    def wrong(self: Net, **inputs: Any) -> dict[str, np.ndarray]:
        return {name: value + 1 for name, value in true(self, **inputs).items()}

    monkeypatch.setattr(Net, "run", wrong)
    found = checked(pooled)
    assert not found.ok
    assert any("values differ from the standard, too" in note for note in found.notes)


def test_what_it_left_unfused(tmp_path: Path) -> None:
    """It has integer kernels of convolutions, none of a normalisation."""
    path = tmp_path / "net.onnx"
    for name, said in (
        ("Relu", ""),
        (
            "LayerNormalization",
            "because it left LAYERNORMALIZATION unfused, in float32",
        ),
    ):
        path.write_bytes(quantised(name, "qdq"))
        assert unfused(path) == said


def test_a_resize_whose_fractions_are_cut_off(tmp_path: Path) -> None:
    path = tmp_path / "net.onnx"
    x = np.arange(75, dtype=np.uint8).reshape(1, 3, 5, 5)
    nodes: Any = [("Resize", ["x", "", "s"], ["y"], {"mode": "linear"})]
    path.write_bytes(
        model(nodes, {"x": x}, ["y"], {"s": np.asarray([1, 1, 2, 2], "f4")})
    )
    found = checked(path)
    assert found.ok
    assert found.notes[-1].endswith("because it cuts off the fractions of RESIZE")


def test_signed_qlinear_files_run_where_the_optimiser_has_no_kernel(
    tmp_path: Path,
) -> None:
    """int8 activations in QOperator form: only unoptimised."""
    require_module("onnxruntime")
    path = tmp_path / "net.onnx"
    constants = {"s": np.asarray(0.05, "f4"), "z": np.asarray(3, "i1")}
    constants |= {"w": np.ones((4, 4, 1, 1), "i1"), "wz": np.asarray(0, "i1")}
    reads = ["q", "s", "z", "w", "s", "wz", "s", "z"]
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"]),
        helper.make_node("QLinearConv", reads, ["c"]),
        helper.make_node("DequantizeLinear", ["c", "s", "z"], ["y"]),
    ]
    graph = helper.make_graph(
        nodes, "g", [helper.make_tensor_value_info("x", 1, (1, 4, 5, 5))],
        [helper.make_tensor_value_info("y", 1, (1, 4, 5, 5))],
        [numpy_helper.from_array(value, name) for name, value in constants.items()],
    )  # fmt: skip
    opset = [helper.make_opsetid("", 17)]
    onnx.save(helper.make_model(graph, opset_imports=opset, ir_version=8), path)
    found = checked(path, ref="ort")
    assert found.ok and found.reference.startswith("ONNX Runtime")


def test_nan_and_infinity_are_no_number_of_steps() -> None:
    kinds = {"y": DType.FLOAT32, "q": DType.INT8}
    tensors = {name: Tensor(name, (3,), kind) for name, kind in kinds.items()}
    graph = Graph("m", "m", (), tensors, ("y", "q"), ("y", "q"))
    theirs = {"y": np.float32([np.nan, 1, np.inf]), "q": np.int8([1, 2, 3])}
    found = {"y": np.float32([1, 1, 1]), "q": np.int8([1, 2, 5])}
    said = "2 steps in 1 values, by NaN or infinity in 2 values"
    assert _steps(graph, [theirs], [found]) == said
