"""QDQ pairs and QLinear operators: integers inside, equal to ONNX Runtime."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from pybuild.ir.graph import Graph
from tests.frontends.onnx.models import NodeSpec, assert_equal, lowered, model

F = np.float32
IMAGE = (1, 4, 6, 5)
ONE_BYTE = ("int8", "uint8")


def normal(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(F)


class Qdq:
    """Collects nodes and constants of a QDQ model."""

    def __init__(self, kind: str = "int8") -> None:
        self.kind = kind
        self.nodes: list[NodeSpec] = []
        self.constants: dict[str, np.ndarray] = {}

    def scale(self, name: str, scale: float, zero: int) -> list[str]:
        self.constants[f"{name}_s"] = np.asarray(scale, F)
        shift = 128 if self.kind == "uint8" else 0
        self.constants[f"{name}_z"] = np.asarray(zero + shift, self.kind)
        return [f"{name}_s", f"{name}_z"]

    def pair(self, name: str, scale: float, zero: int = 0) -> str:
        """name, quantised and back."""
        more = self.scale(name, scale, zero)
        self.nodes += [
            ("QuantizeLinear", [name, *more], [f"{name}_q"], {}),
            ("DequantizeLinear", [f"{name}_q", *more], [f"{name}_r"], {}),
        ]
        return f"{name}_r"

    def weights(self, name: str, value: np.ndarray, axis: int | None) -> str:
        """int8, a scale per index of an axis or one for all."""
        others = tuple(a for a in range(value.ndim) if a != axis)
        scale = (
            abs(value).max(axis=others if axis is not None else None) / 127
        ).astype(F)
        shape = [1] * value.ndim
        if axis is not None:
            shape[axis] = -1
        q = np.rint(value / scale.reshape(shape)).astype(np.int8)
        self.constants |= {f"{name}_q": q, f"{name}_s": scale}
        attrs = {} if axis is None else {"axis": axis}
        self.nodes.append(
            ("DequantizeLinear", [f"{name}_q", f"{name}_s"], [f"{name}_r"], attrs)
        )
        return f"{name}_r"

    def bias(self, name: str, weights: str, x_scale: float, count: int) -> str:
        scale = self.constants[f"{weights.removesuffix('_r')}_s"] * F(x_scale)
        q = np.arange(-count, count, 2, dtype=np.int32) * 37
        self.constants |= {f"{name}_q": q, f"{name}_s": scale.astype(F)}
        attrs = {"axis": 0} if scale.size > 1 else {}
        self.nodes.append(
            ("DequantizeLinear", [f"{name}_q", f"{name}_s"], [f"{name}_r"], attrs)
        )
        return f"{name}_r"

    def node(self, kind: str, reads: Sequence[str], makes: str, **attrs: Any) -> str:
        self.nodes.append((kind, list(reads), [makes], attrs))
        return makes

    def check(self, shape: Sequence[int], outputs: Sequence[str]) -> Graph:
        inputs = {"x": normal(*shape, seed=5)}
        data = model(self.nodes, inputs, outputs, self.constants)
        return assert_equal(data, inputs, tolerance=0.02)


def computing(graph: Graph) -> list[str]:
    """Operators without the quantize and dequantize at the ends and free reshapes."""
    free = ("reshape", "transpose")
    ops = [node.op for node in graph.nodes if node.op not in free]
    assert ops[0] == "quantize" and ops[-1] == "dequantize", graph.dump()
    return ops[1:-1]


# name: (operator, input shape, attributes, weights shape, scale axis, result)
LAYERS = {
    "conv": ("Conv", IMAGE, {"pads": [1, 1, 1, 1]}, (3, 4, 3, 3), 0, "conv2d"),
    "conv_tensor": ("Conv", IMAGE, {}, (3, 4, 3, 3), None, "conv2d"),
    "conv_1d": ("Conv", (1, 4, 9), {"strides": [2]}, (3, 4, 3), 0, "conv2d"),
    "depthwise": (
        "Conv", IMAGE, {"group": 4}, (4, 1, 3, 3), 0, "depthwise_conv2d",
    ),
    "gemm": ("Gemm", (2, 4), {"transB": 1}, (3, 4), 0, "dense"),
    "gemm_columns": ("Gemm", (2, 4), {}, (4, 3), 1, "dense"),
}  # fmt: skip


@pytest.mark.parametrize("kind", ONE_BYTE)
@pytest.mark.parametrize("name", LAYERS)
def test_layer(name: str, kind: str) -> None:
    op, shape, attrs, weights, axis, result = LAYERS[name]
    q = Qdq(kind)
    x = q.pair("x", 0.03, 5)
    w = q.weights("w", normal(*weights, seed=1), axis)
    outs = weights[1] if name == "gemm_columns" else weights[0]
    b = q.bias("b", w, 0.03, outs)
    q.node(op, [x, w, b], "sums", **attrs)
    q.node("Relu", ["sums"], "y")
    q.pair("y", 0.05, -100)
    graph = q.check(shape, ["y_r"])
    assert computing(graph) == [result]


@pytest.mark.parametrize("bias", ["float", "other_scale"])
def test_bias_that_is_not_on_the_scale_is_rounded(bias: str) -> None:
    q = Qdq()
    x = q.pair("x", 0.03, 5)
    w = q.weights("w", normal(3, 4, seed=1), None)
    if bias == "float":
        q.constants["b"] = normal(3)
        b = "b"
    else:
        b = q.bias("b", w, 0.5, 3)
    q.node("Gemm", [x, w, b], "y", transB=1)
    q.pair("y", 0.1)
    assert computing(q.check((2, 4), ["y_r"])) == ["dense"]


@pytest.mark.parametrize("kind", ONE_BYTE)
@pytest.mark.parametrize("op", ["Add", "Sub", "Mul"])
def test_two_operands(op: str, kind: str) -> None:
    q = Qdq(kind)
    x = q.pair("x", 0.03, 5)
    around = {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}
    q.node("MaxPool", [x], "s", **around)
    q.node(op, [x, q.pair("s", 0.03, 5)], "y")
    q.pair("y", 0.05, -3)
    ops = computing(q.check(IMAGE, ["y_r"]))
    assert ops == ["max_pool2d", op.lower()]


# name: (operator, attributes, result)
UNARY: dict[str, tuple[str, dict[str, Any], list[str]]] = {
    "Sigmoid": ("Sigmoid", {}, ["logistic"]),
    "Tanh": ("Tanh", {}, ["tanh"]),
    "LeakyRelu": ("LeakyRelu", {"alpha": 0.1}, ["leaky_relu"]),
    "Relu": ("Relu", {}, ["clip"]),
    "Softmax": ("Softmax", {"axis": 1}, ["softmax"]),
    "ReduceMean": ("ReduceMean", {"axes": [2, 3]}, ["mean"]),
    "GlobalAveragePool": ("GlobalAveragePool", {}, ["mean"]),
    "AveragePool": (
        "AveragePool", {"kernel_shape": [2, 2], "pads": [1, 1, 1, 1]}, ["avg_pool2d"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", UNARY)
def test_unary(name: str) -> None:
    op, attrs, result = UNARY[name]
    q = Qdq()
    q.node(op, [q.pair("x", 0.03, 5)], "y", **attrs)
    q.pair("y", 0.02, -20)
    assert computing(q.check(IMAGE, ["y_r"])) == result


# movement, its result, where input and output have one scale
MOVES: dict[str, tuple[str, dict[str, Any], list[str]]] = {
    "MaxPool": ("MaxPool", {"kernel_shape": [2, 2]}, ["max_pool2d"]),
    "Flatten": ("Flatten", {}, []),
    "Transpose": ("Transpose", {"perm": [0, 2, 3, 1]}, []),
    "Identity": ("Identity", {}, []),
}


@pytest.mark.parametrize("name", MOVES)
def test_movement_keeps_integers(name: str) -> None:
    op, attrs, result = MOVES[name]
    q = Qdq()
    q.node(op, [q.pair("x", 0.03, 5)], "y", **attrs)
    q.pair("y", 0.03, 5)
    assert computing(q.check(IMAGE, ["y_r"])) == result


def test_concat_requantises() -> None:
    q = Qdq()
    x = q.pair("x", 0.03, 5)
    q.node("Tanh", [x], "t")
    q.node("Concat", [x, q.pair("t", 1 / 128)], "y", axis=1)
    q.pair("y", 0.03, 5)
    assert computing(q.check(IMAGE, ["y_r"])) == ["tanh", "quantize", "concat"]


def test_what_is_not_quantised_stays_float() -> None:
    """A float layer in the middle: int8, float, int8."""
    q = Qdq()
    x = q.pair("x", 0.03, 5)
    w = q.weights("w", normal(4, 4, 1, 1, seed=1), 0)
    q.constants["f"] = normal(4, 4, 1, 1, seed=2)
    q.node("Conv", [x, w], "a")
    q.node("Conv", [q.pair("a", 0.05), "f"], "b")
    q.node("Tanh", [q.pair("b", 0.05)], "y")
    q.pair("y", 1 / 128)
    assert computing(q.check(IMAGE, ["y_r"])) == [
        "conv2d", "dequantize", "conv2d", "quantize", "tanh",
    ]  # fmt: skip


def test_asymmetric_weights_are_integers() -> None:
    q = Qdq()
    x = q.pair("x", 0.03, 5)
    q.constants |= {
        "w_q": np.arange(12, dtype=np.int8).reshape(3, 4), "w_s": np.asarray(0.1, F),
        "w_z": np.asarray(3, np.int8),
    }  # fmt: skip
    q.node("DequantizeLinear", ["w_q", "w_s", "w_z"], "w")
    q.node("Gemm", [x, "w"], "y", transB=1)
    q.pair("y", 0.1)
    assert computing(q.check((2, 4), ["y_r"])) == ["dense"]


@pytest.mark.parametrize("kind", ONE_BYTE)
def test_boundary_in_integers(kind: str) -> None:
    """Inputs and outputs keep the type of the file."""
    q = Qdq(kind)
    q.constants["w"] = normal(4, 4, 1, 1, seed=1)
    more = q.scale("x", 0.03, 5)
    q.node("DequantizeLinear", ["x", *more], "x_r")
    w = q.weights("w", normal(3, 4, 3, 3, seed=1), 0)
    q.node("Conv", ["x_r", w], "c")
    q.node("QuantizeLinear", ["c", *q.scale("y", 0.05, -9)], "y")
    info = np.iinfo(kind)
    inputs = {"x": np.random.default_rng(1).integers(
        info.min, info.max, IMAGE, kind, endpoint=True)}  # fmt: skip
    graph = assert_equal(model(q.nodes, inputs, ["y"], q.constants), inputs)
    ops = [n.op for n in graph.nodes if n.op != "transpose"]
    change = ["quantize"] if kind == "uint8" else []
    assert ops == [*change, "conv2d", *change]
    assert {graph.tensor(n).dtype.value for n in ("x", "y")} == {kind}
    shift = 128 if kind == "uint8" else 0
    assert graph.tensor("x").zero_point == 5 + shift


def _qlinear(kind: str) -> dict[str, tuple[str, list[str], dict[str, Any], list[str]]]:
    """name: operator, inputs, attributes, result."""
    x, y = ["xq", "x_s", "x_z"], ["y_s", "y_z"]
    w, v = ["w_q", "w_s", "w_z"], ["v", "w_s", "w_z"]
    m = "com.microsoft."
    return {
        "conv": ("QLinearConv", [*x, *w, *y, "b"], {}, ["conv2d"]),
        "add": (f"{m}QLinearAdd", [*x, *v, *y], {}, ["add"]),
        "mul": (f"{m}QLinearMul", [*x, *v, *y], {}, ["mul"]),
        "square": (f"{m}QLinearMul", [*x, *x, *y], {}, ["lookup"]),
        "sigmoid": (f"{m}QLinearSigmoid", [*x, *y], {}, ["logistic"]),
        "leaky": (f"{m}QLinearLeakyRelu", [*x, *y], {"alpha": 0.2}, ["leaky_relu"]),
        "average": (f"{m}QLinearAveragePool", [*x, *y], {"kernel_shape": [2, 2]},
                    ["avg_pool2d"]),
        # a window beyond the edge counts whole, unlike that of AveragePool
        "average_beyond": (f"{m}QLinearAveragePool", [*x, *y],
                           {"kernel_shape": [4, 4], "strides": [3, 3], "ceil_mode": 1,
                            "count_include_pad": 1}, ["avg_pool2d"]),
        "global": (f"{m}QLinearGlobalAveragePool", [*x, *y], {}, ["mean"]),
        "softmax": (f"{m}QLinearSoftmax", [*x, *y], {"axis": 1, "opset": 13},
                    ["softmax"]),
        "concat": (f"{m}QLinearConcat", [*y, *x, *x], {"axis": 1},
                   ["concat", "quantize"]),
    }  # fmt: skip


@pytest.mark.parametrize("kind", ONE_BYTE)
@pytest.mark.parametrize("name", _qlinear("int8"))
def test_qlinear(name: str, kind: str) -> None:
    op, reads, attrs, result = _qlinear(kind)[name]
    q = Qdq(kind)
    q.scale("x", 0.03, 5)
    # ONNX Runtime's softmax of integers is at most a step away
    q.scale("y", *((1 / 256, -128) if name == "softmax" else (0.041, -7)))
    weights = np.random.default_rng(0).integers(-127, 128, (3, 4, 3, 3))
    shift = 128 if kind == "uint8" else 0
    q.constants |= {
        "w_q": (weights + shift).astype(kind), "w_s": np.asarray(0.01, F),
        "w_z": np.asarray(shift, kind), "b": np.asarray([90, -400, 0], np.int32),
        "v": (np.asarray([[[90]], [[-7]], [[0]], [[-128]]]) + shift).astype(kind),
    }  # fmt: skip
    q.node("QuantizeLinear", ["x", "x_s", "x_z"], "xq")
    q.node(op, reads, "yq", **attrs)
    q.node("DequantizeLinear", ["yq", "y_s", "y_z"], "y")
    assert computing(q.check(IMAGE, ["y"])) == result


def test_qgemm_and_qlinear_matmul() -> None:
    q = Qdq()
    x, h, y = (q.scale(n, s, z) for n, s, z in (("x", 0.03, 5), ("h", 0.1, 2),
                                                  ("y", 0.2, -7)))  # fmt: skip
    q.constants |= {
        "w": np.arange(-6, 6, dtype=np.int8).reshape(3, 4), "w_s": np.asarray(0.1, F),
        "w_z": np.asarray(0, np.int8), "b": np.asarray([9, -4, 0], np.int32),
        "v": np.arange(6, dtype=np.int8).reshape(3, 2),
    }  # fmt: skip
    w = ["w_s", "w_z"]
    q.node("QuantizeLinear", ["x", *x], "xq")
    q.node("com.microsoft.QGemm", ["xq", *x, "w", *w, "b", *h], "hq", transB=1)
    q.node("QLinearMatMul", ["hq", *h, "v", *w, *y], "yq")
    q.node("DequantizeLinear", ["yq", *y], "y")
    assert computing(q.check((2, 4), ["y"])) == ["dense", "dense"]


def test_weights_quantised_in_the_file_are_folded() -> None:
    """Quantisation-aware training: float weights, then quantize and dequantize."""
    q = Qdq()
    x = q.pair("x", 0.03, 5)
    q.constants["w"] = normal(3, 4, seed=1)
    q.node("Gemm", [x, q.pair("w", 0.02)], "y", transB=1)
    q.pair("y", 0.1)
    assert computing(q.check((2, 4), ["y_r"])) == ["dense"]


def test_uint8_image_cast_to_float() -> None:
    inputs = {"x": np.arange(48, dtype=np.uint8).reshape(1, 3, 4, 4) * 5}
    nodes: list[NodeSpec] = [
        ("Cast", ["x"], ["f"], {"to": 1}), ("Mul", ["f", "s"], ["y"], {}),
    ]  # fmt: skip
    data = model(nodes, inputs, ["y"], {"s": np.asarray(1 / 255, F)})
    assert_equal(data, inputs)
    assert lowered(data).tensor("x").zero_point == 0
