"""add, sub, mul and prelu of two tensors with numpy broadcasting."""

from __future__ import annotations

import math

import numpy as np

from pybuild.dtype import Array, DType, Ints
from pybuild.ir.graph import Graph, Node, Tensor
from pybuild.ops.base.operator import (
    Numbers,
    Types,
    Values,
    clamp_of,
    clamped,
    invalid,
    operand,
    rounding,
    same_types,
    value,
    whole_quant,
)
from pybuild.ops.fixed_point.quant import (
    fits_int32,
    quantize_multiplier,
    quantized_clamp,
    requantize,
    saturated,
)
from pybuild.records import dataclass

_HALF = 1 << 30  # as a Q31 multiplier
# bits below the sum's units
_LEFT = {DType.INT8: 20, DType.INT16: 15}


@dataclass(frozen=True)
class AddParameters:
    """Every integer of an int8 or int16 add or sub; `sign` is -1 for sub.

    not "even"  a' = requantize((a - a_zero) << left, a_multiplier, a_shift)
                b' likewise; |a'|, |b'| < 2^28
                y = clamp(requantize(a' + sign * b', multiplier, shift) + y_zero)
    "even"      left, a_shift and b_shift are 0 and there is one rounding:
                sum = (a - a_zero) * a_multiplier + sign * (b - b_zero) * b_multiplier
                |sum| + 2^(30 - shift) < 2^31
                y = clamp(requantize(sum, multiplier = 1, shift) + y_zero)
    exact       (attribute; int16 only) scales are powers of 2, and one is the
                output's: the other operand is shifted, the sum is exact
    Source      LiteRT ADD, SUB
    """

    rounding: str
    sign: int
    left: int
    a_zero: int
    a_multiplier: int
    a_shift: int
    b_zero: int
    b_multiplier: int
    b_shift: int
    multiplier: int
    shift: int
    y_zero: int
    low: int
    high: int


@dataclass(frozen=True)
class MulParameters:
    """y = clamp(requantize((a - a_zero) * (b - b_zero)) + y_zero)."""

    rounding: str
    a_zero: int
    b_zero: int
    multiplier: int
    shift: int
    y_zero: int
    low: int
    high: int


@dataclass(frozen=True)
class PreluParameters:
    """y = clamp(requantize(x >= 0 ? x : x * slope) + y_zero), zero points less; each of
    the two by a multiplier of its own.

    Source  LiteRT PRELU
    """

    rounding: str
    x_zero: int
    slope_zero: int
    above: tuple[int, int]
    below: tuple[int, int]
    y_zero: int
    low: int
    high: int


def add_parameters(node: Node, graph: Graph) -> AddParameters:
    """Every integer of an int8 or int16 add or sub."""
    a, b, y = _tensors(node, graph)
    low, high = quantized_clamp(clamp_of(node), y)
    rule, sign = rounding(node), -1 if node.op == "sub" else 1
    if node.attrs.get("exact"):
        # one bit more goes with a multiplier of a half
        left, multiplier, shift = 1, _HALF, 1
        a_multiplier = b_multiplier = _HALF
        a_shift, b_shift = (_shift(node, graph, t.scale / y.scale) for t in (a, b))
    elif rule == "even":
        left, shift, multiplier = 0, 0, 1
        bits = _sum_bits(a.scale / y.scale, b.scale / y.scale)
        if not bits:
            what = "the scales of inputs and output are too far apart for 32 bits"
            raise invalid(node, graph, what, "calibrate the output of this layer")
        a_multiplier, b_multiplier = (
            round(t.scale / y.scale * 2.0**bits) for t in (a, b)
        )
        a_shift, b_shift, shift = 0, 0, 31 - bits
    else:
        left = _LEFT[y.dtype]
        twice = 2.0 * max(a.scale, b.scale)
        a_multiplier, a_shift = quantize_multiplier(a.scale / twice)
        b_multiplier, b_shift = quantize_multiplier(b.scale / twice)
        multiplier, shift = quantize_multiplier(twice / (2.0**left * y.scale))
    return AddParameters(
        rule, sign, left, a.zero_point, a_multiplier, a_shift, b.zero_point,
        b_multiplier, b_shift, multiplier, shift, y.zero_point, low, high,
    )  # fmt: skip


def _shift(node: Node, graph: Graph, ratio: float) -> int:
    """The shift of an operand in units of the output, if both scales are powers of
    2."""
    fraction, bits = math.frexp(ratio)
    if fraction != 0.5 or bits > 1:
        raise invalid(node, graph, f"a scale is {ratio:g} of the output's, not 2^-n")
    return bits - 1


def _sum_bits(a: float, b: float) -> int:
    """The most fraction bits with which 255 * (a + b) and a half fit int32; 0: none."""
    bits = 30
    while bits and 255 * ((a + b) * 2.0**bits + 1) + 2.0 ** (bits - 1) >= 2.0**31:
        bits -= 1
    return bits


def mul_parameters(node: Node, graph: Graph) -> MulParameters:
    """Every integer of an int8 or int16 mul.

    Source  LiteRT MUL multiplies and divides the scales in float32
    """
    a, b, y = _tensors(node, graph)
    low, high = quantized_clamp(clamp_of(node), y)
    if rounding(node) == "even":
        scale = a.scale * b.scale / y.scale
    else:
        with np.errstate(over="ignore"):
            product = np.float32(a.scale) * np.float32(b.scale)
            scale = float(product / np.float32(y.scale))
    multiplier, shift = quantize_multiplier(scale)
    return MulParameters(
        rounding(node), a.zero_point, b.zero_point, multiplier, shift, y.zero_point,
        low, high,
    )  # fmt: skip


