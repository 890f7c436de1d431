"""A camera's rows as rows of pixels: sums of parts of a pixel, colours of the sums.

A call makes a group of rows from those that they need; a frame that no group divides
is made in one.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from pybuild.dtype import DType
from pybuild.ir.graph import Graph, Node
from pybuild.ir.loop import (
    INT8,
    INT16,
    UINT8,
    Expr,
    Var,
    cast,
    const,
    equal,
    i32,
    load,
    maximum,
    minimum,
    offset,
    select,
)
from pybuild.kernels.base.builder import Builder, told
from pybuild.kernels.base.candidate import Candidate, Packed, RowAccess, whole
from pybuild.ops.sensors.image import BITS, LUMA, ONES, TAP_BITS, Axis, Layer, layer_of
from pybuild.targets.target import Target

# rows that are handed over one by one
MOST_ROWS = 64


def image(node: Node, graph: Graph, target: Target) -> list[Candidate]:
    """The candidate for image."""
    return [_Writer(node, graph).written()]


class _Writer:
    def __init__(self, node: Node, graph: Graph) -> None:
        self.layer: Layer = layer_of(node, graph)
        self.x, self.y = graph.tensor(node.inputs[0]), graph.tensor(node.output)
        self.side = self.layer.format.side
        self.row_bytes = self.x.shape[2] * self.x.shape[3]
        rows = self.layer.rows
        cell = self.layer.format.cell[0]  # rows: whole ones are read
        self.low = int(rows.firsts.min()) * self.side // cell * cell
        ends = (int(rows.firsts.max()) + rows.taps) * self.side
        ends += ends % cell
        self.window = ends - self.low
        self.by_rows = max(self.window, rows.made) <= MOST_ROWS
        named = len(node.inputs) > 1 and bool(node.inputs[1])
        table = graph.constants[node.inputs[1]] if named else None
        self.tables: list[Packed] = []
        self.k = self._builder(str(node.attrs["format"]), table is not None)
        self.table: Var | None = None
        if table is not None:
            order = "of each colour, what each value becomes"
            self.table = self._constant("table", table.reshape(-1), INT8, order)

    def _builder(self, name: str, table: bool) -> Builder:
        layer = self.layer
        kind = "even" if layer.even else "weighted"
        words = [name, f"{layer.channels}", kind, "table" if table else ""]
        words.append("" if self.by_rows else "whole")
        sizes = "one" if layer.cells == 1 else "means of some"
        colours = {1: "grey", 3: "colours", 4: "colours and ones"}[layer.channels]
        doc = told(
            f"pixels of a net, {colours}, from a camera's {name}: {sizes} of its pixels"
            f"{', by a table' if table else ''}",
            "group of rows by group of rows, pixel by pixel",
        )
        return Builder("_".join(["image", *filter(None, words)]), doc)

    def _constant(self, name: str, array: np.ndarray, kind: DType, order: str) -> Var:
        made = 1, 1
        if self.by_rows:
            made = self.layer.rows.made, self.window
        number = sum(made) + len(self.tables)
        self.tables.append(Packed(name, array.astype(kind.numpy), order=order))
        return self.k.row(name, number, kind)

    def written(self) -> Candidate:
        k, layer, y, x = self.k, self.layer, self.y, self.x
        groups = y.shape[1] // layer.rows.made
        sources, goals = (whole(x),), (whole(y),)
        if self.by_rows:
            made, given = layer.rows.made, layer.rows.given * self.side
            size = y.bytes // y.shape[0] // y.shape[1]
            goals = (RowAccess(y.name, y.shape[1], size, made, made),)
            top = layer.top * self.side + self.low
            sources = (
                RowAccess(
                    x.name, x.shape[1], self.row_bytes, self.window, given, -top
                ),
            )  # fmt: skip
            self._group(lambda r: k.row("y", r, INT8, writable=True), self._row)
        else:
            self._frames(groups)
        cells = layer.cells * len(layer.parts)
        return Candidate(
            func=k.finish(), args=tuple(k.values), outputs=goals, inputs=sources,
            constants=tuple(self.tables), images=y.shape[0] if self.by_rows else 1,
            bands=groups if self.by_rows else 1,
            cost=y.size // layer.channels * (20 + 4 * cells),
        )  # fmt: skip

    # ---- rows ----------------------------------------------------------------------

    def _row(self, n: Expr) -> Var:
        """Row n of those that a group of rows needs."""
        return self.k.row("x", n + self.layer.rows.made, UINT8)

    def _frames(self, groups: int) -> None:
        k, (images, height, width, channels) = self.k, self.y.shape
        to = k.row("to", 0, INT8, writable=True)
        source = k.row("from", 1, UINT8)
        rows, size = self.layer.rows, width * channels
        with k.loop("frame", images) as frame, k.loop("group", groups) as group:
            first = self.layer.top * self.side + self.low
            given = group * (rows.given * self.side) + frame * self.x.shape[1] + first
            base = k.let("base", given * self.row_bytes)
            goal = k.let("goal", (frame * height + group * rows.made) * size)

            def row(n: Expr) -> Var:
                return k.let("x", offset(source, base + n * self.row_bytes))

            self._group(lambda r: k.let("y", offset(to, goal + r * size)), row)

    def _group(
        self, goal: Callable[[Expr], Var], row: Callable[[Expr], Var]
    ) -> None:  # fmt: skip
        k, rows, columns = self.k, self.layer.rows, self.layer.columns
        down, across = self._axis("rows", rows), self._axis("columns", columns)
        step = self.x.shape[3] * self.side  # bytes
        left = k.arg("left", self.layer.left)
        width = self.y.shape[2]
        with k.loop("r", rows.made) as r:
            y = goal(r)
            up = down(r)
            first_row = k.let("first_row", up[0] - self.low // self.side)
            groups = k.arg("groups", width // columns.made)
            with k.loop("group", groups) as group, k.loop("c", columns.made) as c:
                to = k.let("to", (group * columns.made + c) * self.layer.channels)
                beside = across(c)
                at = left + group * columns.given + beside[0]
                at = k.let("at", at)
                sums = [k.let(f"sum{n}", 0) for n in range(len(self.layer.parts))]
                with k.loop("i", rows.taps) as i:
                    line: Expr = first_row + i
                    if self.layer.format.kind == "mosaic":
                        line = k.let("line", line)
                    found = [row(n) for n in self._lines(line)]
                    with k.loop("j", columns.taps) as j:
                        pixel = k.let("pixel", at + j)
                        parts = self._parts(found, line, pixel, step)
                        if not self.layer.even:
                            weight = k.let("weight", up[1](i) * beside[1](j))
                            parts = [part * weight for part in parts]
                        for total, part in zip(sums, parts, strict=True):
                            k.assign(total, total + part)
                self._finished(y, to, sums)

    def _axis(
        self, name: str, axis: Axis
    ) -> Callable[[Expr], tuple[Expr, Callable[[Expr], Expr]]]:
        """Of each number of a group: the first that it is made of, and each weight."""
        k = self.k
        if axis.made == 1:
            first: Expr = const(int(axis.firsts[0]))
        else:
            firsts = self._constant(
                f"{name}_first", axis.firsts, INT16, "the first of each of a group"
            )
        weights = None
        if not self.layer.even:
            weights = self._constant(
                f"{name}_weights", axis.weights.reshape(-1), INT16,
                "of each of a group, in 2^-11",
            )  # fmt: skip

        def weight(base: Expr, n: Expr) -> Expr:
            assert weights is not None
            return i32(load(weights, base + n))

        def of(n: Expr) -> tuple[Expr, Callable[[Expr], Expr]]:
            begin = first if axis.made == 1 else i32(load(firsts, n))
            base = k.let(f"{name}_base", n * axis.taps)
            return begin, partial(weight, base)

        return of

    # ---- pixels --------------------------------------------------------------------

    def _lines(self, line: Expr) -> list[Expr]:
        """The camera's rows that a row of pixels is made of."""
        if self.layer.format.kind == "mosaic":
            return [(line >> 1) * 2, (line >> 1) * 2 + 1]
        return [line * self.side + n for n in range(self.side)]

    def _parts(self, rows: list[Var], line: Expr, pixel: Expr, step: int) -> list[Expr]:
        """The parts of a pixel, as sums take them."""
        k, found = self.k, self.layer.format

        def byte(row: Var, at: Expr) -> Expr:
            return i32(load(row, at))

        whole_cells = found.kind == "mosaic"
        base = k.let("base", (pixel >> 1) * 2 if whole_cells else pixel * step)
        match found.kind:
            case "rgb888":
                return [byte(rows[0], base + n) for n in found.places]
            case "rgb565":
                low, high = (byte(rows[0], base + n) for n in found.places)
                both = k.let("both", high << 8 | low)
                return [both >> 11, both >> 5 & 63, both & 31]
            case "yuv":
                at, *others = found.places
                y = byte(rows[0], base + at)
                if len(self.layer.parts) == 1:
                    return [y]
                pair = k.let("pair", (pixel >> 1) * 4)
                return [y, *(byte(rows[0], pair + n) for n in others)]
            case "bayer" | "mosaic":
                cells = [byte(row, base + n) for row in rows for n in (0, 1)]
                red, blue = found.places
                greens = [n for n in range(4) if n not in found.places]
                first, second = (cells[n] for n in greens)
                green = first + second
                if whole_cells:  # twice its own, where a pixel is one of them
                    place = (line & 1) * 2 + (pixel & 1)
                    apart = k.let("apart", first - second)
                    own = select(
                        equal(place, const(greens[1])), second - first, const(0)
                    )
                    green = green + select(equal(place, const(greens[0])), apart, own)
                return [cells[red], green, cells[blue]]
        return [byte(rows[0], base)]

    def _finished(self, y: Var, to: Expr, sums: list[Var]) -> None:
        k, layer, half = self.k, self.layer, 1 << (BITS - 1)
        held: list[Expr] = []
        for total, factor, most in zip(sums, layer.factors, layer.parts, strict=True):
            if layer.cells == 1 and most == 255:
                held.append(total)
                continue
            whole_sum: Expr = total if layer.even else total >> TAP_BITS
            held.append(k.let("held", (whole_sum * factor + half) >> BITS))
        for n, colour in enumerate(self._colours(held)):
            made = colour - 128
            if self.table is not None:
                made = i32(load(self.table, colour + 256 * n))
            k.store(y, to + n, cast(made, INT8))
        if layer.channels == 4:
            k.store(y, to + 3, const(ONES - 128, INT8))

    def _colours(self, parts: list[Expr]) -> list[Expr]:
        k, layer = self.k, self.layer
        kind = layer.format.kind
        if kind == "yuv":
            y0, scale, red, green_u, green_v, blue = layer.format.matrix
            y = k.let("light", (parts[0] - y0) * scale + 128)
            made: list[Expr] = [y]
            if not layer.grey:
                u, v = (k.let("tone", part - 128) for part in parts[1:])
                made = [y + v * red, y + u * green_u + v * green_v, y + u * blue]
            return [k.let("colour", maximum(minimum(m >> 8, 255), 0)) for m in made]
        if kind == "grey":
            return parts if layer.grey else [*parts] * 3
        if not layer.grey:
            return parts
        luma: Expr = const(128)
        for part, share in zip(parts, LUMA, strict=True):
            luma = luma + part * share
        return [luma >> 8]
