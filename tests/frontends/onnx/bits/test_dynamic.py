"""Layers that onnxruntime.quantization.quantize_dynamic writes: DynamicQuantizeLinear,
then ConvInteger or MatMulInteger, then scales. Weights stay int8, and each number is
ONNX Runtime's.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from pybuild.boards.device import program_of, run_program
from pybuild.errors import BuildError
from pybuild.frontends.onnx import load
from pybuild.graph_builder import GraphBuilder
from pybuild.ir.graph import Graph
from pybuild.model import Model
from pybuild.ops.interpret import interpret
from pybuild.passes import PassOptions, run
from tests.boards.devices import device
from tests.toolchains import require

SHAPE = (1, 3, 9, 8)


class _Net:
    """An ONNX graph of such layers; every sum and every quantised tensor is an output.

    each   a scale for each output channel
    zero   of all weights: uint8 where it is not 0
    """

    def __init__(self, shape: Sequence[int], each: bool = False, zero: int = 0) -> None:
        self.chance = np.random.default_rng(len(shape) + each)
        self.shape, self.each, self.zero = shape, each, zero
        self.nodes: list[onnx.NodeProto] = []
        self.held: dict[str, np.ndarray] = {}
        self.made: dict[str, int] = {}

    def constant(self, value: np.ndarray | np.generic) -> str:
        name = f"c{len(self.held)}"
        self.held[name] = np.asarray(value)
        return name

    def op(self, kind: str, *reads: str, count: int = 1, **attrs: object) -> list[str]:
        names = [f"t{len(self.nodes)}.{n}" for n in range(count)]
        self.nodes.append(helper.make_node(kind, list(reads), names, **attrs))
        return names

    def quantised(self, x: str) -> list[str]:
        names = self.op("DynamicQuantizeLinear", x, count=3)
        kinds = TensorProto.UINT8, TensorProto.FLOAT, TensorProto.UINT8
        self.made |= dict(zip(names, kinds, strict=True))
        return names

    def layer(
        self, kind: str, x: list[str], shape: tuple[int, ...], bias: bool = True,
        **attrs: object,
    ) -> str:  # fmt: skip
        """ConvInteger with weights [O,C,...], or MatMulInteger with [K,N]."""
        q, scale, zero = x
        axis = 0 if kind == "ConvInteger" else 1
        outs = shape[axis]
        kind_of = np.int8 if self.zero == 0 else np.uint8
        # ONNX Runtime's kernels for x86 add two products in 16 bits: 7 bits of int8 fit
        low, high = (0, 256) if self.zero else (-64, 64)
        weights = self.chance.integers(low, high, shape)
        sizes = self.chance.uniform(0.002, 0.01, outs if self.each else 1)
        row = (outs, *[1] * (len(shape) - 2)) if axis == 0 else (outs,)
        point = self.constant(kind_of(self.zero))
        sums = self.op(
            kind, q, self.constant(weights.astype(kind_of)), zero, point, **attrs
        )[0]
        self.made[sums] = TensorProto.INT32
        real = self.op("Cast", sums, to=TensorProto.FLOAT)[0]
        sizes = sizes.reshape(row if self.each else 1).astype(np.float32)
        factor = self.op("Mul", scale, self.constant(sizes))[0]
        y = self.op("Mul", real, factor)[0]
        if bias:
            numbers = self.chance.normal(0, 1, row).astype(np.float32)
            y = self.op("Add", y, self.constant(numbers))[0]
        return y

    def data(self, y: str) -> bytes:
        info = helper.make_tensor_value_info
        self.made[y] = TensorProto.FLOAT
        outputs = [info(n, kind, None) for n, kind in self.made.items()]
        held = [numpy_helper.from_array(v, n) for n, v in self.held.items()]
        given = [info("x", TensorProto.FLOAT, self.shape)]
        graph = helper.make_graph(self.nodes, "g", given, outputs, held)
        opset = [helper.make_opsetid("", 21)]
        whole = helper.make_model(graph, opset_imports=opset, ir_version=10)
        found: bytes = onnx.shape_inference.infer_shapes(whole).SerializeToString()
        return found


@cache
def net(each: bool, zero: int = 0) -> bytes:
    """Convolutions of each kind, two of them on one tensor, and dense layers."""
    made = _Net(SHAPE, each, zero)
    y = made.layer("ConvInteger", made.quantised("x"), (8, 3, 3, 3), pads=[1, 0, 1, 2])
    y = made.op("Relu", y)[0]
    y = made.layer(
        "ConvInteger", made.quantised(y), (8, 1, 3, 3), False, pads=[1] * 4, group=8,
        strides=[2, 2],
    )  # fmt: skip
    both = made.quantised(made.op("Relu", y)[0])
    a = made.layer("ConvInteger", both, (6, 8, 1, 1))
    b = made.layer("ConvInteger", both, (6, 4, 3, 3), pads=[1] * 4, group=2)
    y = made.op("Flatten", made.op("Sub", a, b)[0])[0]
    y = made.layer("MatMulInteger", made.quantised(y), (6 * 5 * 4, 7))
    y = made.op("Clip", y, made.constant(np.float32(-3)), made.constant(np.float32(3)))
    y = made.layer("MatMulInteger", made.quantised(y[0]), (7, 5), False)
    return made.data(y)


@cache
def rows() -> bytes:
    """Conv1d, and a dense layer over each row."""
    made = _Net((1, 5, 12))
    y = made.layer("ConvInteger", made.quantised("x"), (6, 5, 3), pads=[2, 0])
    y = made.op("Transpose", made.op("Relu", y)[0], perm=[0, 2, 1])[0]
    y = made.layer("MatMulInteger", made.quantised(y), (6, 9))
    return made.data(y)


@cache
def images() -> bytes:
    """Two images, of which the first layer has padding; then a product of rank 4."""
    made = _Net((2, 3, 5, 4), True)
    y = made.layer("ConvInteger", made.quantised("x"), (4, 3, 3, 3), pads=[1] * 4)
    y = made.layer("ConvInteger", made.quantised(y), (4, 4, 3, 2), strides=[1, 2])
    return made.data(made.layer("MatMulInteger", made.quantised(y), (2, 8)))


NETS = {
    "one": lambda: net(False), "each": lambda: net(True), "rows": rows,
    "images": images, "uint8": lambda: net(True, 117),
}  # fmt: skip
# layers that are sums of int8
_SUMS = {"one": 6, "each": 6, "rows": 2, "images": 2, "uint8": 6}


def samples(data: bytes, count: int = 6) -> list[np.ndarray]:
    """Both signs, positive, negative, zeros, small and large ones."""
    (given,) = onnx.load_from_string(data).graph.input
    shape = [d.dim_value for d in given.type.tensor_type.shape.dim]
    x = np.random.default_rng(3).normal(0.3, 1.5, shape).astype(np.float32)
    found = [x, np.abs(x) + 1, -np.abs(x), 0 * x, x * np.float32(1e-36), x * 1e20]
    return [one.astype(np.float32) for one in found[:count]]


def _model(data: bytes) -> Model:
    return Model("net.onnx", load("net.onnx", data, {}), "onnx", "0" * 64)


def _passed(data: bytes) -> Graph:
    return run(load("net.onnx", data, {}), PassOptions("onnx"))


def _theirs(data: bytes) -> onnxruntime.InferenceSession:
    """The file's own nodes: its optimiser joins some, and rounds otherwise."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel(0)
    return onnxruntime.InferenceSession(data, options)


