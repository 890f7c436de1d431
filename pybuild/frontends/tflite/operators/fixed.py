"""Quantised elementwise operators in fixed point, step by step as in LiteRT's reference
kernels: each function returns the tensor of the output's type.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from pybuild.dtype import DType
from pybuild.frontends.tflite.draft.flow import Flow
from pybuild.ir.graph import Attr, Tensor
from pybuild.ops.fixed_point.quant import quantize_multiplier


def whole_scale(flow: Flow, *tensors: Tensor) -> None:
    """Raise BuildError for tensors without one scale; return nothing."""
    for x in tensors:
        if x.quant is None or len(x.quant.scale) != 1:
            raise flow.call.error(f"'{x.name}' is {x.dtype.value} without one scale")


def lifted(flow: Flow, x: Tensor, bits: int) -> Tensor:
    """Return int32 without the zero point, times 2^bits."""
    return flow.mul(flow.centred(x), flow.const(1 << bits, DType.INT32))


def requantized_wide(flow: Flow, x: Tensor, scale: float) -> Tensor:
    """Return round(x * scale) of int64 by 15 bits of the scale, clamped to int32.

    Source  LiteRT MultiplyByQuantizedMultiplier (int64)
    """
    multiplier, shift = quantize_multiplier(scale)
    if not -31 <= shift < 8:
        raise flow.call.error(f"a ratio of scales of {scale:g} is too far from 1")
    reduced, right = min((multiplier + (1 << 15)) >> 16, (1 << 15) - 1), 15 - shift
    made = flow.plus(flow.mul(x, flow.const(reduced, x)), 1 << (right - 1))
    made = flow.map("shift_right", made, flow.const(right, made))
    return flow.cast(made, DType.INT32)


def add_n(flow: Flow, parts: Sequence[Tensor]) -> Tensor:
    """ADD_N: each operand with 20 more bits, in a scale twice the largest one. TFLM's
    sum begins with the integer 0, as if that were one more input.

    Source  TFLM ADD_N; LiteRT has none in int8
    """
    y = flow.wanted()
    whole_scale(flow, y, *parts)
    twice = 2.0 * max(x.scale for x in parts)
    terms = [flow.requantized(lifted(flow, x, 20), x.scale / twice) for x in parts]
    total = terms[0]
    for term in terms[1:]:
        total = flow.add(total, term)
    begun = flow.const(-parts[0].zero_point * (1 << 20), total)
    begun = flow.requantized(begun, parts[0].scale / twice)
    total = flow.either(total, flow.add(total, begun), "tflm")
    made = flow.requantized(total, twice / ((1 << 20) * y.scale))
    return flow.quantised(made, y)


def absolute(flow: Flow, x: Tensor) -> Tensor:
    """The absolute values of int16, rescaled if the scales differ."""
    y = flow.wanted()
    whole_scale(flow, x, y)
    size = flow.map("abs", flow.centred(x))
    if x.scale != y.scale:
        size = flow.requantized(size, x.scale / y.scale)
    return flow.quantised(size, y)


def rsqrt(flow: Flow, x: Tensor) -> Tensor:
    """RSQRT: 1 / sqrt(x) with 20 bits, then scaled; 0 gives the greatest number.

    Source  TFLM RSQRT (int16)
    """
    y = flow.wanted()
    whole_scale(flow, x, y)
    q = flow.centred(x)
    root, bits = inverse_root(flow, q)
    one = flow.const(np.ones(x.shape), DType.INT32)
    made = flow.map("requantize", one, root, flow.plus(bits, 20))
    ratio, shift = quantize_multiplier(1.0 / (math.sqrt(x.scale) * y.scale))
    numbers = (flow.const(n, DType.INT32) for n in (ratio, shift - 20))
    made = flow.map("requantize", made, *numbers)
    positive = flow.map("less", flow.const(0, q), q)
    return flow.quantised(
        flow.map("where", positive, made, flow.const(y.dtype.high, made)), y
    )


def squared_difference(flow: Flow, a: Tensor, b: Tensor) -> Tensor:
    """SQUARED_DIFFERENCE: bytes get seven more bits before the square, so that it fits
    int32."""
    y, bits = flow.wanted(), 7 if a.dtype is DType.INT8 else 0
    whole_scale(flow, a, b, y)
    twice = 2.0 * max(a.scale, b.scale)
    terms = [flow.requantized(lifted(flow, x, bits), x.scale / twice) for x in (a, b)]
    left = flow.sub(*terms)
    scale = twice * twice / ((1 << 2 * bits) * y.scale)
    return flow.quantised(flow.requantized(flow.mul(left, left), scale), y)


def cumulated(flow: Flow, x: Tensor, attrs: dict[str, Attr]) -> Tensor:
    """CUMSUM: the running sum with 19 more bits before it is scaled, or 7 if int32
    would overflow. TFLM's begins with the zero point, subtracted once more.

    Source  TFLM CUMSUM; LiteRT has none in int8
    """
    y = flow.wanted()
    whole_scale(flow, x, y)
    count = x.shape[int(attrs["axis"])]
    if count >= 1 << 15:
        raise flow.call.error(f"{count} values in a row, below {1 << 15} in int8")
    made = flow.node("cumulate", [flow.centred(x)], attrs)
    if x.zero_point:
        start = flow.const(-x.zero_point, made)
        made = flow.map("add", made, start, only="tflm")
    numbers = quantize_multiplier(2 * x.scale / ((1 << 20) * y.scale))
    multiplier, shift = (flow.const(n, DType.INT32) for n in numbers)
    small = flow.map("less", flow.map("abs", made), flow.const(1 << 12, made))
    fewer = flow.map("where", small, *(flow.const(n, made) for n in (0, 12)))
    lifted = flow.map("shift_left", made, flow.sub(flow.const(19, made), fewer))
    made = flow.map("requantize", lifted, multiplier, flow.add(shift, fewer))
    return flow.quantised(made, y)


def comparable(flow: Flow, x: Tensor) -> Tensor:
    """Return real values with eight fractional bits, in int32."""
    whole_scale(flow, x)
    if x.scale >= 1:
        what = f"'{x.name}' has scale {x.scale:g}"
        raise flow.call.error(what, "LiteRT compares bytes of scales below 1")
    return flow.requantized(lifted(flow, x, 8), x.scale)


def prelu(flow: Flow, x: Tensor, alpha: Tensor) -> Tensor:
    y = flow.wanted()
    whole_scale(flow, x, alpha, y)
    ratio = np.float32(x.scale) / np.float32(y.scale)
    product = np.float32(x.scale) * np.float32(alpha.scale) / np.float32(y.scale)
    q = flow.centred(x)
    above = flow.requantized(q, float(ratio))
    below = flow.mul(q, flow.centred(alpha))
    below = flow.requantized(below, float(product))
    positive = flow.map("less_or_equal", flow.const(0, q), q)
    return flow.quantised(flow.map("where", positive, above, below), y)


def inverse_root(flow: Flow, x: Tensor) -> tuple[Tensor, Tensor]:
    """Return 1 / sqrt(x), for int32 from 0 on, as a Q31 multiplier and a left shift.
    The twin of tables.inverse_root, for computed values."""
    held = flow.held(x, 2, None)
    # how many bits, from the exponent of float64
    bits = flow.map("bits", flow.cast(held, DType.FLOAT64), to="int64")
    bits = flow.map("shift_right", bits, flow.const(52, bits))
    length = flow.plus(flow.cast(bits, DType.INT32), -1022)
    pairs = flow.sub(flow.const(31, length), length)
    pairs = flow.map("shift_right", pairs, flow.const(1, pairs))
    right = flow.sub(flow.const(12, pairs), pairs)
    moved = flow.plus(flow.mul(pairs, flow.const(2, pairs)), -3)
    q28 = flow.map(
        "where", flow.map("less", moved, flow.const(0, moved)),
        flow.map("shift_right", held, flow.const(1, held)),
        flow.map("shift_left", held, flow.held(moved, 0, None)),
    )  # fmt: skip
    half = flow.plus(q28, 1)
    half = flow.map("shift_right", half, flow.const(1, half))
    root = flow.const(np.full(x.shape, 1 << 28), DType.INT32)
    for _ in range(5):
        square = high(flow, root, root)
        cube = flow.mul(high(flow, square, root), flow.const(64, root))
        root = flow.sub(
            high(flow, root, flow.const(3 << 27, root)), high(flow, half, cube)
        )
        root = flow.mul(root, flow.const(8, root))
    root = high(flow, root, flow.const(1518500250, root))  # sqrt(2) / 2
    over = flow.held(flow.sub(flow.const(0, right), right), 0, None)
    small = flow.map("less", x, flow.const(2, x))
    root = flow.map("shift_left", root, over)
    root = flow.map("where", small, flow.const((1 << 31) - 1, root), root)
    left = flow.sub(flow.const(0, right), flow.held(right, 0, None))
    return root, flow.map("where", small, flow.const(0, left), left)


def high(flow: Flow, a: Tensor, b: Tensor) -> Tensor:
    """Return the high half of twice the product, rounded."""
    return flow.map("requantize", a, b, flow.const(0, DType.INT32))
