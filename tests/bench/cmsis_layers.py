"""Layers like those that were counted of CMSIS-NN, each as a .tflite file: shapes of
tests/bench/cmsis_nn.toml, values and scales from the name as a seed.
"""

from __future__ import annotations

import math
import tomllib
import zlib
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from pybuild.dtype import Array
from tests.frontends.tflite.files import One, packed4
from tests.frontends.tflite.layers import channel

FILE = Path(__file__).with_name("cmsis_nn.toml")
Layer = Mapping[str, Any]
X, WEIGHT = 0.05, 0.01  # scales of activations and of weights, about
STATE = 2.0**-15


def layers() -> tuple[Layer, ...]:
    """All of them, in the order of the file."""
    return tuple(tomllib.loads(FILE.read_text())["layers"])


def file(layer: Layer) -> bytes:
    """The model of that layer; equal for equal layers."""
    code, draw = _DRAWS[layer["operator"]]
    rng = np.random.default_rng(zlib.crc32(layer["name"].encode()))
    one = One(code, layer.get("type", "int8"), rng)
    draw(one, layer)
    return one.bytes()


def _scale(one: One, about: float) -> Any:
    """A scale near to that, and a zero point."""
    near = float(np.float32(about * one.rng.uniform(0.8, 1.25)))
    return (near / 128, 0) if one.kind == "int16" else (near, one.size(-20, 20))


def _weights(one: One, shape: tuple[int, ...], axis: int, each: bool, kind: str) -> Any:
    """Weights, with a scale for each channel or one; their scales."""
    outs = shape[axis]
    scales = WEIGHT * one.rng.uniform(0.7, 1.4, outs if each else 1)
    scales = scales.astype(np.float32)
    small = kind == "int4"
    if small:
        scales = scales * np.float32(16)
    values: Array = one.values(
        shape, "int8", -8 if small else -127, 7 if small else 127
    )
    held = packed4(values) if small else values
    channel(one, held, "uint8" if small else kind, scales, 0, axis)
    made = one.tensors[-1]
    one.tensors[-1] = replace(made, shape=shape, kind=kind.upper())
    return scales


def _bias(one: One, outs: int, scales: Any, x: Any) -> None:
    kind = "int64" if one.kind == "int16" else "int32"
    bias = one.values((outs,), kind, -2000, 2000)
    channel(one, bias, kind, scales * np.float32(x[0]), 0, 0)


def _sums(one: One, x: Any, taps: int) -> Any:
    """The scale of sums of so many products: their spread is 50 steps."""
    steps = 50 if one.kind == "int8" else 50 * 256
    wide = 74 if one.kind == "int8" else 74 * 256
    return float(np.float32(x[0] * WEIGHT * 74 * wide * taps**0.5 / steps)), (
        one.size(-20, 20) if one.kind == "int8" else 0
    )


def _window(layer: Layer) -> dict[str, int]:
    padding = ("same", "valid").index(layer["padding"])
    return {"Padding": padding, "StrideH": layer["stride"], "StrideW": layer["stride"]}


