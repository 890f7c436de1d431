"""Files whose nodes stand before those that they read, as ONNX Runtime's float16
converter writes them: what onnxruntime computes. A circle is still refused."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper

from pybuild.errors import BuildError
from pybuild.frontends.onnx import load
from pybuild.ops.interpret import interpret

FLOAT = TensorProto.FLOAT
node = helper.make_node


def _model(nodes: list[onnx.NodeProto]) -> bytes:
    weights = np.random.default_rng(940).normal(0, 0.5, (4, 3)).astype(np.float16)
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", FLOAT, [2, 4])],
        [helper.make_tensor_value_info("y", FLOAT, [2, 3])],
        [
            onnx.numpy_helper.from_array(weights, "w"),
            onnx.numpy_helper.from_array(np.asarray(True), "yes"),
        ],
    )
    opsets = [helper.make_opsetid("", 17)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=9)
    return model.SerializeToString()


def _body(*nodes: onnx.NodeProto) -> onnx.GraphProto:
    made = helper.make_tensor_value_info("z", TensorProto.FLOAT16, [2, 3])
    return helper.make_graph(nodes, "body", [], [made])


BODY = (node("Relu", ["m"], ["r"]), node("Neg", ["r"], ["z"]))  # m is from outside
LATE = [
    node("MatMul", ["xh", "w"], ["m"]),
    node("If", ["yes"], ["n"], then_branch=_body(*BODY), else_branch=_body(*BODY)),
    node("Cast", ["n"], ["y"], to=FLOAT),
    node("Cast", ["x"], ["xh"], to=TensorProto.FLOAT16),
]


@pytest.mark.parametrize("order", [(0, 1, 2, 3), (2, 1, 0, 3), (1, 3, 2, 0)])
def test_onnxruntime_sorts_them(order: tuple[int, ...]) -> None:
    data = _model([LATE[i] for i in order])
    x = np.random.default_rng(941).normal(0, 1, (2, 4)).astype(np.float32)
    found = interpret(load("m.onnx", data, {}), {"x": x})["y"]
    (wanted,) = onnxruntime.InferenceSession(data).run(None, {"x": x})
    np.testing.assert_allclose(found, wanted, 2e-3)  # it rounds to float16 less often


def test_a_circle_is_refused() -> None:
    nodes = [
        node("Add", ["x", "b"], ["a"]),
        node("Neg", ["a"], ["b"]),
        node("Relu", ["b"], ["y"]),
    ]
    with pytest.raises(BuildError, match="topologically sorted"):
        load("m.onnx", _model(nodes), {})
