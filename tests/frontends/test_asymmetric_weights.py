"""Weights with a zero point, as uint8 files have them: the same graph through each
door, every bit, and a byte of flash for each weight."""

from __future__ import annotations

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

import pybuild
from pybuild.frontends import graphjson
from pybuild.frontends.onnx import load as load_onnx
from pybuild.frontends.tflite import load as load_tflite
from pybuild.graph_builder import GraphBuilder
from pybuild.ir.graph import Graph
from pybuild.ops.interpret import interpret
from pybuild.passes import PassOptions, run
from tests.frontends.dead_channels import (
    TOP,
    Layer,
    asymmetric,
    drawn,
    onnx_model,
    tflite,
)
from tests.ops.litert import run_litert

LAYERS = ("conv", "depthwise", "dense", "transpose")
ZEROS = (110, 128, 0, 255)


def layer(name: str, zero: int) -> Layer:
    return asymmetric(drawn(name, [], 0, live=11), zero)


def onnx_bytes(name: str, made: Layer, linear: bool = False) -> bytes:
    model = onnx_model(name, made, linear)
    for tensor in model.graph.initializer:  # one scale and zero point
        if tensor.name in ("ws", "wz", "bs", "bz") and tensor.dims == [1]:
            value = numpy_helper.to_array(tensor).reshape(())
            tensor.CopyFrom(numpy_helper.from_array(value, tensor.name))
    for node in model.graph.node:
        if node.op_type == "DequantizeLinear":
            del node.attribute[:]
    return bytes(model.SerializeToString())


def weights(graph: Graph) -> list[tuple[str, str, bytes]]:
    """Each layer, and the type and bytes of its weights."""
    layers = [n for n in graph.nodes if n.op in ("conv2d", "depthwise_conv2d", "dense")]
    found = [(n.op, graph.constants[n.inputs[1]]) for n in layers]
    return [(op, w.dtype.name, w.tobytes()) for op, w in found]


@pytest.mark.parametrize("name", LAYERS)
def test_doors_give_one_graph(name: str) -> None:
    for zero in ZEROS:
        made = layer(name, zero)
        doors = [
            load_tflite("m.tflite", tflite(name, made), {}),
            load_onnx("m.onnx", onnx_bytes(name, made), {}),
        ]
        if name == "conv":
            doors.append(load_onnx("m.onnx", onnx_bytes(name, made, True), {}))
        first, *others = (weights(run(graph, PassOptions())) for graph in doors)
        assert first and all(other == first for other in others)
        assert {kind for _, kind, _ in first} <= {"int8", "int16"}


@pytest.mark.parametrize("name", LAYERS)
def test_bits_are_those_of_onnx_runtime(name: str) -> None:
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel(0)
    for zero in ZEROS:
        data = onnx_bytes(name, layer(name, zero))
        net = onnxruntime.InferenceSession(data, options)
        shape = net.get_inputs()[0].shape
        x = np.random.default_rng(zero).integers(0, 256, shape).astype(np.uint8)
        (wanted,) = net.run(None, {"x": x})
        graph = run(load_onnx("m.onnx", data, {}), PassOptions("onnx"))
        have = interpret(graph, {"x": x})[graph.outputs[0]]
        np.testing.assert_array_equal(have, wanted)


@pytest.mark.parametrize("name", LAYERS)
def test_bits_are_those_of_litert(name: str) -> None:
    for zero in ZEROS:
        made = layer(name, zero)
        data = tflite(name, made)
        x = np.random.default_rng(zero).integers(0, 256, made.x).astype(np.uint8)
        graph = run(load_tflite("m.tflite", data, {}), PassOptions("litert"))
        have = interpret(graph, {"x": x})[graph.outputs[0]]
        (values,) = run_litert(data, [{"x": x}])
        np.testing.assert_array_equal(have, values["y"])


def test_flash_is_no_larger_than_the_file() -> None:
    """A byte for each weight; of depthwise layers, which have few, two."""
    rng = np.random.default_rng(0)
    for shape, most in (((32, 1, 1, 64), 1.02), ((24, 3, 3, 16), 1.03)):
        made = layer("conv", 120)
        w = rng.normal(120, 40, shape).clip(0, 255).round().astype(np.uint8)
        made = Layer(
            (1, 5, 5, shape[3]), (1, 5, 5, shape[0]), w,
            rng.integers(-900, 900, shape[0]).astype(np.int32), made.scales, 0,
            0.05, 0.9, 0, 120,
        )  # fmt: skip
        for target in ("cortex-m0", "cortex-m4", "cortex-m55", "rv32imc"):
            model = pybuild.load(tflite("conv", made))
            plan = model.build(target=target).plan
            held = [c for s in plan.steps for c in s.candidate.constants]
            size = sum(c.array.nbytes for c in held if c.role == "weights")
            assert w.nbytes <= size <= most * w.nbytes, target


