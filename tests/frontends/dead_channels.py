"""Files whose layers have dead channels: ones that give one value whatever comes in,
with scales and biases that converters and training leave there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

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


LIVE = 6


@dataclass(frozen=True)
class Layer:
    """A channel for each death, and some that live, of four inputs (a depthwise one: of
    as many as outputs).

    wide  bits of a bias of int16 activations; 0: all is of a byte
    zero  of weights of uint8, which have one scale; activations are uint8, too
    """

    x: tuple[int, ...]
    y: tuple[int, ...]
    w: np.ndarray
    bias: np.ndarray
    scales: np.ndarray
    axis: int
    x_scale: float
    y_scale: float
    wide: int
    zero: int = 0

    @property
    def kind(self) -> type[np.integer[Any]]:
        """The type of activations."""
        if self.w.dtype == np.uint8:
            return np.uint8
        return np.int16 if self.wide else np.int8

    @property
    def zeros(self) -> tuple[int, int]:
        """The zero points of both."""
        more = 128 if self.kind is np.uint8 else 0
        return (0, 0) if self.wide else (more - 3, more + 5)


def asymmetric(made: Layer, zero: int) -> Layer:
    """The layer with weights of uint8 and one scale."""
    rng = np.random.default_rng(zero)
    w = rng.normal(zero, 40, made.w.shape).clip(0, 255).round().astype(np.uint8)
    w.reshape(-1)[:2] = 0, 255
    return replace(made, w=w, scales=made.scales[:1], zero=zero)


def drawn(layer: str, deaths: Sequence[str], wide: int, live: int = LIVE) -> Layer:
    rng = np.random.default_rng(len(deaths))
    outs = len(deaths) + live
    ins = outs if layer == "depthwise" else 4
    shape, axis = {
        "conv": ((outs, 3, 3, ins), 0), "depthwise": ((1, 3, 3, outs), 3),
        "dense": ((outs, ins), 0), "transpose": ((outs, 3, 3, ins), 0),
    }[layer]  # fmt: skip
    w = rng.integers(-127, 128, shape).astype(np.int8)
    bias = rng.integers(-3000, 3000, outs)
    scales = rng.uniform(0.002, 0.02, outs).astype(np.float32)
    order = rng.permutation(outs)
    for channel, death in zip(order, deaths, strict=False):
        scale, zeros, value = DEATHS[death]
        if zeros:
            np.moveaxis(w, axis, 0)[channel] = 0
        scales[channel], bias[channel] = scale, value
    x, y = {
        "dense": ((2, ins), (2, outs)), "transpose": ((1, 3, 3, ins), (1, 6, 6, outs)),
    }.get(layer, ((1, 5, 5, ins), (1, 5, 5, outs)))  # fmt: skip
    bias = bias.astype(np.int64 if wide == 64 else np.int32)
    steps = 128 if wide else 1
    return Layer(x, y, w, bias, scales, axis, 0.05 / steps, 0.2 / steps, wide)


def tflite(layer: str, made: Layer, fused: int = 0) -> bytes:
    """fused  1: RELU, 3: RELU6"""
    kind = np.dtype(made.kind).name.upper()
    wide = f"INT{made.bias.dtype.itemsize * 8}"
    zeros = made.zeros
    tensors = [
        FileTensor("x", made.x, kind, None, (made.x_scale,), zeros[:1]),
        FileTensor("w", made.w.shape, made.w.dtype.name.upper(), made.w,
                   _told(made.scales), (made.zero,) * len(made.scales), made.axis),
        FileTensor("b", made.bias.shape, wide, made.bias,
                   _told(made.scales * np.float32(made.x_scale)),
                   (0,) * len(made.scales)),
        FileTensor("y", made.y, kind, None, (made.y_scale,), zeros[1:]),
    ]  # fmt: skip
    reads: tuple[int, ...] = (0, 1, 2)
    code, table = _CODES[layer]
    options: dict[str, Any] = {"FusedActivationFunction": fused}
    if made.wide == 32:
        options["QuantizedBiasType"] = 2  # INT32
    if layer == "transpose":
        shape = np.asarray(made.y, np.int32)
        tensors.append(FileTensor("shape", (4,), "INT32", shape))
        reads = (4, 1, 0, 2)
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


def onnx_model(layer: str, made: Layer, linear: bool) -> onnx.ModelProto:
    """int8, or int16 where `made` is wide.

    linear  QLinearConv; else a layer between QuantizeLinear and DequantizeLinear"""
    x, y = _first(made.x), _first(made.y)
    w = np.moveaxis(made.w, -1, 1) if layer != "dense" else made.w
    attrs: dict[str, Any] = {"transB": 1} if layer == "dense" else {}
    axis = 0
    if layer == "depthwise":
        w = np.moveaxis(made.w, -1, 0)  # [C, 1, KH, KW]
        attrs["group"] = w.shape[0]
    if layer == "transpose":
        w, axis = np.moveaxis(w, 0, 1), 1
        attrs |= {"strides": [2, 2], "pads": [0, 0, 1, 1]}
    elif layer != "dense":
        attrs["pads"] = [1] * 4
    scales = made.scales
    kind, zeros = made.kind, made.zeros
    held = {
        "xs": np.float32(made.x_scale), "xz": kind(zeros[0]), "w": w, "ws": scales,
        "wz": np.full(scales.shape, made.zero, made.w.dtype),
        "ys": np.float32(made.y_scale),
        "yz": kind(zeros[1]), "b": made.bias,
        "bs": scales * np.float32(made.x_scale),
        "bz": np.zeros(scales.shape, np.int32),
    }  # fmt: skip
    code = {"dense": "Gemm", "transpose": "ConvTranspose"}.get(layer, "Conv")
    node = helper.make_node
    if linear:
        reads = ["x", "xs", "xz", "w", "ws", "wz", "ys", "yz", "b"]
        nodes = [node("QLinearConv", reads, ["y"], **attrs)]
        held = {n: held[n] for n in reads[1:]}
    else:
        nodes = [
            node("DequantizeLinear", ["x", "xs", "xz"], ["xf"]),
            node("DequantizeLinear", ["w", "ws", "wz"], ["wf"], axis=axis),
            node("DequantizeLinear", ["b", "bs", "bz"], ["bf"], axis=0),
            node(code, ["xf", "wf", "bf"], ["yf"], **attrs),
            node("QuantizeLinear", ["yf", "ys", "yz"], ["y"]),
        ]
    numbers = helper.np_dtype_to_tensor_dtype(np.dtype(kind))
    graph = helper.make_graph(
        nodes, "dead",
        [helper.make_tensor_value_info("x", numbers, x)],
        [helper.make_tensor_value_info("y", numbers, y)],
        [numpy_helper.from_array(np.asarray(v), n) for n, v in held.items()],
    )  # fmt: skip
    opset = [helper.make_opsetid("", 21)]
    return helper.make_model(graph, opset_imports=opset, ir_version=10)


def _first(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Channels first."""
    return (shape[0], shape[-1], *shape[1:-1])
