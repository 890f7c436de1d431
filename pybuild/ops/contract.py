"""Products and sums in any type and any number of axes: matmul, conv.

Both operands may be computed. For the layers of a network with constant weights see
dense.py and conv.py, whose kernels are faster.
"""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np

from pybuild.dtype import Array, DType, widened
from pybuild.ir.graph import Graph, Node, Tensor
from pybuild.ops.base.operator import (
    Types,
    Values,
    computable,
    invalid,
    must_have_type,
    operand,
    value,
    whole_quant,
)
from pybuild.ops.fixed_point.quant import (
    quantize_multiplier,
    requantize,
    saturated,
    wide_multiplier,
)
from pybuild.ops.map import NUMBERS
from pybuild.records import dataclass

_ROWS = "the rows of the first must be as long as the columns of the second"


# of two int8 less their zero points; sums of more would leave int32
_MOST = (1 << 31) // (255 * 255)
# of two int16: such a sum times 15 bits fits int64
_MOST_WIDE = 1 << 16


@dataclass(frozen=True)
class Product:
    """y = clamp(round(sum((a - a_zero) * (b - b_zero)) * scale) + y_zero)

    rounding  "even": one float32 product, ties to even; "double": by a multiplier and a
              shift, as quant.requantize has it
    Source    ONNX Runtime QLinearMatMul; LiteRT BATCH_MATMUL (int8)
    """

    a_zero: int
    b_zero: int
    y_zero: int
    scale: float
    rounding: str = "even"
    multiplier: int = 0
    shift: int = 0


@dataclass(frozen=True)
class WideProduct:
    """y = clamp((sum(a * b) * multiplier + 2^(shift - 1)) >> shift), all in int64.

    Source  LiteRT BATCH_MATMUL (int16)
    """

    multiplier: int
    shift: int


def product_of(node: Node, graph: Graph) -> Product | WideProduct | None:
    """The rounding of a matmul with the attribute `rounding`; None: its integers wrap.

    Errors  BuildError for what is not int8 or int16 with a scale, and for sums or
            scales beyond what holds them
    """
    if "rounding" not in node.attrs:
        return None
    a, b, y = (
        operand(node, graph, 0),
        operand(node, graph, 1),
        graph.tensor(node.output),
    )
    kind = DType.INT16 if a.dtype is DType.INT16 else DType.INT8
    for tensor in (a, b, y):
        must_have_type(node, graph, tensor, kind)
        whole_quant(node, graph, tensor)
    if kind is DType.INT16:
        return _wide(node, graph, (a, b, y))
    if a.shape[-1] > _MOST:
        raise invalid(node, graph, f"sums {a.shape[-1]} products of int8 in int32")
    zeros = (a.zero_point, b.zero_point, y.zero_point)
    if node.attrs["rounding"] == "double":
        scale = ratio_of(a, b, y)
        if product_fits(scale, a.shape[-1], kind):
            return Product(*zeros, scale, "double", *_steps(scale))
    else:
        with np.errstate(over="ignore", divide="ignore"):
            scale = float(
                np.float32(a.scale) * np.float32(b.scale) / np.float32(y.scale)
            )
        if math.isfinite(scale):
            return Product(*zeros, scale)
    hint = "calibrate the output of this layer"
    raise invalid(node, graph, "the scales are too far apart for 32 bits", hint)


def ratio_of(a: Tensor, b: Tensor, y: Tensor) -> float:
    """The factor that scales sums of products, as LiteRT computes it."""
    with np.errstate(over="ignore"):
        return float(np.float32(a.scale) * np.float32(b.scale)) / y.scale


