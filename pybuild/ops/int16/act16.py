"""Unary functions of int16: each value scaled by one or two multipliers, logistic and
tanh by one table of 256 points.
"""

from __future__ import annotations

import math

import numpy as np

from pybuild.dtype import Array, DType, Ints
from pybuild.ir.graph import Graph, Node
from pybuild.ops.base.operator import (
    clamp_of,
    invalid,
    operand,
    ratio,
    rounding,
    whole_quant,
)
from pybuild.ops.fixed_point.quant import (
    quantize_multiplier,
    quantized_clamp,
    requantize,
    saturated,
)
from pybuild.records import dataclass

# LiteRT's table is one higher than the nearest integer here
_HIGHER = (
    4, 8, 12, 14, 15, 16, 17, 19, 20, 21, 22, 25, 27, 28, 29, 30, 31, 33, 34, 35, 37,
    39, 40, 41, 43, 44, 45, 46, 49, 50, 54, 62, 63, 64, 66, 82, 86, 93, 100, 103, 112,
    116, 135, 255,
)  # fmt: skip
_SIGMOID_SCALE = 2.0**-15


@dataclass(frozen=True)
class ScaledParameters:
    """y = clamp(requantize(x - x_zero, ...) + y_zero); x below its zero point by the
    second multiplier.

    above, below  (Q31 multiplier, shift); equal but for leaky_relu
    negative      the result below the zero point changes its sign
    """

    rounding: str
    x_zero: int
    above: tuple[int, int]
    below: tuple[int, int]
    negative: bool
    y_zero: int
    low: int
    high: int


@dataclass(frozen=True)
class CurveParameters:
    """d = (x * multiplier + half) >> shift; between points 2^bits apart of the table:

        t = table[|d| >> bits] << bits, plus the part to the next point
        (from the 255th point on: top << bits)
    logistic  y = ((d < 0 ? 2^25 - 1 - t : t) + 2^9) >> 10           bits = 9
    tanh      y = ((d < 0 ? 2^23 - 1 - t : t - 2^23) + 2^7) >> 8      bits = 8
    Source    LiteRT reference LOGISTIC, TANH (int16)
    """

    multiplier: int
    shift: int
    bits: int
    top: int


def sigmoid_points() -> Ints:
    """2^16 / (1 + exp(-i / 24)), uint16[256]."""
    points = 65536 / (1 + np.exp(-np.arange(256) / 24))
    whole: Ints = np.rint(points).astype(np.int64)
    whole[list(_HIGHER)] += 1
    return whole


def curve_parameters(node: Node, graph: Graph) -> CurveParameters:
    """Every integer of a logistic or tanh of int16.

    Errors  BuildError for another output scale than 2^-15
    """
    x, y = operand(node, graph, 0), graph.tensor(node.output)
    for tensor in (x, y):
        whole_quant(node, graph, tensor)
    if y.scale != _SIGMOID_SCALE or y.dtype is not DType.INT16:
        what = f"the output is {y.dtype.value} with scale {y.scale:g}"
        raise invalid(node, graph, what, "LiteRT has int16 with 1/32768 here")
    is_tanh = node.op == "tanh"
    bits, top = (8, 0xFFFF) if is_tanh else (9, 0x7FFF << 1)
    fraction, power = math.frexp(x.scale)
    left = power - 1 + 12
    if fraction == 0.5 and (left == 0 or (is_tanh and left == 1)):
        return CurveParameters(3 << left, 0, bits, top)
    multiplier, shift = x.scale * 4096.0 * 3.0, 0
    while multiplier <= 32767.0 / 2.0 and shift <= 30:
        multiplier, shift = multiplier * 2.0, shift + 1
    if multiplier >= 1 << 16:
        raise invalid(node, graph, f"the input scale {x.scale:g} is too large")
    return CurveParameters(int(multiplier), shift, bits, top)


def curve(x: Ints, made: CurveParameters) -> Ints:
    """The results of all values."""
    points, bits = sigmoid_points(), made.bits
    d = (x * made.multiplier + ((1 << made.shift) >> 1)) >> made.shift
    size = np.abs(d)
    at = np.minimum(size >> bits, 254)
    part = (size & ((1 << bits) - 1)) * (points[at + 1] - points[at])
    t = np.where(size >> bits >= 255, made.top << bits, (points[at] << bits) + part)
    if bits == 9:
        return np.asarray((np.where(d < 0, (1 << 25) - 1 - t, t) + (1 << 9)) >> 10)
    return np.asarray((np.where(d < 0, (1 << 23) - 1 - t, t - (1 << 23)) + 128) >> 8)


def scaled_parameters(node: Node, graph: Graph) -> ScaledParameters:
    """Every integer of a clip, leaky_relu or quantize with int16 on one side.

    Errors  BuildError where a scaled value could leave int32
    Source  LiteRT LeakyRelu, ReluX, Requantize
    """
    x, y = operand(node, graph, 0), graph.tensor(node.output)
    for tensor in (x, y):
        whole_quant(node, graph, tensor)
    above = x.scale / y.scale if node.op == "quantize" else ratio(node, x, y)
    below, negative = above, False
    if node.op == "leaky_relu":
        below = ratio(node, x, y, float(node.attrs["alpha"]))
        below, negative = abs(below), below < 0
    if max(above, below) >= 1 << 14:
        raise invalid(node, graph, "the scales of input and output are too far apart")
    low, high = quantized_clamp(clamp_of(node), y)
    rule = "double" if y.dtype is DType.INT16 else rounding(node)
    return ScaledParameters(
        rule, x.zero_point, quantize_multiplier(above), quantize_multiplier(below),
        negative, y.zero_point, low, high,
    )  # fmt: skip


def unary(node: Node, graph: Graph, x: Array) -> Array:
    """The numpy meaning of all of these."""
    y, q = graph.tensor(node.output), x.astype(np.int64)
    if node.op in ("logistic", "tanh"):
        return saturated(curve(q, curve_parameters(node, graph)), y.dtype)
    made = scaled_parameters(node, graph)
    q = q - made.x_zero
    above = requantize(q, *made.above, made.rounding)
    below = requantize(q, *made.below, made.rounding)
    below = -below if made.negative else below
    whole = np.where(q >= 0, above, below) + made.y_zero
    return saturated(whole, y.dtype, made.low, made.high)
