"""Layers between a DequantizeLinear and a QuantizeLinear that were float32 islands, or
not built at all, as exporters write them: what onnxruntime computes."""

from __future__ import annotations

import numpy as np
import onnxruntime
import pytest

import pybuild
from pybuild.dtype import Array, DType
from pybuild.ir.graph import Graph
from pybuild.ops.interpret import interpret
from tests.frontends.doors.layers import numbers, places
from tests.frontends.doors.writers import Onnx

_CHANCE = np.random.default_rng(943)
A = (0.05, 3)


def _ran(data: bytes, shape: tuple[int, ...]) -> tuple[Graph, Array, Array]:
    """The graph after all passes, what it computes, and what onnxruntime does."""
    graph = pybuild.load(data).lower()
    x = np.random.default_rng(944).normal(0, 2, shape).astype(np.float32)
    options = onnxruntime.SessionOptions()
    off = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.graph_optimization_level = off
    session = onnxruntime.InferenceSession(data, options)
    (wanted,) = session.run(None, {"x0": x})
    return graph, interpret(graph, {"x0": x})[graph.outputs[0]], wanted


def test_scales_of_the_inputs_of_a_transposed_convolution() -> None:
    """As PT2E has its weights; another number of outputs was an error of numpy."""
    o = Onnx(int8=True)
    x = o.input((1, 5, 4, 6))
    weights = _CHANCE.integers(-127, 128, (6, 3, 2, 2)).astype(np.int8)
    held = o._of(weights, _CHANCE.uniform(0.01, 0.02, 6).astype(np.float32), 0)
    bias = o.plain(_CHANCE.normal(0, 1, 3).astype(np.float32))
    y = o.through(o.node("ConvTranspose", [x, held, bias], strides=[2, 2]), A)
    _, found, wanted = _ran(o.file(y), (1, 6, 5, 4))
    np.testing.assert_allclose(found, wanted, 1e-6)


def batch_norm(o: Onnx, x: str) -> str:
    """Behind a convolution whose result the file has in int8."""
    if len(o.inputs["x0"]) > 2:
        kernel = numbers(8, *o.inputs["x0"][1:2], *[1] * (len(o.inputs["x0"]) - 2))
        x = o.op("Conv", [x, *o.weighted(kernel, 0, numbers(8))])
    kinds = [(0.5, 1.5), (-1.0, 1.0), (-0.3, 0.3), (0.5, 1.5)]
    held = [o.plain(_CHANCE.uniform(*kind, 8).astype(np.float32)) for kind in kinds]
    return o.node("Relu", [o.node("BatchNormalization", [x, *held])])


@pytest.mark.parametrize("shape", [(2, 8), (1, 8, 20), (1, 8, 5, 4)])
def test_a_line_for_each_channel(shape: tuple[int, ...]) -> None:
    """Of any number of axes, as nets on samples of one axis have it."""
    o = Onnx(int8=True)
    o.inputs["x0"] = shape
    y = o.through(batch_norm(o, o.through("x0")), A)
    graph, found, wanted = _ran(o.file(y), shape)
    assert not {"add", "mul", "map"} & {node.op for node in graph.nodes}
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("shuffled", [False, True])
def test_a_mean_of_what_is_joined(shuffled: bool) -> None:
    """PT2E gives a concat no scale that only a mean reads, as behind ShuffleNet."""
    o = Onnx(int8=True)
    x = o.op(
        "Conv", [o.input((1, 6, 4, 8)), *o.weighted(numbers(8, 8, 1, 1), 0, numbers(8))]
    )
    other = o.op("Neg", [x], (0.04, 7))
    y = o.node("Concat", [x, other], axis=1)
    if shuffled:
        y = o.node("Reshape", [y, o.plain(places(1, 2, 8, 6, 4))])
        y = o.node("Transpose", [y], perm=[0, 2, 1, 3, 4])
        y = o.node("Reshape", [y, o.plain(places(1, 16, 6, 4))])
    mean = o.node("ReduceMean", [y, o.plain(places(2, 3))], keepdims=0)
    last = o.weighted(numbers(5, 16), 0, numbers(5))
    y = o.op("Gemm", [o.through(mean, (0.01, 0)), *last], transB=1)
    graph, found, wanted = _ran(o.file(y), (1, 8, 6, 4))
    floats = {
        n.op for n in graph.nodes if graph.tensor(n.inputs[0]).dtype is DType.FLOAT32
    }
    assert floats == {"quantize"}
    np.testing.assert_array_equal(found, wanted)


def test_a_norm_has_factors_of_integers() -> None:
    """As quantize_static writes them: they are dequantised, and of the norm's node."""
    o = Onnx(int8=True)
    x = o.input((1, 6, 4, 8))
    each = [
        o._of(_CHANCE.integers(20, 127, 8).astype(np.int8), np.float32(0.01), 0)
        for _ in range(2)
    ]
    y = o.node("InstanceNormalization", [x, *each])
    graph, found, wanted = _ran(o.file(o.through(y, A)), (1, 8, 6, 4))
    norm = next(n for n in graph.nodes if n.op == "group_norm")
    assert len(norm.inputs) == 3 and not any(n.op == "map" for n in graph.nodes)
    # where a float is between two integers, either may be the rounded one
    assert np.abs(found - wanted).max() < 1.01 * A[0]
    assert (found != wanted).mean() < 0.02


@pytest.mark.parametrize("kind", ["MaxPool", "ReduceMax"])
def test_maxima_of_a_function_are_of_bytes(kind: str) -> None:
    """The function has no scale of its own in the file, as HardSwish by PT2E."""
    o = Onnx(int8=True)
    x = o.input((1, 6, 4, 8))
    y = o.node("Mul", [x, o.node("Sigmoid", [x])])
    if kind == "MaxPool":
        y = o.node("MaxPool", [y], kernel_shape=[2, 2], strides=[2, 2])
    else:
        y = o.node("ReduceMax", [y, o.plain(places(2, 3))], keepdims=0)
    graph, found, wanted = _ran(o.file(o.through(y, A)), (1, 8, 6, 4))
    floats = {n.op for n in graph.nodes if _is_float(graph, n.output)}
    assert floats <= {"dequantize", "transpose"}, floats
    assert [n.op for n in graph.nodes].count("lookup") == 1
    np.testing.assert_array_equal(found, wanted)


def _is_float(graph: Graph, name: str) -> bool:
    return graph.tensor(name).dtype is DType.FLOAT32


@pytest.mark.parametrize("kind", ["Elu", "Exp"])
def test_a_function_that_is_not_rounded_is_a_table_of_floats(kind: str) -> None:
    """As before a bilinear Resize, which ONNX Runtime computes of floats."""
    o = Onnx(int8=True)
    y = o.node(kind, [o.input((1, 8, 8, 8))])
    half = {"coordinate_transformation_mode": "half_pixel", "mode": "linear"}
    sizes = o.plain(np.array([1, 1, 2, 2], np.float32))
    y = o.through(o.node("Resize", [y, "", sizes], **half), A)
    graph, found, wanted = _ran(o.file(y), (1, 8, 8, 8))
    ops = [n.op for n in graph.nodes if _is_float(graph, n.output)]
    ends = ("dequantize", "transpose")
    assert [op for op in ops if op not in ends] == ["lookup", "resize_bilinear"]
    assert np.abs(found - wanted).max() < 1.01 * A[0]
    assert (found != wanted).mean() < 0.02
