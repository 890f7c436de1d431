"""Pools that add cell after cell: windows of any size, and averages that leave padding
out of the count.
"""

from __future__ import annotations

from collections.abc import Callable

from pybuild.ir.loop import (
    FLOAT32,
    INT8,
    INT32,
    Expr,
    Var,
    cast,
    const,
    load,
    maximum,
    minimum,
    offset,
)
from pybuild.kernels.base.builder import Builder
from pybuild.kernels.base.taps import bind
from pybuild.kernels.base.vectors import ALL4, LINE4, NARROW4, PLUS4, words_at
from pybuild.kernels.epilogues.requantise import CLAMP
from pybuild.kernels.layers import pool_sums
from pybuild.kernels.layers.pool import Layer, Reduction
from pybuild.kernels.layers.quotient import by_factor
from pybuild.targets.target import Target

BLOCK = 16  # channels together in the kernel for large windows
_Bind = Callable[[Builder, Expr], Reduction]

_Ends = tuple[Expr, Expr]
_Sides = tuple[_Ends, _Ends]  # rows and columns of a window
_Row = Callable[[Builder, Expr], Var]


class Large:
    """A kernel that adds cell after cell to a block of channels."""

    order = f"pixel by pixel, {BLOCK} channels at a time, cell by cell"

    def __init__(
        self, layer: Layer, reduction: _Bind, kind: str = "", end: str = ""
    ) -> None:
        self.layer = layer
        self.k = k = Builder(layer.name + kind, layer.doc(self.order, end))
        self.elem = layer.elem
        self.total = FLOAT32 if layer.is_float else INT32
        self.y = k.row("y", 0, self.elem, writable=True)
        self.kernel_h = k.arg("kernel_h", layer.window.kernel_h)
        self.kernel_w = k.arg("kernel_w", layer.window.kernel_w)
        self.pixels = bind(k, layer.window, self.elem, self.kernel_h, None)
        self.out_width = k.arg("out_width", layer.window.out_width)
        first = const(2) if layer.rows is not None else self.kernel_h + 1
        self.first, self.reduction = first, reduction(k, first)

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


class Fours(Large):
    """The same of int8 and int16, whose sums of four channels stay in registers."""

    order = "pixel by pixel, four channels at a time, cell by cell"

    def __init__(
        self,
        layer: Layer,
        reduction: _Bind,
        target: Target,
        divided: pool_sums.Quotients | pool_sums.HighQuotients | None,
    ) -> None:
        made = pool_sums.of(layer, target)
        self.sixteen = divided is not None and layer.window.channels >= BLOCK
        self.sixteen = self.sixteen and "mve" in target.features
        kind = made.kind
        if isinstance(divided, pool_sums.Quotients):
            kind += f"_shift{divided.shift}"
        elif divided is not None:
            kind += "_high"
        kind += "_by16" if self.sixteen else ""
        super().__init__(layer, reduction, kind, divided.words if divided else "")
        self.four, self.divided = made, divided
        self.vectors = divided is not None and "mve" in target.features
        self.quotient = divided.bind(self.k, self.first) if divided else None
        self.limits = layer.elem.low, layer.elem.high
        if layer.made is not None:
            self.limits = layer.made.low, layer.made.high

    def _channels(
        self, y: Expr, ends: _Sides, row: _Row, counts: _Ends, places: _Ends
    ) -> None:
        k, channels = self.k, self.pixels.channels
        (tall, wide), (inside, cells) = ends, counts
        block = BLOCK if self.sixteen else 4
        start = k.let("start", self.reduction.start(inside))
        self.end = self._end(cells)
        columns = k.let("columns", wide[1] - wide[0])
        begin = k.let("begin", places[0] + wide[0] * channels)
        with k.loop("base", channels, 0, block) as base:
            if self.layer.window.channels % block:
                base = k.let("block", minimum(base, channels - block))
            totals = self._totals()
            with k.loop("ky", tall[1], tall[0]) as ky:
                x = k.let("x", offset(row(k, ky), begin + base))
                with k.loop("kx", columns, rolled=True):
                    self._add(totals, x)
                    k.assign(x, offset(x, channels))
            at = k.let("at", places[1] + base)
            if self.vectors:
                for i, total in enumerate(totals):
                    k.store(y, at + 4 * i, self.end(total))
                return
            for j, lane in enumerate(self.four.lanes(k, totals)):
                total = k.let("total", start + lane)
                k.store(y, at + j, self.end(total))

    def _totals(self) -> list[Var]:
        if not self.sixteen:
            return self.four.totals(self.k)
        return [self.k.let(f"total{i}", ALL4(0)) for i in range(BLOCK // 4)]

    def _add(self, totals: list[Var], x: Var) -> None:
        if not self.sixteen:
            self.four.add(self.k, totals, x)
            return
        for i, total in enumerate(totals):
            self.k.assign(total, PLUS4(total, words_at(x, 4 * i)))

    def _end(self, cells: Expr) -> Callable[[Expr], Expr]:
        """What ends a sum, or a vector of four."""
        k, (low, high) = self.k, self.limits
        if self.divided is None or self.quotient is None:
            return lambda total: self.reduction.end(total, cells)
        factor, plus = self.quotient(cells)
        if isinstance(self.divided, pool_sums.HighQuotients):
            found = by_factor(k, factor, plus)
            return lambda total: NARROW4(
                found(total), const(0), const(low), const(high)
            )
        shift = self.divided.shift
        if self.vectors:
            factors = k.let("factors", ALL4(factor))
            limits = const(low), const(high)
            return lambda total: NARROW4(LINE4(total, factors, plus), shift, *limits)

        def end(total: Expr) -> Expr:
            value = total * factor + plus >> shift
            # an average of int8 is one
            held = value if self.limits == (-128, 127) else CLAMP(value, low, high)
            return cast(held, INT8)

        return end
