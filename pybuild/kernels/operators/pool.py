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
from pybuild.graph import Graph, Node, Tensor
from pybuild.kernels.base.builder import Builder
from pybuild.kernels.base.candidate import Candidate, Packed, by_rows, whole
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
from pybuild.kernels.portable.row_sums import accumulated, takes_rows
from pybuild.loop import (
    FLOAT32,
    INT32,
    Expr,
    Var,
    cast,
    const,
    load,
    maximum,
    minimum,
    offset,
    select,
)
from pybuild.ops.operator import clamp_of
from pybuild.ops.pool import PoolParameters, pool_parameters
from pybuild.targets.target import Target

BLOCK = 16  # channels together in the kernel for large windows


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
    k = (_Unrolled if layer.unrolled else _Large)(layer).write()
    cost = y.size * (3 * kernel_h * kernel_w + 20)
    operands = Operands(whole(y), (whole(x),), (), (1,))
    if rows is None:
        source = window_rows(node, graph, kernel_h, layer.fill)
        operands = Operands(by_rows(y), (source,), (), (1,), y.shape[0], y.shape[1])
    found = [offer(k, operands, tables=_tables(layer), cost=cost)]
    if pool_dsp.suits(layer, target):
        k = pool_dsp.kernel(layer, partial(_reduction, layer))
        cheap = y.size * (2 * kernel_h * kernel_w + 20)
        found.append(offer(k, operands, tables=_finish_tables(layer), cost=cheap))
    elif pool_fours.suits(layer, target):
        k = _Fours(layer, target).write()
        found.append(offer(k, operands, tables=_finish_tables(layer), cost=cost))
    if pool_dsp.has_maxima(layer, target):
        edge = outside_pixel(window, layer.fill, layer.elem)
        least = y.size * (kernel_h * kernel_w + 4)
        found.append(offer(pool_dsp.maxima(layer), operands, tables=edge, cost=least))
    if pool_mve.suits(layer, target):
        end = pool_mve.scaled(layer) if layer.average else None
        if end is not None or not layer.average:
            k = pool_mve.kernel(layer, end)
            fast = y.size * (kernel_h * kernel_w + 4)
            edge = outside_pixel(window, layer.fill, layer.elem)
            found.append(offer(k, operands, tables=edge, cost=fast))
    if takes_rows(x, y) and not window.padded and kernel_h == x.shape[1]:
        found.append(_by_rows(layer, x, y, cost))
    return found


def _by_rows(layer: Layer, x: Tensor, y: Tensor, cost: int) -> Candidate:
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

    add = _sum if layer.average else maximum
    tables = _finish_tables(layer)
    return accumulated(layer.name, (x, y), start, add, finish, tables, cost)


def _layer(node: Node, graph: Graph, window: Window, rows: Rows | None) -> Layer:
    average = node.op == "avg_pool2d"
    limits = FloatClamp(*clamp_of(node))
    counted = bool(node.attrs.get("count_include_pad", False))
    elem = graph.tensor(node.output).dtype
    layer = Layer(window, average, limits, None, None, counted, rows, elem)
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
        lowest = const(LOWEST if layer.is_float else layer.elem.low, kind)
        end = _clamped(k, layer, pointer)
        return Reduction(lambda n: lowest, maximum, lambda total, n: end(total))
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
            with k.loop("c", self.pixels.channels) as c:
                total = k.let("total", start)
                for pixel in pixels:
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


_Ends = tuple[Expr, Expr]
_Sides = tuple[_Ends, _Ends]  # rows and columns of a window
_Row = Callable[[Builder, Expr], Var]


