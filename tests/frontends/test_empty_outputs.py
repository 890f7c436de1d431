"""Tensors of no elements: both interpreters have them, and so have both back ends."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

import pybuild
from pybuild.verify.check import check
from tests.ops.tflite_writer import FileOperator, FileTensor, write


@pytest.fixture(scope="module")
def tiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An output is empty; another has nothing of it."""
    path = tmp_path_factory.mktemp("empty") / "tiled.onnx"
    times = numpy_helper.from_array(np.asarray([0, 2], np.int64), "times")
    nodes = [
        helper.make_node("Tile", ["x", "times"], ["none"], name="tile"),
        helper.make_node("Neg", ["x"], ["minus"], name="neg"),
        helper.make_node("Tile", ["minus", "twice"], ["row"], name="row"),
        helper.make_node("Concat", ["none", "row"], ["y"], name="join", axis=0),
    ]
    twice = numpy_helper.from_array(np.asarray([1, 2], np.int64), "twice")
    x = helper.make_tensor_value_info("x", 1, [3, 2])
    none = helper.make_tensor_value_info("none", 1, [0, 4])
    y = helper.make_tensor_value_info("y", 1, [3, 4])
    graph = helper.make_graph(nodes, "tiled", [x], [none, y], [times, twice])
    opset = [helper.make_opsetid("", 17)]
    onnx.save(helper.make_model(graph, opset_imports=opset, ir_version=9), path)
    return path


@pytest.mark.parametrize("ref", ["ort", "standard"])
def test_a_repeat_of_0_is_an_empty_tensor(tiled: Path, ref: str) -> None:
    made = check(tiled, pybuild.build(tiled), ref=ref, samples=2)
    assert made.ok and set(made.backends) == {"c", "llvm"}


@pytest.mark.parametrize("backend", ["c", "llvm"])
def test_what_is_empty_can_be_got(tiled: Path, backend: str) -> None:
    net = pybuild.build(tiled).host(backend)
    x = np.arange(6, dtype=np.float32).reshape(3, 2)
    found = net.run(x=x)
    assert found["none"].shape == (0, 4)
    np.testing.assert_array_equal(found["y"], np.tile(-x, (1, 2)))


def test_a_repeat_of_0_in_tflite(tmp_path: Path) -> None:
    times = np.asarray([0, 2], np.int32)
    tensors = [
        FileTensor("x", (3, 2), "FLOAT32"), FileTensor("times", (2,), "INT32", times),
        FileTensor("none", (0, 4), "FLOAT32"), FileTensor("minus", (3, 2), "FLOAT32"),
    ]  # fmt: skip
    layers = [FileOperator("TILE", (0, 1), (2,)), FileOperator("NEG", (0,), (3,))]
    path = tmp_path / "tiled.tflite"
    path.write_bytes(write(tensors, layers, [0], [2, 3]))
    library = pybuild.build(path)
    made = check(path, library, ref="litert", samples=2)
    assert made.ok and set(made.backends) == {"c", "llvm"}
    found = library.host("llvm").run(x=np.ones((3, 2), np.float32))
    assert found["none"].shape == (0, 4)
