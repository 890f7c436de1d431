"""Layers of layers.py as exporters write them out, in ONNX: where their opset has no
operator for it, or the model's author wrote the formula.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tests.frontends.doors.layers import LAYERS, UNIT, image, numbers, places
from tests.frontends.doors.layers import pointwise as last
from tests.frontends.doors.writers import IMAGE, USUAL, Onnx, Scale, Tflite

H, W, C = IMAGE[1:]
Spelling = Callable[["Written", str], str]
_HALF, _CUBIC = math.sqrt(0.5), math.sqrt(2 / math.pi)
_SCALES: dict[str, Scale] = {
    "sigmoid": UNIT, "tanh": (1 / 128, 0), "softmax of channels": UNIT
}  # fmt: skip


class Written:
    """Nodes by their names: w.Mul(a, 3.0); numbers are constants of float32."""

    def __init__(self, onnx: Onnx) -> None:
        self.onnx = onnx

    def __getattr__(self, kind: str) -> Callable[..., str]:
        def node(*reads: Any, **attrs: Any) -> str:
            held = [r if isinstance(r, str) else self._constant(r) for r in reads]
            return self.onnx.node(kind, held, **attrs)

        return node

    def _constant(self, value: Any) -> str:
        whole = isinstance(value, tuple)
        return self.onnx.plain(places(*value) if whole else np.float32(value))


def sigmoid(w: Written, x: str) -> str:
    return w.Div(1, w.Add(1, w.Exp(w.Neg(x))))


def cubic_gelu(w: Written, x: str) -> str:
    """As transformers' gelu_new."""
    inner = w.Mul(w.Add(x, w.Mul(w.Pow(x, 3), 0.044715)), _CUBIC)
    return w.Mul(w.Mul(x, 0.5), w.Add(w.Tanh(inner), 1))


def fast_gelu(w: Written, x: str) -> str:
    """As transformers' gelu_fast."""
    square = w.Add(1, w.Mul(w.Mul(0.044715, x), x))
    return w.Mul(
        w.Mul(0.5, x), w.Add(1, w.Tanh(w.Mul(w.Mul(x, _CUBIC), square)))
    )  # fmt: skip


# by layer; fast: a formula whose layer is not in LAYERS, as Gelu's with tanh
SPELLINGS: dict[str, tuple[Spelling, ...]] = {
    "relu": (lambda w, x: w.Max(x, 0), lambda w, x: w.Clip(x, 0)),
    "relu6": (
        lambda w, x: w.Min(w.Max(x, 0), 6),
        lambda w, x: w.Min(w.Relu(x), 6),
        lambda w, x: w.Clip(w.Relu(x), "", 6),
    ),
    "leaky relu": (
        lambda w, x: w.Max(x, w.Mul(x, 0.1)),
        lambda w, x: w.Max(w.Mul(0.1, x), x),
        lambda w, x: w.Where(w.Greater(x, 0), x, w.Mul(x, 0.1)),
        lambda w, x: w.Where(w.Less(x, 0), w.Mul(x, 0.1), x),
        lambda w, x: w.PRelu(x, 0.1),
    ),
    "abs": (lambda w, x: w.Max(x, w.Neg(x)), lambda w, x: w.Max(w.Mul(x, -1), x)),
    "gelu": (
        lambda w, x: w.Mul(w.Mul(x, w.Add(w.Erf(w.Div(x, math.sqrt(2))), 1)), 0.5),
        lambda w, x: w.Mul(w.Mul(0.5, x), w.Add(1, w.Erf(w.Mul(x, _HALF)))),
        lambda w, x: w.Mul(x, w.Mul(w.Add(w.Erf(w.Mul(_HALF, x)), 1), 0.5)),
    ),
    "sigmoid": (
        sigmoid,
        lambda w, x: w.Reciprocal(w.Add(w.Exp(w.Mul(x, -1)), 1)),
    ),
    "mean of pixels": (
        lambda w, x: w.GlobalAveragePool(x),
        lambda w, x: w.Div(w.ReduceSum(x, (2, 3), keepdims=1), H * W),
        lambda w, x: w.Mul(1 / H / W, w.ReduceSum(x, (2, 3), keepdims=1)),
        lambda w, x: w.ReduceMean(w.ReduceMean(x, (3,), keepdims=1), (2,), keepdims=1),
    ),
    "mean of pixels, no axes": (
        lambda w, x: w.Flatten(w.GlobalAveragePool(x)),
        lambda w, x: w.Squeeze(w.GlobalAveragePool(x), (2, 3)),
        lambda w, x: w.ReduceMean(w.Reshape(x, (1, C, H * W)), (2,), keepdims=0),
    ),
    "softmax of channels": (
        lambda w, x: w.Transpose(
            w.Softmax(w.Transpose(x, perm=[0, 2, 3, 1]), axis=-1), perm=[0, 3, 1, 2]
        ),
    ),
    "depth to space": (
        lambda w, x: w.Reshape(
            w.Transpose(
                w.Reshape(x, (1, 2, 2, C // 4, H, W)), perm=[0, 3, 4, 1, 5, 2]
            ),
            (1, C // 4, 2 * H, 2 * W),
        ),
    ),
    "mul by a number": (lambda w, x: w.Div(x, 1 / numbers(1)[0]),),
    "slice": (
        lambda w, x: w.Slice(w.Slice(x, (1,), (H,), (2,)), (4,), (12,), (1,)),
        lambda w, x: w.Slice(w.Slice(x, (2,), (C,), (1,)), (2, 1), (10, H), (1, 2)),
    ),
}  # fmt: skip


def spelled(name: str, spelling: Spelling, int8: bool) -> bytes:
    """The layer's ONNX file, in which the formula stands for it."""
    t, o = Tflite(int8), Onnx(int8)
    shape = t.tensors[LAYERS[name](t, Onnx(int8))[0]].shape
    y = o.through(spelling(Written(o), image(Tflite(int8), o)[1]),
                  _SCALES.get(name, USUAL))  # fmt: skip
    if len(shape) == 4:
        y = last(Tflite(int8), o, (0, y), shape, 8)[1]
    return o.file(y)