class _Large:
    """A kernel that adds cell after cell to a block of channels."""

    order = f"pixel by pixel, {BLOCK} channels at a time, cell by cell"

    def __init__(self, layer: Layer, kind: str = "") -> None:
        self.layer = layer
        self.k = k = Builder(layer.name + kind, layer.doc(self.order))
        self.elem = layer.elem
        self.total = FLOAT32 if layer.is_float else INT32
        self.y = k.row("y", 0, self.elem, writable=True)
        self.kernel_h = k.arg("kernel_h", layer.window.kernel_h)
        self.kernel_w = k.arg("kernel_w", layer.window.kernel_w)
        self.pixels = bind(k, layer.window, self.elem, self.kernel_h, None)
        self.out_width = k.arg("out_width", layer.window.out_width)
        first = const(2) if layer.rows is not None else self.kernel_h + 1
        self.reduction = _reduction(layer, k, first)

    def write(self) -> Builder:
        k, rows = self.k, self.layer.rows
        if rows is None:
            self._band(self.y, (const(0), self.kernel_h), self.pixels.row)
            return k
        x = k.row("x", 1, self.elem)
        height, top = k.arg("height", rows.height), k.arg("top", rows.top)
        out_height = k.arg("out_height", rows.out_height)
        stride_h = k.arg("stride_h", rows.stride_h)
        x_row = k.arg("x_row", self.layer.window.width * self.layer.window.channels)
        y_row = k.let("y_row", self.out_width * self.pixels.channels)
        images = k.arg("images", rows.images)
        with k.loop("image", images) as image, k.loop("oy", out_height) as oy:
            y0 = k.let("y0", oy * stride_h - top)
            ends = self._inside(y0, self.kernel_h, height, "y")
            above = k.let("above", image * height + y0)

            def row(k: Builder, ky: Expr) -> Var:
                return k.let("row", offset(x, (above + ky) * x_row))

            to = offset(self.y, (image * out_height + oy) * y_row)
            self._band(k.let("to", to), ends, row)
        return k

    def _inside(self, start: Expr, size: Expr, limit: Expr, mark: str) -> _Ends:
        """The part [first, last) of a window that lies on the image."""
        k = self.k
        first = k.let(f"first_{mark}", maximum(0 - start, 0))
        return first, k.let(f"last_{mark}", minimum(limit - start, size))

    def _band(self, y: Expr, tall: _Ends, row: _Row) -> None:
        """One row of the output; `tall`: the window's rows on the image."""
        k, channels = self.k, self.pixels.channels
        with k.loop("ox", self.out_width) as ox:
            x0 = k.let("x0", self.pixels.start(ox))
            wide: _Ends = (const(0), self.kernel_w)
            if self.layer.window.padded:
                wide = self._inside(x0, self.kernel_w, self.pixels.width, "x")
            counts = self._counts(tall, wide)
            places = (x0 * channels, ox * channels)
            self._channels(y, (tall, wide), row, counts, places)

    def _channels(
        self, y: Expr, ends: _Sides, row: _Row, counts: _Ends, places: _Ends
    ) -> None:
        """One pixel of the output; `places`: of the window and of it in their rows."""
        k, channels, (inside, cells) = self.k, self.pixels.channels, counts
        totals = k.array("totals", self.total, BLOCK)
        with k.loop("base", channels, 0, BLOCK) as base:
            count = k.let("count", minimum(channels - base, BLOCK))
            with k.loop("j", count) as j:
                k.store(totals, j, self.reduction.start(inside))
            self._cells(totals, ends, row, (places[0] + base, count))
            at = k.let("at", places[1] + base)
            with k.loop("j", count) as j:
                value = self.reduction.end(load(totals, j), cells)
                k.store(y, at + j, value)

    def _counts(self, tall: _Ends, wide: _Ends) -> _Ends:
        """Cells of a window on the image, and those that its average counts."""
        k, layer = self.k, self.layer
        inside = (tall[1] - tall[0]) * (wide[1] - wide[0])
        divided = layer.average and (layer.rule is None or layer.varies)
        if layer.counted and layer.window.padded:
            cells = self.kernel_h * self.kernel_w
            if layer.rule is not None:
                inside = k.let("inside", inside)
            return inside, k.let("cells", cells) if divided else cells
        if divided or layer.rule is not None:
            inside = k.let("cells", inside)
        return inside, inside

    def _cells(self, totals: Var, ends: _Sides, row: _Row, block: _Ends) -> None:
        k, (tall, wide), (begin, count) = self.k, ends, block
        with k.loop("ky", tall[1], tall[0]) as ky:
            line = row(k, ky)
            with k.loop("kx", wide[1], wide[0]) as kx:
                cell = k.let("cell", begin + kx * self.pixels.channels)
                with k.loop("j", count) as j:
                    value = cast(load(line, cell + j), self.total)
                    k.store(totals, j, self.reduction.add(load(totals, j), value))


class _Fours(_Large):
    """The same of int8, whose sums of four channels stay in registers."""

    order = "pixel by pixel, four channels at a time, cell by cell"

    def __init__(self, layer: Layer, target: Target) -> None:
        made = pool_fours.of(layer, target)
        super().__init__(layer, made.kind)
        self.four = made

    def _channels(
        self, y: Expr, ends: _Sides, row: _Row, counts: _Ends, places: _Ends
    ) -> None:
        k, channels = self.k, self.pixels.channels
        (tall, wide), (inside, cells) = ends, counts
        start = k.let("start", self.reduction.start(inside))
        columns = k.let("columns", wide[1] - wide[0])
        begin = k.let("begin", places[0] + wide[0] * channels)
        with k.loop("base", channels, 0, 4) as base:
            if self.layer.window.channels % 4:
                base = k.let("block", minimum(base, channels - 4))
            totals = self.four.totals(k)
            with k.loop("ky", tall[1], tall[0]) as ky:
                x = k.let("x", offset(row(k, ky), begin + base))
                with k.loop("kx", columns, rolled=True):
                    self.four.add(k, totals, x)
                    k.assign(x, offset(x, channels))
            at = k.let("at", places[1] + base)
            for j, lane in enumerate(self.four.lanes(k, totals)):
                total = k.let("total", start + lane)
                k.store(y, at + j, self.reduction.end(total, cells))
