"""softmax over one axis: float32, LiteRT's fixed point, and ONNX's meaning in ints.

int16: int16/softmax16.py.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from pybuild.dtype import Array, DType, Ints
from pybuild.ir.graph import Graph, Node
from pybuild.ops.base.operator import (
    Types,
    Values,
    computable,
    invalid,
    must_have_type,
    operand,
    rounding,
    value,
    whole_quant,
)
from pybuild.ops.fixed_point.quant import (
    quantize_multiplier,
    saturated,
    shift_away,
)
from pybuild.ops.fixed_point.reciprocal import mulhi, reciprocal
from pybuild.ops.int16.softmax16 import softmax16
from pybuild.records import dataclass

_Q31 = 1 << 31
_SUM_BITS = 12


@dataclass(frozen=True)
class SoftmaxParameters:
    """Every integer of an int8 softmax. For one row, d = max(x) - x in 0..255:

    table      int32[256], exp(-d * beta * scale), fixed point, 0 where too small
    low, high  of y, int8 or int16

    "even" (and every output scale but 1/256):
        total = sum(table[d])                                     int32, > 0
        r     = ((int64)numerator + total / 2) / total            int64 division, once
        y     = clamp(((table[d] * r + (1 << (shift - 1))) >> shift) + y_zero)   int64
    else (LiteRT; table is Q0.31):
        total = sum((table[d] + 2048) >> 12)                      int32, > 0
        clz   = leading zeros of total in 32 bits                 4..12
        a     = (total << clz) - 2^31  (unsigned)                 Q0.31 in [0, 1)
        h     = (a + 2^31) >> 1        (unsigned)                 Q0.31
        t     = 1515870810 + mulhi_round(h, -1010580540)          Q2.29
        three times: t += mulhi_round(t, 2^29 - mulhi_round(h, t)) << 2
        r     = t >= 2^30 ? 2^31 - 1 : t << 1                     Q0.31
        e     = 35 - clz, of an int16 y 27 - clz
        y     = clamp(shift_round(mulhi_round(r, table[d]), e) + low); low if e > 31
    mulhi_round(a, b) = (int32)((a * b + 2^30) >> 31) in int64; shift_round rounds
    ties away from zero (all its arguments here are >= 0).
    """

    rounding: str
    table: tuple[int, ...]
    numerator: int
    shift: int
    y_zero: int
    low: int
    high: int


def softmax_parameters(node: Node, graph: Graph) -> SoftmaxParameters:
    """Every integer of an int8 softmax.

    Errors  BuildError where an int32 sum could overflow
    Source  LiteRT reference SOFTMAX (int8)
    """
    x, y = operand(node, graph, 0), graph.tensor(node.output)
    for tensor in (x, y):
        whole_quant(node, graph, tensor)
    count, beta = x.shape[int(node.attrs["axis"])], float(node.attrs["beta"])
    if count > 4095:
        raise invalid(node, graph, f"{count} values in a row, at most 4095 in int8")
    low, high = y.dtype.low, y.dtype.high
    if rounding(node) == "even" and y.dtype is DType.INT8:
        bits = 30 - max(1, count).bit_length()
        steps = np.exp(-np.arange(256) * (beta * x.scale)) * 2.0**bits
        table = tuple(int(v) for v in np.rint(steps))
        # as many bits of 1/scale as int32 holds
        places = 30 - max(0, math.ceil(-math.log2(y.scale)))
        if places < 1:
            raise invalid(node, graph, f"the output scale {y.scale:g} is too small")
        inverse = round(2.0**places / y.scale)
        return SoftmaxParameters(
            "even", table, inverse << bits, places + bits, y.zero_point, low, high
        )
    steps_of_1 = high - low + 1
    if y.zero_point != low or abs(y.scale * steps_of_1 - 1) > 1e-3:
        what = f"the output has scale {y.scale:g} and zero point {y.zero_point}"
        hint = f"quantise it with 1/{steps_of_1} and {low}"
        raise invalid(node, graph, what, hint)
    exps = tuple(int(v) for v in exponentials(beta * x.scale))
    return SoftmaxParameters("double", exps, 0, 0, low, low, high)


def scaled_differences(scale: float) -> tuple[Ints, npt.NDArray[np.bool_]]:
    """-d * scale in Q5.26 for d = 0..255, and whether the fixed point reaches that."""
    limit = min(scale * (1 << 26), _Q31 - 1.0)
    multiplier, left = quantize_multiplier(limit)
    if left < 0:
        multiplier, left = 0, 0
    difference = -np.arange(256, dtype=np.int64)
    radius = math.floor(31.0 * (1 << 26) / (1 << left))
    inside = difference >= -radius
    return mulhi(np.where(inside, difference, 0) << left, multiplier), inside


def exponentials(scale: float) -> Ints:
    """exp(-d * scale) in Q0.31 for d = 0..255; 0 beyond the fixed point's range."""
    scaled, inside = scaled_differences(scale)
    return np.where(inside, _exp(scaled), 0)


