"""Layers of int8 weights on float32 activations, which are made int8 as they come.

quantize_dynamic makes a tensor int8, with a scale of each batch; conv2d_sums,
depthwise_conv2d_sums and dense_sums give plain int32 sums of products; scale_sums makes
real numbers of them. Together they are LiteRT's hybrid kernels, bit for bit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from pybuild.dtype import Array, DType
from pybuild.ir.graph import Graph, Node, Tensor
from pybuild.ops.base.conv_types import INPUT_DILATIONS, windows
from pybuild.ops.base.operator import (
    Numbers,
    Types,
    Values,
    clamped,
    invalid,
    must_have_shape,
    must_have_type,
    operand,
    optional,
    value,
)
from pybuild.ops.conv import conv_sums, depthwise_sums, exact, products
from pybuild.ops.fixed_point.quant import rounded_away

NO_PADS = (0, 0, 0, 0)
NINE_BITS = 255  # of int16 weights: bytes less a zero point
# products of a sum that fits int32: |x - zero| is at most 255
_MOST_TAPS = {
    DType.INT8: (2**31 - 1) // (255 * 128),
    DType.INT16: (2**31 - 1) // (255 * NINE_BITS),
}
ZERO_OF_SUMS = 2  # an input of a transposed conv2d_sums
SUMS = ("conv2d_sums", "dense_sums", "depthwise_conv2d_sums")


# ---- quantize_dynamic -----------------------------------------------------------


def infer_quantize(node: Node, graph: Graph) -> Types:
    """attrs batches, rule, pads, eps: the least scale of rule "torch"

    Shapes  x [...] or, with pads, [N,H,W,C]; q int8 as x, or with the zero point around
            it; scale [batches]; zero int32 [batches], which the rule "symmetric" does
            not have
    """
    x, batches = operand(node, graph, 0), int(node.attrs["batches"])
    must_have_type(node, graph, x, DType.FLOAT32)
    top, left, bottom, right = pads = node.attrs.get("pads", NO_PADS)
    shape = x.shape
    if any(pads):
        if len(shape) != 4 or shape[0] != batches:
            what = f"pads {list(pads)} around {list(shape)} of {batches} batches"
            raise invalid(node, graph, what)
        n, height, width, depth = shape
        shape = (n, height + top + bottom, width + left + right, depth)
    if not x.size or x.size % batches:
        raise invalid(node, graph, f"{list(x.shape)} are not {batches} equal batches")
    made: Types = ((shape, DType.INT8), ((batches,), DType.FLOAT32))
    return (*made, ((batches,), DType.INT32)) if has_zero(node) else made


def has_zero(node: Node) -> bool:
    """True if a quantize_dynamic has zero points as a further output."""
    return bool(node.attrs["rule"] != "symmetric")


def quantize(node: Node, graph: Graph, values: Values) -> tuple[Array, ...]:
    """Numpy meaning.

    Source  LiteRT SymmetricQuantizeFloats, AsymmetricQuantizeFloats; ONNX
            DynamicQuantizeLinear, 128 lower; torch quantized_decomposed
            choose_qparams and quantize_per_tensor; where a scale or its inverse is
            not finite, all of its batch is the zero point
    """
    x = value(values, 0)
    batches, pads = int(node.attrs["batches"]), node.attrs.get("pads", NO_PADS)
    rule = _RULES[node.attrs["rule"]]
    if node.attrs["rule"] == "torch":
        rule = partial(rule, least=least_scale(node))
    parts, scales, zeros = [], [], []
    with np.errstate(all="ignore"):
        for batch in x.reshape(batches, -1):
            q, scale, zero = rule(batch.astype(np.float32))
            shape = x.shape[1:] if any(pads) else (batch.size,)
            rows, columns = (pads[0], pads[2]), (pads[1], pads[3])
            around = (rows, columns, (0, 0)) if any(pads) else ((0, 0),)
            parts.append(np.pad(q.reshape(shape), around, constant_values=zero))
            scales.append(scale)
            zeros.append(zero)
    (shape, _), *_ = infer_quantize(node, graph)
    q = np.stack(parts).astype(np.int8).reshape(shape)
    made = (q, np.asarray(scales, np.float32), np.asarray(zeros, np.int32))
    return made if has_zero(node) else made[:2]


def _symmetric(x: Numbers) -> tuple[Numbers, np.float32, int]:
    reach = np.abs(x).max()
    if reach == 0:
        return np.zeros(x.shape), np.float32(1), 0
    scale, inverse = reach / np.float32(127), np.float32(127) / reach
    if not np.isfinite(scale) or not np.isfinite(inverse):
        return np.zeros(x.shape), scale, 0
    return rounded_away(x * inverse), scale, 0


def _asymmetric(x: Numbers) -> tuple[Numbers, np.float32, int]:
    low = np.minimum(np.float32(0), x.min())
    high = np.maximum(np.float32(0), x.max())
    if low == high:
        return np.zeros(x.shape), np.float32(1), 0
    scale = np.float32((high - low) / np.float32(255))
    inverse = np.float32(1) / scale
    if not np.isfinite(scale) or not np.isfinite(inverse):
        return np.zeros(x.shape), scale, 0
    below, above = low / scale, high / scale
    less = np.float32(128) + np.abs(below) < np.float32(127) + np.abs(above)
    point = np.float32(-128) - below if less else np.float32(127) - above
    zero = int(np.clip(rounded_away(point), -128, 127))
    return np.clip(rounded_away(np.float32(zero) + x * inverse), -128, 127), scale, zero


def _onnx(x: Numbers) -> tuple[Numbers, np.float32, int]:
    low = np.minimum(np.float32(0), x.min())
    high = np.maximum(np.float32(0), x.max())
    scale = np.float32(1 if low == high else (high - low) / np.float32(255))
    if not np.isfinite(scale):
        return np.full(x.shape, -128), scale, -128
    step = scale or np.float32(1)
    zero = int(np.clip(np.rint(np.float32(0) - low / step), 0, 255))
    return np.clip(np.rint(x / step) + zero, 0, 255) - 128, scale, zero - 128


def least_scale(node: Node) -> np.float32:
    """The least scale of a quantize_dynamic by rule "torch": it has an inverse."""
    least = np.float32(node.attrs.get("eps", 0.0))
    return max(least, np.finfo(np.float32).tiny)


def _torch(x: Numbers, least: np.float32) -> tuple[Numbers, np.float32, int]:
    low = np.minimum(np.float32(0), x.min())
    high = np.maximum(np.float32(0), x.max())
    scale = np.float32(np.maximum((high - low) / np.float32(255), least))
    if not np.isfinite(scale):
        return np.full(x.shape, -128), scale, -128
    inverse = np.float32(1) / scale
    zero = int(np.clip(-128 - np.rint(low / scale), -128, 127))
    return np.clip(np.rint(x * inverse) + zero, -128, 127), scale, zero


_RULES: dict[str, Callable[..., tuple[Numbers, np.float32, int]]] = {
    "symmetric": _symmetric, "asymmetric": _asymmetric, "onnx": _onnx,
    "torch": _torch,
}  # fmt: skip


# ---- sums -----------------------------------------------------------------------


def _operands(node: Node, graph: Graph, axes: int) -> tuple[Tensor, Tensor]:
    """The input, int8, and the weights: int8, or int16 of nine bits that are known."""
    x, w = operand(node, graph, 0), operand(node, graph, 1)
    must_have_type(node, graph, x, DType.INT8)
    if w.dtype is DType.INT16:
        _must_have_nine_bits(node, graph)
    else:
        must_have_type(node, graph, w, DType.INT8)
    if len(w.shape) != axes or 0 in w.shape:
        raise invalid(node, graph, f"weights of shape {list(w.shape)}")
    axis = -1 if node.op.startswith("depthwise") else 0
    if not most_taps(w.shape, axis, w.dtype):
        most = _MOST_TAPS[w.dtype]
        what = f"sums {w.size // w.shape[axis]} products, more than {most}"
        raise invalid(node, graph, what, "--hybrid float")
    return x, w


def _must_have_nine_bits(node: Node, graph: Graph) -> None:
    """A graph that is still being read may not know them yet."""
    name = node.inputs[1]
    if name in graph.parameters:
        raise invalid(node, graph, "int16 weights that users may replace")
    weights = graph.constants.get(name, np.zeros(0, np.int16))
    most = int(np.abs(weights.astype(np.int32)).max(initial=0))
    if most > NINE_BITS:
        raise invalid(node, graph, f"weights up to {most}; {NINE_BITS} are the most")


def most_taps(shape: Sequence[int], axis: int, dtype: DType = DType.INT8) -> bool:
    """True if every sum of a layer with such weights fits int32; axis: that of output
    channels."""
    return 0 not in shape and math.prod(shape) // shape[axis] <= _MOST_TAPS[dtype]


def infer_conv2d(node: Node, graph: Graph) -> Types:
    """Shapes  x int8[N,H,W,C]  w int8[O,KH,KW,C/groups]  y int32[N,OH,OW,O]

    w may be int16, from -255 to 255: less a zero point; so in the other layers. With
    input_dilations there may be zero int32[N], which is taken off each x: what is
    between them, or around, counts as 0.
    """
    x, w = _operands(node, graph, 4)
    zero = optional(node, graph, ZERO_OF_SUMS)
    if zero is not None:
        if INPUT_DILATIONS not in node.attrs:
            raise invalid(node, graph, "reads zero points, which scale_sums takes off")
        must_have_shape(node, graph, zero, x.shape[:1])
        must_have_type(node, graph, zero, DType.INT32)
    groups = int(node.attrs.get("groups", 1))
    fits = len(x.shape) == 4 and w.shape[3] * groups == x.shape[3]
    if not fits or w.shape[0] % groups:
        what = f"{groups} groups: x {list(x.shape)}, w {list(w.shape)}"
        raise invalid(node, graph, what)
    height, width = windows(node, graph, x.shape, w.shape[1:3])
    return (((x.shape[0], height, width, w.shape[0]), DType.INT32),)


def infer_depthwise(node: Node, graph: Graph) -> Types:
    """Shapes  x int8[N,H,W,C]  w int8[KH,KW,C*M]  y int32[N,OH,OW,C*M]"""
    x, w = _operands(node, graph, 3)
    if len(x.shape) != 4 or not x.shape[3] or w.shape[2] % x.shape[3]:
        what = f"x {list(x.shape)}, w {list(w.shape)}"
        raise invalid(node, graph, what)
    height, width = windows(node, graph, x.shape, w.shape[:2])
    return (((x.shape[0], height, width, w.shape[2]), DType.INT32),)


def infer_dense(node: Node, graph: Graph) -> Types:
    """Shapes  x int8[...,K]  w int8[O,K]  y int32[...,O]"""
    x, w = _operands(node, graph, 2)
    if not x.shape or x.shape[-1] != w.shape[1]:
        what = f"needs x[...,K] and w[O,K], has {x.shape} and {w.shape}"
        raise invalid(node, graph, what)
    return (((*x.shape[:-1], w.shape[0]), DType.INT32),)


def conv2d(node: Node, graph: Graph, values: Values) -> tuple[Array, ...]:
    """Numpy meaning, exact."""
    x, w = value(values, 0), value(values, 1)
    kind = exact(w[0].size, w=w.itemsize)
    if len(node.inputs) > ZERO_OF_SUMS:
        x = x.astype(np.float64) - value(values, ZERO_OF_SUMS)[:, None, None, None]
        kind = np.float64
    return (conv_sums(node, graph, x, w, kind).astype(np.int32),)


def depthwise(node: Node, graph: Graph, values: Values) -> tuple[Array, ...]:
    """Numpy meaning, exact."""
    x, w = value(values, 0), value(values, 1)
    return (depthwise_sums(node, graph, x, w, np.int64).astype(np.int32),)


def dense(node: Node, graph: Graph, values: Values) -> tuple[Array, ...]:
    """Numpy meaning, exact."""
    x, w = value(values, 0), value(values, 1)
    kind = exact(w.shape[1], w=w.itemsize)
    return (products(x.astype(kind), w).astype(np.int32),)


# ---- scale_sums -----------------------------------------------------------------

SUM, SCALE, FACTOR, BIAS, ZERO, WEIGHTS = range(6)


def infer_scale(node: Node, graph: Graph) -> Types:
    """attrs sums_first, axis, clamp. Shapes  sums int32[...,C]  scale [batches]
    factor [C] or [1]  bias [C]  zero int32[batches]  w, with C along `axis`: the
    weights of the sums; y float32[...,C]
    """
    sums, scale = operand(node, graph, SUM), operand(node, graph, SCALE)
    factor = operand(node, graph, FACTOR)
    must_have_type(node, graph, sums, DType.INT32)
    if not sums.shape or not sums.size:
        raise invalid(node, graph, f"sums of shape {list(sums.shape)}")
    channels = sums.shape[-1]
    (batches,) = scale.shape if len(scale.shape) == 1 else (0,)
    if not batches or (sums.size // channels) % batches:
        what = f"{list(sums.shape)} are not {list(scale.shape)} equal batches"
        raise invalid(node, graph, what)
    wide = DType.FLOAT32
    wanted = {SCALE: ((batches,), wide), BIAS: ((channels,), wide),
                  ZERO: ((batches,), DType.INT32)}  # fmt: skip
    for index, (shape, dtype) in wanted.items():
        tensor = optional(node, graph, index)
        if tensor is not None:
            must_have_shape(node, graph, tensor, shape)
            must_have_type(node, graph, tensor, dtype)
    must_have_type(node, graph, factor, wide)
    if factor.shape not in ((1,), (channels,)):
        must_have_shape(node, graph, factor, (channels,))
    zero, w = optional(node, graph, ZERO), optional(node, graph, WEIGHTS)
    if (zero is None) != (w is None):
        raise invalid(node, graph, "has zero points or weights, not both")
    axis = int(node.attrs.get("axis", 0))
    if w is not None:
        if w.dtype is not DType.INT16:
            must_have_type(node, graph, w, DType.INT8)
        if axis >= len(w.shape) or w.shape[axis] != channels:
            what = f"weights {list(w.shape)}, {channels} channels along axis {axis}"
            raise invalid(node, graph, what)
    return ((sums.shape, wide),)


def totals(node: Node, weights: Array) -> Array:
    """The sum of the weights of each output channel, int32."""
    axis = int(node.attrs.get("axis", 0))
    others = tuple(a for a in range(weights.ndim) if a != axis)
    made: Array = weights.sum(others, dtype=np.int32)
    return made


def scale_sums(node: Node, graph: Graph, values: Values) -> tuple[Array, ...]:
    """y = clamp(real(sums - zero * total of weights) * (scale * factor) + bias), in
    float32; with sums_first (real(..) * factor) * scale
    """
    sums, scale, factor = (value(values, i) for i in (SUM, SCALE, FACTOR))
    given = [*values, *[None] * (WEIGHTS + 1 - len(values))]
    shape = sums.shape
    rows = sums.reshape(len(scale), -1, shape[-1])
    if given[ZERO] is not None:
        zero, weights = value(given, ZERO), value(given, WEIGHTS)
        rows = rows - zero[:, None, None] * totals(node, weights)
    real = rows.astype(np.float32)
    scales = scale.astype(np.float32)[:, None, None]
    with np.errstate(all="ignore"):
        if node.attrs["sums_first"]:
            y = (real * factor) * scales
        else:
            y = real * (scales * factor)
        y = y if given[BIAS] is None else y + value(given, BIAS)
    return (clamped(node, y.reshape(shape)).astype(np.float32),)


def macs_sums(node: Node, graph: Graph) -> int:
    """Products of a layer of sums."""
    w = operand(node, graph, 1)
    taps = w.size // w.shape[-1 if node.op.startswith("depthwise") else 0]
    apart = math.prod(node.attrs.get(INPUT_DILATIONS, (1, 1)))
    return graph.tensor(node.output).size * taps // apart
