"""--hybrid int8: dense layers of int8 weights and float32 inputs are sums of int8
products, whichever format the file has; the same numbers as a few lines of numpy.
"""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import pybuild
from pybuild.dtype import Array

ROWS, DEPTH, OUTS = 3, 70, 9
CHANCE = np.random.default_rng(5)
WEIGHTS = CHANCE.integers(-127, 128, (OUTS, DEPTH)).astype(np.int8)
SCALES = CHANCE.uniform(0.001, 0.01, OUTS).astype(np.float32)
BIAS = CHANCE.normal(0, 1, OUTS).astype(np.float32)
X = CHANCE.normal(0, 1, (ROWS, DEPTH)).astype(np.float32)
X[1] = 0
# how the product is written; how many scales; the zero point
WRITTEN = ("gemm", "matmul")


def net(written: str, scales: Array = SCALES, zero: int = 0) -> onnx.ModelProto:
    attrs = {"axis": 0} if scales.ndim else {}
    nodes = [helper.make_node("DequantizeLinear", ["w", "s", "z"], ["real"], **attrs)]
    if written == "gemm":
        given = ["x", "real", "bias"]
        nodes += [helper.make_node("Gemm", given, ["y"], transB=1)]
    else:
        nodes += [
            helper.make_node("Transpose", ["real"], ["turned"], perm=[1, 0]),
            helper.make_node("MatMul", ["x", "turned"], ["product"]),
            helper.make_node("Add", ["product", "bias"], ["y"]),
        ]
    held = {"w": WEIGHTS, "s": scales, "bias": BIAS}
    held["z"] = np.full(scales.shape, zero, np.int8)
    real = TensorProto.FLOAT
    ends = [
        helper.make_tensor_value_info(name, real, shape)
        for name, shape in (("x", X.shape), ("y", (ROWS, OUTS)))
    ]
    known = [numpy_helper.from_array(value, name) for name, value in held.items()]
    graph = helper.make_graph(nodes, "net", ends[:1], ends[1:], known)
    opset = helper.make_opsetid("", 17)
    return helper.make_model(graph, opset_imports=[opset], ir_version=9)


def wanted(scales: Array, zero: int = 0) -> Array:
    """Each row int8 by its greatest number, ties away from zero."""
    reach = np.abs(X).max(1, keepdims=True)
    inverse = np.divide(np.float32(127), reach, where=reach > 0, out=0 * reach)
    steps = X * inverse
    q = (np.sign(steps) * np.floor(np.abs(steps) + np.float32(0.5))).astype(np.int32)
    sums = (q @ (WEIGHTS.T.astype(np.int32) - zero)).astype(np.float32)
    return sums * (reach / np.float32(127) * scales) + BIAS


@pytest.mark.parametrize("scales", [SCALES, SCALES[0]], ids=["each", "one"])
@pytest.mark.parametrize("written", WRITTEN)
def test_layers_of_int8_weights_are_computed_in_int8(
    written: str, scales: Array
) -> None:
    scales = np.asarray(scales)
    model = pybuild.load(net(written, scales), hybrid="int8")
    library = model.build(target="cortex-m4")
    ops = [step.node.op for step in library.plan.steps]
    assert ops[:3] == ["quantize_dynamic", "dense_sums", "scale_sums"]
    made = model.build().host("llvm").run(x=X)["y"]
    np.testing.assert_array_max_ulp(made, wanted(scales), 1)
    half = np.abs(X).max(1)[:, None] / 254 * _each(scales)  # a step of the input
    assert (np.abs(made - _real(scales)) <= half * 1.001 + 1e-6).all()
    assert library.report.flash.weights < 2 * WEIGHTS.nbytes


def _each(scales: Array) -> Array:
    """The sum of the sizes of the weights of each output."""
    return np.asarray(np.abs(WEIGHTS.astype(np.int32)).sum(1) * scales)


def _real(scales: Array) -> Array:
    whole = (WEIGHTS.astype(np.float32).T * scales).T
    return np.asarray(X @ whole.T + BIAS, np.float32)


def test_without_the_option_they_are_real_numbers() -> None:
    for hybrid in ("litert", "float"):
        model = pybuild.load(net("gemm"), hybrid=hybrid)
        made = model.build().host("llvm").run(x=X)["y"]
        np.testing.assert_allclose(made, _real(SCALES), 1e-5, 1e-6)


@pytest.mark.parametrize("scales", [SCALES, SCALES[0]], ids=["each", "one"])
def test_a_zero_point_of_weights_is_taken_out(scales: Array) -> None:
    scales = np.asarray(scales)
    model = pybuild.load(net("gemm", scales, -90), hybrid="int8")
    library = model.build(target="cortex-m4")
    ops = [step.node.op for step in library.plan.steps]
    assert ops[:3] == ["quantize_dynamic", "dense_sums", "scale_sums"]
    made = model.build().host("llvm").run(x=X)["y"]
    np.testing.assert_array_max_ulp(made, wanted(scales, -90), 1)
    assert library.report.flash.weights < 2 * WEIGHTS.nbytes


def test_a_graph_json_has_no_such_layers() -> None:
    with pytest.raises(pybuild.BuildError, match=r"onnx and \.pt2 and \.tflite files"):
        pybuild.load('{"nodes": []}', hybrid="int8")