def _sides(layer: Layer) -> tuple[int, ...]:
    """Rows and columns of the output of a window."""
    valid = layer["padding"] == "valid"
    each = zip(layer["x"], layer["window"], strict=False)
    rooms = (side - kernel + 1 if valid else side for side, kernel in each)
    return tuple(-(-room // layer["stride"]) for room in rooms)


def _conv(one: One, layer: Layer) -> None:
    x, (rows, columns, ins) = _scale(one, X), layer["x"]
    outs = layer.get("outputs", ins)
    one.x((1, rows, columns, ins), quant=x)
    depthwise = one.code == "DEPTHWISE_CONV_2D"
    shape = (1, *layer["window"], ins) if depthwise else (outs, *layer["window"], ins)
    axis = 3 if depthwise else 0
    scales = _weights(one, shape, axis, True, layer.get("weights", "int8"))
    _bias(one, outs, scales, x)
    taps = math.prod(shape) // outs
    one.y(quant=_sums(one, x, taps), shape=(1, *_sides(layer), outs))
    table = "DepthwiseConv2DOptions" if depthwise else "Conv2DOptions"
    more = {"DepthMultiplier": 1} if depthwise else {}
    fields = {**_window(layer), **more, "DilationHFactor": 1, "DilationWFactor": 1}
    one.with_options(table, **fields)


def _transposed(one: One, layer: Layer) -> None:
    x, (rows, columns, ins) = _scale(one, X), layer["x"]
    outs, stride = layer["outputs"], layer["stride"]
    made = (1, rows * stride, columns * stride, outs)
    one.constant(made)
    scales = _weights(one, (outs, *layer["window"], ins), 0, True, "int8")
    one.x((1, rows, columns, ins), quant=x)
    _bias(one, outs, scales, x)
    taps = math.prod(layer["window"]) * ins
    one.y(quant=_sums(one, x, taps), shape=made)
    one.with_options("TransposeConvOptions", **_window(layer))


def _dense(one: One, layer: Layer) -> None:
    x, (batch, ins), outs = _scale(one, X), layer["x"], layer["outputs"]
    kind = layer.get("weights", "int8")
    one.x((batch, ins), quant=x)
    scales = _weights(one, (outs, ins), 0, False, kind)
    _bias(one, outs, scales, x)
    one.y(quant=_sums(one, x, ins), shape=(batch, outs))
    one.with_options("FullyConnectedOptions")


def _pair(table: str) -> Callable[[One, Layer], None]:
    def draw(one: One, layer: Layer) -> None:
        shape = (1, *layer["x"])
        same = _scale(one, X)
        for _ in range(2):
            one.x(shape, quant=_scale(one, X) if table != "MaximumMinimumOptions" else
                  same)  # fmt: skip
        made = same if table == "MaximumMinimumOptions" else _scale(one, 2 * X)
        one.y(quant=made, shape=shape)
        one.with_options(table)

    return draw


def _pool(one: One, layer: Layer) -> None:
    quant, (rows, columns, channels) = _scale(one, X), layer["x"]
    one.x((1, rows, columns, channels), quant=quant)
    one.y(quant=quant, shape=(1, *_sides(layer), channels))
    sides = dict(zip(("FilterHeight", "FilterWidth"), layer["window"], strict=True))
    one.with_options("Pool2DOptions", **_window(layer), **sides)


def _softmax(one: One, layer: Layer) -> None:
    one.x(layer["x"], quant=_scale(one, 2 * X))
    made = (1 / 256, -128) if one.kind == "int8" else (STATE, 0)
    one.y(quant=made, shape=layer["x"])
    one.with_options("SoftmaxOptions", Beta=1.0)


def _curve(one: One, layer: Layer) -> None:
    wide = one.kind == "int16"
    fixed = {"LOGISTIC": (1 / 256, -128), "TANH": (1 / 128, 0)}
    one.x((1, *layer["x"]), quant=(8 * STATE, 0) if wide else _scale(one, X))
    made = (STATE, 0) if wide else fixed[one.code]
    one.y(quant=made, shape=(1, *layer["x"]))


def _lstm(one: One, layer: Layer) -> None:
    (steps, width), units = layer["x"], layer["outputs"]
    x, hidden = _scale(one, 0.03), (1 / 128, 0)
    one.x((1, steps, width), quant=x)
    scales = []
    for inputs in (width, units):
        for _ in range(4):
            scales.append(float(np.float32(WEIGHT * one.rng.uniform(0.7, 1.4))))
            values = one.values((units, inputs), "int8", -127, 127)
            one.constant(values, "int8", (scales[-1], 0))
    one.reads += [-1] * 3
    for gate in range(4):
        bias = one.values((units,), "int32", -2000, 2000)
        one.constant(bias, "int32", (float(np.float32(scales[gate] * x[0])), 0))
    one.reads += [-1] * 2
    one.kept((1, units), "int8", hidden)
    one.kept((1, units), "int16", (2.0**-11, 0))
    one.reads += [-1] * 4
    one.y(quant=hidden, shape=(1, steps, units))
    within = [one.tensor((0,), "int16", (2.0**-12, 0)) for _ in range(4)]
    one.within = [*within, one.tensor((0,), "int8", hidden)]
    one.with_options(
        "UnidirectionalSequenceLSTMOptions", FusedActivationFunction=4, CellClip=0.0,
        ProjClip=0.0, TimeMajor=False, AsymmetricQuantizeInputs=False,
    )  # fmt: skip


def _svdf(one: One, layer: Layer) -> None:
    (width,), units, rank = layer["x"], layer["outputs"], layer["rank"]
    memory, filters, x = layer["memory"], layer["outputs"] * layer["rank"], X
    time, kept = STATE / 2, float(np.float32(x * WEIGHT * 6000 * width**0.5 * STATE))
    one.x((1, width), quant=(x, 0))
    values = one.values((filters, width), "int8", -127, 127)
    one.constant(values, "int8", (WEIGHT, 0))
    values = one.values((filters, memory), "int16", -32767, 32767)
    one.constant(values, "int16", (time, 0))
    bias = one.values((units,), "int32", -2000, 2000)
    one.constant(bias, "int32", (float(np.float32(kept * time)), 0))
    one.kept((1, filters * memory), "int16", (kept, 0))
    made = float(np.float32(kept * time * 2**30 / 400 * (memory * rank) ** 0.5))
    one.y(quant=(made, -10), shape=(1, units))
    one.with_options(
        "SVDFOptions", Rank=rank, FusedActivationFunction=1,
        AsymmetricQuantizeInputs=False,
    )  # fmt: skip


def _pad(one: One, layer: Layer) -> None:
    """By one on each side of rows and columns."""
    quant, (rows, columns, channels) = _scale(one, X), layer["x"]
    one.x((1, rows, columns, channels), quant=quant)
    one.constant([[0, 0], [1, 1], [1, 1], [0, 0]])
    one.y(quant=quant, shape=(1, rows + 2, columns + 2, channels))
    one.with_options("PadOptions")


def _concat(one: One, layer: Layer) -> None:
    quant, (rows, columns, channels) = _scale(one, X), layer["x"]
    for count in (channels, layer["outputs"]):
        one.x((1, rows, columns, count), quant=quant)
    one.y(quant=quant, shape=(1, rows, columns, channels + layer["outputs"]))
    one.with_options("ConcatenationOptions", Axis=3)


def _transpose(one: One, layer: Layer) -> None:
    quant, order = _scale(one, X), layer["order"]
    one.x(layer["x"], quant=quant)
    one.constant(order)
    one.y(quant=quant, shape=[layer["x"][axis] for axis in order])
    one.with_options("TransposeOptions")


def _mean(one: One, layer: Layer) -> None:
    one.x((1, *layer["x"]), quant=_scale(one, X))
    one.constant([1, 2])
    one.y(quant=_scale(one, X / 2), shape=(1, layer["x"][2]))
    one.with_options("ReducerOptions", KeepDims=False)


def _matmul(one: One, layer: Layer) -> None:
    (batch, rows, depth), columns = layer["x"], layer["outputs"]
    x, steps = _scale(one, X), 50 if one.kind == "int8" else 50 * 256
    one.x((batch, rows, depth), quant=x)
    one.x((batch, depth, columns), quant=x)
    spread = (74 if one.kind == "int8" else 74 * 256) ** 2 * depth**0.5 / steps
    made = float(np.float32(x[0] * x[0] * spread)), 0
    one.y(quant=made, shape=(batch, rows, columns))
    one.with_options("BatchMatMulOptions", AdjX=False, AdjY=False)


_DRAWS: dict[str, tuple[str, Callable[[One, Layer], None]]] = {
    "convolution": ("CONV_2D", _conv),
    "depthwise": ("DEPTHWISE_CONV_2D", _conv),
    "transposed convolution": ("TRANSPOSE_CONV", _transposed),
    "fully connected": ("FULLY_CONNECTED", _dense),
    "add": ("ADD", _pair("AddOptions")),
    "mul": ("MUL", _pair("MulOptions")),
    "maximum": ("MAXIMUM", _pair("MaximumMinimumOptions")),
    "average pool": ("AVERAGE_POOL_2D", _pool),
    "max pool": ("MAX_POOL_2D", _pool),
    "softmax": ("SOFTMAX", _softmax),
    "logistic": ("LOGISTIC", _curve),
    "tanh": ("TANH", _curve),
    "LSTM": ("UNIDIRECTIONAL_SEQUENCE_LSTM", _lstm),
    "SVDF": ("SVDF", _svdf),
    "pad": ("PAD", _pad),
    "concat": ("CONCATENATION", _concat),
    "transpose": ("TRANSPOSE", _transpose),
    "mean": ("MEAN", _mean),
    "batch matmul": ("BATCH_MATMUL", _matmul),
}
