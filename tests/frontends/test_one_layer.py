"""A layer is the same graph through each door: operators, attributes and constants."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

import pybuild
from pybuild.errors import BuildError
from pybuild.frontends import graphjson
from pybuild.frontends.onnx import load as load_onnx
from pybuild.frontends.tflite import load as load_tflite
from pybuild.ir.graph import Graph
from pybuild.ops.interpret import interpret
from pybuild.passes import PassOptions, run
from tests.frontends.dead_channels import LAYERS, drawn, onnx_model, tflite

# what a window of ConvTranspose may have: kernel, strides, and further attributes
WINDOWS: dict[str, tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = {
    "plain": ((2, 2), (2, 2), {}),
    "padded": ((3, 3), (2, 2), {"pads": [1, 1, 1, 1], "output_padding": [1, 1]}),
    "wide": ((4, 4), (2, 2), {"pads": [1, 1, 1, 1]}),
    "gaps": ((2, 2), (3, 3), {}),
    "dilated": ((3, 2), (3, 2), {"dilations": [2, 1]}),
    "same": ((3, 3), (2, 2), {"auto_pad": "SAME_UPPER", "output_shape": [10, 8]}),
    "cut": ((2, 2), (2, 2), {"pads": [3, 3, 0, 0]}),
    "depthwise": ((3, 3), (2, 2), {"group": 4}),
    "groups": ((3, 3), (2, 2), {"group": 2}),
    "one axis": ((5,), (3,), {"pads": [4, 3]}),
}
GENERAL = ("groups",)  # no kernel of convolutions has groups of several channels here


def _layers(graph: Graph) -> list[tuple[object, ...]]:
    """Each node that computes, without its rounding and the moves of the boundary."""
    found: list[tuple[object, ...]] = []
    for node in graph.nodes:
        if node.op in ("transpose", "quantize", "dequantize"):
            continue
        attrs = {k: v for k, v in sorted(node.attrs.items()) if k != "rounding"}
        held = [graph.constants[n] for n in node.inputs if n in graph.constants]
        found.append((node.op, repr(attrs), [(c.dtype, c.tobytes()) for c in held]))
    return found


@pytest.mark.parametrize("layer", LAYERS)
def test_tflite_and_onnx_give_one_graph(layer: str) -> None:
    made = drawn(layer, [], 0)
    data = onnx_model(layer, made, False).SerializeToString()
    doors = [
        load_tflite("m.tflite", tflite(layer, made), {}), load_onnx("m.onnx", data, {}),
    ]  # fmt: skip
    first, second = (_layers(run(graph, PassOptions())) for graph in doors)
    assert first == second and any(op == "conv2d" for op, *_ in first) == (
        layer in ("conv", "transpose")
    )


def _conv_transpose(window: str, whole: bool, relu: bool) -> onnx.ModelProto:
    kernel, strides, more = WINDOWS[window]
    chance, rank = np.random.default_rng(len(window)), len(kernel)
    weights = chance.integers(-127, 128, (4, 4 // more.get("group", 1), *kernel))
    axis = 0 if "group" in more else 1
    held: dict[str, Any] = {
        "xs": np.float32(0.02), "xz": np.int8(3),
        "ys": np.float32(0.3), "yz": np.int8(-9),
        "wq": weights.astype(np.int8), "wz": np.zeros(weights.shape[axis], np.int8),
        "ws": np.float32(chance.uniform(0.01, 0.02, (weights.shape[axis],))),
        "bq": chance.integers(-999, 999, 4).astype(np.int32),
        "bz": np.zeros(4, np.int32),
    }  # fmt: skip
    if window == "groups":  # a scale an output channel lies along no axis of these
        held |= {"ws": np.float32(0.01), "wz": np.int8(0)}
    held["bs"] = np.full(4, np.float32(0.02) * held["ws"], np.float32)
    made = [
        ("DequantizeLinear", "wq ws wz", "w", {"axis": axis}),
        ("DequantizeLinear", "bq bs bz", "b", {"axis": 0}),
        ("ConvTranspose", "x w b", "t", {"strides": list(strides), **more}),
    ]  # fmt: skip
    made += [("Relu", "t", "r", {})] if relu else []
    last = "r" if relu else "t"
    if whole:
        made[2] = ("ConvTranspose", "xd w b", "t", made[2][3])
        made.insert(0, ("QuantizeLinear", "x xs xz", "xq", {}))
        made.insert(1, ("DequantizeLinear", "xq xs xz", "xd", {}))
        made.append(("QuantizeLinear", f"{last} ys yz", "y", {}))
        last = "y"
    nodes = [helper.make_node(k, i.split(), [o], **a) for k, i, o, a in made]
    sizes = (1, 4, *((5, 4) if rank == 2 else (9,)))
    kind = TensorProto.INT8 if whole else TensorProto.FLOAT
    graph = helper.make_graph(
        nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, sizes)],
        [helper.make_tensor_value_info(last, kind, [f"d{i}" for i in range(rank + 2)])],
        [numpy_helper.from_array(np.asarray(v), n) for n, v in held.items()],
    )  # fmt: skip
    return helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8
    )


@pytest.mark.parametrize(("window", "relu"), [*product(WINDOWS, [False, True])])
def test_conv_transpose_of_onnx(window: str, relu: bool) -> None:
    """int8: every bit is ONNX Runtime's, and the layer is one of integers."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel(0)
    for whole in (True, False):
        data = _conv_transpose(window, whole, relu).SerializeToString()
        graph = run(load_onnx("m.onnx", data, {}), PassOptions("onnx"))
        net = onnxruntime.InferenceSession(data, options)
        shape = net.get_inputs()[0].shape
        x = np.random.default_rng(7).normal(0, 1, shape).astype(np.float32)
        (want,) = net.run(None, {"x": x})
        have = interpret(graph, {"x": x})[graph.outputs[0]]
        if whole:
            np.testing.assert_array_equal(have, want)
        else:
            np.testing.assert_allclose(np.float64(have), want, rtol=1e-5, atol=1e-5)
        names = {n.op for n in graph.nodes}
        if window not in GENERAL:
            assert names & {"conv2d", "depthwise_conv2d"} and "conv" not in names
            assert "dequantize" not in names or not whole


