"""Unary functions: logistic, tanh, clip, leaky_relu, and int8 tables of them.

An int8 one is a table of 256 results; kernels know nothing else. int16: act16.py.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from pybuild.dtype import Array, DType, Ints
from pybuild.ir.graph import Graph, Node, Tensor
from pybuild.ops.base.operator import (
    BYTES,
    Types,
    Values,
    clamp_of,
    clamped,
    computable,
    invalid,
    operand,
    ratio,
    rounding,
    value,
    whole_quant,
)
from pybuild.ops.fixed_point.quant import (
    quantize_multiplier,
    quantized_clamp,
    requantize,
    rounded_away,
    saturated,
)
from pybuild.ops.int16 import act16

Float32s = npt.NDArray[np.float32]
Float64s = npt.NDArray[np.float64]
_MOST_256THS = 128 - 2.0**-8


def unary_table(node: Node, graph: Graph) -> Array:
    """The result of every input value, indexed by q - lowest value of the type.

    For logistic, tanh, leaky_relu, clip, and quantize between byte types.
    Shapes  int8[256] (the output's type)
    Source  LiteRT LUTPopulate, LeakyRelu, ReluX, Requantize; "even": float64,
            ties to even; "single": XNNPACK's of leaky_relu and quantize
    """
    x, y = operand(node, graph, 0), graph.tensor(node.output)
    for tensor in (x, y):
        whole_quant(node, graph, tensor)
        if tensor.dtype not in BYTES:
            what = f"'{tensor.name}' is {tensor.dtype.value}, not of one byte"
            raise invalid(node, graph, what)
    q = np.arange(x.dtype.low, x.dtype.high + 1, dtype=np.int64)
    low, high = quantized_clamp(clamp_of(node), y)
    whole = _table(node, x, y, q - x.zero_point)
    return saturated(whole + y.zero_point, y.dtype, low, high)


def _table(
    node: Node, x: Tensor, y: Tensor, centred: npt.NDArray[np.int64]
) -> Float64s | npt.NDArray[np.int64]:
    """Results without the output's zero point."""
    rule = rounding(node)
    if rule == "even":
        numbers: Float64s = np.multiply(centred, x.scale)
        exact = float64_function(node)(numbers)
        return np.asarray(np.rint(exact / y.scale), np.float64)
    match node.op:
        case "logistic" | "tanh":
            return _looked_up(node, x, y, centred)
        case "leaky_relu":
            slope = ratio(node, x, y, float(node.attrs["alpha"]))
            scales = ratio(node, x, y), slope
            if rule == "single":
                above, below = _in_256ths(centred, *scales)
            else:
                above = _scaled(centred, scales[0], rule)
                below = _scaled(centred, abs(slope), rule)
                below = below if slope >= 0 else -below
            return np.where(centred >= 0, above, below)
        case "quantize" if rule == "single":
            return _in_256ths(centred, ratio(node, x, y))[0]
        case "quantize":
            return _scaled(centred, x.scale / y.scale, rule)
        case _:
            return _scaled(centred, ratio(node, x, y), rule)


def _in_256ths(centred: npt.NDArray[np.int64], *scales: float) -> list[Ints]:
    """Times each scale, of 8 bits after the point; ties up. Where one is too small or
    too large for 16 bits of that, all round twice.

    Source  XNNPACK qs8-vlrelu and qs8-vcvt; LiteRT's own kernels, where its delegate
            refuses a scale
    """
    if not all(2.0**-8 <= abs(s) <= _MOST_256THS for s in scales):
        made = [_scaled(centred, abs(s), "double") for s in scales]
        return [m if s >= 0 else -m for m, s in zip(made, scales, strict=True)]
    return [(centred * round(s * 256) + 128) >> 8 for s in scales]


def _scaled(
    centred: npt.NDArray[np.int64], scale: float, rule: str
) -> npt.NDArray[np.int64]:
    return requantize(centred, *quantize_multiplier(scale), rule)


def _looked_up(
    node: Node, x: Tensor, y: Tensor, centred: npt.NDArray[np.int64]
) -> Float64s:
    """In float32 as LiteRT, with the reciprocal of the output's scale."""
    real = np.float32(x.scale) * centred.astype(np.float32)
    found = float32_function(node)(real)
    inverse = np.float32(1) / np.float32(y.scale)
    whole: Float64s = rounded_away(found * inverse).astype(np.float64)
    return whole


def float32_function(node: Node) -> Callable[[Float32s], Float32s]:
    """The function on float32; exp and tanh as float64 rounded once."""
    match node.op:
        case "logistic":
            return _logistic32
        case "tanh":
            return lambda x: np.tanh(x.astype(np.float64)).astype(np.float32)
        case "leaky_relu":
            alpha = np.float32(node.attrs["alpha"])
            return lambda x: np.where(x > 0, x, x * alpha)
        case "clip":
            return lambda x: np.asarray(clamped(node, x), np.float32)
    raise ValueError(node.op)


def _logistic32(x: Float32s) -> Float32s:
    with np.errstate(over="ignore"):
        power = np.exp(-x.astype(np.float64)).astype(np.float32)
        return np.float32(1) / (np.float32(1) + power)


def float64_function(node: Node) -> Callable[[Float64s], Float64s]:
    """The function on real numbers, to float64."""
    match node.op:
        case "logistic":
            return lambda x: 1 / (1 + np.exp(-np.clip(x, -700, None)))
        case "tanh":
            return lambda x: np.tanh(x)
        case "leaky_relu":
            alpha = float(node.attrs["alpha"])
            return lambda x: np.where(x >= 0, x, alpha * x)
        case "clip":
            low, high = clamp_of(node)
            bottom = -math.inf if low is None else low
            top = math.inf if high is None else high
            return lambda x: np.clip(x, bottom, top)
        case "quantize":
            return lambda x: x
    raise ValueError(node.op)


def infer(node: Node, graph: Graph) -> Types:
    """Shapes  y as x"""
    x = operand(node, graph, 0)
    if node.op == "leaky_relu" and not math.isfinite(float(node.attrs["alpha"])):
        raise invalid(node, graph, "alpha is not a number")
    return ((x.shape, computable(node, graph, x)),)


def reference(node: Node, graph: Graph, values: Values) -> tuple[Array, ...]:
    """Numpy meaning; int8 by table."""
    x, tensor = value(values, 0), operand(node, graph, 0)
    if tensor.dtype is DType.FLOAT32:
        return (float32_function(node)(x),)
    if tensor.dtype is DType.INT16:
        return (act16.unary(node, graph, x),)
    return (unary_table(node, graph)[x.astype(np.int64) - tensor.dtype.low],)
