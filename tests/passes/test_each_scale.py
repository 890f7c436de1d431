"""Floats of integers that several scales are made of: what onnxruntime computes, and no
float between the first quantize and the last dequantize. The graphs are as PyTorch's
PT2E leaves them: a quantize before what reads, none behind what makes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx
import onnxruntime
import pytest

import pybuild
from pybuild.dtype import DType
from pybuild.ops.interpret import interpret
from tests.frontends.doors.writers import Onnx

Scale = tuple[float, int]
A, B, C = (0.021, -9), (0.034, 5), (0.027, -40)


def pooled(o: Onnx, x: str) -> list[str]:
    """A LeakyReLU that two pools read, one behind the other, as in a small YOLO."""
    real = o.node("LeakyRelu", [x], alpha=0.1)
    one = o.node("MaxPool", [real], kernel_shape=[2, 2], strides=[2, 2])
    two = o.node("MaxPool", [one], kernel_shape=[2, 2], strides=[2, 2])
    return [o.through(one, A), o.through(two, B)]


def halves(o: Onnx, x: str) -> list[str]:
    """A SiLU whose halves are read, one of them twice, as in YOLOv8's C2f."""
    real = o.node("Mul", [x, o.node("Sigmoid", [x])])
    ends = [o.plain(np.asarray([at])) for at in (0, 4, 8, 1)]
    one = o.node("Slice", [real, ends[0], ends[1], ends[3]])
    two = o.node("Slice", [real, ends[1], ends[2], ends[3]])
    return [o.through(one, A), o.through(two, B), o.through(two, C)]


def shuffled(o: Onnx, x: str) -> list[str]:
    """Channels of two scales, shuffled, and halved for two readers (ShuffleNetV2)."""
    other = o.through(o.node("Neg", [x]), B)
    joined = o.node("Concat", [x, other], axis=1)
    apart = o.node("Reshape", [joined, o.plain(np.asarray([1, 2, 8, 6, 6]))])
    turned = o.node("Transpose", [apart], perm=[0, 2, 1, 3, 4])
    flat = o.node("Reshape", [turned, o.plain(np.asarray([1, 16, 6, 6]))])
    ends = [o.plain(np.asarray([at])) for at in (0, 8, 16, 1)]
    one = o.node("Slice", [flat, ends[0], ends[1], ends[3]])
    two = o.node("Slice", [flat, ends[1], ends[2], ends[3]])
    return [o.through(one, A), o.through(two, C)]


def is_float(graph: pybuild.ir.graph.Graph, name: str) -> bool:
    return name in graph.tensors and graph.tensor(name).dtype is DType.FLOAT32


@pytest.mark.parametrize("made", [pooled, halves, shuffled])
def test_each_scale_is_made_of_integers(made: Callable[[Onnx, str], list[str]]) -> None:
    o = Onnx(int8=True)
    outputs = made(o, o.input((1, 6, 6, 8)))
    model = onnx.load_from_string(o.file(outputs[0]))
    for name in outputs[1:]:
        model.graph.output.add().CopyFrom(
            onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, None)
        )
    data = onnx.shape_inference.infer_shapes(model).SerializeToString()
    graph = pybuild.load(data).lower()
    between = [
        node.op
        for node in graph.nodes
        if node.op not in ("quantize", "dequantize")
        and any(is_float(graph, name) for name in (*node.inputs, *node.outputs))
    ]
    assert between == []
    x = np.random.default_rng(942).normal(0, 2, (1, 8, 6, 6)).astype(np.float32)
    found = interpret(graph, {"x0": x})
    options = onnxruntime.SessionOptions()
    off = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.graph_optimization_level = off
    session = onnxruntime.InferenceSession(data, options)
    for name, wanted in zip(outputs, session.run(None, {"x0": x}), strict=True):
        np.testing.assert_array_equal(found[name], wanted)


def test_what_else_reads_a_float_leaves_it() -> None:
    """A float output is computed once, and quantised twice."""
    o = Onnx(int8=True)
    x = o.input((1, 6, 6, 8))
    real = o.node("LeakyRelu", [x], alpha=0.1)
    one, two = o.through(real, A), o.through(real, B)
    output = o.node("Sum", [one, two, real])
    ops = [node.op for node in pybuild.load(o.file(output)).lower().nodes]
    assert ops.count("leaky_relu") == 1