def product_fits(ratio: float, depth: int, kind: DType) -> bool:
    """True if sums of `depth` products stay in their types, also scaled as LiteRT
    does."""
    if not math.isfinite(ratio):
        return False
    if kind is DType.INT16:
        _, shift = wide_multiplier(ratio)
        most = ratio * depth * 2.0**30
        return depth <= _MOST_WIDE and -31 <= shift < 8 and most < 2.0**31
    _, shift = _steps(ratio)
    reach = depth * 255 * 255
    return reach << max(shift, 0) < 1 << 31 and reach * ratio + 256 < 2.0**31


def _steps(ratio: float) -> tuple[int, int]:
    """Multiplier and shift; below 2^-30 nothing is left of a sum."""
    multiplier, shift = quantize_multiplier(ratio)
    return (multiplier, shift) if shift >= -30 else (0, 0)


def _wide(node: Node, graph: Graph, tensors: tuple[Tensor, ...]) -> WideProduct:
    a, b, y = tensors
    for tensor in tensors:
        computable(node, graph, tensor)
    if a.shape[-1] > _MOST_WIDE:
        raise invalid(node, graph, f"sums {a.shape[-1]} products of int16")
    scale = ratio_of(a, b, y)
    multiplier, shift = wide_multiplier(scale)
    if not product_fits(scale, a.shape[-1], DType.INT16):
        hint = "calibrate the output of this layer"
        raise invalid(node, graph, f"a ratio of scales of {scale:g}", hint)
    return WideProduct(multiplier, 15 - shift)


def _one_type(node: Node, graph: Graph) -> DType:
    a, b = operand(node, graph, 0), operand(node, graph, 1)
    if a.dtype is not b.dtype or a.dtype not in NUMBERS:
        raise invalid(node, graph, f"multiplies {a.dtype.value} by {b.dtype.value}")
    return a.dtype


@dataclass(frozen=True)
class Sizes:
    """The sizes of one pair of matrices: a[rows, depth] by b[depth, columns]; if
    `transposed`, the second is b[columns, depth].
    """

    rows: int
    depth: int
    columns: int
    transposed: bool

    @property
    def each(self) -> tuple[int, int, int]:
        """Elements of y, a and b."""
        return (
            self.rows * self.columns, self.rows * self.depth, self.depth * self.columns
        )  # fmt: skip


def sizes_of(node: Node, graph: Graph) -> Sizes:
    """The sizes of a matmul, whose operands have two axes or more."""
    a, b = operand(node, graph, 0), operand(node, graph, 1)
    transposed = bool(node.attrs.get("transpose_b"))
    columns = b.shape[-2 if transposed else -1]
    return Sizes(a.shape[-2], a.shape[-1], columns, transposed)


def infer_matmul(node: Node, graph: Graph) -> Types:
    """attrs transpose_b.

    Shapes  a[A.., M, K]  b[B.., K, N], with transpose_b [B.., N, K]
            y[A and B broadcast.., M, N]
    """
    a, b = operand(node, graph, 0), operand(node, graph, 1)
    dtype = _one_type(node, graph)
    text = f"{list(a.shape)} cannot be multiplied by {list(b.shape)}"
    rows = -1 if node.attrs.get("transpose_b") else -2
    if min(len(a.shape), len(b.shape)) < 2 or a.shape[-1] != b.shape[rows]:
        raise invalid(node, graph, text, _ROWS)
    try:
        outer = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    except ValueError:
        raise invalid(node, graph, text, _ROWS) from None
    product_of(node, graph)
    sizes = sizes_of(node, graph)
    return (((*outer, sizes.rows, sizes.columns), dtype),)


