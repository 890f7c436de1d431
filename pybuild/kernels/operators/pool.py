"""Maximum and average over windows, by rows: int8, int16 and float32.

Small windows are unrolled; large ones, and averages that leave padded rows out
of the count, go tap by tap over a block of channels.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np

from pybuild.dtype import DType
from pybuild.ir.graph import Graph, Node, Tensor
from pybuild.ir.loop import (
    FLOAT32,
    INT32,
    Expr,
    cast,
    const,
    load,
    maximum,
    minimum,
    offset,
    select,
)
from pybuild.kernels.base.builder import Builder
from pybuild.kernels.base.candidate import Candidate, Packed, by_rows, whole
from pybuild.kernels.base.nan import LEAST, greater, ignores
from pybuild.kernels.base.operands import Operands, offer
from pybuild.kernels.base.taps import bind, outside_pixel
from pybuild.kernels.base.window import Window
from pybuild.kernels.dsp import pool as pool_dsp
from pybuild.kernels.epilogues.int8 import FloatClamp
from pybuild.kernels.epilogues.requantise import (
    CLAMP,
    Requant,
    check_reach,
    packed,
    requant,
    scaler,
)
from pybuild.kernels.layers import pool_sums as pool_fours
from pybuild.kernels.layers.pool import LOWEST, Layer, Reduction, Rows
from pybuild.kernels.layers.weights import window_rows
from pybuild.kernels.mve import pool as pool_mve
from pybuild.kernels.operators.pool_cells import Fours, Large
from pybuild.kernels.portable.row_sums import accumulated, takes_rows
from pybuild.kernels.rvv import pool as pool_rvv
from pybuild.kernels.rvv import row_sums
from pybuild.ops.base.operator import clamp_of
from pybuild.ops.pool import PoolParameters, pool_parameters
from pybuild.targets.target import Target


def pool(node: Node, graph: Graph, target: Target) -> list[Candidate]:
    """The candidates for avg_pool2d and max_pool2d.

    Errors  BuildError if the scales are too far apart for int32
    """
    x, y = graph.tensor(node.inputs[0]), graph.tensor(node.output)
    kernel_h, kernel_w = node.attrs["kernel"]
    top, left, bottom, _ = node.attrs.get("pads", (0, 0, 0, 0))
    stride_h, stride_w = node.attrs.get("strides", (1, 1))
    window = Window(
        x.shape[2], y.shape[2], x.shape[3], y.shape[3], kernel_h, kernel_w,
        stride_w, left=left,
    )  # fmt: skip
    include = bool(node.attrs.get("count_include_pad", False))
    rows = None
    if node.op == "avg_pool2d" and not include and (top or bottom):
        rows = Rows(x.shape[0], x.shape[1], y.shape[1], stride_h, top)
    layer = _layer(node, graph, window, rows)
    reduction = partial(_reduction, layer)
    writer = _Unrolled(layer) if layer.unrolled else Large(layer, reduction)
    k = writer.write()
    cost = y.size * (3 * kernel_h * kernel_w + 20)
    operands = Operands(whole(y), (whole(x),), (), (1,))
    if rows is None:
        source = window_rows(node, graph, kernel_h, layer.fill)
        operands = Operands(by_rows(y), (source,), (), (1,), y.shape[0], y.shape[1])
    found = [offer(k, operands, tables=_tables(layer), cost=cost)]
    if pool_dsp.suits(layer, target):
        k = pool_dsp.kernel(layer, reduction)
        cheap = y.size * (2 * kernel_h * kernel_w + 20)
        found.append(offer(k, operands, tables=_finish_tables(layer), cost=cheap))
    elif pool_fours.suits(layer, target):
        divided = pool_fours.divided_by(layer, target)
        k = Fours(layer, reduction, target, divided).write()
        tables = _finish_tables(layer) + ((divided.table,) if divided else ())
        found.append(offer(k, operands, tables=tables, cost=cost - y.size * 10))
    if pool_dsp.has_maxima(layer, target):
        edge = outside_pixel(window, layer.fill, layer.elem)
        least = y.size * (kernel_h * kernel_w + 4)
        found.append(offer(pool_dsp.maxima(layer), operands, tables=edge, cost=least))
    for vectors in (pool_mve, pool_rvv):
        if not vectors.suits(layer, target):
            continue
        end = pool_mve.scaled(layer) if layer.average else None
        if end is not None or not layer.average:
            k = vectors.kernel(layer, end)
            fast = y.size * (kernel_h * kernel_w + 4)
            edge = outside_pixel(window, layer.fill, layer.elem)
            found.append(offer(k, operands, tables=edge, cost=fast))
    if takes_rows(x, y) and not window.padded and kernel_h == x.shape[1]:
        found.append(_by_rows(layer, x, y, cost, target))
    return found


def _by_rows(
    layer: Layer, x: Tensor, y: Tensor, cost: int, target: Target
) -> Candidate:
    """The same, each row as it comes."""
    cells = x.shape[1] * x.shape[2]
    start: float = LOWEST if layer.is_float else layer.elem.low
    if layer.average:
        start = 0
        if layer.made is not None and layer.rule is not None:
            start = -cells * layer.made.x_zero

    def finish(k: Builder, pointer: Expr) -> Callable[[Expr], Expr]:
        count = k.arg("cells", cells)
        made = _reduction(layer, k, pointer)
        return lambda total: made.end(total, count)

    add = _sum if layer.average else _greater(layer)
    tables = _finish_tables(layer)
    made = accumulated(layer.name, (x, y), start, add, finish, tables, cost, target)
    return row_sums.on_vectors(made, x, target)


def _layer(node: Node, graph: Graph, window: Window, rows: Rows | None) -> Layer:
    average = node.op == "avg_pool2d"
    limits = FloatClamp(*clamp_of(node))
    counted = bool(node.attrs.get("count_include_pad", False))
    elem = graph.tensor(node.output).dtype
    numbers = ignores(node) and not average
    layer = Layer(window, average, limits, None, None, counted, rows, elem, numbers)
    if elem is FLOAT32:
        return layer
    made = pool_parameters(node, graph)
    if not average or made.divide:
        return replace(layer, made=made)
    for n in range(1, window.kernel_h * window.kernel_w + 1):
        check_reach(
            graph.where(node), made.rounding, made.multipliers[n], made.shifts[n],
            (elem.high - elem.low) * n,
        )  # fmt: skip
    all_cells = window.kernel_h * window.kernel_w
    rule = _rule(made, elem, None if layer.varies else all_cells)
    return replace(layer, made=made, rule=rule)


def _rule(made: PoolParameters, elem: DType, count: int | None = None) -> Requant:
    """The scaling of averages of any count (a table), or of one."""
    chosen = slice(None) if count is None else slice(count, count + 1)
    return requant(
        made.rounding,
        np.asarray(made.multipliers[chosen]),
        np.asarray(made.shifts[chosen]),
        (made.low, made.high),
        made.y_zero,
        elem,
    )


def _finish_tables(layer: Layer) -> tuple[Packed, ...]:
    if layer.is_float:
        return layer.limits.tables()
    return packed(layer.rule) if layer.rule is not None else ()


def _tables(layer: Layer) -> tuple[Packed, ...]:
    """Constants in the kernel's order: the finish, then the pixel outside."""
    tables = _finish_tables(layer)
    if layer.unrolled:
        tables += outside_pixel(layer.window, layer.fill, layer.elem)
    return tables


