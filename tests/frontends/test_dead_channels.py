"""Dead channels are constants, through every door: every bit is LiteRT's, or ONNX
Runtime's.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest

import pybuild
from pybuild.errors import BuildError
from pybuild.frontends import graphjson
from pybuild.frontends.onnx import load as load_onnx
from pybuild.frontends.torch.load import converted
from pybuild.frontends.torch.reader.program import Call, Kind, Program, Ref
from pybuild.ir.graph import Quant
from pybuild.ops.interpret import interpret
from pybuild.passes import PassOptions, run
from pybuild.verify.check import check
from tests.frontends.dead_channels import (
    DEATHS,
    LAYERS,
    Layer,
    drawn,
    onnx_model,
    tflite,
)
from tests.magnitudes.test_other_doors import call
from tests.ops.litert import run_litert

_CHANCE = np.random.default_rng(5)


@pytest.mark.parametrize("wide", [0, 32, 64])
@pytest.mark.parametrize("layer", LAYERS)
def test_every_bit_is_litert_s(layer: str, wide: int, tmp_path: Path) -> None:
    if layer == "depthwise" and wide == 32:
        return  # LiteRT takes biases of int64 alone there
    path = tmp_path / "dead.tflite"
    path.write_bytes(tflite(layer, drawn(layer, [*DEATHS], wide)))
    made = check(path, pybuild.build(path), ref="litert", samples=6)
    assert made.ok and made.reference.startswith("LiteRT"), made
    assert set(made.backends) == {"c", "llvm"}


@pytest.mark.parametrize("death", DEATHS)
@pytest.mark.parametrize("fused", [0, 1])
def test_layers_of_nothing_else(death: str, fused: int, tmp_path: Path) -> None:
    path = tmp_path / "dead.tflite"
    path.write_bytes(tflite("dense", drawn("dense", [death] * 4, 0, live=0), fused))
    library = pybuild.build(path)
    assert check(path, library, ("llvm",), "litert", 3).ok


@pytest.mark.parametrize("wide", [0, 32])
@pytest.mark.parametrize("layer", LAYERS)
def test_every_bit_is_onnx_runtime_s(layer: str, wide: int) -> None:
    both = layer in ("conv", "depthwise") and not wide
    for linear in (False, True) if both else (False,):
        made = drawn(layer, [*DEATHS], wide)
        data = onnx_model(layer, made, linear).SerializeToString()
        graph = run(load_onnx("m.onnx", data, {}), PassOptions("onnx"))
        assert not [n for n in graph.nodes if n.op == "dequantize"]
        net = onnxruntime.InferenceSession(data)
        shape, half = net.get_inputs()[0].shape, 2**15 if wide else 2**7
        for _ in range(4):
            x = _CHANCE.integers(-half, half, shape)
            x = x.astype(np.int16 if wide else np.int8)
            (want,) = net.run(None, {"x": x})
            np.testing.assert_array_equal(interpret(graph, {"x": x})["y"], want)


def _linear_of_torch(made: Layer) -> bytes:
    """As PT2E leaves it: all in quantized_decomposed."""
    scales, outs = made.scales, len(made.scales)
    held = {"w": made.w, "ws": scales, "wz": np.zeros(outs, np.int8), "b": made.bias,
            "bs": scales * np.float32(made.x_scale),
            "bz": np.zeros(outs, np.int32)}  # fmt: skip
    whole = {"quant_min": -128, "quant_max": 127, "dtype": Kind("int8")}
    x = {"scale": made.x_scale, "zero_point": -3, **whole}
    y = {"scale": made.y_scale, "zero_point": 5, **whole}
    line = "quantized_decomposed.{}quantize_per_{}.default".format

    def by_channel(name: str, kind: str) -> Call:
        scale, zero = Ref(f"{name}s"), Ref(f"{name}z")
        given = {"input": Ref(name), "scales": scale, "zero_points": zero, "axis": 0,
                 "quant_min": None, "quant_max": None, "dtype": Kind(kind)}  # fmt: skip
        return call(line("de", "channel"), f"{name}f", **given)

    given = {"input": Ref("xf"), "weight": Ref("wf"), "bias": Ref("bf")}
    calls = (
        call(line("de", "tensor"), "xf", input=Ref("x"), **x),
        by_channel("w", "int8"),
        by_channel("b", "int32"),
        call("aten.linear.default", "yf", **given),
        call(line("", "tensor"), "y", input=Ref("yf"), **y),
    )
    shapes = {n: v.shape for n, v in held.items()}
    shapes |= {"x": made.x, "xf": made.x, "y": made.y, "yf": made.y}
    shapes |= {"wf": made.w.shape, "bf": made.bias.shape}
    kinds = {n: v.dtype.name for n, v in held.items()} | {"x": "int8", "y": "int8"}
    kinds |= dict.fromkeys(("xf", "wf", "bf", "yf"), "float32")
    program = Program("m", calls, ("x",), ("y",), held, shapes, kinds)
    return bytes(converted(program)[0].SerializeToString())


def test_a_linear_layer_of_torch() -> None:
    """It gives what the same layer gives as a file of ONNX."""
    made = drawn("dense", [*DEATHS], 0)
    graph = run(load_onnx("m.pt2", _linear_of_torch(made), {}), PassOptions("onnx"))
    assert [n.op for n in graph.nodes] == ["dense"]
    net = onnxruntime.InferenceSession(
        onnx_model("dense", made, False).SerializeToString()
    )
    x = _CHANCE.integers(-128, 128, made.x).astype(np.int8)
    (want,) = net.run(None, {"x": x})
    np.testing.assert_array_equal(interpret(graph, {"x": x})["y"], want)


@pytest.mark.parametrize("scale", [0.0, 1.1920929e-07, 1e-40])
def test_a_float_bias_beside_dead_weights(scale: float) -> None:
    """As PT2E writes it: the layer stays one of integers."""
    made = drawn("conv", ["scale_0"] * 3, 0)
    dead = np.flatnonzero(made.scales == 0)
    made.scales[dead] = scale
    model = onnx_model("conv", made, False)
    bias = (made.bias * made.scales * np.float32(made.x_scale)).astype(np.float32)
    bias[dead] = (3.0, -200.0, 0.3)
    held = {i.name: i for i in model.graph.initializer}
    held["b"].CopyFrom(onnx.numpy_helper.from_array(bias, "b"))
    line = next(n for n in model.graph.node if n.output[0] == "bf")
    model.graph.node.remove(line)
    layer = next(n for n in model.graph.node if n.op_type == "Conv")
    layer.input[2] = "b"
    data = model.SerializeToString()
    graph = run(load_onnx("m.onnx", data, {}), PassOptions("onnx"))
    assert not [n for n in graph.nodes if n.op == "dequantize"]
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel(0)
    net = onnxruntime.InferenceSession(data, options)
    x = _CHANCE.integers(-128, 128, net.get_inputs()[0].shape).astype(np.int8)
    (want,) = net.run(None, {"x": x})
    np.testing.assert_array_equal(interpret(graph, {"x": x})["y"], want)


def _refused(data: bytes) -> str:
    with pytest.raises(BuildError) as caught:
        pybuild.build(data)
    return str(caught.value)


@pytest.mark.parametrize("wide", [0, 64])
@pytest.mark.parametrize("scale", [-0.5, float("nan"), float("inf")])
def test_what_is_no_scale_names_its_channel(scale: float, wide: int) -> None:
    made = drawn("conv", [], wide)
    made.scales[3] = scale
    wanted = f"'w' has scale {scale:g} in channel 3. Hint: quantise the model again"
    assert wanted in _refused(tflite("conv", made))


@pytest.mark.parametrize("linear", [False, True])
@pytest.mark.parametrize("scale", [float("nan"), float("inf")])
def test_what_is_no_scale_names_its_channel_in_onnx(scale: float, linear: bool) -> None:
    made = drawn("conv", [], 0)
    made.scales[3] = scale
    told = _refused(onnx_model("conv", made, linear).SerializeToString())
    assert f"its scale {scale:g} in channel 3 is not a finite number" in told


def test_a_live_channel_that_overflows_is_named() -> None:
    made = drawn("conv", ["clamped_bias"], 0)
    made.scales[2], made.bias[2] = 0.01, 2**31 - 1
    made.w[2] = 127
    assert "sum of output channel 2 could overflow" in _refused(tflite("conv", made))


def test_a_graph_made_by_hand_and_its_json(tmp_path: Path) -> None:
    made = drawn("dense", [*DEATHS], 0)
    path = tmp_path / "dead.tflite"
    path.write_bytes(tflite("dense", made))
    b = pybuild.GraphBuilder("dead")
    zeros = (0,) * len(made.scales)
    x = b.input("x", made.x, "int8", quant=Quant((made.x_scale,), (-3,)))
    w = b.constant("w", made.w, Quant(tuple(made.scales.tolist()), zeros, 0))
    bias = b.constant("b", made.bias, Quant((1.0,)))
    quant = Quant((float(np.float32(made.y_scale)),), (5,))
    b.output(b.op("dense", x, w, bias, quant=quant, clamp=[None, None]), "y")
    graph = b.build()
    back = graphjson.load("g.json", *graphjson.dump(graph))
    given = {"x": _CHANCE.integers(-128, 128, made.x).astype(np.int8)}
    (want,) = run_litert(path.read_bytes(), [given])
    for one in (graph, back):
        found = interpret(run(one, PassOptions()), given)
        np.testing.assert_array_equal(found["y"], want["y"])


def test_our_own_quantiser() -> None:
    weights = _CHANCE.normal(0, 0.3, (8, 3, 3, 4)).astype(np.float32)
    bias = _CHANCE.normal(0, 1, 8).astype(np.float32)
    for channel, value in enumerate((0.0, 0.0, 1e-12, 1e-38, 1e-42, 1e-9)):
        weights[channel] = value
    bias[:6] = (0.5, 0, -1, 2, 0.7, 3)
    b = pybuild.GraphBuilder("dead")
    x = b.input("x", (1, 5, 5, 4))
    held = b.constant("w", weights), b.constant("b", bias)
    b.output(b.op("conv2d", x, *held, clamp=[None, None]), "y")
    data = {"x": _CHANCE.normal(0, 1, (8, 5, 5, 4)).astype(np.float32)}
    made = pybuild.quantise(b.build(), data)
    want = interpret(b.build(), {"x": data["x"][:1]})["y"]
    have = made.build().host("llvm").run(x=data["x"][:1])["y"]
    assert [s.node.op for s in made.build().plan.steps].count("conv2d") == 1
    assert np.abs(have - want).max() < 0.05 * np.ptp(want)