def test_conv_transpose_by_our_quantiser_and_from_graph_json() -> None:
    """Integers of us, near the floats; a graph in JSON is the graph itself."""
    model = pybuild.load(_conv_transpose("padded", False, True).SerializeToString())
    x = np.random.default_rng(3).normal(0, 1, (100, 1, 4, 5, 4)).astype(np.float32)
    made = pybuild.quantise(model, {"x": x[:, 0]}).build()
    ops = [step.node.op for step in made.plan.steps]
    layers = [i for i, op in enumerate(ops) if op == "conv2d"]
    assert layers and "dequantize" not in ops[: max(layers)]
    nets = [library.host("llvm") for library in (model.build(), made)]
    (want,), (have,) = (net.run(x=x[0]).values() for net in nets)
    apart = np.float64(have) - np.float64(want)
    assert np.abs(apart).max() < 0.03 * np.abs(want).max()
    again = graphjson.load("g.json", *graphjson.dump(model.graph))
    first, second = (run(graph, PassOptions()) for graph in (model.graph, again))
    assert _layers(first) == _layers(second)


def test_a_transposed_layer_of_a_device_is_refused() -> None:
    graph = load_onnx(
        "m.onnx", _conv_transpose("plain", False, False).SerializeToString(), {}
    )
    placed = replace(graph, nodes=tuple(replace(n, device=1) for n in graph.nodes))
    with pytest.raises(BuildError, match="a transposed convolution is several nodes"):
        run(placed, PassOptions())
