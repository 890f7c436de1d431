"""Element-wise, pooling and moving operators such as people's nets have, each made from
a seed as a .tflite file: sizes that no vector divides, scales as a converter gives
them, activations, roundings. Knows no kernel.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from pybuild.dtype import Array
from tests.ops.tflite_writer import FileOperator, FileTensor, write

_RULES = ("litert", "single", "litert", "tflm")
_FUSED = ("as it is", "ReLU", "-1 to 1", "ReLU6")
_RANGES = ((0.0, 6.0), (-1.0, 1.0), (0.0, 3.7), (-2.9, 4.1))


@dataclass(frozen=True)
class Operator:
    """A layer: its file, the rule it is built with, and what it is.

    macs      values of its output; of a mean those of its input
    channels  values of the last axis, of the input
    """

    seed: int
    kind: str
    words: str
    rounding: str
    file: bytes
    macs: int
    channels: int


@dataclass
class _Draft:
    """The file of one operator while it is being made."""

    chance: np.random.Generator
    elem: str
    tensors: list[FileTensor]
    computed: int = 0

    def one(self, *choices: Any) -> Any:
        return choices[int(self.chance.integers(len(choices)))]

    def quant(self, scale: float | None = None) -> tuple[float, int]:
        """Of a range as they are measured, or with that scale."""
        if self.elem == "INT16":
            found = self.chance.uniform(2, 9) / 32767 if scale is None else scale
            return float(np.float32(found)), 0
        low, high = self.one(*_RANGES)
        spread = self.chance.uniform(0.4, 1.6)
        found = (high - low) * spread / 255 if scale is None else scale
        zero = int(np.clip(round(-128 - low * spread / found), -128, 127))
        return float(np.float32(found)), zero

    def tensor(
        self, shape: tuple[int, ...], quant: tuple[float, int] | None,
        elem: str | None = None, data: Array | None = None,
    ) -> int:  # fmt: skip
        """One more tensor; inputs are those before the first that is computed."""
        scale, zero = ((), ()) if quant is None else ((quant[0],), (quant[1],))
        name = f"t{len(self.tensors)}"
        kind = self.elem if elem is None else elem
        self.tensors.append(FileTensor(name, shape, kind, data, scale, zero))
        return len(self.tensors) - 1

    def numbers(self, *values: Any) -> int:
        """A constant of int32."""
        data = np.asarray(values, np.int32)
        return self.tensor(data.shape, None, "INT32", data)

    def shape(self) -> tuple[int, int, int, int]:
        side, channels = self.one(5, 7, 8, 9, 12, 16), self.one(3, 8, 16, 21, 30, 32)
        return (1, side, self.one(side, 5, 10), channels)


_Written = tuple[str, str, dict[str, Any], tuple[int, ...], tuple[int, ...], str]


def _pair(code: str, table: str) -> Callable[[_Draft], _Written]:
    """add, sub, mul: the second operand of the same shape, or one of each channel."""

    def made(d: _Draft) -> _Written:
        shape = d.shape()
        other = d.one(shape, shape, (1, 1, 1, shape[3]))
        a, b = d.quant(), d.quant()
        fused = d.one(0, 0, 1, 3) if d.elem == "INT8" else d.one(0, 1)
        reach = 255 if d.elem == "INT8" else 2 * 32767
        most = a[0] + b[0] if code != "MUL" else a[0] * b[0] * reach / 2
        y = d.quant(most * d.chance.uniform(0.4, 1.0))
        given = d.tensor(shape, a), d.tensor(other, b)
        options = {"FusedActivationFunction": fused}
        if code != "MUL":
            options["PotScaleInt16"] = 0
        kept = "" if other == shape else ", one of each channel"
        words = f"{_said(shape)}{kept}, {_FUSED[fused]}"
        return code, table, options, given, (d.tensor(shape, y),), words

    return made


def _extreme(code: str) -> Callable[[_Draft], _Written]:
    def made(d: _Draft) -> _Written:
        shape, quant = d.shape(), d.quant()
        given = d.tensor(shape, quant), d.tensor(shape, quant)
        y = d.tensor(shape, quant)
        return code, "MaximumMinimumOptions", {}, given, (y,), _said(shape)

    return made


def _pool(code: str) -> Callable[[_Draft], _Written]:
    def made(d: _Draft) -> _Written:
        _, rows, columns, channels = shape = d.shape()
        kernel, quant = d.one((3, 3), (2, 2), (3, 3), (5, 5), (1, 3)), d.quant()
        stride, same = d.one(1, 2), d.one(True, True, False)
        sides = [
            -(-(side if same else side - k + 1) // stride)
            for side, k in zip((rows, columns), kernel, strict=True)
        ]
        options = {
            "Padding": 0 if same else 1, "StrideH": stride, "StrideW": stride,
            "FilterHeight": kernel[0], "FilterWidth": kernel[1],
            "FusedActivationFunction": 0,
        }  # fmt: skip
        x = d.tensor(shape, quant)
        y = d.tensor((1, *sides, channels), quant)
        words = f"{kernel[0]}x{kernel[1]} by {stride}{' padded' * same}, {_said(shape)}"
        return code, "Pool2DOptions", options, (x,), (y,), words

    return made


def _mean(d: _Draft) -> _Written:
    shape, x = d.shape(), d.quant()
    axes = d.one((1, 2), (1, 2), (3,))
    y_shape = tuple(1 if i in axes else n for i, n in enumerate(shape))
    y = d.quant(x[0] * d.chance.uniform(0.3, 1.0))
    given = d.tensor(shape, x), d.numbers(*axes)
    made = d.tensor(y_shape, y)
    words = f"over {axes}, {_said(shape)}"
    return "MEAN", "ReducerOptions", {"KeepDims": True}, given, (made,), words


def _softmax(d: _Draft) -> _Written:
    shape = d.one((1, 10), (1, 1000), (1, 12, 4, 33), (1, 4, 50, 50), (1, 7, 21))
    x = d.tensor(shape, d.quant())
    y = (1 / 256, -128) if d.elem == "INT8" else (1 / 32768, 0)
    return (
        "SOFTMAX",
        "SoftmaxOptions",
        {"Beta": 1.0},
        (x,),
        (d.tensor(shape, y),),
        (_said(shape)),
    )


def _concat(d: _Draft) -> _Written:
    shape, quant = d.shape(), d.quant()
    other = (*shape[:3], d.one(3, 8, 21, 32))
    given = d.tensor(shape, quant), d.tensor(other, quant)
    y = d.tensor((*shape[:3], shape[3] + other[3]), quant)
    words = f"{_said(shape)} and {other[3]}"
    return "CONCATENATION", "ConcatenationOptions", {"Axis": 3}, given, (y,), words


def _pad(d: _Draft) -> _Written:
    shape, quant = d.shape(), d.quant()
    pads = d.one(((0, 0), (1, 1), (1, 1), (0, 0)), ((0, 0), (0, 1), (0, 1), (0, 0)),
                 ((0, 0), (0, 0), (0, 0), (0, 5)))  # fmt: skip
    made = tuple(n + sum(p) for n, p in zip(shape, pads, strict=True))
    given = d.tensor(shape, quant), d.numbers(*pads)
    y = d.tensor(made, quant)
    return "PAD", "PadOptions", {}, given, (y,), f"by {pads[1:]}, {_said(shape)}"


def _resize(code: str) -> Callable[[_Draft], _Written]:
    def made(d: _Draft) -> _Written:
        shape, quant = d.shape(), d.quant()
        sides = d.one((2 * shape[1], 2 * shape[2]), (13, 17))
        given = d.tensor(shape, quant), d.numbers(*sides)
        y = d.tensor((1, *sides, shape[3]), quant)
        name = "Bilinear" if "BILINEAR" in code else "NearestNeighbor"
        options = {"AlignCorners": False, "HalfPixelCenters": d.one(True, False)}
        words = f"to {sides}, {_said(shape)}"
        return code, f"Resize{name}Options", options, given, (y,), words

    return made


def _curve(code: str) -> Callable[[_Draft], _Written]:
    def made(d: _Draft) -> _Written:
        shape = d.shape()
        x = d.tensor(shape, d.quant())
        wide = d.elem == "INT16"
        fixed = {"LOGISTIC": (1 / 256, -128), "TANH": (1 / 128, 0)}
        y = (1 / 32768, 0) if wide else fixed.get(code) or d.quant()
        return code, "", {}, (x,), (d.tensor(shape, y),), _said(shape)

    return made


def _leaky(d: _Draft) -> _Written:
    shape = d.shape()
    x = d.tensor(shape, d.quant())
    y = d.tensor(shape, d.quant())
    options = {"Alpha": d.one(0.1, 0.2, 0.01)}
    return "LEAKY_RELU", "LeakyReluOptions", options, (x,), (y,), _said(shape)


def _prelu(d: _Draft) -> _Written:
    shape = d.shape()
    data = d.chance.integers(-128, 128, (1, 1, shape[3])).astype(np.int8)
    given = d.tensor(shape, d.quant()), d.tensor(data.shape, (0.002, 0), None, data)
    return "PRELU", "", {}, given, (d.tensor(shape, d.quant()),), _said(shape)


def _converted(before: str, after: str) -> Callable[[_Draft], _Written]:
    """QUANTIZE or DEQUANTIZE; "" stands for the type of the draw."""

    def made(d: _Draft) -> _Written:
        shape, quant = d.shape(), d.quant()
        other = d.quant(quant[0] * d.chance.uniform(0.6, 1.7))
        x = d.tensor(shape, None if before else quant, before or None)
        y = d.tensor(shape, None if after else other, after or None)
        code = "DEQUANTIZE" if after else "QUANTIZE"
        return code, "", {}, (x,), (y,), _said(shape)

    return made


def _said(shape: tuple[int, ...]) -> str:
    return "x".join(map(str, shape[1:]))


_MAKERS: dict[str, Callable[[_Draft], _Written]] = {
    "add": _pair("ADD", "AddOptions"),
    "sub": _pair("SUB", "SubOptions"),
    "mul": _pair("MUL", "MulOptions"),
    "minimum": _extreme("MINIMUM"),
    "maximum": _extreme("MAXIMUM"),
    "average pool": _pool("AVERAGE_POOL_2D"),
    "max pool": _pool("MAX_POOL_2D"),
    "mean": _mean,
    "softmax": _softmax,
    "concat": _concat,
    "pad": _pad,
    "resize bilinear": _resize("RESIZE_BILINEAR"),
    "resize nearest": _resize("RESIZE_NEAREST_NEIGHBOR"),
    "logistic": _curve("LOGISTIC"),
    "tanh": _curve("TANH"),
    "hard swish": _curve("HARD_SWISH"),
    "leaky relu": _leaky,
    "prelu": _prelu,
    "requantise": _converted("", ""),
    "quantise": _converted("FLOAT32", ""),
    "dequantise": _converted("", "FLOAT32"),
}
# what LiteRT has of int16, too
_WIDE = [kind for kind in _MAKERS if kind not in ("hard swish", "prelu")]
KINDS = (*_MAKERS, *(f"{kind} int16" for kind in _WIDE))


def operator(kind: str, seed: int) -> Operator:
    """The layer of that operator and seed; equal for equal ones."""
    name = kind.removesuffix(" int16")
    elem = "INT8" if name == kind else "INT16"
    chance = np.random.default_rng((23, KINDS.index(kind), seed))
    draft = _Draft(chance, elem, [])
    code, table, options, given, made, words = _MAKERS[name](draft)
    tensors = draft.tensors
    free = [i for i in given if tensors[i].data is None]
    file = write(
        tensors, [FileOperator(code, given, made, table, options)], free, list(made)
    )
    rounding = _RULES[seed % len(_RULES)]
    counted = free if name == "mean" else made
    values = sum(math.prod(tensors[i].shape) for i in counted)
    channels = tensors[given[0]].shape[-1]
    words = f"{words}, {rounding}"
    return Operator(seed, kind, words, rounding, file, values, channels)