def prelu_parameters(node: Node, graph: Graph) -> PreluParameters:
    """Every integer of an int8 prelu.

    Source  LiteRT PRELU multiplies and divides the scales in float32
    """
    x, slope, y = _tensors(node, graph)
    with np.errstate(over="ignore"):
        ratio = np.float32(x.scale) / np.float32(y.scale)
        product = np.float32(x.scale) * np.float32(slope.scale) / np.float32(y.scale)
    above, below = (quantize_multiplier(float(s)) for s in (ratio, product))
    return PreluParameters(
        rounding(node), x.zero_point, slope.zero_point, above, below, y.zero_point,
        y.dtype.low, y.dtype.high,
    )  # fmt: skip


def fits(node: Node, graph: Graph) -> bool:
    """True if an int8 add, sub, mul or prelu stays in int32; kernels refuse others."""
    if node.op == "mul":
        product = mul_parameters(node, graph)
        ways = [((product.multiplier, product.shift), 255**2)]
        rule = product.rounding
    elif node.op == "prelu":
        sides = prelu_parameters(node, graph)
        ways, rule = [(sides.above, 255), (sides.below, 255**2)], sides.rounding
    else:
        total = add_parameters(node, graph)
        reach, rule = 255 << total.left, total.rounding
        if rule == "even":
            reach = 255 * (total.a_multiplier + total.b_multiplier)
        ways = [((total.multiplier, total.shift), reach)]
    return all(fits_int32(rule, *scale, reach) for scale, reach in ways)


def _tensors(node: Node, graph: Graph) -> tuple[Tensor, Tensor, Tensor]:
    """a, b and y, each with one scale."""
    found = (operand(node, graph, 0), operand(node, graph, 1),
             graph.tensor(node.output))  # fmt: skip
    for tensor in found:
        whole_quant(node, graph, tensor)
    return found


def infer(node: Node, graph: Graph) -> Types:
    """Shapes  a, b broadcast to y"""
    a, b = operand(node, graph, 0), operand(node, graph, 1)
    dtype = same_types(node, graph, a, b)
    try:
        shape = np.broadcast_shapes(a.shape, b.shape)
    except ValueError:
        what = f"shapes {a.shape} and {b.shape} do not broadcast"
        raise invalid(node, graph, what) from None
    return ((shape, dtype),)


def infer_prelu(node: Node, graph: Graph) -> Types:
    """Shapes  x, slope broadcast to y"""
    x = operand(node, graph, 0)
    if x.dtype not in (DType.FLOAT32, DType.INT8):
        raise invalid(node, graph, f"is of {x.dtype.value}, not float32 or int8")
    return infer(node, graph)


def add(node: Node, graph: Graph, values: Values) -> tuple[Array, ...]:
    """Numpy meaning of add and sub; int8 exact."""
    a, b = value(values, 0), value(values, 1)
    if operand(node, graph, 0).dtype is DType.FLOAT32:
        return (clamped(node, a - b if node.op == "sub" else a + b),)
    made = add_parameters(node, graph)
    a, b = a.astype(np.int64) - made.a_zero, b.astype(np.int64) - made.b_zero
    if made.rounding == "even":
        total = a * made.a_multiplier + made.sign * b * made.b_multiplier
    else:
        total = _scaled(a, made.a_multiplier, made.a_shift, made)
        total = total + made.sign * _scaled(b, made.b_multiplier, made.b_shift, made)
    y = requantize(total, made.multiplier, made.shift, made.rounding) + made.y_zero
    dtype = graph.tensor(node.output).dtype
    return (saturated(y, dtype, made.low, made.high),)


def _scaled(x: Numbers, multiplier: int, shift: int, made: AddParameters) -> Ints:
    return requantize(x << made.left, multiplier, shift, made.rounding)


def mul(node: Node, graph: Graph, values: Values) -> tuple[Array, ...]:
    """Numpy meaning; int8 exact."""
    a, b = value(values, 0), value(values, 1)
    if operand(node, graph, 0).dtype is DType.FLOAT32:
        return (clamped(node, a * b),)
    made = mul_parameters(node, graph)
    product = (a.astype(np.int64) - made.a_zero) * (b.astype(np.int64) - made.b_zero)
    y = requantize(product, made.multiplier, made.shift, made.rounding) + made.y_zero
    dtype = graph.tensor(node.output).dtype
    return (saturated(y, dtype, made.low, made.high),)


def prelu(node: Node, graph: Graph, values: Values) -> tuple[Array, ...]:
    """Numpy meaning; int8 exact."""
    x, slope = value(values, 0), value(values, 1)
    if operand(node, graph, 0).dtype is DType.FLOAT32:
        return (np.where(x < 0, x * slope, x),)
    made = prelu_parameters(node, graph)
    x, slope = x.astype(np.int64) - made.x_zero, slope.astype(np.int64)
    below = requantize(x * (slope - made.slope_zero), *made.below, made.rounding)
    above = requantize(x, *made.above, made.rounding)
    y = np.where(x >= 0, above, below) + made.y_zero
    return (saturated(y, graph.tensor(node.output).dtype, made.low, made.high),)
