"""Files whose layers have dead channels: ones that give one value whatever comes in,
with scales and biases that converters and training leave there.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tests.ops.tflite_writer import FileOperator, FileTensor, write

TOP = 2**31 - 1
# what a dead channel has: the scale of its weights, whether these are 0, its bias
DEATHS: dict[str, tuple[float, bool, int]] = {
    "scale_0": (0.0, True, 0),
    "scale_0_of_weights": (0.0, False, 90),
    "scale_0_of_a_bias": (0.0, False, TOP),
    "small_scale": (1e-38, False, -70),
    "subnormal_scale": (1e-42, False, 1 << 30),
    "clamped_bias": (1e-11, False, TOP),
    "clamped_below": (1e-11, False, -TOP - 1),
    "least_bias": (0.004, True, -TOP - 1),
    "most_bias": (0.004, True, TOP),
    "least_bias_of_few": (1e-6, True, -TOP - 1),
}
LAYERS = ("conv", "depthwise", "dense", "transpose")
_CODES = {
    "conv": ("CONV_2D", "Conv2DOptions"),
    "depthwise": ("DEPTHWISE_CONV_2D", "DepthwiseConv2DOptions"),
    "dense": ("FULLY_CONNECTED", "FullyConnectedOptions"),
    "transpose": ("TRANSPOSE_CONV", "TransposeConvOptions"),
}


@dataclass(frozen=True)
class Layer:
    """Seven outputs, three of them dead, of four inputs (a depthwise one: of seven).

    wide  int16 activations, with biases of int64
    """

    x: tuple[int, ...]
    y: tuple[int, ...]
    w: np.ndarray
    bias: np.ndarray
    scales: np.ndarray
    axis: int
    x_scale: float
    y_scale: float
    wide: bool


def drawn(layer: str, death: str, wide: bool, seed: int) -> Layer:
    rng = np.random.default_rng(seed)
    outs = 7
    ins = outs if layer == "depthwise" else 4
    shape, axis = {
        "conv": ((outs, 3, 3, ins), 0), "depthwise": ((1, 3, 3, outs), 3),
        "dense": ((outs, ins), 0), "transpose": ((outs, 3, 3, ins), 0),
    }[layer]  # fmt: skip
    w = rng.integers(-127, 128, shape).astype(np.int8)
    bias = rng.integers(-3000, 3000, outs)
    scales = rng.uniform(0.002, 0.02, outs).astype(np.float32)
    scale, zeros, value = DEATHS[death]
    for channel in rng.choice(outs, 3, replace=False):
        where: list[Any] = [slice(None)] * len(shape)
        where[axis] = channel
        if zeros:
            w[tuple(where)] = 0
        scales[channel], bias[channel] = scale, value
    if layer == "dense":
        x, y = (2, ins), (2, outs)
    elif layer == "transpose":
        x, y = (1, 3, 3, ins), (1, 6, 6, outs)
    else:
        x, y = (1, 5, 5, ins), (1, 5, 5, outs)
    bias = bias.astype(np.int64 if wide else np.int32)
    steps = 128 if wide else 1
    return Layer(x, y, w, bias, scales, axis, 0.05 / steps, 0.2 / steps, wide)


def tflite(layer: str, made: Layer, fused: int = 0) -> bytes:
    """fused  1: RELU, 3: RELU6"""
    kind, wide = ("INT16", "INT64") if made.wide else ("INT8", "INT32")
    zeros = (0, 0) if made.wide else (-3, 5)
    tensors = [
        FileTensor("x", made.x, kind, None, (made.x_scale,), zeros[:1]),
        FileTensor("w", made.w.shape, "INT8", made.w, _told(made.scales),
                   (0,) * len(made.scales), made.axis),
        FileTensor("b", made.bias.shape, wide, made.bias,
                   _told(made.scales * np.float32(made.x_scale)),
                   (0,) * len(made.scales)),
        FileTensor("y", made.y, kind, None, (made.y_scale,), zeros[1:]),
    ]  # fmt: skip
    reads: tuple[int, ...] = (0, 1, 2)
    code, table = _CODES[layer]
    options: dict[str, Any] = {"FusedActivationFunction": fused}
    if layer == "transpose":
        shape = np.asarray(made.y, np.int32)
        tensors.append(FileTensor("shape", (4,), "INT32", shape))
        reads, options = (4, 1, 0, 2), {}
    if layer != "dense":
        stride = 2 if layer == "transpose" else 1
        options |= {"Padding": 0, "StrideH": stride, "StrideW": stride}
    if layer == "depthwise":
        options["DepthMultiplier"] = 1
    if layer in ("conv", "depthwise"):
        options |= {"DilationHFactor": 1, "DilationWFactor": 1}
    return write(tensors, [FileOperator(code, reads, (3,), table, options)], [0], [3])


def _told(scales: Any) -> tuple[float, ...]:
    return tuple(float(s) for s in scales)


def flat(made: Layer) -> Layer:
    """The same with one scale, of all: that of the dead."""
    return replace(made, scales=made.scales[[int(made.scales.argmin())]])
