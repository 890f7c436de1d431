"""Layers of int16 with weights of int8, between QuantizeLinear and DequantizeLinear:
integers, as those of .tflite, and bit for bit the file's own nodes in float64.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

import pybuild
from pybuild.boards.device import program_of, run_program
from pybuild.dtype import DType
from pybuild.frontends.onnx import load
from pybuild.model import Model
from pybuild.ops.interpret import interpret
from pybuild.passes import PassOptions, run
from pybuild.plan.plan import estimate
from pybuild.verify.standard import standard
from tests.boards.devices import device
from tests.toolchains import require

SHAPE = (1, 3, 9, 8)
Attrs = dict[str, object]


# scales that are powers of two, so that sums are often halfway between two results;
# zero points, of int16 and of uint16
ANY, POWERS, ZEROS, UNSIGNED = "any", "powers", "zeros", "unsigned"
KINDS = (ANY, POWERS, ZEROS, UNSIGNED)


class _Net:
    """An ONNX graph in which each tensor is int16, or uint16."""

    def __init__(self, kind: str) -> None:
        self.powers = kind == POWERS
        self.zeros, self.lift = kind in (ZEROS, UNSIGNED), (kind == UNSIGNED) << 15
        self.type = np.uint16 if kind == UNSIGNED else np.int16
        self.chance = np.random.default_rng(16 + self.powers)
        self.points = np.random.default_rng(5)
        self.nodes: list[onnx.NodeProto] = []
        self.held: dict[str, np.ndarray] = {}
        self.made: list[str] = []
        self.scale_of: dict[str, str] = {}
        self.x = self._float("x", self._scale(2.0**-9), self._zero())

    def _scale(self, about: float) -> str:
        value = about if self.powers else about * self.chance.uniform(0.6, 1.4)
        return self._constant(np.float32(value))

    def _constant(self, value: np.ndarray | np.generic) -> str:
        name = f"c{len(self.held)}"
        self.held[name] = np.asarray(value)
        return name

    def op(self, kind: str, *reads: str, **attrs: object) -> str:
        name = f"t{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(reads), [name], **attrs))
        return name

    def _zero(self, positive: bool = False) -> str:
        """A zero point; positive: no number of its tensor is less than 0."""
        zero = 0
        if self.zeros:
            zero = -32768 if positive else int(self.points.integers(-20000, 20001))
        return self._constant(self.type(zero + self.lift))

    def _float(self, name: str, scale: str, zero: str) -> str:
        made = self.op("DequantizeLinear", name, scale, zero)
        self.scale_of[made] = scale
        return made

    def moved(self, kind: str, x: str, **attrs: object) -> str:
        made = self.op(kind, x, **attrs)
        self.scale_of[made] = self.scale_of[x]
        return made

    def whole(self, x: str, positive: bool = False) -> str:
        scale, zero = self._scale(2.0**-6), self._zero(positive)
        made = self.op("QuantizeLinear", x, scale, zero)
        self.made.append(made)
        return self._float(made, scale, zero)

    def layer(
        self,
        kind: str,
        x: str,
        shape: tuple[int, ...],
        after: str = "",
        **attrs: object,
    ) -> str:
        """With a bias of floats, of integers or none, in turn."""
        axis = 1 if kind == "ConvTranspose" else 0
        outs = shape[axis]
        most = 3 if self.powers else 127
        weights = self.chance.integers(-most, most + 1, shape).astype(np.int8)
        sizes = self.chance.uniform(0.5, 1.0, outs) * 2.0**-8
        scales = np.full(outs, 2.0**-4) if self.powers else sizes
        w = self.op(
            "DequantizeLinear", self._constant(weights),
            self._constant(scales.astype(np.float32)),
            self._constant(np.zeros(outs, np.int8)), axis=axis,
        )  # fmt: skip
        reads = [x, w]
        steps = scales.astype(np.float32) * self.held[self.scale_of[x]]
        bias = np.rint(self.chance.uniform(-2, 2, outs) / steps).astype(np.int32)
        if len(self.made) % 3 == 0:
            reads.append(self._constant((bias * steps).astype(np.float32)))
        elif len(self.made) % 3 == 1:
            zeros = self._constant(np.zeros(outs, np.int32))
            held = self._constant(bias), self._constant(steps), zeros
            reads.append(self.op("DequantizeLinear", *held, axis=0))
        made = self.op(kind, *reads, **attrs)
        return self.whole(self.op(after, made) if after else made, bool(after))

    def data(self) -> bytes:
        info = helper.make_tensor_value_info
        elem = TensorProto.UINT16 if self.lift else TensorProto.INT16
        outputs = [info(n, elem, None) for n in self.made]
        held = [numpy_helper.from_array(v, n) for n, v in self.held.items()]
        given = [info("x", elem, SHAPE)]
        graph = helper.make_graph(self.nodes, "g", given, outputs, held)
        opset = [helper.make_opsetid("", 21)]
        whole = helper.make_model(graph, opset_imports=opset, ir_version=10)
        data: bytes = onnx.shape_inference.infer_shapes(whole).SerializeToString()
        return data


@cache
def _made(kind: str) -> _Net:
    made = _Net(kind)
    y = made.layer("Conv", made.x, (8, 3, 3, 3), "Relu", pads=[1] * 4)
    y = made.layer("Conv", y, (8, 1, 3, 3), pads=[1] * 4, group=8)
    y = made.moved("MaxPool", y, kernel_shape=[2, 2], strides=[2, 2])
    y = made.layer("Conv", y, (12, 8, 1, 1))
    y = made.layer("ConvTranspose", y, (12, 4, 2, 2), strides=[2, 2])
    y = made.layer("Conv", y, (6, 2, 3, 3), group=2, strides=[2, 2])
    y = made.moved("Flatten", y)
    made.layer("Gemm", y, (5, 54), transB=1)
    return made


@cache
def net(kind: str) -> bytes:
    return _made(kind).data()


def samples(kind: str, count: int) -> list[np.ndarray]:
    """Near the zero point; the last of all numbers of the type."""
    chance, made = np.random.default_rng(3), _made(kind)
    steps = chance.integers(-512, 513, (count, *SHAPE))
    zero = int(made.held[made.nodes[0].input[2]])
    ends = chance.integers(-32768, 32768, SHAPE) + made.lift
    return [one.astype(made.type) for one in (*(steps + zero), ends)]


def _model(kind: str) -> Model:
    graph = load("net.onnx", net(kind), {})
    return Model("net.onnx", graph, "onnx", "0" * 64)


@pytest.mark.parametrize("kind", KINDS)
def test_every_bit_is_the_standard_s(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "net.onnx"
    path.write_bytes(net(kind))
    graph = run(load("net.onnx", net(kind), {}), PassOptions("onnx"))
    layers = [n for n in graph.nodes if n.op in ("conv2d", "depthwise_conv2d", "dense")]
    kinds = {graph.tensor(name).dtype for n in layers for name in n.outputs}
    assert len(layers) >= 6 and kinds == {DType.INT16}
    assert not any(node.op == "dequantize" for node in graph.nodes)
    truth = standard(path, graph.outputs)
    nets = [_model(kind).build().host(b) for b in ("llvm", "c")]
    for x in samples(kind, 4):
        wanted = truth({"x": x})
        found = [interpret(graph, {"x": x}), *(one.run(x=x) for one in nets)]
        for name in graph.outputs:
            assert kind == ANY or np.ptp(wanted[name].astype(int)) > 9, name
            for one in found:
                np.testing.assert_array_equal(one[name], wanted[name], name)


def test_ties_are_onnx_runtime_s() -> None:
    """Its float32 holds such sums."""
    theirs = onnxruntime.InferenceSession(net(POWERS))
    ours = _model(POWERS).build().host("llvm")
    names = [o.name for o in theirs.get_outputs()]
    for x in samples(POWERS, 3)[:3]:
        found = ours.run(x=x)
        for name, want in zip(names, theirs.run(None, {"x": x}), strict=True):
            np.testing.assert_array_equal(found[name], want, name)


@pytest.mark.parametrize("kind", [ZEROS, UNSIGNED])
def test_zero_points_are_onnx_runtime_s(kind: str) -> None:
    """Its float32 may be a step away."""
    theirs = onnxruntime.InferenceSession(net(kind))
    ours = _model(kind).build().host("llvm")
    names = [o.name for o in theirs.get_outputs()]
    for x in samples(kind, 3):
        found = ours.run(x=x)
        for name, want in zip(names, theirs.run(None, {"x": x}), strict=True):
            assert found[name].dtype == want.dtype
            apart = np.abs(found[name].astype(int) - want.astype(int))
            assert apart.max() <= 1 and (apart > 0).mean() < 0.05, name


@pytest.mark.parametrize(
    ("board", "target"),
    [("mps2-an386", "cortex-m4"), ("mps3-an547", "cortex-m55"),
     ("microbit", "cortex-m0")],
)  # fmt: skip
def test_on_a_board(board: str, target: str) -> None:
    require("arm-none-eabi-gcc")
    on = device(board)
    for kind in (ANY, POWERS, ZEROS):
        given = [{"x": x} for x in samples(kind, 1)]
        library = _model(kind).build(name="net", target=target)
        host = _model(kind).build().host("llvm")
        found = run_program(on, program_of(on, library), given)
        for one, made in zip(given, found, strict=True):
            for name, value in host.run(**one).items():
                np.testing.assert_array_equal(made[name], value, name)


def test_zero_points_cost_little() -> None:
    """Of instructions by estimate and of bytes of the arena."""
    costs = []
    for kind in (ANY, ZEROS):
        library = pybuild.build(net(kind), target="cortex-m4")
        costs.append(
            (estimate(library.plan, library.kernels), library.plan.arena_bytes)
        )
    plain, shifted = costs
    assert shifted[0] < 1.1 * plain[0] and shifted[1] <= plain[1]


def test_flash_is_that_of_int8_weights() -> None:
    made = _Net(ANY)
    y = made.layer("Conv", made.x, (16, 3, 3, 3))
    made.layer("Conv", y, (64, 16, 3, 3))
    library = pybuild.build(made.data(), target="cortex-m4")
    whole = 16 * 3 * 9 + 64 * 16 * 9 + 8 * 80
    assert library.report.flash.weights < 1.1 * whole


def test_a_constant_of_uint16_has_two_readers() -> None:
    """One takes it as quantised, the other as it is."""
    value = np.arange(0, 65536, 13107, np.uint16)
    held = {"c": value, "s": np.float32(0.5), "z": np.uint16(40000)}
    nodes = [
        helper.make_node("DequantizeLinear", ["c", "s", "z"], ["d"]),
        helper.make_node("Cast", ["c"], ["f"], to=TensorProto.FLOAT),
        helper.make_node("Add", ["x", "d"], ["a"]),
        helper.make_node("Add", ["a", "f"], ["y"]),
    ]
    info = helper.make_tensor_value_info
    graph = helper.make_graph(
        nodes, "g", [info("x", TensorProto.FLOAT, [6])],
        [info("y", TensorProto.FLOAT, [6])],
        [numpy_helper.from_array(np.asarray(v), n) for n, v in held.items()],
    )  # fmt: skip
    opset = [helper.make_opsetid("", 21)]
    data = helper.make_model(graph, opset_imports=opset, ir_version=10)
    x = np.arange(6, dtype=np.float32)
    found = pybuild.load(data.SerializeToString()).build().host("llvm").run(x=x)["y"]
    wanted = x + (value.astype(np.float32) - 40000) / 2 + value
    np.testing.assert_array_equal(found, wanted)
