"""Quantised arithmetic: every rounding rule, multiplier and clamp, once.

Integers here fit int32, products int64, so that C can do the same. Must not know
which operator asks.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from pybuild.dtype import Array, DType, Ints
from pybuild.ir.graph import Quant, Tensor
from pybuild.ops.fixed_point.chunks import chunks

ROUNDINGS = ("double", "away", "single", "even", "wide")
_Q31 = 1 << 31


def quantize_multiplier(scale: float) -> tuple[int, int]:
    """scale ~ multiplier * 2^(shift - 31), multiplier in [2^30, 2^31).

    Units   shift in bits, positive = left; (0, 0) below 2^-32, at most 2^30
    Source  LiteRT QuantizeMultiplier
    """
    if scale == 0.0:
        return 0, 0
    if scale == math.inf:  # of two float32
        return _Q31 - 1, 30
    fraction, shift = math.frexp(scale)
    multiplier = math.floor(fraction * _Q31 + 0.5)
    if multiplier == _Q31:
        multiplier //= 2
        shift += 1
    if shift > 30:
        return _Q31 - 1, 30
    return (0, 0) if shift < -31 else (multiplier, shift)


def requantize(
    acc: npt.ArrayLike, multiplier: npt.ArrayLike, shift: npt.ArrayLike, rounding: str
) -> Ints:
    """round(acc * multiplier * 2^(shift - 31)) by one of five rules.

    "double"  gemmlowp: acc << left, high half of the product rounded ties up, then
              a right shift rounded ties away from zero
    "single"  one int64 shift of the product, ties up
    "away"    one int64 shift, ties away from zero
    "even"    one int64 shift, ties to even
    "wide"    as "single", with a multiplier of 15 bits: 2^(shift - 15)
    Units     acc within int32 (after the left shift, for "double"); "wide": 2^47
    """
    x = np.asarray(acc, np.int64)
    m, s = np.asarray(multiplier, np.int64), np.asarray(shift, np.int64)
    if rounding == "double":
        left, right = np.maximum(s, 0), np.maximum(-s, 0)
        high = (x << left) * m
        high += 1 << 30
        high >>= 31
        return shift_away(high, right)
    product = x * m
    bits = (15 if rounding == "wide" else 31) - s
    # beyond 62 bits nothing is left of a product below 2^62
    product, bits = np.where(bits > 62, 0, product), np.minimum(bits, 62)
    half = np.int64(1) << (bits - 1)
    match rounding:
        case "single" | "wide":
            return np.asarray((product + half) >> bits)
        case "away":
            return np.asarray((product + half - (product < 0)) >> bits)
        case "even":
            odd = (product >> bits) & 1
            return np.asarray((product + half - 1 + odd) >> bits)
    raise ValueError(rounding)


def shift_away(x: Ints, bits: npt.ArrayLike) -> Ints:
    """x / 2^bits, ties away from zero (gemmlowp RoundingDivideByPOT)."""
    count = np.asarray(bits, np.int64)
    # half of what is shifted out is added, below zero less 1
    made = (x >> 63) * (count > 0)
    made += (np.int64(1) << count) >> 1
    made += x
    made >>= count
    return np.asarray(made)


def rounded_away(x: npt.NDArray[np.floating]) -> npt.NDArray[np.floating]:
    """C's round(): ties away from zero."""
    whole = np.trunc(x)
    result: npt.NDArray[np.floating] = whole + np.where(
        np.abs(x - whole) >= 0.5, np.sign(x), 0
    ).astype(x.dtype)
    return result


def saturated(q: Array, dtype: DType, low: int | None = None,
              high: int | None = None) -> Array:  # fmt: skip
    """Held within the type (or a tighter clamp), as the type."""
    bottom = dtype.low if low is None else low
    top = dtype.high if high is None else high
    kept: Array = np.clip(q, bottom, top).astype(dtype.numpy)
    return kept


def _spread(values: tuple[float, ...], quant: Quant, rank: int) -> Array:
    """Scales or zero points in a shape that broadcasts along their axis."""
    if len(values) == 1 or quant.axis is None:
        return np.asarray(values[0])
    shape = [1] * rank
    shape[quant.axis] = len(values)
    return np.asarray(values).reshape(shape)


def quantized(x: Array, tensor: Tensor, rounding: str) -> Array:
    """Float32 values as a tensor's integers.

    Source  "even": ONNX QuantizeLinear; else LiteRT AffineQuantize (ties away)
    """
    quant = tensor.quant
    assert quant is not None, tensor.name
    scale = _spread(quant.scale, quant, x.ndim).astype(np.float32)
    zero = _spread(quant.zero_point, quant, x.ndim).astype(np.float64)
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        steps = np.asarray(x, np.float32) / scale
        whole = np.rint(steps) if rounding == "even" else rounded_away(steps)
    shifted = np.nan_to_num(whole.astype(np.float64), nan=0.0) + zero
    return saturated(shifted, tensor.dtype)


def dequantized(q: Array, quant: Quant) -> npt.NDArray[np.float32]:
    """scale * (q - zero_point), one float32 product.

    Source  LiteRT DEQUANTIZE, ONNX DequantizeLinear
    """
    zero = _spread(quant.zero_point, quant, q.ndim).astype(np.int64)
    scale = _spread(quant.scale, quant, q.ndim).astype(np.float32)
    return np.asarray(scale * (q.astype(np.int64) - zero).astype(np.float32))