def _exp(a: Ints) -> Ints:
    """exp(a) in Q0.31 of a <= 0 in Q5.26: a polynomial, then a factor per bit.

    Source  gemmlowp exp_on_negative_values
    """
    quarter = 1 << 24
    part = (a & (quarter - 1)) - quarter
    result = _exp_quarter(part << 5)
    rest = part - a
    for power in range(-2, 5):
        factor = math.floor(math.exp(-(2.0**power)) * _Q31 + 0.5)
        hit = (rest >> (26 + power)) & 1
        result = np.where(hit == 1, mulhi(result, factor), result)
    return np.where(a == 0, _Q31 - 1, result)


def _exp_quarter(a: Ints) -> Ints:
    """exp(a) for a in [-1/4, 0), Q0.31: four terms around -1/8."""
    middle = math.floor(math.exp(-1 / 8) * _Q31 + 0.5)
    third = math.floor(_Q31 / 3 + 0.5)
    x = a + (1 << 28)
    x2 = mulhi(x, x)
    x3, x4 = mulhi(x2, x), mulhi(x2, x2)
    higher = shift_away(mulhi(shift_away(x4, 2) + x3, third) + x2, 1)
    return middle + mulhi(middle, x + higher)


def infer(node: Node, graph: Graph) -> Types:
    """Shapes  y as x; attrs axis, beta, wide: int16 of int8"""
    x = operand(node, graph, 0)
    dtype = computable(node, graph, x)
    if not 0 <= int(node.attrs["axis"]) < len(x.shape):
        what = f"axis {node.attrs['axis']} of a tensor of rank {len(x.shape)}"
        raise invalid(node, graph, what)
    if not 0 < float(node.attrs["beta"]) < math.inf:
        raise invalid(node, graph, f"beta is {node.attrs['beta']}")
    wide = dtype is DType.INT8 and bool(node.attrs.get("wide"))
    return ((x.shape, DType.INT16 if wide else dtype),)


def reference(node: Node, graph: Graph, values: Values) -> tuple[Array, ...]:
    """Numpy meaning; int8 exact."""
    axis = int(node.attrs["axis"])
    x = np.moveaxis(value(values, 0), axis, -1)
    y = graph.tensor(node.output)
    if y.dtype is DType.FLOAT32:
        shares = _float(x, float(node.attrs["beta"]))
    elif x.dtype == np.int16:
        shares = softmax16(node, graph, x)
    else:
        shares = softmax8(softmax_parameters(node, graph), x, y.dtype)
    return (np.ascontiguousarray(np.moveaxis(shares, -1, axis)),)


def softmax8(made: SoftmaxParameters, x: Array, dtype: DType) -> Array:
    """The softmax of the last axis; x: integers at most 255 apart."""
    table = np.asarray(made.table, np.int64)
    exps = table[x.max(-1, keepdims=True).astype(np.int64) - x]
    whole = _even(exps, made) if made.rounding == "even" else _twice(exps, made)
    return saturated(whole + made.y_zero, dtype, made.low, made.high)


