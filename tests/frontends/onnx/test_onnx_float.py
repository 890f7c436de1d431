"""Every float operator of the ONNX frontend, against ONNX Runtime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.frontends.onnx.models import assert_equal, model

F = np.float32


def normal(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(F)


def ints(*values: int) -> np.ndarray:
    return np.asarray(values, np.int64)


W = {"w": normal(4, 3, 3, 3, seed=1), "b": normal(4, seed=2)}
IMAGE = (1, 3, 7, 6)

# name: (operator, input shape, attributes, constants after x, opset)
UNARY: dict[str, tuple[str, tuple[int, ...], dict[str, Any], list[Any], int]] = {
    "conv": (
        "Conv", IMAGE, {"pads": [1, 0, 2, 1], "strides": [2, 1]}, [*W.values()], 13,
    ),
    "conv_no_bias": ("Conv", IMAGE, {}, [W["w"]], 13),
    "conv_dilated": ("Conv", IMAGE, {"dilations": [2, 2]}, [*W.values()], 13),
    "conv_upper": (
        "Conv", IMAGE, {"auto_pad": "SAME_UPPER", "strides": [2, 2]}, [W["w"]], 13,
    ),
    "conv_lower": (
        "Conv", IMAGE, {"auto_pad": "SAME_LOWER", "strides": [2, 2]}, [W["w"]], 13,
    ),
    "conv_valid": ("Conv", IMAGE, {"auto_pad": "VALID"}, [W["w"]], 13),
    "conv_groups": ("Conv", (2, 4, 5, 5), {"group": 2}, [normal(6, 2, 3, 2)], 13),
    "conv_depthwise": (
        "Conv", (1, 3, 5, 5), {"group": 3, "pads": [1, 1, 1, 1]},
        [normal(3, 1, 3, 3), normal(3)], 13,
    ),
    "conv_multiplier": ("Conv", (1, 3, 5, 5), {"group": 3}, [normal(6, 1, 2, 3)], 13),
    "conv_1d": (
        "Conv", (1, 3, 11), {"pads": [1, 2], "strides": [2], "dilations": [2]},
        [normal(4, 3, 3), normal(4)], 13,
    ),
    "conv_1d_depthwise": ("Conv", (1, 3, 11), {"group": 3}, [normal(3, 1, 4)], 13),
    "conv_opset_11": ("Conv", IMAGE, {}, [W["w"]], 11),
    "gemm": ("Gemm", (2, 5), {}, [normal(5, 4), normal(4)], 13),
    "gemm_trans_b": ("Gemm", (2, 5), {"transB": 1}, [normal(4, 5), normal(1, 4)], 13),
    "gemm_trans_a": ("Gemm", (5, 2), {"transA": 1}, [normal(5, 4)], 13),
    "gemm_scaled": (
        "Gemm", (2, 5), {"alpha": 0.5, "beta": -2.0}, [normal(5, 4), normal(4)], 13,
    ),
    "gemm_scalar": ("Gemm", (2, 5), {}, [normal(5, 4), normal(1)], 13),
    "gemm_matrix": ("Gemm", (2, 5), {}, [normal(5, 4), normal(2, 4)], 13),
    "matmul": ("MatMul", (2, 3, 5), {}, [normal(5, 4)], 13),
    "batch_norm": (
        "BatchNormalization", IMAGE, {"epsilon": 1e-3},
        [normal(3), normal(3), normal(3), abs(normal(3)) + F(0.1)], 13,
    ),
    "batch_norm_9": (
        "BatchNormalization", IMAGE, {},
        [normal(3), normal(3), normal(3), abs(normal(3)) + F(0.1)], 9,
    ),
    "relu": ("Relu", IMAGE, {}, [], 13),
    "clip": ("Clip", IMAGE, {}, [F(-0.5), F(0.5)], 13),
    "clip_high": ("Clip", IMAGE, {}, [None, F(0.5)], 13),
    "clip_6": ("Clip", IMAGE, {"min": 0.0, "max": 1.0}, [], 6),
    "leaky_relu": ("LeakyRelu", IMAGE, {"alpha": 0.2}, [], 13),
    "sigmoid": ("Sigmoid", IMAGE, {}, [], 13),
    "tanh": ("Tanh", IMAGE, {}, [], 13),
    "softmax": ("Softmax", (2, 3, 4), {}, [], 13),
    "softmax_channels": ("Softmax", IMAGE, {"axis": 1}, [], 13),
    "softmax_11": ("Softmax", (2, 3, 4), {"axis": 1}, [], 11),
    "softmax_11_last": ("Softmax", (2, 3), {}, [], 11),
    "add": ("Add", IMAGE, {}, [normal(3, 1, 1)], 13),
    "sub": ("Sub", IMAGE, {}, [normal(1)], 13),
    "mul": ("Mul", IMAGE, {}, [normal(7, 6)], 13),
    "div": ("Div", IMAGE, {}, [normal(3, 1, 1) + F(5)], 13),
    "average_pool": ("AveragePool", IMAGE, {"kernel_shape": [3, 2]}, [], 13),
    "average_pool_padded": (
        "AveragePool", IMAGE,
        {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1], "strides": [2, 2]}, [], 13,
    ),
    "average_pool_counted": (
        "AveragePool", IMAGE,
        {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1], "count_include_pad": 1}, [], 13,
    ),
    "average_pool_1d": (
        "AveragePool", (1, 3, 9), {"kernel_shape": [2], "strides": [2]}, [], 13,
    ),
    "max_pool": (
        "MaxPool", IMAGE, {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}, [], 13,
    ),
    "max_pool_ceil": (
        "MaxPool", IMAGE, {"kernel_shape": [2, 2], "strides": [2, 2], "ceil_mode": 1},
        [], 13,
    ),
    "global_average": ("GlobalAveragePool", IMAGE, {}, [], 13),
    "global_average_1d": ("GlobalAveragePool", (2, 3, 5), {}, [], 13),
    "global_max": ("GlobalMaxPool", IMAGE, {}, [], 13),
    "reduce_mean": ("ReduceMean", IMAGE, {"axes": [2, -1], "keepdims": 0}, [], 13),
    "reduce_mean_all": ("ReduceMean", IMAGE, {}, [], 13),
    "reduce_mean_18": ("ReduceMean", IMAGE, {}, [ints(1)], 18),
    "flatten": ("Flatten", IMAGE, {}, [], 13),
    "flatten_axis": ("Flatten", IMAGE, {"axis": -1}, [], 13),
    "reshape": ("Reshape", IMAGE, {}, [ints(0, -1, 2)], 13),
    "squeeze": ("Squeeze", (1, 3, 1, 2), {}, [ints(0, -2)], 13),
    "squeeze_all": ("Squeeze", (1, 3, 1, 2), {}, [], 13),
    "squeeze_11": ("Squeeze", (1, 3, 1, 2), {"axes": [2]}, [], 11),
    "unsqueeze": ("Unsqueeze", (3, 2), {}, [ints(0, -1)], 13),
    "transpose": ("Transpose", (2, 3, 4), {"perm": [1, 2, 0]}, [], 13),
    "transpose_reverse": ("Transpose", (2, 3, 4), {}, [], 13),
    "pad": ("Pad", IMAGE, {}, [ints(0, 0, 1, 2, 0, 1, 0, 3), F(1.5)], 13),
    "pad_cuts": ("Pad", IMAGE, {}, [ints(0, 0, -1, 2, 0, 0, 1, -3)], 13),
    "pad_axes": ("Pad", IMAGE, {}, [ints(1, 2, 3, 4), F(0), ints(2, -1)], 18),
    "slice": ("Slice", IMAGE, {}, [ints(1, -5), ints(99, -1), ints(3, 2)], 13),
    "slice_steps": ("Slice", IMAGE, {}, [ints(0), ints(9), ints(2), ints(2)], 13),
    "slice_back": ("Slice", (5, 3), {}, [ints(4), ints(-9), ints(0), ints(-2)], 13),
    "slice_9": ("Slice", IMAGE, {"starts": [1], "ends": [3], "axes": [3]}, [], 9),
    "identity": ("Identity", IMAGE, {}, [], 13),
    "dropout": ("Dropout", IMAGE, {}, [], 13),
    "cast": ("Cast", IMAGE, {"to": 1}, [], 13),
}  # fmt: skip


@pytest.mark.parametrize("name", UNARY)
def test_operator(name: str) -> None:
    kind, shape, attrs, more, opset = UNARY[name]
    inputs = {"x": normal(*shape, seed=7)}
    constants = {f"c{i}": np.asarray(v) for i, v in enumerate(more) if v is not None}
    reads = ["x", *("" if v is None else f"c{i}" for i, v in enumerate(more))]
    data = model([(kind, reads, ["y"], attrs)], inputs, ["y"], constants, opset)
    assert_equal(data, inputs)


@pytest.mark.parametrize("kind", ["Add", "Sub", "Mul"])
def test_two_inputs(kind: str) -> None:
    inputs = {"a": normal(1, 3, 4, 5), "b": normal(3, 1, 5, seed=3)}
    assert_equal(model([(kind, ["a", "b"], ["y"], {})], inputs, ["y"]), inputs)


def test_concat_and_split() -> None:
    inputs = {"a": normal(1, 2, 3), "b": normal(1, 5, 3, seed=1)}
    nodes = [
        ("Concat", ["a", "b", "a"], ["c"], {"axis": 1}),
        ("Split", ["c", "sizes"], ["p", "q"], {"axis": -2}),
    ]
    data = model(nodes, inputs, ["p", "q"], {"sizes": ints(4, 5)})
    assert_equal(data, inputs)


def test_shape_arithmetic_is_folded() -> None:
    """x.view(x.size(0), -1) as exporters write it."""
    inputs = {"x": normal(2, 3, 4)}
    nodes = [
        ("Shape", ["x"], ["shape"], {}),
        ("Gather", ["shape", "zero"], ["n"], {"axis": 0}),
        ("Unsqueeze", ["n", "axes"], ["n1"], {}),
        ("Concat", ["n1", "rest"], ["target"], {"axis": 0}),
        ("Reshape", ["x", "target"], ["y"], {}),
    ]
    constants = {"zero": np.asarray(0, np.int64), "axes": ints(0), "rest": ints(-1)}
    graph = assert_equal(model(nodes, inputs, ["y"], constants), inputs)
    assert [node.op for node in graph.nodes] == ["reshape"]


def test_a_small_network_has_no_inner_transposes() -> None:
    """Convolution, norm, residual, pools, flatten: one transpose, at the input."""
    inputs = {"x": normal(1, 3, 8, 8)}
    constants = {
        "w1": normal(8, 3, 3, 3, seed=1), "w2": normal(8, 8, 3, 3, seed=2),
        "s": normal(8, seed=3), "o": normal(8, seed=4), "m": normal(8, seed=5),
        "v": abs(normal(8, seed=6)) + F(0.5), "f": normal(10, 128, seed=8),
        "shift": normal(8, 1, 1, seed=9), "six": F(6), "zero": F(0),
    }  # fmt: skip
    same = {"pads": [1, 1, 1, 1]}
    nodes = [
        ("Conv", ["x", "w1"], ["c1"], same),
        ("BatchNormalization", ["c1", "s", "o", "m", "v"], ["n1"], {}),
        ("Clip", ["n1", "zero", "six"], ["r1"], {}),
        ("Conv", ["r1", "w2"], ["c2"], same),
        ("Add", ["c2", "shift"], ["s2"], {}),
        ("Add", ["s2", "r1"], ["a"], {}),
        ("Relu", ["a"], ["r2"], {}),
        ("MaxPool", ["r2"], ["p"], {"kernel_shape": [2, 2], "strides": [2, 2]}),
        ("Flatten", ["p"], ["flat"], {}),
        ("Gemm", ["flat", "f"], ["y"], {"transB": 1}),
    ]
    graph = assert_equal(model(nodes, inputs, ["y"], constants), inputs)
    ops = [node.op for node in graph.nodes]
    assert ops == [
        "transpose", "conv2d", "conv2d", "add", "max_pool2d", "reshape", "dense",
    ]  # fmt: skip
    assert [n.name for n in graph.nodes if n.op == "conv2d"] == ["n0", "n3"]


def test_a_1d_network_has_no_inner_transposes() -> None:
    inputs = {"x": normal(1, 4, 20)}
    constants = {
        "w1": normal(8, 4, 3, seed=1), "w2": normal(8, 8, 3, seed=2),
        "b": normal(8, 1, seed=3), "f": normal(8, 3, seed=4),
    }  # fmt: skip
    nodes = [
        ("Conv", ["x", "w1"], ["c1"], {"pads": [1, 1]}),
        ("Add", ["c1", "b"], ["a1"], {}),
        ("Relu", ["a1"], ["r1"], {}),
        ("Conv", ["r1", "w2"], ["c2"], {"pads": [1, 1]}),
        ("Add", ["r1", "c2"], ["a2"], {}),
        ("MaxPool", ["a2"], ["p"], {"kernel_shape": [2], "strides": [2]}),
        ("GlobalAveragePool", ["p"], ["g"], {}),
        ("Squeeze", ["g", "last"], ["q"], {}),
        ("MatMul", ["q", "f"], ["y"], {}),
    ]
    constants["last"] = ints(2)
    graph = assert_equal(model(nodes, inputs, ["y"], constants), inputs)
    ops = [node.op for node in graph.nodes if node.op != "reshape"]
    assert ops == [
        "transpose",
        "conv2d",
        "conv2d",
        "add",
        "max_pool2d",
        "mean",
        "dense",
    ]


def test_functions_are_inlined() -> None:
    import onnx
    from onnx import helper

    scale = helper.make_function(
        "my.ops", "Twice", ["a"], ["b"], [helper.make_node("Add", ["a", "a"], ["b"])],
        [helper.make_opsetid("", 13)],
    )  # fmt: skip
    inputs = {"x": normal(2, 3)}
    data = model([("Relu", ["x"], ["y"], {})], inputs, ["y"])
    whole = onnx.load_model_from_string(data)
    del whole.graph.node[:]
    whole.graph.node.append(helper.make_node("Twice", ["x"], ["y"], domain="my.ops"))
    whole.functions.append(scale)
    whole.opset_import.append(helper.make_opsetid("my.ops", 1))
    graph = assert_equal(whole.SerializeToString(), inputs)
    assert [node.op for node in graph.nodes] == ["add"]
