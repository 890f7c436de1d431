"""int4 weights: two in a byte of the file, one value each in the graph; in flash two in
a byte again where size matters."""

from __future__ import annotations

import numpy as np
import pytest

from pybuild.errors import BuildError
from pybuild.frontends.tflite import load
from pybuild.host.trace import recorded
from pybuild.model import Model
from tests.frontends.tflite.files import packed4
from tests.ops.litert import run_litert
from tests.ops.tflite_writer import FileOperator, FileTensor, write

_WINDOW = {"StrideH": 1, "StrideW": 1, "Padding": 0}


def _layer(
    code: str, shapes: tuple[tuple[int, ...], ...], axis: int, kind: str = "INT8",
    cut: int = 0,
) -> bytes:  # fmt: skip
    """One layer; shapes of x, w, y."""
    rng = np.random.default_rng(len(code) + shapes[1][0])
    x, w, y = shapes
    weights = rng.integers(-8, 8, w).astype(np.int8)
    channels, x_scale = w[axis], 0.1 if kind == "INT8" else 0.001
    scale = tuple(float(s) for s in rng.uniform(0.05, 0.1, channels).astype(np.float32))
    biases = tuple(float(np.float32(x_scale) * np.float32(s)) for s in scale)
    bias = rng.integers(-100, 100, channels)
    bias = bias.astype(np.int32 if kind == "INT8" else np.int64)
    zeros = (0,) * channels
    data = packed4(weights)
    table = {"FULLY_CONNECTED": "FullyConnectedOptions", "CONV_2D": "Conv2DOptions"}
    options = {} if code == "FULLY_CONNECTED" else dict(_WINDOW)
    if code == "DEPTHWISE_CONV_2D":
        options["DepthMultiplier"] = 1
    tensors = [
        FileTensor("x", x, kind, None, (x_scale,), (5 if kind == "INT8" else 0,)),
        FileTensor("w", w, "INT4", data[: data.size - cut], scale, zeros, axis),
        FileTensor("b", bias.shape, bias.dtype.name.upper(), bias, biases, zeros, 0),
        FileTensor("y", y, kind, None, (x_scale * 4,), (0,)),
    ]
    operator = FileOperator(
        code, (0, 1, 2), (3,), table.get(code, "DepthwiseConv2DOptions"), options
    )
    return write(tensors, [operator], [0], [3])


_LAYERS = {
    "dense": ("FULLY_CONNECTED", ((6, 9), (5, 9), (6, 5)), 0),
    "dense_even": ("FULLY_CONNECTED", ((1, 40), (4, 40), (1, 4)), 0),
    "dense_int16": ("FULLY_CONNECTED", ((6, 9), (5, 9), (6, 5)), 0, "INT16"),
    "conv": ("CONV_2D", ((1, 5, 4, 3), (7, 3, 3, 3), (1, 5, 4, 7)), 0),
    "pointwise": ("CONV_2D", ((1, 5, 4, 6), (7, 1, 1, 6), (1, 5, 4, 7)), 0),
    "depthwise": ("DEPTHWISE_CONV_2D", ((1, 5, 4, 3), (1, 3, 3, 3), (1, 5, 4, 3)), 3),
}  # fmt: skip


@pytest.mark.parametrize("optimise", ["size", "balanced"])
@pytest.mark.parametrize("name", _LAYERS)
def test_equals_litert(name: str, optimise: str) -> None:
    data = _layer(*_LAYERS[name])
    model = Model("m.tflite", load("m.tflite", data, {}), "litert", "0" * 64)
    library = model.build(None, name="m", optimise=optimise)
    halved = name in ("dense", "dense_even", "pointwise") and optimise == "size"
    assert ("dense4" in library.files()["m.c"]) is halved
    nets = [library.host(code) for code in (("c", "llvm") if halved else ("llvm",))]
    rng = np.random.default_rng(1)
    x = model.graph.tensor("x")
    samples = [
        {
            "x": rng.integers(x.dtype.low, x.dtype.high + 1, x.shape).astype(
                x.dtype.numpy
            )
        }
        for _ in range(5)
    ]
    for sample, theirs in zip(samples, run_litert(data, samples), strict=True):
        for net in nets:
            np.testing.assert_array_equal(recorded(net, sample)["y"], theirs["y"])


