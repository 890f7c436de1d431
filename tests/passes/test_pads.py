"""A pad of an image with channels first joins the layer behind the transpose."""

from __future__ import annotations

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

import pybuild

_PADS = {"around": [0, 0, 1, 1, 0, 0, 1, 1], "behind": [0, 0, 0, 0, 0, 0, 2, 1]}


def _file(pads: list[int], readers: int) -> bytes:
    rng = np.random.default_rng(readers)
    nodes, held = [helper.make_node("Pad", ["x", "pads"], ["p"])], []
    held.append(numpy_helper.from_array(np.asarray(pads, np.int64), "pads"))
    for i in range(readers):
        w = rng.normal(0, 0.3, (4, 3, 3, 3)).astype(np.float32)
        held.append(numpy_helper.from_array(w, f"w{i}"))
        nodes.append(helper.make_node("Conv", ["p", f"w{i}"], [f"y{i}"]))
    high, wide = 6 + pads[2] + pads[6] - 2, 7 + pads[3] + pads[7] - 2
    info = helper.make_tensor_value_info
    outputs = [
        info(f"y{i}", TensorProto.FLOAT, [1, 4, high, wide]) for i in range(readers)
    ]
    inputs = [info("x", TensorProto.FLOAT, [1, 3, 6, 7])]
    graph = helper.make_graph(nodes, "g", inputs, outputs, held)
    opset = [helper.make_opsetid("", 17)]
    made: bytes = helper.make_model(
        graph, opset_imports=opset, ir_version=8
    ).SerializeToString()
    return made


@pytest.mark.parametrize("readers", [1, 2])
@pytest.mark.parametrize("pads", _PADS)
def test_it_is_the_layers_own(pads: str, readers: int) -> None:
    data = _file(_PADS[pads], readers)
    model = pybuild.load(data)
    kinds = [node.op for node in model.lower().nodes]
    assert "pad" not in kinds
    assert kinds.count("conv2d") == readers
    x = np.random.default_rng(1).normal(0, 1, (1, 3, 6, 7)).astype(np.float32)
    wanted = onnxruntime.InferenceSession(data).run(None, {"x": x})
    found = model.build().host("llvm").run(x=x)
    for i, want in enumerate(wanted):
        np.testing.assert_allclose(found[f"y{i}"], want, 1e-5, 1e-6)
