"""Writes gru.onnx, one step of a recurrent network, and tcn.onnx, convolutions over a
window of time; weights from a seed.

Yours come from a training; what is shown here is how a network goes on from call to
call.
"""

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

HERE = Path(__file__).resolve().parent
FEATURES, HIDDEN, CLASSES = 8, 16, 4


def save(name, nodes, inputs, outputs, weights):
    tensors = [numpy_helper.from_array(v, n) for n, v in weights.items()]

    def info(ends):
        return [
            helper.make_tensor_value_info(n, TensorProto.FLOAT, s)
            for n, s in ends.items()
        ]

    graph = helper.make_graph(nodes, name, info(inputs), info(outputs), tensors)
    opset = [helper.make_opsetid("", 17)]
    model = helper.make_model(graph, opset_imports=opset, ir_version=8)
    onnx.checker.check_model(model)
    (HERE / f"{name}.onnx").write_bytes(model.SerializeToString())


def gru():
    rng = np.random.default_rng(0)
    weights = {
        "w": rng.normal(0, 0.4, (1, 3 * HIDDEN, FEATURES)).astype(np.float32),
        "r": rng.normal(0, 0.4, (1, 3 * HIDDEN, HIDDEN)).astype(np.float32),
        "b": np.zeros((1, 6 * HIDDEN), np.float32),
        "dense": rng.normal(0, 0.5, (HIDDEN, CLASSES)).astype(np.float32),
        "flat": np.array([1, HIDDEN], np.int64),
    }
    nodes = [
        helper.make_node(
            "GRU",
            ["frame", "w", "r", "b", "", "h"],
            ["", "h_next"],
            name="gru",
            hidden_size=HIDDEN,
        ),
        helper.make_node("Reshape", ["h_next", "flat"], ["last"], name="last"),
        helper.make_node("MatMul", ["last", "dense"], ["logits"], name="dense"),
        helper.make_node("Softmax", ["logits"], ["scores"], name="softmax", axis=1),
    ]
    inputs = {"frame": (1, 1, FEATURES), "h": (1, 1, HIDDEN)}
    outputs = {"scores": (1, CLASSES), "h_next": (1, 1, HIDDEN)}
    save("gru", nodes, inputs, outputs, weights)


def tcn():
    rng = np.random.default_rng(1)

    def weights(*shape):
        return rng.normal(0, 0.3, shape).astype(np.float32)

    values = {
        "w1": weights(16, FEATURES, 3),
        "w2": weights(16, 16, 3),
        "w3": weights(CLASSES, 16, 5),
    }
    nodes = [
        helper.make_node("Conv", ["frames", "w1"], ["c1"], name="first"),
        helper.make_node("Relu", ["c1"], ["r1"], name="relu"),
        helper.make_node("Conv", ["r1", "w2"], ["c2"], name="second", dilations=[2]),
        helper.make_node("Relu", ["c2"], ["r2"], name="relu2"),
        helper.make_node("Conv", ["r2", "w3"], ["c3"], name="third", dilations=[4]),
        helper.make_node("GlobalAveragePool", ["c3"], ["scores"], name="mean"),
    ]
    inputs, outputs = {"frames": (1, FEATURES, 64)}, {"scores": (1, CLASSES, 1)}
    save("tcn", nodes, inputs, outputs, values)


if __name__ == "__main__":
    gru()
    tcn()