# of enough weights that they are packed by default
_LARGE = {
    "dense": ("FULLY_CONNECTED", ((1, 128), (18, 128), (1, 18)), 0),
    "conv": ("CONV_2D", ((1, 5, 4, 16), (12, 3, 3, 16), (1, 5, 4, 12)), 0),
    "pointwise": ("CONV_2D", ((1, 5, 5, 48), (28, 1, 1, 48), (1, 5, 5, 28)), 0),
}  # fmt: skip


@pytest.mark.parametrize("compress", ["none", "lz4"])
@pytest.mark.parametrize("target", ["cortex-m0", "cortex-m4", "cortex-m55"])
@pytest.mark.parametrize("name", _LARGE)
def test_packed_for_a_core(name: str, target: str, compress: str) -> None:
    data = _layer(*_LARGE[name])
    model = Model("m.tflite", load("m.tflite", data, {}), "litert", "0" * 64)
    library = model.build(None, name="m", target=target, compress=compress)
    count = int(np.prod(_LARGE[name][1][1]))
    kept = {
        packed.role: packed.array.nbytes
        for step in library.plan.steps
        for packed in step.candidate.constants
    }
    blocks = 1.2 if name == "dense" else 1  # the last of 18 channels are in two
    assert "weights" not in kept
    assert count / 2 <= kept["weights4"] <= blocks * count / 2
    rng = np.random.default_rng(1)
    shape = model.graph.tensor("x").shape
    samples = [{"x": rng.integers(-128, 128, shape).astype(np.int8)} for _ in range(3)]
    net = library.host("llvm")
    for sample, theirs in zip(samples, run_litert(data, samples), strict=True):
        np.testing.assert_array_equal(recorded(net, sample)["y"], theirs["y"])


@pytest.mark.parametrize("target", ["cortex-m4", "cortex-m55"])
@pytest.mark.parametrize("kind", ["INT4", "INT8"])
def test_packed_with_float_inputs(kind: str, target: str) -> None:
    """A layer of dynamic range; values of 4 bits are packed if the file has bytes."""
    rng = np.random.default_rng(3)
    weights = rng.integers(-8, 8, (18, 128)).astype(np.int8)
    scale = tuple(float(s) for s in rng.uniform(0.05, 0.1, 18).astype(np.float32))
    stored = packed4(weights) if kind == "INT4" else weights
    bias = rng.normal(size=18).astype(np.float32)
    tensors = [
        FileTensor("x", (1, 128), "FLOAT32"),
        FileTensor("w", weights.shape, kind, stored, scale, (0,) * 18, 0),
        FileTensor("b", (18,), "FLOAT32", bias),
        FileTensor("y", (1, 18), "FLOAT32"),
    ]
    dense = FileOperator("FULLY_CONNECTED", (0, 1, 2), (3,), "FullyConnectedOptions")
    data = write(tensors, [dense], [0], [3])
    model = Model("m.tflite", load("m.tflite", data, {}), "litert", "0" * 64)
    library = model.build(None, name="m", target=target)
    roles = [p.role for s in library.plan.steps for p in s.candidate.constants]
    assert "weights4" in roles and "weights" not in roles
    sample = {"x": rng.normal(size=(1, 128)).astype(np.float32)}
    (theirs,) = run_litert(data, [sample])
    net = library.host("llvm")
    np.testing.assert_array_equal(recorded(net, sample)["y"], theirs["y"])


def test_half_the_flash() -> None:
    model = Model("m.tflite", load("m.tflite", _layer(*_LAYERS["dense_even"]), {}),
                  "litert", "0" * 64)  # fmt: skip
    weights = {
        optimise: sum(
            packed.array.nbytes
            for step in model.build(None, name="m", optimise=optimise).plan.steps
            for packed in step.candidate.constants
            if packed.role.startswith("weights")
        )
        for optimise in ("size", "balanced")
    }
    assert weights == {"size": 80, "balanced": 160}


def test_bytes_that_are_missing() -> None:
    data = _layer(*_LAYERS["dense"], cut=1)
    with pytest.raises(BuildError, match=r"'w' of shape \[5, 9\] has 22 bytes, not 23"):
        load("m.tflite", data, {})


def test_int4_activations() -> None:
    tensors = [FileTensor(n, (1, 4), "INT4", None, (0.1,), (0,)) for n in "xy"]
    data = write(tensors, [FileOperator("RELU", (0,), (1,))], [0], [1])
    with pytest.raises(BuildError, match="'x' has type INT4, which is not supported"):
        load("m.tflite", data, {})