def _float(x: Array, beta: float) -> Array:
    """In float32, exp rounded once from float64."""
    powers = (x - x.max(-1, keepdims=True)) * np.float32(beta)
    exps = np.exp(powers.astype(np.float64)).astype(np.float32)
    total = exps.astype(np.float64).sum(-1, keepdims=True).astype(np.float32)
    shares: Array = exps / total
    return shares


def _even(exps: Ints, made: SoftmaxParameters) -> Ints:
    total = exps.sum(-1, keepdims=True)
    share = (made.numerator + total // 2) // total
    half = 1 << (made.shift - 1)
    return np.asarray((exps * share + half) >> made.shift)


def _twice(exps: Ints, made: SoftmaxParameters) -> Ints:
    total = ((exps + 2048) >> _SUM_BITS).sum(-1, keepdims=True)
    leading = 32 - np.frexp(total.astype(np.float64))[1].astype(np.int64)
    inverse = reciprocal((total << leading) >> 1)
    bits = 35 - leading - (8 if made.low < -128 else 0)
    whole = shift_away(mulhi(inverse, exps), np.minimum(bits, 31))
    return np.where(bits > 31, 0, whole)


# ---- attention ------------------------------------------------------------------


def infer_attention(node: Node, graph: Graph) -> Types:
    """attrs scale, across.

    Shapes  q float32[G.., R, D]  k [G.., W, D], with across [G.., D, W]
            v [G.., W, E], each float32 or int8  rows int32, two: the first of the W
            rows that count, and the one after the last; y [G.., R, E]
    """
    q, k, v, rows = (operand(node, graph, i) for i in range(4))
    must_have_type(node, graph, q, DType.FLOAT32)
    for tensor in (k, v):
        if tensor.dtype is not DType.INT8:
            must_have_type(node, graph, tensor, DType.FLOAT32)
    must_have_type(node, graph, rows, DType.INT32)
    fits = len(q.shape) >= 2 and q.size and v.size and rows.size == 2
    outer, keys = q.shape[:-2], (*v.shape[-2:-1], *q.shape[-1:])
    keys = keys[::-1] if node.attrs.get("across") else keys
    whole = k.shape == (*outer, *keys)
    if not fits or not whole or v.shape[:-2] != outer:
        shapes = ", ".join(str(list(one.shape)) for one in (q, k, v, rows))
        raise invalid(node, graph, f"cannot be computed of {shapes}")
    return (((*q.shape[:-1], v.shape[-1]), DType.FLOAT32),)


def attention(node: Node, graph: Graph, values: Values) -> tuple[Array, ...]:
    """y = softmax(scale * q @ k.T) @ v over the rows of k and v that count; NaN where
    none does."""
    q, k, v, rows = (value(values, i) for i in range(4))
    k = k if node.attrs.get("across") else k.swapaxes(-1, -2)
    first, after = (int(n) for n in np.clip(rows.ravel(), 0, k.shape[-1]))
    k = k[..., first:after].astype(np.float32)
    v = v[..., first:after, :].astype(np.float32)
    if first >= after:
        return (np.full((*q.shape[:-1], v.shape[-1]), np.nan, np.float32),)
    scale = np.float32(node.attrs["scale"])
    with np.errstate(all="ignore"):
        scores = np.matmul(q, k) * scale
        powers = np.exp(scores - scores.max(-1, keepdims=True))
        y = np.matmul(powers, v) / powers.sum(-1, keepdims=True)
    return (y.astype(np.float32),)


def macs_attention(node: Node, graph: Graph) -> int:
    """Products where all rows count."""
    q, v = operand(node, graph, 0), operand(node, graph, 2)
    return q.size * v.shape[-2] + graph.tensor(node.output).size * v.shape[-2]
