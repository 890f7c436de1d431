"""Layers such as people's nets have, each made from a seed as a .tflite file: shapes,
weights, scales as a converter gives them, activations, roundings. Knows no kernel.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass

import numpy as np

from pybuild.dtype import Array
from tests.ops.tflite_writer import FileOperator, FileTensor, write

CLASSES = (
    "convolution", "pointwise", "stem", "depthwise 3x3", "depthwise 5x5, 7x7", "dense",
    "transposed", "of other form",
)  # fmt: skip
# how often each is drawn, in a round of 12
_ROUND = (0, 1, 2, 3, 4, 5, 0, 1, 6, 3, 7, 1)
_CHANNELS = (16, 24, 32, 40, 48, 64, 80, 96, 128, 192, 256, 320, 512, 1024)
# weights as trained; over all of int8; some channels far louder, silent, or with a
# bias that is beyond all that the others reach
_WEIGHTS = ("trained", "whole range", "hot and dead", "great bias")
_CLAMPS = {0: (-np.inf, np.inf), 1: (0.0, np.inf), 3: (0.0, 6.0), 2: (-1.0, 1.0)}
_RULES = ("litert", "litert", "tflm", "litert", "single", "onnx")
_MOST = 600_000  # products of a layer, about
_LEAST = 1000  # products of a row


@dataclass(frozen=True)
class Made:
    """A layer: its file, the rule it is built with, and what it is.

    macs  products that its meaning has; of a transposed one without the zeros between
    row_macs, row_outputs  of them and of the values that it makes, those of one row of
                           the output
    kernel, columns, inputs  rows and columns of the window; columns of the output;
                             channels that an output reads
    on_padding   share of the products that are with padding
    whole_range  there are weights of -128
    """

    seed: int
    kind: str
    words: str
    rounding: str
    file: bytes
    macs: int
    row_macs: float
    row_outputs: int
    kernel: tuple[int, ...]
    stride: int
    columns: int
    inputs: int
    on_padding: float
    whole_range: bool


@dataclass
class _Form:
    """A layer before it has values.

    x, w  shapes [H,W,C] and, as in the file, of weights
    """

    kind: str
    x: tuple[int, int, int]
    w: tuple[int, ...]
    stride: int = 1
    dilation: int = 1
    same: bool = True

    @property
    def depthwise(self) -> bool:
        return self.w[0] == 1 and self.kind.startswith("depthwise")

    @property
    def sizes(self) -> tuple[int, int]:
        """Rows and columns of the output."""
        found = []
        for side, kernel in zip(self.x, self.w[1:3], strict=False):
            span = (kernel - 1) * self.dilation + 1
            if self.kind == "transposed":
                found.append(side * self.stride)
            else:
                room = side if self.same else side - span + 1
                found.append(-(-room // self.stride))
        return found[0], found[1]

    @property
    def outputs(self) -> int:
        return self.w[3] if self.depthwise else self.w[0]

    @property
    def macs(self) -> int:
        if self.kind == "transposed":
            return self.x[0] * self.x[1] * math.prod(self.w)
        return math.prod(self.sizes) * math.prod(self.w)

    @property
    def of_a_row(self) -> tuple[float, int]:
        """Products, and values of the output."""
        rows, columns = self.sizes
        return self.macs / rows, columns * self.outputs

    @property
    def on_padding(self) -> float:
        """Share of the products that are with padding."""
        share = 1.0
        for side, kernel, outs in zip(self.x, self.w[1:3], self.sizes, strict=False):
            span = (kernel - 1) * self.dilation + 1
            before = max((outs - 1) * self.stride + span - side, 0) // 2
            if not self.same or self.kind == "transposed":
                before = 0
            at = [
                o * self.stride - before + k * self.dilation
                for o in range(outs)
                for k in range(kernel)
            ]
            share *= sum(0 <= n < side for n in at) / len(at)
        return 1 - share

    @property
    def words(self) -> str:
        """As tables say it."""
        kernel = f"{self.w[1]}x{self.w[2]}"
        shape = f"{self.x[0]}x{self.x[1]}, {self.x[2]} to {self.outputs}"
        more = f" by {self.stride}" if self.stride > 1 else ""
        more += f" dilated {self.dilation}" if self.dilation > 1 else ""
        groups = 1 if self.depthwise else self.x[2] // self.w[3]
        more += f" in {groups} groups" if groups > 1 else ""
        return f"{kernel}{more}, {shape}"


def layer(seed: int) -> Made:
    """The layer of that seed; equal for equal seeds."""
    chance = np.random.default_rng((18, seed))
    kind = CLASSES[_ROUND[seed % len(_ROUND)]]
    form = _fitting(kind, chance)
    wide = seed % 11 == 7 and kind not in ("transposed", "of other form")
    values = _Values(chance, form, wide)
    how, rule = values.how, str(chance.choice(_RULES))
    words = ", ".join((form.words, how, values.shown, *(["int16"] if wide else [])))
    inputs = 1 if form.depthwise else form.w[3]
    return Made(
        seed, kind, words, rule, values.file(), form.macs, *form.of_a_row,
        form.w[1:3], form.stride, form.sizes[1], inputs, form.on_padding,
        int(values.w.min()) == -128,
    )  # fmt: skip


def far_apart() -> Made:
    """A depthwise layer of int16 with a stride and channels that no kernel on vectors
    has: loops over seven rows of a window are for compilers to make vectors of."""
    form = _Form("depthwise 5x5, 7x7", (9, 9, 7), (1, 7, 7, 7), 3)
    values = _Values(np.random.default_rng(5), form, True)
    return Made(
        1, form.kind, form.words, "litert", values.file(), form.macs, *form.of_a_row,
        (7, 7), 3, form.sizes[1], 1, form.on_padding, False,
    )  # fmt: skip


def large(kind: str, channels: int, wide: bool) -> bytes:
    """The file of a layer of so many channels to as many: int16 or int8."""
    side, kernel = (1, 1) if kind == "dense" else (4, 3)
    x, w = (side, side, channels), (channels, kernel, kernel, channels)
    return _Values(np.random.default_rng(5), _Form(kind, x, w), wide).file()


def _fitting(kind: str, chance: np.random.Generator) -> _Form:
    """A form whose rows are long enough and that is not too long for a test."""
    while True:
        form = _drawn(kind, chance)
        rows, _ = form.sizes
        if rows < 1 or form.outputs < 1:
            continue
        enough = form.macs >= _LEAST * rows and form.macs >= 20_000
        if (enough or kind == "dense") and form.macs <= _MOST:
            return form


def _drawn(kind: str, chance: np.random.Generator) -> _Form:
    one = functools.partial(_one, chance)
    ins, outs = one(*_CHANNELS), one(*_CHANNELS)
    if chance.integers(6) == 0:  # numbers that no block divides
        ins, outs = int(chance.integers(16, 200)), int(chance.integers(16, 200))
    side = one(1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 24)
    x = (side, side if chance.integers(3) else one(3, 4, 5, 8, 10), ins)
    stride, same = one(1, 1, 2), bool(chance.integers(4))
    match kind:
        case "convolution":
            kernel = ((3, 3), (3, 3), (5, 5), (1, 3), (7, 1))[one(0, 1, 2, 3, 4)]
            dilation = 2 if stride == 1 and one(0, 0, 0, 0, 1) else 1
            return _Form(kind, x, (outs, *kernel, ins), stride, dilation, same)
        case "pointwise":
            ins = one(*_CHANNELS, 1536, 2048)
            return _Form(kind, (x[0], x[1], ins), (outs, 1, 1, ins), one(1, 1, 1, 2))
        case "stem":
            ins, outs, side = one(1, 3, 4, 2), one(8, 16, 24, 32, 64), one(16, 20, 24)
            wide = one(3, 3, 5, 7)
            x = (side, side, ins)
            return _Form(kind, x, (outs, wide, wide, ins), one(1, 2), 1, same)
        case "depthwise 3x3":
            return _Form(kind, x, (1, 3, 3, ins), stride, 1, same)
        case "depthwise 5x5, 7x7":
            wide = one(5, 7)
            return _Form(kind, x, (1, wide, wide, ins), stride, 1, same)
        case "dense":
            ins = one(16, 40, 64, 128, 256, 640, 1024, 1536, 3072)
            return _Form(kind, (1, 1, ins), (one(10, 16, 64, 100, 128), 1, 1, ins))
        case "transposed":
            wide = one(2, 3, 4)
            return _Form(kind, x, (outs, wide, wide, ins), 2)
    return _odd(x, chance)


def _one(chance: np.random.Generator, *choices: int) -> int:
    return int(chance.choice(choices))


def _odd(x: tuple[int, int, int], chance: np.random.Generator) -> _Form:
    """In groups, with few outputs or inputs, depthwise with several outputs or gaps."""
    one = functools.partial(_one, chance)
    kind, ins = "of other form", x[2]
    which = int(chance.integers(5))
    if which == 0:
        groups, inside = one(2, 4, 8), one(4, 8, 16, 24)
        outs = groups * one(1, 4, 8, 16)
        return _Form(kind, (x[0], x[1], groups * inside), (outs, 3, 3, inside))
    if which == 1:
        side = one(1, 3)
        return _Form(kind, x, (one(1, 2, 3, 5), side, side, ins))
    if which == 2:
        few = one(1, 2, 3, 5, 9)
        outs = one(*_CHANNELS)
        return _Form(kind, (x[0], x[1], few), (outs, 1, 1, few))
    if which == 3:
        few, times = one(1, 3, 8, 16), one(2, 4, 8)
        return _Form("depthwise", (x[0], x[1], few), (1, 3, 3, few * times))
    return _Form("depthwise", x, (1, 3, 3, ins), 1, 2)


class _Values:
    """The numbers of a layer, quantised as converters do it."""

    def __init__(self, chance: np.random.Generator, form: _Form, wide: bool) -> None:
        self.chance, self.form, self.wide = chance, form, wide
        self.how = str(chance.choice(_WEIGHTS))
        self.per_channel = wide or (form.kind != "dense" and bool(chance.integers(6)))
        self.act = int(chance.choice((0, 1, 3, 3, 2) if not wide else (0, 1)))
        self.shown = ("as it is", "ReLU", "-1 to 1", "ReLU6")[self.act]
        self.top = 32767 if wide else 127
        self._input()
        self._weights()
        self._output()

    def _input(self) -> None:
        if self.wide:
            self.x_scale, self.x_zero = np.float32(self.chance.uniform(2, 9) / 32767), 0
            return
        low, high = ((0.0, 6.0), (-1.0, 1.0), (0.0, 3.7), (-2.9, 4.1))[
            int(self.chance.integers(4))
        ]
        self.x_scale = np.float32((high - low) / 255)
        self.x_zero = round(-128 - low / float(self.x_scale))

    def _weights(self) -> None:
        form, chance = self.form, self.chance
        outs, axis = form.outputs, 3 if form.depthwise else 0
        taps = math.prod(form.w) // outs
        real = chance.normal(0, (2 / taps) ** 0.5, form.w)
        bias = chance.normal(0, 0.3, outs)
        real, bias = np.moveaxis(real, axis, -1), bias
        if self.how == "whole range":
            real = chance.integers(-128, 128, real.shape) * (2 / taps) ** 0.5 / 74
        if self.how == "hot and dead":
            real[..., :: max(2, outs // 3)] *= 30
            real[..., 1 :: max(2, outs // 4)] = 0
            bias[1 :: max(2, outs // 4)] = 0
        most = np.abs(real).reshape(-1, outs).max(0)
        most = np.where(most > 0, most, 1e-6)
        scales = most / (128 if self.how == "whole range" else 127)
        if not self.per_channel:
            scales = np.full(outs, scales.max())
        self.w_scale = scales.astype(np.float32)
        self.w = np.clip(np.rint(real / self.w_scale), -128, 127).astype(np.int8)
        self.w = np.moveaxis(self.w, -1, axis)
        sums = self.w_scale.astype(np.float64) * float(self.x_scale)
        self.bias = np.clip(np.rint(bias / sums), -(2**28), 2**28).astype(np.int64)
        if self.how == "great bias":
            self.bias[outs // 2] = -(2**27) if outs % 2 else 2**27
        self.sums = sums.astype(np.float32)

    def _output(self) -> None:
        """From the spread that sums of random inputs have."""
        form, axis = self.form, 3 if self.form.depthwise else 0
        flat = np.moveaxis(self.w, axis, 0).reshape(form.outputs, -1).astype(np.float64)
        some = self.chance.uniform(-1, 1, (flat.shape[1], 64))
        some *= 3.0 if self.wide else 1.0
        some *= 32767 / 4 if self.wide else 128
        values = flat @ some + self.bias[:, None]
        values = values * self.sums[:, None]
        usual = np.delete(values, form.outputs // 2, 0) if form.outputs > 1 else values
        chosen = values if self.how != "great bias" else usual
        low, high = _CLAMPS[self.act]
        low, high = (float(np.clip(v, low, high)) for v in (chosen.min(), chosen.max()))
        low, high = min(low, 0.0), max(high, 1e-3)
        if self.wide:
            self.y_scale, self.y_zero = np.float32(max(-low, high) / 32767), 0
            return
        self.y_scale = np.float32((high - low) / 255)
        self.y_zero = int(np.clip(round(-128 - low / float(self.y_scale)), -128, 127))

    def file(self) -> bytes:
        form, kind = self.form, "INT16" if self.wide else "INT8"
        rows, columns = form.sizes
        axis = 3 if form.depthwise else 0
        w, shape = self.w, [1, *form.x]
        made = [1, rows, columns, form.outputs]
        if form.kind == "dense":
            shape, made = [1, form.x[2]], [1, form.outputs]
            w = w.reshape(form.outputs, -1)
        count = form.outputs if self.per_channel else 1
        w_scale = tuple(map(float, self.w_scale[:count]))
        sums = tuple(map(float, self.sums[:count]))
        zeros, long = (0,) * count, np.int64 if self.wide else np.int32
        wide_kind = "INT64" if self.wide else "INT32"
        x_scale, y_scale = (float(self.x_scale),), (float(self.y_scale),)
        tensors = [
            FileTensor("x", tuple(shape), kind, None, x_scale, (self.x_zero,)),
            FileTensor("w", w.shape, "INT8", w, w_scale, zeros, axis),
            FileTensor("b", self.bias.shape, wide_kind, self.bias.astype(long), sums,
                       zeros, 0),
            FileTensor("y", tuple(made), kind, None, y_scale, (self.y_zero,)),
        ]  # fmt: skip
        code, table, options = self._operator()
        given: tuple[int, ...] = (0, 1, 2)
        if form.kind == "transposed":
            size: Array = np.asarray(made, np.int32)
            tensors.append(FileTensor("shape", (4,), "INT32", size))
            given = (4, 1, 0, 2)
        operator = FileOperator(code, given, (3,), table, options)
        return write(tensors, [operator], [0], [3])

    def _operator(self) -> tuple[str, str, dict[str, int]]:
        form = self.form
        if form.kind == "dense":
            fused = {"FusedActivationFunction": self.act}
            return "FULLY_CONNECTED", "FullyConnectedOptions", fused
        options = {
            "Padding": 0 if form.same else 1,
            "StrideH": form.stride,
            "StrideW": form.stride,
            "FusedActivationFunction": self.act,
        }
        if form.kind == "transposed":
            return "TRANSPOSE_CONV", "TransposeConvOptions", options
        options |= {"DilationHFactor": form.dilation, "DilationWFactor": form.dilation}
        if form.depthwise:
            options["DepthMultiplier"] = form.outputs // form.x[2]
            return "DEPTHWISE_CONV_2D", "DepthwiseConv2DOptions", options
        return "CONV_2D", "Conv2DOptions", options
