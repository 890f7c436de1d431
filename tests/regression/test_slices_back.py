"""ONNX slices that go back from a place before the first element begin with it (the
standard clamps their start to 0, as ONNX Runtime does); numpy's are empty."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

import pybuild


@pytest.mark.parametrize("known", [False, True], ids=["computed", "known"])
def test_from_before_the_first(known: bool, tmp_path: Path) -> None:
    x = np.asarray([[5, 6, 7], [8, 9, 10]], np.float32)
    names = ("starts", "ends", "axes", "steps")
    values = ([-9, -9], [-99, -9], [0, 1], [-1, -2])
    constants = [
        numpy_helper.from_array(np.asarray(v, np.int64), n)
        for n, v in zip(names, values, strict=True)
    ]
    cut = helper.make_node("Slice", ["k" if known else "x", *names], ["cut"])
    nodes = [cut, helper.make_node("Add", ["cut", "x"], ["y"])]
    float32 = TensorProto.FLOAT
    given = helper.make_tensor_value_info("x", float32, x.shape)
    made = helper.make_tensor_value_info("y", float32, x.shape)
    constants.append(numpy_helper.from_array(x, "k"))
    graph = helper.make_graph(nodes, "back", [given], [made], constants)
    opsets = [helper.make_opsetid("", 18)]
    path = tmp_path / "back.onnx"
    model = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    path.write_bytes(model.SerializeToString())
    net = pybuild.load(path).build().host()
    net.run(x=x)
    np.testing.assert_array_equal(net.get_output(0), x + 5)