def _plain(data: bytes) -> bytes:
    """The file with its last output alone, as quantisers write it."""
    model = onnx.load_from_string(data)
    del model.graph.output[:-1]
    found: bytes = model.SerializeToString()
    return found


@pytest.mark.parametrize("name", NETS)
def test_every_number_is_onnx_runtime_s(name: str) -> None:
    data = NETS[name]()
    theirs = _theirs(data)
    names = [o.name for o in theirs.get_outputs()]
    model, last = _model(data), _model(_plain(data))
    nets = [last.build().host(b) for b in ("llvm", "c")]
    nets.append(last.build(target="cortex-m55").host("llvm"))
    for x in samples(data):
        wanted = dict(zip(names, theirs.run(None, {"x": x}), strict=True))
        found = interpret(model.graph, {"x": x})
        for key, want in wanted.items():
            np.testing.assert_array_equal(found[key], want, key)
        for net in nets:
            np.testing.assert_array_equal(net.run(x=x)[names[-1]], wanted[names[-1]])


@pytest.mark.parametrize("name", NETS)
def test_layers_are_sums_of_int8(name: str) -> None:
    """One quantize_dynamic for each tensor and padding, and one node for the scales."""
    graph = _passed(_plain(NETS[name]()))
    kinds = [node.op for node in graph.nodes]
    sums = [kind for kind in kinds if kind.endswith("_sums") and kind != "scale_sums"]
    assert kinds.count("scale_sums") == len(sums) == _SUMS[name]
    if name == "images":  # one range for all, and each with padding: a general layer
        return
    assert kinds.count("quantize_dynamic") == len(sums)
    left = {*kinds} - {*sums, "scale_sums", "quantize_dynamic"}
    assert left <= {"clip", "sub", "reshape", "transpose", "map"}, left
    assert not {"cast", "multiply"} & {n.attrs.get("fn") for n in graph.nodes}


