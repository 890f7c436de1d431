"""Functions of one byte as tables of 256 results, computed by LiteRT's own
arithmetic.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from pybuild.dtype import Array, Ints
from pybuild.frontends.tflite.draft.builder import Call
from pybuild.ir.graph import Tensor
from pybuild.ops.fixed_point.quant import (
    quantize_multiplier,
    requantize,
    rounded_away,
    saturated,
    shift_away,
)

_STEPS = 512


def table(fn: str, call: Call, x: Tensor, y: Tensor) -> Array:
    """Return the results for all 256 bytes, the lowest first.

    Errors  BuildError if x or y does not have a single scale
    """
    for tensor in (x, y):
        if tensor.quant is None or len(tensor.quant.scale) != 1:
            raise call.error(f"'{tensor.name}' is {tensor.dtype.value} without a scale")
    q = np.arange(x.dtype.low, x.dtype.high + 1, dtype=np.int64)
    with np.errstate(all="ignore"):
        made = FUNCTIONS[fn](q - x.zero_point, x, y)
    return saturated(made, y.dtype)


def _by_float(function: Callable[[Any], Any]) -> Callable[[Ints, Tensor, Tensor], Any]:
    """Return a table computed in float32, with the function itself in float64, rounded
    once.

    Source  LiteRT LUTPopulate
    """

    def made(q: Ints, x: Tensor, y: Tensor) -> Any:
        real = (np.float32(x.scale) * q.astype(np.float32)).astype(np.float64)
        inverse = np.float32(1) / np.float32(y.scale)
        whole = rounded_away(function(real).astype(np.float32) * inverse)
        shifted = whole + np.float32(y.zero_point)
        return np.nan_to_num(shifted.astype(np.float64), posinf=1e9, neginf=-1e9)

    return made


def _absolute(q: Ints, x: Tensor, y: Tensor) -> Any:
    size = np.abs(q)
    if x.scale != y.scale:
        ratio = np.float32(x.scale) / np.float32(y.scale)
        size = requantize(size, *quantize_multiplier(float(ratio)), "double")
    return size + y.zero_point


def _negated(q: Ints, x: Tensor, y: Tensor) -> Any:
    """The file's integers negated, whatever their scale; -128 stays.

    Source  LiteRT reference Negate
    """
    return (128 - (q + x.zero_point) & 255) - 128


def _inverse_root(q: Ints, x: Tensor, y: Tensor) -> Any:
    """Return 1 / sqrt(q) with 20 bits, then scaled; 0 gives the greatest byte.

    Source  LiteRT RsqrtEvalQuantized
    """
    ratio = 1.0 / (math.sqrt(x.scale) * y.scale)
    multiplier, shift = quantize_multiplier(ratio)
    made = []
    for one in q.tolist():
        if one <= 0:
            made.append(y.dtype.high)
            continue
        root, bits = inverse_root(one)
        wide = requantize(np.asarray([1]), root, bits + 20, "double")
        made.append(int(requantize(wide, multiplier, shift - 20, "double")[0]))
        made[-1] += y.zero_point
    return np.asarray(made, np.int64)


def inverse_root(number: int) -> tuple[int, int]:
    """Return 1 / sqrt(number) as a Q31 multiplier and a left shift.

    Source  LiteRT GetInvSqrtQuantizedMultiplierExp: five steps of Newton's method
    """
    if number <= 1:
        return (1 << 31) - 1, 0
    pairs = (31 - number.bit_length()) // 2 - 1
    right = 11 - pairs
    fixed = (number << 2 * pairs) >> 1  # in Q3.28
    half, root = (fixed + 1) >> 1, 1 << 28
    for _ in range(5):
        cube = _high(_high(root, root), root) << 6
        root = (_high(3 << 27, root) - _high(half, cube)) << 3
    high = _high(root, 1518500250)  # sqrt(2) / 2
    return (high << -right, 0) if right < 0 else (high, -right)


def _high(a: int, b: int) -> int:
    """Return the high half of twice the product, rounded."""
    return (a * b + (1 << 30)) >> 31


def _hard_swish(q: Ints, x: Tensor, y: Tensor) -> Any:
    """In 16-bit fixed point: x * (x / 3 held within -1 and 1, plus 1) / 2.

    Source  LiteRT reference HardSwish
    """
    raised = np.clip(q * 128, -(1 << 15), (1 << 15) - 1)
    hires = np.float32(1 / 128) * np.float32(x.scale)
    multiplier, exponent = _sixteen(float(hires / np.float32(y.scale)))
    slope, bits = _sixteen(float(hires / np.float32(3 / 32768)))
    product = _high16(raised, multiplier)
    gate = raised
    if bits > 0:
        gate = _wide16(gate << (bits - 1))
    gate = _high16(gate, slope)
    if bits > 0:
        gate = _wide16(gate << 1)
    if bits < 0:
        gate = shift_away(gate, -bits)
    gate = (gate + (1 << 15)) >> 1
    both = gate * product
    halved = np.where(both < 0, -(-both >> 15), both >> 15)
    return shift_away(halved, -exponent) + y.zero_point


def _sixteen(scale: float) -> tuple[int, int]:
    """Return a 16-bit multiplier and its exponent."""
    multiplier, shift = quantize_multiplier(scale)
    held = min(multiplier, (1 << 31) - (1 << 15))
    return (held + (1 << 15)) >> 16, shift


def _high16(a: Ints, b: int) -> Ints:
    return np.asarray((a * b + (1 << 14)) >> 15)


def _wide16(a: Ints) -> Ints:
    return np.clip(a, -(1 << 15), (1 << 15) - 1)


def points(fn: str, x: Tensor, y: Tensor) -> Ints:
    """Return an int16 function at 513 points, each moved by half the error at the next
    midpoint.

    Source  LiteRT LUTPopulateInt16, in float32
    """
    one, low = np.float32(1), np.float32(x.dtype.low)
    first = np.float32(x.scale) * low
    last = np.float32(x.scale) * np.float32(x.dtype.high)
    span = np.float32(y.scale) * np.float32(y.dtype.high)
    inverse = np.float32(1 << 16) / (span - np.float32(y.scale) * low)
    step = (last - first) / np.float32(_STEPS)
    at = first + np.arange(_STEPS, dtype=np.float32) * step
    after = first + np.arange(1, _STEPS + 1, dtype=np.float32) * step

    def value(place: Any) -> Any:
        with np.errstate(all="ignore"):
            return CURVES[fn](place, np.float32(y.scale)).astype(np.float32) * inverse

    here, half = rounded_away(value(at)), step / np.float32(2)
    between = rounded_away((value(after) + here) / (one + one))
    error = between - rounded_away(value(at + half))
    made = here - rounded_away(error / (one + one))
    made = np.append(made, rounded_away(value(np.asarray([last]))))
    held = np.clip(made.astype(np.float64), y.dtype.low, y.dtype.high)
    return np.asarray(held, np.int64)


def _gelu(x: Any) -> Any:
    erf = np.vectorize(math.erf, otypes=[np.float64])
    return 0.5 * x * (1 + erf(x * math.sqrt(0.5)))


def _gelu_tanh(x: Any) -> Any:
    return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def _gelu_curve(x: Any, scale: Any) -> Any:
    """In float32, its erfc rounded once, as the C libraries of today do."""
    erfc = np.vectorize(math.erfc, otypes=[np.float64])
    part = (x * np.float32(-math.sqrt(0.5))).astype(np.float64)
    return np.float32(0.5) * x * erfc(part).astype(np.float32)


def _gelu_tanh_curve(x: Any, scale: Any) -> Any:
    """In float32, its tanh rounded once."""
    inner = x + np.float32(0.044715) * x * x * x
    inner = (np.float32(math.sqrt(2 / math.pi)) * inner).astype(np.float64)
    part = np.tanh(inner).astype(np.float32)
    return np.float32(0.5) * x * (np.float32(1) + part)


def _elu(x: Any) -> Any:
    return np.where(x < 0, np.expm1(x), x)


def _log_curve(x: Any, scale: Any) -> Any:
    return np.where(x <= 0, np.float32(-32768) * scale, np.log(x))


def _rsqrt_curve(x: Any, scale: Any) -> Any:
    return np.where(x <= 0, np.float32(32767) * scale, 1 / np.sqrt(x))


# of a real number and the output's scale
CURVES: dict[str, Callable[[Any, Any], Any]] = {
    "exp": lambda x, scale: np.exp(x),
    "gelu": _gelu_curve,
    "gelu_tanh": _gelu_tanh_curve,
    "log": _log_curve,
    "rsqrt": _rsqrt_curve,
}
FUNCTIONS: dict[str, Callable[[Ints, Tensor, Tensor], Any]] = {
    "abs": _absolute,
    "elu": _by_float(_elu),
    "exp": _by_float(np.exp),
    "gelu": _by_float(_gelu),
    "gelu_tanh": _by_float(_gelu_tanh),
    "hard_swish": _hard_swish,
    "log": _by_float(np.log),
    "negate": _negated,
    "rsqrt": _inverse_root,
}
