"""Dynamic-range files: int8 weights and float32 activations, which layers make int8 as
they come. The bits are those of LiteRT's reference kernels; weights stay int8 in flash.

No weight is -128, as no converter writes one: LiteRT's dense kernels for x86 negate it
within a byte.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
import pytest

import pybuild
from pybuild.boards.device import open_device, program_of, run_program
from pybuild.dtype import Array, DType
from pybuild.errors import BuildError
from pybuild.frontends.tflite import load
from pybuild.host.parameter_image import Weights
from pybuild.host.trace import recorded
from pybuild.library import Library
from pybuild.model import Model
from pybuild.ops.interpret import interpret
from tests.boards.devices import CORES
from tests.ops.litert import run_litert
from tests.ops.tflite_writer import FileOperator, FileTensor, write
from tests.toolchains import require

_TABLES = {"FULLY_CONNECTED": "FullyConnectedOptions", "CONV_2D": "Conv2DOptions",
           "DEPTHWISE_CONV_2D": "DepthwiseConv2DOptions"}  # fmt: skip


@dataclass(frozen=True)
class Layer:
    """One layer; shapes of its input and its weights as the file has them."""

    code: str
    x: tuple[int, ...]
    w: tuple[int, ...]
    each: bool = True  # a scale for each output
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def axis(self) -> int:
        return 3 if self.code == "DEPTHWISE_CONV_2D" else 0

    @property
    def outputs(self) -> int:
        return self.w[self.axis]

    def tables(self, name: str, seed: int) -> tuple[list[FileTensor], Array, Array]:
        """Weights and bias of the file; the numbers of both."""
        rng = np.random.default_rng(seed)
        weights = rng.integers(-127, 128, self.w).astype(np.int8)
        count = self.outputs if self.each else 1
        scales = rng.uniform(0.004, 0.02, count).astype(np.float32)
        bias = rng.normal(0, 1, self.outputs).astype(np.float32)
        quant = tuple(map(float, scales)), (0,) * count, self.axis
        made = [FileTensor(f"{name}w", self.w, "INT8", weights, *quant),
                FileTensor(f"{name}b", bias.shape, "FLOAT32", bias)]  # fmt: skip
        return made, weights, scales

    def operator(self, numbers: tuple[int, ...], to: int) -> FileOperator:
        plain = {"StrideH": 1, "StrideW": 1} if self.code != "FULLY_CONNECTED" else {}
        if self.code == "DEPTHWISE_CONV_2D":
            plain["DepthMultiplier"] = self.outputs // self.x[3]
        fields = {**plain, **self.options}
        return FileOperator(self.code, numbers, (to,), _TABLES[self.code], fields)

    def data(self, seed: int = 1) -> bytes:
        """A file of this layer."""
        made, _, _ = self.tables("", seed)
        tensors = [FileTensor("x", self.x), *made, FileTensor("y", ())]
        return write(tensors, [self.operator((0, 1, 2), 3)], [0], [3])


_RELU, _RELU6, _SAME = 1, 3, {"Padding": 0}
_DW, _FC = "DEPTHWISE_CONV_2D", "FULLY_CONNECTED"
LAYERS = {
    "dense": Layer(_FC, (3, 40), (9, 40), False),
    "dense_each": Layer(_FC, (1, 33), (8, 33), True),
    "dense_zero": Layer(_FC, (4, 37), (6, 37), False, {
        "AsymmetricQuantizeInputs": True, "FusedActivationFunction": _RELU}),
    "dense_each_zero": Layer(_FC, (2, 64), (7, 64), True, {
        "AsymmetricQuantizeInputs": True}),
    "dense_kept": Layer(_FC, (2, 3, 12), (5, 12), False, {"KeepNumDims": True}),
    "conv": Layer("CONV_2D", (1, 7, 6, 5), (6, 3, 3, 5), False, {
        **_SAME, "FusedActivationFunction": _RELU6}),
    "conv_each": Layer("CONV_2D", (1, 7, 6, 4), (9, 3, 2, 4), True, _SAME),
    "conv_images": Layer("CONV_2D", (2, 5, 6, 3), (4, 3, 3, 3), True, {
        "Padding": 1, "FusedActivationFunction": _RELU}),
    "conv_stride": Layer("CONV_2D", (1, 9, 9, 3), (8, 3, 3, 3), True, {
        **_SAME, "StrideH": 2, "StrideW": 2}),
    "conv_dilated": Layer("CONV_2D", (1, 9, 8, 4), (4, 3, 3, 4), False, {
        **_SAME, "DilationHFactor": 2, "DilationWFactor": 2}),
    "conv_groups": Layer("CONV_2D", (1, 6, 6, 8), (6, 3, 3, 4), True, _SAME),
    "conv_lone": Layer("CONV_2D", (1, 6, 6, 8), (1, 3, 3, 8), True, _SAME),
    "pointwise": Layer("CONV_2D", (1, 5, 7, 16), (12, 1, 1, 16), True, _SAME),
    "pointwise_one": Layer("CONV_2D", (1, 5, 4, 24), (8, 1, 1, 24), False, _SAME),
    "depthwise": Layer(_DW, (1, 7, 8, 8), (1, 3, 3, 8), True, {
        **_SAME, "FusedActivationFunction": _RELU6}),
    "depthwise_few": Layer(_DW, (2, 6, 6, 3), (1, 3, 3, 6), True, _SAME),
    "depthwise_stride": Layer(_DW, (1, 9, 9, 12), (1, 3, 3, 12), True, {
        **_SAME, "StrideH": 2, "StrideW": 2}),
    "depthwise_large": Layer(_DW, (1, 9, 9, 4), (1, 5, 5, 4), True, {"Padding": 1}),
}  # fmt: skip
# of each family, on cores with instructions of their own
_ON_CORES = (
    "dense", "dense_zero", "conv_each", "conv_groups", "conv_lone", "pointwise",
    "depthwise", "depthwise_few", "depthwise_stride",
)  # fmt: skip


def _samples(shape: tuple[int, ...]) -> list[dict[str, Array]]:
    """Numbers of both signs, of one, all 0, nearly so small that they have no steps."""
    rng = np.random.default_rng(len(shape))
    x = rng.normal(0.3, 1.5, shape).astype(np.float32)
    none = np.zeros(shape, np.float32)
    return [
        {"x": v} for v in (x, np.abs(x) + 1, -np.abs(x), none, x * np.float32(1e-30))
    ]


def _model(data: bytes, hybrid: str = "litert") -> Model:
    graph = load("m.tflite", data, {}, hybrid=hybrid)
    return Model("m.tflite", graph, "litert", "0" * 64)


@cache
def _theirs(name: str) -> list[Array]:
    layer = LAYERS[name]
    return [found["y"] for found in run_litert(layer.data(), _samples(layer.x))]


def _equal(library: Library, backend: str, name: str) -> None:
    net = library.host(backend)
    samples = _samples(LAYERS[name].x)
    for sample, theirs in zip(samples, _theirs(name), strict=True):
        np.testing.assert_array_equal(recorded(net, sample)["y"], theirs)


@pytest.mark.parametrize("name", LAYERS)
def test_the_meaning_and_llvm_equal_litert(name: str) -> None:
    layer = LAYERS[name]
    model = _model(layer.data())
    for sample, theirs in zip(_samples(layer.x), _theirs(name), strict=True):
        found = interpret(model.graph, sample)["y"]
        np.testing.assert_array_equal(found, theirs)
    _equal(model.build(name="m"), "llvm", name)


@pytest.mark.parametrize("target", ["cortex-m0", "cortex-m4", "cortex-m55"])
@pytest.mark.parametrize("name", _ON_CORES)
def test_kernels_of_cores_equal_litert(name: str, target: str) -> None:
    _equal(_model(LAYERS[name].data()).build(target=target, name="m"), "llvm", name)


# ---- a net of them ----------------------------------------------------------------

_NET = (
    Layer("CONV_2D", (1, 9, 8, 3), (16, 3, 3, 3), True, {
        **_SAME, "FusedActivationFunction": _RELU6}),
    Layer(_DW, (1, 9, 8, 16), (1, 3, 3, 16), True, {
        **_SAME, "FusedActivationFunction": _RELU6}),
    Layer("CONV_2D", (1, 9, 8, 16), (24, 1, 1, 16), True, {
        **_SAME, "FusedActivationFunction": _RELU}),
    Layer(_FC, (1, 9 * 8 * 24), (10, 9 * 8 * 24), False),
)  # fmt: skip


@cache
def _net() -> tuple[bytes, int, int]:
    """A file; the bytes of its constants, and its output channels."""
    tensors = [FileTensor("x", _NET[0].x)]
    operators, size, last = [], 0, 0
    for number, layer in enumerate(_NET):
        made, weights, scales = layer.tables(f"l{number}", number)
        at = len(tensors)
        tensors += [*made, FileTensor("y" if layer is _NET[-1] else f"t{number}", ())]
        operators.append(layer.operator((last, at, at + 1), at + 2))
        size += weights.nbytes + scales.nbytes + 4 * layer.outputs
        last = at + 2
    outputs = sum(layer.outputs for layer in _NET)
    return write(tensors, operators, [0], [last]), size, outputs


@cache
def _library(target: str) -> Library:
    return _model(_net()[0]).build(target=target, name="net")


@pytest.mark.parametrize("target", ["generic", "cortex-m4", "cortex-m55"])
def test_c_equals_litert(target: str) -> None:
    """With sanitizers; on vectors of the M55 their scalar meaning."""
    require("gcc")
    samples = _samples(_NET[0].x)[:3]
    net = _library(target).host("c")
    for sample, theirs in zip(samples, run_litert(_net()[0], samples), strict=True):
        np.testing.assert_array_equal(recorded(net, sample)["y"], theirs["y"])


@pytest.mark.parametrize("core", ["cortex-m4", "cortex-m55"])
def test_an_emulated_core_equals_litert(core: str) -> None:
    for tool in ("arm-none-eabi-gcc", "qemu-system-arm"):
        require(tool)
    samples = _samples(_NET[0].x)[:2]
    device = open_device(CORES[core], "gcc", "qemu", core)
    made = run_program(device, program_of(device, _library(core)), samples)
    theirs = run_litert(_net()[0], samples)
    for ours, wanted in zip(made, theirs, strict=True):
        np.testing.assert_array_equal(ours["y"], wanted["y"])


@pytest.mark.parametrize("target", ["generic", "cortex-m0", "cortex-m4", "cortex-m55"])
def test_flash_is_that_of_the_file(target: str) -> None:
    """1.02 times its constants and 5 bytes for each output channel. Vectors of an M55
    have four outputs: of ten two are stored twice, as in int8."""
    _, constants, outputs = _net()
    if target == "cortex-m55":
        constants += 2 * _NET[-1].w[1]
    report = _library(target).report
    assert report.flash.weights <= 1.02 * constants + 5 * outputs


# ---- what is not so ---------------------------------------------------------------


def test_float_by_wish() -> None:
    """The weights become float32, as the page says."""
    graph = load("m.tflite", _net()[0], {}, hybrid="float")
    assert {t.dtype for t in graph.tensors.values()} == {DType.FLOAT32}


@pytest.mark.parametrize("name", ["dense", "dense_zero", "conv", "depthwise"])
def test_no_number_becomes_one(name: str) -> None:
    """A batch in which one is NaN or infinite has no scale: all of it is NaN."""
    layer = LAYERS[name]
    model = _model(layer.data())
    net = model.build(name="m").host("llvm")
    for bad in (np.nan, -np.nan, np.inf, -np.inf):
        x = _samples(layer.x)[0]["x"].copy()
        x[0].reshape(-1)[3] = bad
        theirs = interpret(model.graph, {"x": x})["y"]
        made = recorded(net, {"x": x})["y"]
        assert np.isnan(made[0]).all() and not np.isnan(made[1:]).any()
        np.testing.assert_array_equal(made, theirs)


def test_replaced_weights() -> None:
    """Totals of weights, which the zero point meets, follow the weights."""
    layer = LAYERS["conv_each"]
    _, weights, _ = layer.tables("", 2)
    model = _model(layer.data())
    library = model.build(name="m", params="replaceable")
    net = library.host("llvm")
    net.load_params(Weights(library.image({"w": weights})))
    changed = _model(layer.data()).with_weights({"w": weights})
    for sample in _samples(layer.x)[:2]:
        wanted = interpret(changed.graph, sample)["y"]
        np.testing.assert_array_equal(recorded(net, sample)["y"], wanted)


def test_sums_that_could_leave_32_bits() -> None:
    layer = Layer(_FC, (1, 66_000), (1, 66_000), False)
    with pytest.raises(
        BuildError, match="sums 66000 products, more than 65793"
    ) as found:
        load("m.tflite", layer.data(), {})
    assert found.value.problems[0].hint == "--hybrid float"
    assert load("m.tflite", layer.data(), {}, hybrid="float").nodes[0].op == "dense"


def test_the_option_is_not_of_a_graph() -> None:
    onnx = pytest.importorskip("onnx", reason="onnx is not installed")
    del onnx
    with pytest.raises(BuildError, match=r"--hybrid: is for \.onnx and"):
        pybuild.load('{"nodes": []}', hybrid="float")


def test_it_is_quantised_as_what_its_weights_mean() -> None:
    """Its own layers have no int8 form: quantising would make it slower."""
    data = Layer("FULLY_CONNECTED", (1, 12), (5, 12)).data()
    samples = {"x": np.random.default_rng(4).normal(0, 1, (30, 1, 12)).astype("f4")}
    with pytest.raises(BuildError, match=r"dynamic range.*Hint: --hybrid float"):
        pybuild.quantise(pybuild.load(data), samples)
    made = pybuild.quantise(pybuild.load(data, hybrid="float"), samples)
    kinds = [node.op for node in made.model.lower().nodes]
    assert "dense" in kinds and "dense_sums" not in kinds