@pytest.mark.parametrize("name", ["each", "uint8"])
@pytest.mark.parametrize(
    ("board", "target"),
    [("mps2-an386", "cortex-m4"), ("mps3-an547", "cortex-m55"),
     ("microbit", "cortex-m0")],
)  # fmt: skip
def test_on_a_board(board: str, target: str, name: str) -> None:
    require("arm-none-eabi-gcc")
    data = _plain(NETS[name]())
    library = _model(data).build(name="net", target=target)
    host = _model(data).build().host("llvm")
    given = [{"x": x} for x in samples(data, 2)]
    found = run_program(device(board), program_of(device(board), library), given)
    for one, made in zip(given, found, strict=True):
        for key, value in host.run(**one).items():
            np.testing.assert_array_equal(made[key], value, key)


@pytest.mark.parametrize("zero", [1, 128, 255])
def test_weights_with_a_zero_point(zero: int) -> None:
    """128 of uint8 is 0 of int8; any other is taken out of the weights."""
    made = _Net(SHAPE, zero=zero)
    y = made.layer("ConvInteger", made.quantised("x"), (4, 3, 3, 3), pads=[1] * 4)
    data = made.data(y)
    (want,) = _theirs(_plain(data)).run(None, {"x": samples(data)[0]})
    found = interpret(_model(data).graph, {"x": samples(data)[0]})[y]
    np.testing.assert_array_equal(found, want)
    graph = _passed(_plain(data))
    (layer,) = (node for node in graph.nodes if node.op == "conv2d_sums")
    kind = "int8" if zero == 128 else "int16"
    assert graph.tensor(layer.inputs[1]).dtype.value == kind


def test_a_zero_point_for_each_output() -> None:
    made = _Net((3, 6), zero=117)
    y = made.layer("MatMulInteger", made.quantised("x"), (6, 4))
    point = next(name for name, value in made.held.items() if not value.shape)
    made.held[point] = np.array([3, 128, 200, 255], np.uint8)
    data = _plain(made.data(y))
    (want,) = _theirs(data).run(None, {"x": samples(data)[0]})
    (have,) = _model(data).build().host("llvm").run(x=samples(data)[0]).values()
    np.testing.assert_array_equal(have, want)
    assert "dense_sums" in {node.op for node in _passed(data).nodes}


def test_int16_weights_of_a_graph_have_nine_bits() -> None:
    """A graph JSON may say anything: what could leave int32 is refused."""
    net = GraphBuilder("wide")
    x = net.input("x", (1, 4), "int8")
    for most, fits in ((255, True), (256, False)):
        w = net.constant(f"w{most}", np.full((2, 4), most, np.int16))
        if fits:
            net.op("dense_sums", x, w, dtype="int32")
            continue
        with pytest.raises(BuildError, match="weights up to 256; 255 are the most"):
            net.op("dense_sums", x, w, dtype="int32")


def test_what_onnx_runtime_s_optimiser_joins(tmp_path: Path) -> None:
    """DynamicQuantizeMatMul, and MatMulIntegerToFloat where two read one tensor."""
    made = _Net((3, 6), True)
    x = made.quantised("x")
    a, b = (made.layer("MatMulInteger", x, (6, 4), bias) for bias in (True, False))
    y = made.layer("MatMulInteger", made.quantised(made.op("Add", a, b)[0]), (4, 7))
    data, options = _plain(made.data(y)), onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel(2)
    options.optimized_model_filepath = str(tmp_path / "joined.onnx")
    session = onnxruntime.InferenceSession(data, options)
    joined = onnx.load(tmp_path / "joined.onnx")
    kinds = {node.op_type for node in joined.graph.node}
    assert {"DynamicQuantizeMatMul", "MatMulIntegerToFloat"} <= kinds
    model = _model(joined.SerializeToString())
    for x in samples(data):
        (want,) = session.run(None, {"x": x})
        np.testing.assert_allclose(interpret(model.graph, {"x": x})[y], want, 1e-6)
    left = {node.op for node in run(model.graph, PassOptions("onnx")).nodes}
    assert "dense_sums" in left and "matmul" not in left


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_no_number_becomes_one(bad: float) -> None:
    data = _plain(rows())
    x = samples(data)[0].copy()
    x[0, 2, 3] = bad
    (made,) = _model(data).build().host("llvm").run(x=x).values()
    assert np.isnan(made).all()


def test_flash_is_that_of_the_weights() -> None:
    """A layer of groups, whose rows are filled up to words, aside."""
    data = _plain(net(True))
    held = onnx.load_from_string(data).graph.initializer
    size = sum(len(t.raw_data) for t in held)
    outputs = 8 + 8 + 6 + 6 + 7 + 5
    report = _model(data).build(target="cortex-m4").report
    assert report.flash.weights <= 1.02 * size + 5 * outputs + 6 * 3 * 3 * 4