def _reduction(layer: Layer, k: Builder, pointer: Expr) -> Reduction:
    """Binds the epilogue of a layer; its tables begin at `pointer`."""
    kind = FLOAT32 if layer.is_float else INT32
    if not layer.average:
        lowest = LEAST if layer.is_float else const(layer.elem.low, kind)
        end = _clamped(k, layer, pointer)
        add = _greater(layer)
        return Reduction(lambda n: lowest, add, lambda total, n: end(total))
    if layer.rule is None:
        divide = _divided if not layer.is_float else _quotient
        end = _clamped(k, layer, pointer)
        return Reduction(
            lambda n: const(0, kind), _sum, lambda total, n: end(divide(total, n))
        )
    assert layer.made is not None
    x_zero = k.arg("x_zero", layer.made.x_zero)
    finish = scaler(k, layer.rule, pointer)
    return Reduction(lambda n: 0 - n * x_zero, _sum, finish.apply)


def _clamped(k: Builder, layer: Layer, pointer: Expr) -> Callable[[Expr], Expr]:
    if layer.made is None:
        limits = layer.limits.bind(k, pointer)
        return lambda value: limits.apply(value, 0)
    low, high = k.arg("low", layer.made.low), k.arg("high", layer.made.high)
    return lambda value: cast(CLAMP(value, low, high), layer.elem)


def _greater(layer: Layer) -> Callable[[Expr, Expr], Expr]:
    return greater(layer.numbers) if layer.is_float else maximum


def _sum(total: Expr, value: Expr) -> Expr:
    return total + value


def _divided(total: Expr, cells: Expr) -> Expr:
    """Rounded to nearest, ties away from zero."""
    half = cells / 2
    return (total + select(total > 0, half, 0 - half)) / cells


def _quotient(total: Expr, cells: Expr) -> Expr:
    return total / cast(cells, FLOAT32)


class _Unrolled:
    """A kernel with one pointer per cell of the window."""

    def __init__(self, layer: Layer) -> None:
        self.layer = layer
        order = "pixel by pixel, channel by channel, all cells written out"
        self.k = k = Builder(layer.name, layer.doc(order))
        self.elem = layer.elem
        self.total = FLOAT32 if layer.is_float else INT32
        self.y = k.row("y", 0, self.elem, writable=True)
        tall = const(layer.window.kernel_h)
        tables = len(_finish_tables(layer))
        self.pixels = bind(k, layer.window, self.elem, tall, tables)
        self.reduction = _reduction(layer, k, self.pixels.rows + 1)
        self.out_width = k.arg("out_width", layer.window.out_width)

    def write(self) -> Builder:
        k, w, reduction = self.k, self.layer.window, self.reduction
        rows = [self.pixels.row(k, ky) for ky in range(w.kernel_h)]
        with k.loop("ox", self.out_width) as ox:
            cells = self._cells(ox)
            pixels = self.pixels.all(k, rows, ox)
            to = k.let("to", offset(self.y, ox * self.pixels.channels))
            start = reduction.start(cells)
            from_cell = self.layer.begins_with_a_cell
            with k.loop("c", self.pixels.channels) as c:
                begin = load(pixels[0], c) if from_cell else start
                total = k.let("total", begin)
                for pixel in pixels[from_cell:]:
                    value = cast(load(pixel, c), self.total)
                    k.assign(total, reduction.add(total, value))
                k.store(to, c, reduction.end(total, cells))
        return k

    def _cells(self, ox: Expr) -> Expr:
        """What an average divides by."""
        w = self.layer.window
        if not self.layer.varies:
            return const(w.kernel_h * w.kernel_w)
        x0 = self.pixels.start(ox)
        last = minimum(x0 + w.kernel_w, self.pixels.width)
        return self.k.let("cells", (last - maximum(x0, 0)) * w.kernel_h)
