"""How random files of layers with weights and windows are drawn: LAYERS."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from tests.frontends.tflite.files import One

Draw = Callable[[One], None]
KINDS = ("float32", "int8", "uint8")


def weights(one: One, shape: tuple[int, ...], axis: int, x: Any) -> None:
    """Weights and, mostly, a bias; uint8 ones with a zero point, int8 ones for each
    output or as a whole.
    """
    channels = shape[axis]
    if one.kind == "float32":
        one.constant(one.rng.normal(0, 0.5, shape), "float32")
        if one.size(0, 3) or one.code == "CONV_2D":
            one.constant(one.rng.normal(0, 1, channels), "float32")
        return
    count = channels if one.kind != "uint8" and one.flag() else 1
    scales = one.rng.uniform(0.004, 0.02, count).astype(np.float32)
    zero = one.size(100, 150) if one.kind == "uint8" else 0
    if one.code == "FULLY_CONNECTED" and count == 1 and one.kind == "int8":
        zero = one.pick(0, one.size(-20, 20))
    low, high = (0, 255) if one.kind == "uint8" else (-127, 127)
    kind, wide = ("int8", "int64") if one.kind == "int16" else (one.kind, "int32")
    channel(one, one.values(shape, kind, low, high), kind, scales, zero, axis)
    if one.size(0, 3) or one.code == "CONV_2D":
        most = 250_000 if wide == "int64" else 2000
        bias = one.rng.integers(-most, most, channels).astype(wide)
        channel(one, bias, wide, scales * np.float32(x[0]), 0, 0)


def channel(one: One, value: Any, kind: str, scales: Any, zero: int, axis: int) -> None:
    """A constant with a scale for each index of an axis."""
    index = one.constant(value, kind, (1.0, 0))
    one.tensors[index] = replace(
        one.tensors[index], scale=tuple(float(s) for s in scales),
        zero_point=(zero,) * len(scales), axis=axis,
    )  # fmt: skip


def wide(one: One) -> Any:
    """A scale for sums."""
    return one.quant(one.kind, 0.1, 0.5)


def window(one: One, dilated: bool) -> dict[str, Any]:
    stride = one.size(1, 2)
    fields: dict[str, Any] = {
        "Padding": one.size(0, 1), "StrideH": stride, "StrideW": stride,
        "FusedActivationFunction": one.pick(0, 0, 1, 3),
    }  # fmt: skip
    if dilated:
        factor = one.size(1, 2) if stride == 1 else 1
        fields |= {"DilationHFactor": factor, "DilationWFactor": factor}
    return fields


def conv(one: One) -> None:
    channels, outs = one.size(1, 4), one.size(1, 6)
    quant = one.quant(one.kind)
    one.x((one.size(1, 2), one.size(5, 8), one.size(5, 8), channels), quant=quant)
    weights(one, (outs, one.size(1, 3), one.size(1, 3), channels), 0, quant)
    one.y(quant=wide(one))
    one.with_options("Conv2DOptions", **window(one, True))


def depthwise(one: One) -> None:
    channels, multiplier = one.size(1, 4), one.size(1, 2)
    quant = one.quant(one.kind)
    one.x((1, one.size(5, 8), one.size(5, 8), channels), quant=quant)
    shape = (1, one.size(1, 3), one.size(1, 3), channels * multiplier)
    weights(one, shape, 3, quant)
    one.y(quant=wide(one))
    fields = window(one, True)
    one.with_options("DepthwiseConv2DOptions", DepthMultiplier=multiplier, **fields)


def dense(one: One) -> None:
    depth, outs = one.size(1, 12), one.size(1, 6)
    quant = one.quant(one.kind)
    one.x((one.size(1, 3), depth), quant=quant)
    weights(one, (outs, depth), 0, quant)
    one.y(quant=wide(one))
    one.with_options("FullyConnectedOptions",
                     FusedActivationFunction=one.pick(0, 1, 3))  # fmt: skip


def pool(one: One) -> None:
    quant = one.quant(one.kind)
    one.x((one.size(1, 2), one.size(4, 7), one.size(4, 7), one.size(1, 4)), quant=quant)
    one.y(quant=quant)
    sizes = {"FilterHeight": one.size(1, 3), "FilterWidth": one.size(1, 3)}
    fields = window(one, False)
    if one.code == "L2_POOL_2D":
        fields["Padding"] = 1
    one.with_options("Pool2DOptions", **sizes, **fields)


LAYERS: dict[str, tuple[tuple[str, ...], Draw]] = {
    "AVERAGE_POOL_2D": (KINDS, pool),
    "CONV_2D": (KINDS, conv),
    "DEPTHWISE_CONV_2D": (KINDS, depthwise),
    "FULLY_CONNECTED": (KINDS, dense),
    "L2_POOL_2D": (("float32",), pool),
    "MAX_POOL_2D": (KINDS, pool),
}
