"""Constants of each channel between a dequantize and a quantize are one layer of one
tap: for each of the 256 bytes of each channel what ONNX Runtime makes of it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from pybuild.frontends.onnx import load
from pybuild.ir.graph import Graph
from pybuild.model import Model
from pybuild.ops.interpret import interpret
from pybuild.passes import PassOptions, run

CHANNELS = 12
EVERY = np.broadcast_to(
    np.arange(-128, 128).astype(np.int8).reshape(1, 1, 16, 16), (1, CHANNELS, 16, 16)
)


class _Net:
    """An ONNX graph; numbers of an operator's inputs are constants."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.held: dict[str, Any] = {}
        self.chance = np.random.default_rng(4)

    def op(self, kind: str, *reads: Any, **attrs: Any) -> str:
        name = f"t{len(self.nodes)}"
        names = [r if isinstance(r, str) else self.constant(r) for r in reads]
        self.nodes.append(helper.make_node(kind, names, [name], **attrs))
        return name

    def constant(self, value: Any) -> str:
        name = f"c{len(self.held)}"
        self.held[name] = np.asarray(value)
        return name

    def row(
        self, low: float, high: float, shape: tuple[int, ...] = (1, -1, 1, 1)
    ) -> Any:
        values = self.chance.uniform(low, high, CHANNELS).astype(np.float32)
        return values.reshape(shape)

    def whole(self, values: Any, scale: float) -> str:
        """As quantisers write a parameter: integers and their DequantizeLinear."""
        kind = np.rint(values.reshape(-1) / scale).clip(-127, 127).astype(np.int8)
        return self.op("DequantizeLinear", kind, np.float32(scale), np.int8(0))


def _norm(net: _Net, x: str) -> str:
    mean, scale, shift = (net.row(-1, 1, (-1,)) for _ in range(3))
    variance = net.row(0.1, 2, (-1,))
    return net.op("BatchNormalization", x, scale, shift, mean, variance)


def _norm_of_integers(net: _Net, x: str) -> str:
    scale, shift = net.row(0.3, 2, (-1,)), net.row(-1, 1, (-1,))
    mean, variance = net.row(-1, 1, (-1,)), net.row(0.5, 2, (-1,))
    given = net.whole(scale, 0.016), net.whole(shift, 0.01)
    return net.op("BatchNormalization", x, *given, mean, variance)


def _norm_and_relu(net: _Net, x: str) -> str:
    return net.op("Relu", _norm_of_integers(net, x))


def _held(net: _Net, x: str) -> str:
    y = net.op("Add", net.op("Mul", x, net.row(0.5, 2)), net.row(-1, 1))
    return net.op("Clip", y, np.float32(0), np.float32(3))


def _written_out(net: _Net, x: str) -> str:
    """And a channel that gives one number."""
    factor = net.row(-2, 2)
    factor[0, 5] = 0
    y = net.op("Div", net.op("Sub", x, net.row(-1, 1)), net.row(0.5, 2))
    return net.op("Add", net.op("Mul", y, factor), net.row(-1, 1))


WAYS = (_norm, _norm_of_integers, _norm_and_relu, _held, _written_out)


def made(way: Callable[[_Net, str], str], shape: tuple[int, ...]) -> bytes:
    """After a convolution that gives what it reads, so that channels are last."""
    net = _Net()
    given = np.float32(0.04), np.int8(-7)
    eye = np.eye(CHANNELS, dtype=np.int8).reshape(CHANNELS, CHANNELS, 1, 1)
    one = net.op("DequantizeLinear", eye, np.float32(1), np.int8(0))
    same = net.op("Conv", net.op("DequantizeLinear", "x", *given), one)
    same = net.op("QuantizeLinear", same, *given)
    y = way(net, net.op("DequantizeLinear", same, *given))
    net.op("QuantizeLinear", y, np.float32(0.05), np.int8(11))
    x, y = (
        helper.make_tensor_value_info(n, TensorProto.INT8, shape)
        for n in ("x", net.nodes[-1].output[0])
    )
    held = [numpy_helper.from_array(np.asarray(v), n) for n, v in net.held.items()]
    graph = helper.make_graph(net.nodes, "line", [x], [y], held)
    opset = [helper.make_opsetid("", 17)]
    data: bytes = helper.make_model(
        graph, opset_imports=opset, ir_version=9
    ).SerializeToString()
    return data


def lowered(data: bytes) -> Graph:
    return run(load("line.onnx", data, {}), PassOptions("onnx"))


@pytest.mark.parametrize("way", WAYS, ids=lambda w: w.__name__.strip("_"))
def test_every_byte_of_every_channel(way: Callable[[_Net, str], str]) -> None:
    data = made(way, EVERY.shape)
    graph = lowered(data)
    ops = [n.op for n in graph.nodes if n.op != "transpose"]
    assert ops == ["conv2d", "depthwise_conv2d"]
    (want,) = onnxruntime.InferenceSession(data).run(None, {"x": EVERY})
    assert len(np.unique(want)) > 30
    (name,) = graph.outputs
    model = Model("line.onnx", load("line.onnx", data, {}), "onnx", "0" * 64)
    for found in (interpret(graph, {"x": EVERY}), model.build().host()(x=EVERY)):
        np.testing.assert_array_equal(found[name], want)


def test_what_is_no_line_stays() -> None:
    def curve(net: _Net, x: str) -> str:
        return net.op("Mul", net.op("Sigmoid", x), net.row(-1, 1))

    ops = [n.op for n in lowered(made(curve, EVERY.shape)).nodes]
    assert "lookup" in ops and "depthwise_conv2d" not in ops
