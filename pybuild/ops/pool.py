"""Pooling over windows: avg_pool2d and max_pool2d of x[N,H,W,C]; resize_bilinear."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from pybuild.dtype import Array, DType, Ints
from pybuild.ir.graph import Graph, Node, Tensor
from pybuild.ops.base.conv_types import windows
from pybuild.ops.base.operator import (
    Numbers,
    Types,
    Values,
    clamp_of,
    clamped,
    computable,
    invalid,
    operand,
    rounding,
    value,
    whole_quant,
)
from pybuild.ops.conv import taps
from pybuild.ops.fixed_point.quant import (
    multipliers,
    quantized_clamp,
    requantize,
    saturated,
)
from pybuild.params.budget import MOST_RESIZED
from pybuild.records import dataclass

Floats = npt.NDArray[np.float32]


@dataclass(frozen=True)
class PoolParameters:
    """Every integer of an int8 pooling layer; `count` = cells that are averaged.

    divide  y = clamp((s + sign * (count / 2)) / count): C division of ints, s = sum
            of x as it is, sign = 1 where s > 0, else -1. Used where x and y have
            one scale and zero point and the node does not round to even.
    else    y = clamp(requantize(sum(x - x_zero), multipliers[count], shifts[count])
            + y_zero)
    padding counts (with real 0) only where `include_pad`; then count is the
            kernel's size everywhere
    max     uses only low and high
    """

    divide: bool
    include_pad: bool
    rounding: str
    multipliers: tuple[int, ...]
    shifts: tuple[int, ...]
    x_zero: int
    y_zero: int
    low: int
    high: int


def pool_parameters(node: Node, graph: Graph) -> PoolParameters:
    """Every integer of an int8 or int16 avg_pool2d or max_pool2d.

    Errors  BuildError for a max_pool2d whose x and y are quantised differently
    """
    x, y = operand(node, graph, 0), graph.tensor(node.output)
    for tensor in (x, y):
        whole_quant(node, graph, tensor)
    if node.op == "max_pool2d" and not same_quant(x, y):
        what = "input and output have different scales"
        raise invalid(node, graph, what, "quantise them alike")
    if math.prod(node.attrs["kernel"]) * (x.dtype.high - x.dtype.low) >= 1 << 31:
        what = f"the int32 sum of a window {node.attrs['kernel']} could overflow"
        raise invalid(node, graph, what)
    low, high = quantized_clamp(clamp_of(node), y)
    rule, include = rounding(node), bool(node.attrs.get("count_include_pad", False))
    include = include and any(node.attrs.get("pads", (0, 0, 0, 0)))
    divide = same_quant(x, y) and rule != "even" and not include
    kernel_h, kernel_w = node.attrs["kernel"]
    counts = range(1, kernel_h * kernel_w + 1)
    mults, shifts = multipliers([x.scale / (y.scale * n) for n in counts], rule)
    return PoolParameters(
        divide, include, rule, (0, *mults), (0, *shifts), x.zero_point, y.zero_point,
        low, high,
    )  # fmt: skip


def same_quant(x: Tensor, y: Tensor) -> bool:
    """The same integers mean the same numbers (LiteRT allows scales 1e-6 apart)."""
    near = abs(x.scale - y.scale) <= 1e-6 * x.scale
    return near and x.zero_point == y.zero_point


def infer(node: Node, graph: Graph) -> Types:
    """Shapes  x [N,H,W,C]  y [N,OH,OW,C]"""
    x = operand(node, graph, 0)
    dtype = computable(node, graph, x, zero=node.op == "max_pool2d")
    if len(x.shape) != 4:
        raise invalid(node, graph, f"needs x[N,H,W,C], has {x.shape}")
    kernel = node.attrs["kernel"]
    height, width = windows(node, graph, x.shape, kernel)
    top, left, bottom, right = node.attrs.get("pads", (0, 0, 0, 0))
    if max(top, bottom) >= kernel[0] or max(left, right) >= kernel[1]:
        what = f"padding {(top, left, bottom, right)} makes windows without input"
        raise invalid(node, graph, what)
    return (((x.shape[0], height, width, x.shape[3]), dtype),)


def avg_pool2d(node: Node, graph: Graph, values: Values) -> tuple[Array, ...]:
    """Numpy meaning; int8 exact."""
    x, y = value(values, 0), graph.tensor(node.output)
    kernel_h, kernel_w = node.attrs["kernel"]
    counts = _counts(node, graph, x)
    if y.dtype is DType.FLOAT32:
        total = taps(node, graph, x.astype(np.float64), (kernel_h, kernel_w))
        if node.attrs.get("count_include_pad", False):
            counts = np.full_like(counts, kernel_h * kernel_w)
        mean = total.sum((3, 4)) / counts
        return (clamped(node, mean.astype(np.float32)),)
    made = pool_parameters(node, graph)
    zero = 0 if made.divide else made.x_zero
    total = taps(node, graph, x.astype(np.int64) - zero, (kernel_h, kernel_w))
    sums = total.sum((3, 4))
    if made.include_pad:
        counts = np.full_like(counts, kernel_h * kernel_w)
    whole = averages(made, sums, counts)
    return (saturated(whole, y.dtype, made.low, made.high),)


def averages(made: PoolParameters, sums: Numbers, counts: Numbers) -> Numbers:
    """Before the clamp.

    sums  of so many cells, unless it divides of what they are above the zero point
    """
    if made.divide:
        divided: Numbers = (np.abs(sums) + counts // 2) // counts * np.sign(sums)
        return divided
    mult, shift = np.asarray(made.multipliers), np.asarray(made.shifts)
    whole = requantize(sums, mult[counts], shift[counts], made.rounding)
    return whole + made.y_zero


def _counts(node: Node, graph: Graph, x: Numbers) -> Numbers:
    """Cells of each window that lie on the input: [1,OH,OW,1]."""
    ones = np.ones((1, *x.shape[1:3], 1), np.int64)
    counted: Numbers = taps(node, graph, ones, node.attrs["kernel"]).sum((3, 4))
    return counted


def max_pool2d(node: Node, graph: Graph, values: Values) -> tuple[Array, ...]:
    """Numpy meaning; int8 exact."""
    x, y = value(values, 0), graph.tensor(node.output)
    if y.dtype is DType.FLOAT32:
        cells = taps(node, graph, x, node.attrs["kernel"], -np.inf)
        return (clamped(node, cells.max((3, 4))),)
    made = pool_parameters(node, graph)
    most = taps(node, graph, x, node.attrs["kernel"], y.dtype.low).max((3, 4))
    return (saturated(most, y.dtype, made.low, made.high),)


@dataclass(frozen=True)
class Lerp:
    """Between which values of an axis each new one lies, in float32.

    Shapes  each [values of the resized axis]: places, and the weight of the upper one
    Source  LiteRT's ComputeInterpolationValues: 1 - weight is that of the lower one
    """

    low: Ints
    high: Ints
    weight: Floats


def lerps(node: Node, graph: Graph) -> tuple[Lerp, Lerp]:
    """Return the rows and the columns of a resize_bilinear of float32."""
    shape, found = operand(node, graph, 0).shape, []
    middle = np.float32(0.5)
    for old, size in zip(shape[1:3], node.attrs["sizes"], strict=True):
        scale = np.float32(old) / np.float32(size)
        if node.attrs["corners"] and size > 1:
            scale = np.float32(old - 1) / np.float32(size - 1)
        at = np.arange(size, dtype=np.float32)
        at = (at + middle) * scale - middle if node.attrs["half"] else at * scale
        low = np.minimum(np.maximum(np.floor(at), 0), old - 1).astype(np.int64)
        high = np.minimum(np.ceil(at), old - 1).astype(np.int64)
        weight = (at - low.astype(np.float32)).astype(np.float32)
        found.append(Lerp(low, np.maximum(high, low), weight))
    return found[0], found[1]


@dataclass(frozen=True)
class Between:
    """The source positions of a resized axis, in 1024ths of a pixel: at = scale * i +
    start.

    Source  LiteRT ResizeBilinearInteger
    """

    old: int
    size: int
    scale: int
    start: int

    def places(self) -> tuple[Ints, Ints, Ints]:
        """The ones below and above, and the weight of the latter."""
        at, last = np.arange(self.size) * self.scale + self.start, self.old - 1
        low = np.maximum(at >> 10, 0)
        high = np.minimum(at + 1023 >> 10, last)
        return np.minimum(low, last), high, at - 1024 * low


def betweens(node: Node, graph: Graph) -> tuple[Between, Between]:
    """The source positions of the rows and of the columns of a resize_bilinear.

    attrs  sizes; corners: the outermost ones stay where they are; half: values are in
           the middle of their pixels
    """
    shape, found = operand(node, graph, 0).shape, []
    for old, size in zip(shape[1:3], node.attrs["sizes"], strict=True):
        scale = (1024 * old + size // 2) // size
        if node.attrs["corners"] and size > 1:
            scale = (1024 * (old - 1) + (size - 1) // 2) // (size - 1)
        start = scale // 2 - 512 if node.attrs["half"] else 0
        found.append(Between(old, size, scale, start))
    return found[0], found[1]


def infer_resize(node: Node, graph: Graph) -> Types:
    x = operand(node, graph, 0)
    kinds = (DType.INT8, DType.INT16, DType.FLOAT32)
    if x.dtype not in kinds or len(x.shape) != 4:
        what = (
            f"is {x.dtype.value}{list(x.shape)}, not 4 axes of int8, int16 or float32"
        )
        raise invalid(node, graph, what)
    rows, columns = node.attrs["sizes"]
    if max(rows, columns, *x.shape[1:3]) > MOST_RESIZED:
        raise invalid(node, graph, f"more than {MOST_RESIZED} rows or columns")
    return (((x.shape[0], rows, columns, x.shape[3]), x.dtype),)


def resize_bilinear(node: Node, graph: Graph, values: Values) -> tuple[Array, ...]:
    """Numpy meaning of integers: ten bits of each weight, ties away from zero; of
    float32: the sum of upper left, lower left, upper right and lower right, each times
    its row's weight and then its column's, as LiteRT has it."""
    if graph.tensor(node.output).dtype is DType.FLOAT32:
        return (_resized_floats(node, graph, value(values, 0)),)
    x = value(values, 0).astype(np.int64)
    for axis, one in enumerate(betweens(node, graph), 1):
        low, high, weight = one.places()
        weight = weight.reshape(-1, *(1,) * (3 - axis))
        x = x.take(low, axis) * (1024 - weight) + x.take(high, axis) * weight
    y = x + (1 << 19) - (x < 0) >> 20
    return (y.astype(graph.tensor(node.output).dtype.numpy),)


def _resized_floats(node: Node, graph: Graph, x: Array) -> Array:
    rows, columns = lerps(node, graph)
    down, right = rows.weight.reshape(-1, 1, 1), columns.weight.reshape(-1, 1)
    one, reals = np.float32(1), np.asarray(x, np.float32)
    parts = (
        reals.take(row, 1).take(column, 2) * wy * wx
        for column, wx in ((columns.low, one - right), (columns.high, right))
        for row, wy in ((rows.low, one - down), (rows.high, down))
    )
    first, *others = parts
    for part in others:
        first = first + part
    return np.asarray(first, np.float32)