def test_zero_points_of_channels() -> None:
    """Each channel has one of its own: ONNX has such files."""
    made = layer("conv", 110)
    model = onnx_model("conv", made, False)
    outs = len(made.w)
    zeros = (100 + np.arange(outs)).astype(np.uint8)
    scales = np.full(outs, made.scales[0], np.float32)
    told = {"ws": scales, "wz": zeros, "bs": scales * np.float32(made.x_scale),
            "bz": np.zeros(outs, np.int32)}  # fmt: skip
    for tensor in model.graph.initializer:
        if tensor.name in told:
            tensor.CopyFrom(numpy_helper.from_array(told[tensor.name], tensor.name))
    data = model.SerializeToString()
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel(0)
    net = onnxruntime.InferenceSession(data, options)
    x = np.random.default_rng(1).integers(0, 256, net.get_inputs()[0].shape)
    (wanted,) = net.run(None, {"x": x.astype(np.uint8)})
    graph = run(load_onnx("m.onnx", data, {}), PassOptions("onnx"))
    have = interpret(graph, {"x": x.astype(np.uint8)})[graph.outputs[0]]
    np.testing.assert_array_equal(have, wanted)
    assert [op for op, *_ in weights(graph)] == ["conv2d"]


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ((1, 3, 8, 12), (1, 3, 12, 5)),
        ((4, 6), (6, 3)),
        ((2, 5, 6), (6, 4)),
        ((6,), (6, 3)),
    ],
)
def test_products_of_two_tensors_are_integers(
    a: tuple[int, ...], b: tuple[int, ...]
) -> None:
    """QLinearMatMul of two computed sides: every bit, and one kernel of int8."""
    held = {
        "as": np.float32(0.02), "az": np.uint8(120), "bs": np.float32(0.03),
        "bz": np.uint8(140), "ys": np.float32(0.05), "yz": np.uint8(110),
    }  # fmt: skip
    node = helper.make_node(
        "QLinearMatMul", ["a", "as", "az", "b", "bs", "bz", "ys", "yz"], ["y"]
    )
    shape = np.matmul(np.zeros(a), np.zeros(b)).shape
    sizes = (("a", a), ("b", b), ("y", shape))
    values = [helper.make_tensor_value_info(n, TensorProto.UINT8, s) for n, s in sizes]
    graph = helper.make_graph(
        [node], "g", values[:2], values[2:],
        [numpy_helper.from_array(np.asarray(v), n) for n, v in held.items()],
    )  # fmt: skip
    opset = [helper.make_opsetid("", 17)]
    data = helper.make_model(
        graph, opset_imports=opset, ir_version=8
    ).SerializeToString()
    rng = np.random.default_rng(len(a))
    given = {n: rng.integers(0, 256, s).astype(np.uint8) for n, s in sizes[:2]}
    (wanted,) = onnxruntime.InferenceSession(data).run(None, given)
    made = run(load_onnx("m.onnx", data, {}), PassOptions("onnx"))
    np.testing.assert_array_equal(interpret(made, given)[made.outputs[0]], wanted)
    (product,) = (n for n in made.nodes if n.op == "matmul")
    assert {made.tensor(n).dtype.value for n in product.inputs} == {"int8"}
    assert "dequantize" not in {n.op for n in made.nodes}


@pytest.mark.parametrize("name", LAYERS[:3])
def test_weights_that_users_may_replace(name: str) -> None:
    """They stay as the graph has them, for kernels of any core."""
    made = layer(name, 110)
    model = pybuild.load(tflite(name, made))
    rng = np.random.default_rng(3)
    x = {"x": rng.integers(0, 256, made.x).astype(np.uint8)}
    (have,) = model.build(params="replaceable").host("llvm").run(**x).values()
    (values,) = run_litert(tflite(name, made), [x])
    np.testing.assert_array_equal(have, values["y"])


@pytest.mark.parametrize("name", LAYERS)
def test_channels_with_a_bias_at_the_end_of_int32(name: str) -> None:
    made = layer(name, 110)
    np.moveaxis(made.w, made.axis, 0)[2] = made.zero
    made.bias[2] = TOP
    x = np.random.default_rng(4).integers(0, 256, made.x).astype(np.uint8)
    graph = run(load_tflite("m.tflite", tflite(name, made), {}), PassOptions("litert"))
    have = interpret(graph, {"x": x})[graph.outputs[0]]
    (values,) = run_litert(tflite(name, made), [{"x": x}])
    np.testing.assert_array_equal(have, values["y"])


def test_a_graph_in_json_is_the_graph_itself() -> None:
    graph = load_tflite("m.tflite", tflite("conv", layer("conv", 110)), {})
    again = graphjson.load("g.json", *graphjson.dump(graph))
    first, second = (weights(run(one, PassOptions())) for one in (graph, again))
    assert first == second and first[0][1] == "int16"


def test_int16_weights_that_fit_a_byte_are_int8() -> None:
    net = GraphBuilder("narrow")
    x = net.input("x", (1, 4), "int8", quant=(0.05, 3))
    w = net.constant("w", np.arange(-6, 6, dtype=np.int16).reshape(3, 4), (0.01, 0))
    net.output(net.op("dense", x, w, quant=(0.05, 0)), "y")
    ((_, kind, _),) = weights(run(net.build(), PassOptions()))
    assert kind == "int8"
