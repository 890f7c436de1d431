"""Float nets of seeded weights, normalised and calibrated on made images as they grow,
then written as a converter writes them: int8, scales by channel. Knows no kernel.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pybuild.dtype import Array
from tests.ops.tflite_writer import FileOperator, FileTensor, write

IMAGES = 3  # of calibration
_CLAMPS = {"": (-math.inf, math.inf), "relu": (0.0, math.inf), "relu6": (0.0, 6.0)}
_CODES = {"": 0, "relu": 1, "relu6": 3}


@dataclass
class Value:
    """A tensor: its number in the file, and what the images make of it.

    real   float32[IMAGES,...]
    like   the tensor whose scale it must have: itself, unless an operator only moves
    fixed  scale and zero point that an operator prescribes
    """

    at: int
    real: Array
    like: Value | None = None
    fixed: tuple[float, int] | None = None

    @property
    def root(self) -> Value:
        return self if self.like is None else self.like.root


@dataclass
class _Weights:
    """Of a layer: float until the scale of its input is known."""

    x: Value
    real: Array
    bias: Array
    axis: int
    at: int


class Maker:
    """Operators one after the other; each computes in float what it will mean."""

    def __init__(self, seed: int, shape: Sequence[int], low: float = -1.0) -> None:
        """shape  of one image [H,W,C], whose values are low to 1"""
        self.chance = np.random.default_rng((81, seed))
        self.values: list[Value | _Weights | FileTensor] = []
        self.names: list[str] = []
        self.operators: list[FileOperator] = []
        self.macs = 0
        self.x = self._value(images(self.chance, shape, low), "image")
        self.low = low

    def _value(self, real: Array, name: str, like: Value | None = None,
               fixed: tuple[float, int] | None = None) -> Value:  # fmt: skip
        made = Value(len(self.values), real, like, fixed)
        self.values.append(made)
        self.names.append(name)
        return made

    def _constant(self, values: Array, name: str) -> int:
        kind = values.dtype.name.upper()
        self.values.append(FileTensor(name, values.shape, kind, values))
        self.names.append(name)
        return len(self.values) - 1

    def _operator(self, code: str, inputs: Sequence[int], made: Value, table: str = "",
                  **options: Any) -> Value:  # fmt: skip
        self.operators.append(
            FileOperator(code, tuple(inputs), (made.at,), table, options)
        )
        return made

    def _weights(self, x: Value, real: Array, bias: Array, axis: int) -> list[int]:
        at = len(self.values)
        self.values += [_Weights(x, real, bias, axis, at)] * 2
        number = len(self.operators)
        self.names += [f"w{number}", f"b{number}"]
        return [x.at, at, at + 1]

    def _normal(self, made: Array) -> tuple[Array, Array]:
        """What batch normalisation folds into weights: factor and offset, by channel.
        Trained factors differ by some times, and few channels are all but dead.
        """
        flat = made.reshape(-1, made.shape[-1])
        spread = np.sqrt(0.7 * flat.var(0) + 0.3 * flat.var(0).mean() + 1e-6)
        count = made.shape[-1]
        gamma = np.exp(self.chance.normal(-0.2, 0.4, count))
        gamma[self.chance.random(count) < 0.02] = 1e-4
        factor = (gamma / spread).astype(np.float32)
        offset = self.chance.normal(0.1, 0.5, count) - factor * flat.mean(0)
        return factor, offset.astype(np.float32)

    def conv(self, x: Value, outs: int, kernel: int | tuple[int, int] = 1,
             stride: int | tuple[int, int] = 1, act: str = "relu6", same: bool = True,
             dilation: int = 1) -> Value:  # fmt: skip
        """CONV_2D, its batch normalisation and its activation."""
        size, steps = _two(kernel), _two(stride)
        ins = x.real.shape[-1]
        w = self.chance.normal(0, 1, (*size, ins, outs)).astype(np.float32)
        w *= np.float32((2 / (ins * math.prod(size))) ** 0.5)
        made = _convolved(x.real, w, steps, same, dilation)
        self.macs += made[0].size * ins * math.prod(size)
        factor, offset = self._normal(made)
        given = self._weights(x, np.moveaxis(w * factor, 3, 0), offset, 0)
        y = self._value(np.clip(made * factor + offset, *_CLAMPS[act]), self._name())
        return self._operator("CONV_2D", given, y, "Conv2DOptions",
                              **_window(steps, same, act, dilation))  # fmt: skip

    def depthwise(self, x: Value, kernel: int | tuple[int, int] = 3,
                  stride: int | tuple[int, int] = 1, act: str = "relu6",
                  same: bool = True, dilation: int = 1) -> Value:  # fmt: skip
        size, steps = _two(kernel), _two(stride)
        shape = (*size, x.real.shape[-1])
        w = self.chance.normal(0, 1, shape).astype(np.float32)
        made = _depthwise(x.real, w, steps, same, dilation)
        self.macs += made[0].size * math.prod(size)
        factor, offset = self._normal(made)
        given = self._weights(x, (w * factor)[None], offset, 3)
        y = self._value(np.clip(made * factor + offset, *_CLAMPS[act]), self._name())
        window = _window(steps, same, act, dilation)
        return self._operator("DEPTHWISE_CONV_2D", given, y, "DepthwiseConv2DOptions",
                              DepthMultiplier=1, **window)  # fmt: skip

    def transposed(self, x: Value, outs: int) -> Value:
        """TRANSPOSE_CONV 2x2 by 2: twice as many rows and columns."""
        count, rows, columns, ins = x.real.shape
        w = self.chance.normal(0, (1 / ins) ** 0.5, (2, 2, ins, outs))
        w = w.astype(np.float32)
        made = np.zeros((count, 2 * rows, 2 * columns, outs), np.float32)
        for i in (0, 1):
            for j in (0, 1):
                made[:, i::2, j::2] = x.real @ w[i, j]
        self.macs += made[0].size * ins
        factor, offset = self._normal(made)
        at = self._weights(x, np.moveaxis(w * factor, 3, 0), offset, 0)
        y = self._value(made * factor + offset, self._name())
        size = self._constant(
            np.asarray((1, *made.shape[1:]), np.int32), f"size{at[1]}"
        )
        given, window = [size, at[1], x.at, at[2]], _window((2, 2), True)
        return self._operator(
            "TRANSPOSE_CONV", given, y, "TransposeConvOptions", **window
        )

    def dense(self, x: Value, outs: int, act: str = "") -> Value:
        """FULLY_CONNECTED, one scale for all its weights."""
        flat = x.real.reshape(len(x.real), -1)
        w = self.chance.normal(0, (1 / flat.shape[1]) ** 0.5, (outs, flat.shape[1]))
        w = w.astype(np.float32)
        bias = self.chance.normal(0, 0.1, outs).astype(np.float32)
        self.macs += w.size
        made = np.clip(flat @ w.T + bias, *_CLAMPS[act])
        given = self._weights(x, w, bias, -1)
        return self._operator("FULLY_CONNECTED", given, self._value(made, self._name()),
                              "FullyConnectedOptions",
                              FusedActivationFunction=_CODES[act])  # fmt: skip

    def add(self, a: Value, b: Value, act: str = "") -> Value:
        made = np.clip(a.real + b.real, *_CLAMPS[act])
        y, fused = (
            self._value(made, self._name()),
            {"FusedActivationFunction": _CODES[act]},
        )
        return self._operator("ADD", [a.at, b.at], y, "AddOptions", **fused)

    def concat(self, *some: Value) -> Value:
        """Beside each other, all of one scale, as converters leave it."""
        made = np.concatenate([v.real for v in some], -1)
        y = self._value(made, self._name())
        for value in some:
            if value.root is not y:
                value.root.like = y
        return self._operator("CONCATENATION", [v.at for v in some], y,
                              "ConcatenationOptions", Axis=3)  # fmt: skip

    def pool(self, x: Value, kernel: int, stride: int, same: bool = True) -> Value:
        """MAX_POOL_2D."""
        padded = _padded(x.real, (kernel, kernel), (stride, stride), same, 1, -np.inf)
        taps = _taps(padded, (kernel, kernel), (stride, stride), 1)
        made = np.max([part for _, _, part in taps], 0)
        y = self._value(made, self._name(), x)
        return self._operator("MAX_POOL_2D", [x.at], y, "Pool2DOptions",
                              FilterHeight=kernel, FilterWidth=kernel,
                              **_window((stride, stride), same))  # fmt: skip

    def larger(self, x: Value) -> Value:
        """RESIZE_NEAREST_NEIGHBOR, twice as many rows and columns."""
        made = x.real.repeat(2, 1).repeat(2, 2)
        size = self._constant(np.asarray(made.shape[1:3], np.int32), self._name("size"))
        y = self._value(made, self._name(), x)
        return self._operator("RESIZE_NEAREST_NEIGHBOR", [x.at, size], y,
                              "ResizeNearestNeighborOptions")  # fmt: skip

    def mean(self, x: Value) -> Value:
        """MEAN over rows and columns: [N,C]."""
        axes = self._constant(np.asarray((1, 2), np.int32), self._name("axes"))
        y = self._value(x.real.mean((1, 2)), self._name())
        return self._operator("MEAN", [x.at, axes], y, "ReducerOptions", KeepDims=False)

    def softmax(self, x: Value) -> Value:
        most = np.exp(x.real - x.real.max(-1, keepdims=True))
        made = most / most.sum(-1, keepdims=True)
        y = self._value(made, self._name(), fixed=(1 / 256, -128))
        return self._operator("SOFTMAX", [x.at], y, "SoftmaxOptions", Beta=1.0)

    def _name(self, word: str = "t") -> str:
        return f"{word}{len(self.operators)}"

    def file(self, *outputs: Value, floats: bool = False) -> bytes:
        """The net as bytes; floats: float32 at its ends, quantised as it begins."""
        tensors = [self._file_tensor(i) for i in range(len(self.values))]
        operators, first = list(self.operators), self.x.at
        lasts = [v.at for v in outputs]
        if floats:
            ends = [(first, "given"), *((at, f"made{at}") for at in lasts)]
            at = {n: len(tensors) + k for k, (n, _) in enumerate(ends)}
            tensors += [FileTensor(name, tensors[n].shape) for n, name in ends]
            begin = FileOperator("QUANTIZE", (at[first],), (first,))
            finish = [FileOperator("DEQUANTIZE", (n,), (at[n],)) for n in lasts]
            operators = [begin, *operators, *finish]
            first, lasts = at[first], [at[n] for n in lasts]
        return write(tensors, operators, [first], lasts)

    def _file_tensor(self, at: int) -> FileTensor:
        value, name = self.values[at], self.names[at]
        match value:
            case FileTensor():
                return value
            case Value():
                scale, zero = self._scale(value)
                shape = (1, *value.real.shape[1:])
                return FileTensor(name, shape, "INT8", None, (scale,), (zero,))
        w_scale, w, bias = self._quantised(value)
        axis, zeros = max(value.axis, 0), (0,) * len(w_scale)
        if at == value.at:
            scales = tuple(map(float, w_scale))
            return FileTensor(name, w.shape, "INT8", w, scales, zeros, axis)
        sums = (w_scale * np.float32(self._scale(value.x)[0])).astype(np.float32)
        scales = tuple(map(float, sums))
        return FileTensor(name, bias.shape, "INT32", bias, scales, zeros, 0)

    def _quantised(self, weights: _Weights) -> tuple[Array, Array, Array]:
        real = np.moveaxis(weights.real, weights.axis, -1)
        most = np.abs(real).reshape(-1, real.shape[-1]).max(0)
        if weights.axis < 0:
            real, most = weights.real, np.abs(weights.real).max(keepdims=True)[0]
        w_scale = (np.maximum(most, 1e-8) / 127).astype(np.float32)
        w = np.clip(np.rint(real / w_scale), -127, 127).astype(np.int8)
        if weights.axis >= 0:
            w = np.moveaxis(w, -1, weights.axis)
        sums = w_scale.astype(np.float64) * self._scale(weights.x)[0]
        bias = np.clip(np.rint(weights.bias / sums), -(2**30), 2**30).astype(np.int32)
        return w_scale, np.ascontiguousarray(w), bias

    def _scale(self, value: Value) -> tuple[float, int]:
        """Least and greatest over the images, as the converter takes it."""
        root = value.root
        if root.fixed is not None:
            return root.fixed
        low, high = min(float(root.real.min()), 0.0), max(float(root.real.max()), 0.0)
        if root is self.x:
            low, high = self.low, 1.0
        scale = max((high - low) / 255, 1e-6)
        return float(np.float32(scale)), int(
            np.clip(round(-128 - low / scale), -128, 127)
        )


def images(chance: np.random.Generator, shape: Sequence[int], low: float) -> Array:
    """Spots of all sizes, as float32[IMAGES,H,W,C] of low to 1."""
    rows, columns, channels = shape
    made = np.zeros((IMAGES, rows, columns, channels))
    y, x = np.mgrid[0:rows, 0:columns]
    for picture in made:
        for _ in range(24):
            size = max(rows, columns) * chance.uniform(0.03, 0.4)
            far = (y - chance.uniform(0, rows)) ** 2 + (
                x - chance.uniform(0, columns)
            ) ** 2
            block_offset = np.exp(-far / (2 * size**2))[..., None]
            picture += block_offset * chance.normal(0, 1, channels)
    made += chance.normal(0, 0.1, made.shape)
    made = (made - made.min()) / (made.max() - made.min())
    return (low + made * (1 - low)).astype(np.float32)


def _fused(act: str) -> dict[str, int]:
    return {"FusedActivationFunction": _CODES[act]}


def _two(n: int | tuple[int, int]) -> tuple[int, int]:
    return n if isinstance(n, tuple) else (n, n)


def _window(
    steps: tuple[int, int], same: bool, act: str = "", dilation: int = 1
) -> dict[str, int]:
    options = {"Padding": 0 if same else 1, "StrideH": steps[0], "StrideW": steps[1]}
    if act or dilation > 1:
        options["FusedActivationFunction"] = _CODES[act]
    if dilation > 1:
        options |= {"DilationHFactor": dilation, "DilationWFactor": dilation}
    return options


def _padded(x: Array, kernel: tuple[int, int], steps: tuple[int, int], same: bool,
            dilation: int, value: float = 0.0) -> Array:  # fmt: skip
    if not same:
        return x
    around = [(0, 0)]
    for side, size, step in zip(x.shape[1:3], kernel, steps, strict=True):
        span = (size - 1) * dilation + 1
        total = max((math.ceil(side / step) - 1) * step + span - side, 0)
        around.append((total // 2, total - total // 2))
    return np.pad(x, [*around, (0, 0)], constant_values=value)


def _taps(padded: Array, kernel: tuple[int, int], steps: tuple[int, int], dilation: int
          ) -> list[tuple[int, int, Array]]:  # fmt: skip
    counts = [
        (side - (size - 1) * dilation - 1) // step + 1
        for side, size, step in zip(padded.shape[1:3], kernel, steps, strict=True)
    ]
    found = []
    for i in range(kernel[0]):
        for j in range(kernel[1]):
            a, b = i * dilation, j * dilation
            rows = slice(a, a + (counts[0] - 1) * steps[0] + 1, steps[0])
            columns = slice(b, b + (counts[1] - 1) * steps[1] + 1, steps[1])
            found.append((i, j, padded[:, rows, columns]))
    return found


def _convolved(
    x: Array, w: Array, steps: tuple[int, int], same: bool, dilation: int
) -> Array:
    size = (w.shape[0], w.shape[1])
    padded = _padded(x, size, steps, same, dilation)
    made: Array = sum(
        part @ w[i, j] for i, j, part in _taps(padded, size, steps, dilation)
    )  # type: ignore[assignment]
    return made


def _depthwise(
    x: Array, w: Array, steps: tuple[int, int], same: bool, dilation: int
) -> Array:
    size = (w.shape[0], w.shape[1])
    padded = _padded(x, size, steps, same, dilation)
    made: Array = sum(
        part * w[i, j] for i, j, part in _taps(padded, size, steps, dilation)
    )  # type: ignore[assignment]
    return made