def real(array: Array, tensor: Tensor) -> npt.NDArray[np.float64]:
    """The real numbers that a value stands for, in float64."""
    x, quant = array.astype(np.float64), tensor.quant
    if quant is None:
        return x
    zero = _spread(quant.zero_point, quant, x.ndim).astype(np.float64)
    scale = _spread(quant.scale, quant, x.ndim).astype(np.float64)
    return np.asarray((x - zero) * scale, np.float64)


def quantized_clamp(
    clamp: tuple[float | None, float | None], tensor: Tensor
) -> tuple[int, int]:
    """The fused activation in the integers of its output.

    Source  LiteRT CalculateActivationRangeQuantized, in float32
    """
    low, high = tensor.dtype.low, tensor.dtype.high
    below, above = clamp
    if below is not None:
        low = max(low, _as_integer(below, tensor))
    if above is not None:
        high = min(high, _as_integer(above, tensor))
    # a clamp outside of what the tensor can hold leaves one value
    low = min(low, tensor.dtype.high)
    return low, max(low, high)


def _as_integer(number: float, tensor: Tensor) -> int:
    steps = np.float32(number) / np.float32(tensor.scale)
    if not np.isfinite(steps):
        return tensor.dtype.high if steps > 0 else tensor.dtype.low
    return tensor.zero_point + int(rounded_away(np.asarray(steps)))


def pad_value(number: float, tensor: Tensor) -> int:
    """A real number as one of a tensor's integers, within its type."""
    return max(tensor.dtype.low, min(tensor.dtype.high, _as_integer(number, tensor)))


def accumulator_bound(
    weights: Array, bias: Array | None, zero_point: int, dtype: DType = DType.INT8
) -> tuple[Ints, Ints]:
    """Least and greatest value that any partial sum can reach, per output channel.

    acc = bias + sum((x - zero_point) * w), every x of `dtype`, in any order
    Shapes  weights [O, ...]; bias [O]
    """
    up, down = sums_by_sign(weights)
    low, high = min(dtype.low - zero_point, 0), max(dtype.high - zero_point, 0)
    start = np.zeros(len(up), np.int64) if bias is None else bias.astype(np.int64)
    least = up * low + down * high + np.minimum(start, 0)
    most = up * high + down * low + np.maximum(start, 0)
    return least, most


def sums_by_sign(weights: Array) -> tuple[Ints, Ints]:
    """Per output channel the sum of the weights above zero, and of those below.

    Shapes  weights [O, ...], of which no wider copy is made: layers have millions
    """
    count = len(weights)
    few = [*chunks(weights.reshape(count, -1), weights.size // max(1, count))]
    up = [np.maximum(w, 0).sum(1, dtype=np.int64) for w in few]
    down = [np.minimum(w, 0).sum(1, dtype=np.int64) for w in few]
    return np.concatenate(up), np.concatenate(down)


def away_multiplier(scale: float) -> tuple[int, int]:
    """(multiplier, shift) for "away": C's round(acc * scale) in float64.

    Of the Q31 multipliers next to the scale, the one that agrees with float64 at
    most results up to 255: at all of them for scales above 0.003, and for smaller
    ones except for one accumulator in millions that lies next to a tie.
    Source  LiteRT reference FULLY_CONNECTED
    """
    nearest, shift = quantize_multiplier(scale)
    if nearest == 0:
        return nearest, shift
    results = np.arange(1, 257)
    first = first_reaching(scale, results)
    first, results = first[first < _Q31], results[first < _Q31]

    def wrong(multiplier: int) -> int:
        reached = requantize(first, multiplier, shift, "away") >= results
        before = requantize(first - 1, multiplier, shift, "away") < results
        return int(np.count_nonzero(~(reached & before)))

    candidates = [nearest, nearest - 1, nearest + 1]
    return min((m for m in candidates if 0 < m < _Q31), key=wrong), shift


def first_reaching(scale: float, results: Ints, even: bool = False) -> Ints:
    """The least accumulator that float64 rounds to at least each result.

    even  ties are rounded to even, else away from zero
    """
    rounded = np.rint if even else rounded_away
    guess = np.ceil((results - 0.5) / scale)
    found = guess + 2
    for step in (1, 0, -1, -2):
        at = guess + step
        reaches = (rounded(at * scale) >= results) & (at > 0)
        found = np.where(reaches, at, found)
    return np.asarray(np.minimum(found, float(1 << 40)), np.int64)


def wide_multiplier(scale: float) -> tuple[int, int]:
    """(multiplier, shift) for "wide": the 15 upper bits of a Q31 multiplier.

    Source  LiteRT MultiplyByQuantizedMultiplier of int64
    """
    multiplier, shift = quantize_multiplier(scale)
    return min((multiplier + (1 << 15)) >> 16, 0x7FFF), shift


def multipliers(
    scales: Sequence[float], rounding: str
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """(multiplier, shift) of each real scale, as `requantize` wants them."""
    make = {"away": away_multiplier, "wide": wide_multiplier}.get(
        rounding, quantize_multiplier
    )
    pairs = [make(scale) for scale in scales]
    return tuple(m for m, _ in pairs), tuple(s for _, s in pairs)


def fits_int32(rounding: str, multiplier: int, shift: int, reach: int) -> bool:
    """True if integers up to `reach` stay in int32, scaled and with a zero point."""
    scaled = reach * multiplier * 2.0 ** (shift - 31)
    lifted = reach << max(shift, 0) if rounding == "double" else reach
    return scaled + 256 < 2.0**31 and lifted < 2**31