def matmul(node: Node, graph: Graph, values: Values) -> tuple[Array, ...]:
    """Numpy meaning."""
    a, b = value(values, 0), value(values, 1)
    if node.attrs.get("transpose_b"):
        b = b.swapaxes(-1, -2)
    made = product_of(node, graph)
    if isinstance(made, WideProduct):
        sums = np.matmul(a.astype(np.int64), b.astype(np.int64))
        half = 1 << (made.shift - 1)
        return (saturated((sums * made.multiplier + half) >> made.shift, DType.INT16),)
    if made is not None:
        left, right = (x.astype(np.float64) - zero
                       for x, zero in ((a, made.a_zero), (b, made.b_zero)))  # fmt: skip
        sums = np.matmul(left, right)
        if made.rounding == "even":
            y = np.rint(sums.astype(np.float32) * np.float32(made.scale))
        else:
            how = (made.multiplier, made.shift, made.rounding)
            y = requantize(sums.astype(np.int64), *how).astype(np.float64)
        y = y + made.y_zero
        return (y.clip(-128, 127).astype(np.int8),)
    wide = np.matmul(widened(a), widened(b))
    return (np.ascontiguousarray(wide).astype(a.dtype),)


def macs_matmul(node: Node, graph: Graph) -> int:
    return graph.tensor(node.output).size * operand(node, graph, 0).shape[-1]


def macs_conv(node: Node, graph: Graph) -> int:
    w = operand(node, graph, 1)
    return graph.tensor(node.output).size * (w.size // max(w.shape[0], 1))


def infer_conv(node: Node, graph: Graph) -> Types:
    """attrs strides, dilations, pads ((before, after), ...), groups.

    Shapes  x[N, C, ...]  w[O, C / groups, ...]  y[N, O, ...]
    """
    x, w, dtype = (
        operand(node, graph, 0),
        operand(node, graph, 1),
        _one_type(node, graph),
    )
    groups, rank = int(node.attrs["groups"]), len(x.shape) - 2
    what = f"{list(w.shape)} over {list(x.shape)} in {groups} groups"
    fits = len(w.shape) == len(x.shape) and rank > 0
    fits = fits and x.shape[1] == w.shape[1] * groups and w.shape[0] % groups == 0
    given = [node.attrs[k] for k in ("strides", "dilations", "pads")]
    if not fits or any(len(g) != rank for g in given):
        raise invalid(node, graph, what)
    sizes = []
    for size, kernel, stride, dilation, (before, after) in zip(
        x.shape[2:], w.shape[2:], *given, strict=True
    ):
        room = size + before + after - dilation * (kernel - 1) - 1
        sizes.append(room // stride + 1)
    if min(sizes) < 1:
        what = f"the window {list(w.shape[2:])} is larger than its padded input"
        raise invalid(node, graph, f"{what}, of {list(x.shape[2:])} before padding")
    return (((x.shape[0], w.shape[0], *sizes), dtype),)


def conv(node: Node, graph: Graph, values: Values) -> tuple[Array, ...]:
    x, w, y = value(values, 0), value(values, 1), graph.tensor(node.output)
    x, w = widened(x), widened(w)
    groups = int(node.attrs["groups"])
    padded = np.pad(x, ((0, 0), (0, 0), *node.attrs["pads"]))
    n, spatial = x.shape[0], y.shape[2:]
    parts = padded.reshape(n, groups, w.shape[1], *padded.shape[2:])
    kernels = w.reshape(groups, w.shape[0] // groups, w.shape[1], *w.shape[2:])
    total = np.zeros((n, groups, kernels.shape[1], math.prod(spatial)), x.dtype)
    with np.errstate(all="ignore"):
        for place in itertools.product(*map(range, w.shape[2:])):
            cut: Any = tuple(
                slice(at * d, at * d + s * (count - 1) + 1, s)
                for at, d, s, count in zip(
                    place, node.attrs["dilations"], node.attrs["strides"], spatial,
                    strict=True,
                )
            )  # fmt: skip
            seen = parts[(slice(None), slice(None), slice(None), *cut)]
            seen = seen.reshape(n, groups, w.shape[1], -1)
            at: Any = (slice(None), slice(None), slice(None), *place)
            weights = kernels[at]
            total = total + np.matmul(weights[None], seen)
    dtype = y.dtype.numpy
    return (np.ascontiguousarray(total).reshape(y.shape).astype(dtype),)
