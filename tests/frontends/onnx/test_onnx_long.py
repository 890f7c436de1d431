"""Recurrent layers of 1,000 steps: tables of one step, and ONNX Runtime's results."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import pybuild
from tests.toolchains import require_module

STEPS, WIDE, UNITS = 1000, 3, 4


@pytest.mark.parametrize(("op", "gates"), [("LSTM", 4), ("RNN", 1)])
def test_a_layer_of_1000_steps(op: str, gates: int, tmp_path: Path) -> None:
    require_module("onnxruntime")
    ort = pytest.importorskip("onnxruntime")
    chance, rows = np.random.default_rng(5), gates * UNITS
    shapes = {"w": (1, rows, WIDE), "r": (1, rows, UNITS), "b": (1, 2 * rows)}
    arrays = {
        name: (chance.standard_normal(shape) * 0.4).astype(np.float32)
        for name, shape in shapes.items()
    }
    graph = helper.make_graph(
        [helper.make_node(op, ["x", *arrays], ["y"], hidden_size=UNITS)],
        "long",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [STEPS, 1, WIDE])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [STEPS, 1, 1, UNITS])],
        [numpy_helper.from_array(value, name) for name, value in arrays.items()],
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    made.ir_version = 8
    file = tmp_path / "long.onnx"
    onnx.save(made, file)
    library = pybuild.load(file).build()
    assert library.report.flash.tables < 1024
    x = chance.standard_normal((STEPS, 1, WIDE)).astype(np.float32)
    session = ort.InferenceSession(str(file), providers=["CPUExecutionProvider"])
    net = library.host("llvm")
    net.run(x=x)
    expected = session.run(None, {"x": x})[0]
    np.testing.assert_allclose(net.get_output("y"), expected, rtol=0, atol=1e-5)
