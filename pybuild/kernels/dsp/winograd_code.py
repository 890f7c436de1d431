"""The code of winograd.py's kernels: the pixels under two tiles, transformed; products
of each position with all output channels; and their sums transformed back.

Knows no weight and no node.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pybuild.ir.loop import (
    INT8,
    INT32,
    Expr,
    Var,
    cast,
    const,
    load,
    minimum,
    offset,
    wide,
)
from pybuild.kernels.base.builder import Builder, told
from pybuild.kernels.base.intrin import ADD2, DOT2, EVEN_BYTES, ODD_BYTES, SUB2
from pybuild.kernels.base.window import Window
from pybuild.kernels.epilogues.affine import Affine
from pybuild.kernels.epilogues.affine_end import (
    AffineFinish,
    corrected,
    is_usual,
    kind,
)
from pybuild.kernels.epilogues.staircase import FRACTION
from pybuild.records import dataclass

SIDE = 4  # of a transformed tile; two of its outputs lie side by side
TILES = 2  # done together, side by side
WIDTH, HEIGHT = 2 * TILES, 2  # outputs
COLUMNS = WIDTH + 2  # of pixels under them
OUTPUTS = 4  # channels whose sums the registers hold, of all tiles
UNROLLED = (16, 8, 4, 2)  # pairs of channels in one turn of the innermost loop


@dataclass(frozen=True)
class Layer:
    """A convolution of 3 x 3 taps and stride 1 as its kernel sees it.

    height, out_height, top  of its image; `top` is padding
    """

    window: Window
    epilogue: Affine
    x_zero: int
    height: int
    out_height: int
    top: int

    @property
    def taller(self) -> bool:
        """True if some window reaches rows outside the image."""
        return self.top > 0 or self.out_height - self.top + 2 > self.height

    @property
    def unrolled(self) -> int:
        pairs = self.window.channels // 2
        return next(u for u in UNROLLED if pairs % u == 0)

    @property
    def tiles(self) -> int:
        """Words of the transformed tiles: of each position all channels."""
        return SIDE * SIDE * self.window.channels // 2 * TILES

    @property
    def columns(self) -> int:
        """Words of pixels that are transformed along columns, and later of sums."""
        columns = SIDE * self.window.channels // 2 * COLUMNS
        return max(columns, SIDE * SIDE * OUTPUTS * TILES)

    @property
    def outside(self) -> int:
        """Words of a row outside the image."""
        return self.window.width * self.window.channels // 4 if self.taller else 0

    @property
    def scratch(self) -> int:
        return 4 * (self.tiles + self.columns + self.outside)

    @property
    def end(self) -> int:
        """Words that an output channel starts and ends with."""
        return 2 if self.epilogue.below is None else 4

    @property
    def name(self) -> str:
        w = self.window
        parts = (
            "conv2d_winograd",
            "padded" if w.padded else "",
            "taller" if self.taller else "",
            f"columns{w.out_width % WIDTH}" if w.out_width % WIDTH else "",
            "odd_rows" if self.out_height % HEIGHT else "",
            "odd" if w.out_channels % OUTPUTS else "",
            kind(self.epilogue, is_usual(self.epilogue)),
            f"by{self.unrolled}",
        )
        return "_".join(p for p in parts if p)

    @property
    def doc(self) -> str:
        """The comment in the kernel's C."""
        outside = self.window.padded or self.taller
        beside = ", which may leave the image" if outside else ""
        return told(
            f"convolution by Winograd's F(2x2, 3x3), int8, int32 sums: 3x3{beside}",
            "two tiles of 2x2 pixels at a time: the pixels under them are transformed, "
            "multiplied with all output channels, and the sums transformed back; "
            "weights forward, once for both tiles",
            self.epilogue.words,
        )


def kernel(layer: Layer) -> Builder:
    """y[oy,ox,o] = clamp(requant(bias[o] + sum(x * w))), 2 x 4 pixels at a time.

    Shapes  x [H,W,C], y [OH,OW,O]; weights of `pack`; ends of `table`
    Units   sums are those of the weights times 4
    Source  pixels outside the image count as x_zero; the last ones may be computed
            over the end of those before
    """
    return _Writer(layer).write()


def _forward(d: Sequence[Expr]) -> list[Expr]:
    """Transforms four neighbours."""
    return [SUB2(d[0], d[2]), ADD2(d[1], d[2]), SUB2(d[2], d[1]), SUB2(d[1], d[3])]


class _Writer:
    """The pieces of one kernel being written."""

    def __init__(self, layer: Layer) -> None:
        self.layer = layer
        self.k = k = Builder(layer.name, layer.doc)
        w = layer.window
        self.y = k.row("y", 0, INT8, writable=True)
        self.x = k.row("x", 1, INT8)
        self.weights = k.row("weights", 2, INT32)
        self.ends = k.row("epilogue", 3, INT32)
        self.tiles = k.row("tiles", 4, INT32, writable=True)
        self.channels = k.arg("channels", w.channels)
        self.out_channels = k.arg("out_channels", w.out_channels)
        self.width = k.arg("width", w.width)
        self.out_width = k.arg("out_width", w.out_width)
        self.height = k.arg("height", layer.height)
        self.out_height = k.arg("out_height", layer.out_height)
        self.left = k.arg("left", w.left) if w.padded else const(0)
        self.top = k.arg("top", layer.top) if layer.taller else const(0)
        zeros = layer.x_zero * 65536 + (layer.x_zero & 0xFFFF)
        self.x_zeros = k.arg("x_zeros", zeros)
        at = k.arg("at_columns", layer.tiles)
        self.columns = k.let("columns", offset(self.tiles, at))
        self.finish = AffineFinish(k, layer.epilogue, is_usual(layer.epilogue))

    def write(self) -> Builder:
        k, layer = self.k, self.layer
        line = k.let("line", self.width * self.channels)
        if layer.taller:
            at = k.arg("at_outside", 4 * (layer.tiles + layer.columns))
            outside = offset(k.row("fill", 4, INT8, writable=True), at)
            with k.loop("i", line) as i:
                k.store(outside, i, cast(self.x_zeros, INT8))
            self.outside = k.let("outside", offset(k.row("filled", 4, INT8), at))
        with k.loop("oy", self.out_height, 0, HEIGHT) as oy:
            if layer.out_height % HEIGHT:
                oy = k.let("y0", minimum(oy, self.out_height - HEIGHT))
            rows = [self._row(oy - self.top + r, line) for r in range(SIDE)]
            with k.loop("ox", self.out_width, 0, WIDTH) as ox:
                if layer.window.out_width % WIDTH:
                    ox = k.let("x0", minimum(ox, self.out_width - WIDTH))
                self._transform_columns(rows, ox - self.left)
                self._transform_rows()
                y = (oy * self.out_width + ox) * self.out_channels
                self._channels(offset(self.y, y))
        return k

    def _row(self, number: Expr, line: Expr) -> Expr:
        """The start of a row of the image, or of the row that stands for those
        outside."""
        k = self.k
        if not self.layer.taller:
            return k.let("row", offset(self.x, number * line))
        row, at = k.let("row", self.outside), k.let("number", number)
        with k.when(const(0) <= minimum(at, self.height - 1 - at)):
            k.assign(row, offset(self.x, at * line))
        return row

    def _transform_columns(self, rows: Sequence[Expr], x0: Expr) -> None:
        """The first transformation, of each column of pixels and all channels."""
        k, padded = self.k, self.layer.window.padded
        given = {f"row{r}": row for r, row in enumerate(rows)}
        with k.part(
            "winograd_columns" + ("_padded" if padded else ""),
            "Four rows of pixels, transformed along each column, channel by channel.",
            **given,
            to=self.columns,
            x0=x0,
            width=self.width,
            channels=self.channels,
            x_zeros=self.x_zeros,
        ) as params:
            inner = {p.name: p for p in params}
            pixels = [inner[name] for name in given]
            with k.loop("column", COLUMNS) as column:
                to = k.let("next", offset(inner["to"], column))
                at = k.let("at", inner["x0"] + column)
                if padded:
                    with k.when(const(0) <= minimum(at, inner["width"] - 1 - at)):
                        self._column(pixels, at, inner["channels"], to)
                    with k.otherwise():
                        self._empty_column(inner["x_zeros"], inner["channels"], to)
                else:
                    self._column(pixels, at, inner["channels"], to)

    def _column(
        self, rows: Sequence[Expr], column: Expr, channels: Expr, to: Var
    ) -> None:
        k = self.k
        begin = k.let("begin", column * channels)
        pixels = [k.let("pixel", offset(row, begin)) for row in rows]
        with k.loop("c", channels, 0, 4, rolled=True):
            words = [k.let("word", wide(pixel, 0)) for pixel in pixels]
            for pixel in pixels:
                k.assign(pixel, offset(pixel, 4))
            for parity, widen in enumerate((EVEN_BYTES, ODD_BYTES)):
                values = _forward([k.let("d", widen(word)) for word in words])
                for i, value in enumerate(values):
                    k.store(to, self._column_at(i, channels) + parity * COLUMNS, value)
            k.assign(to, offset(to, 2 * COLUMNS))

    def _empty_column(self, x_zeros: Expr, channels: Expr, to: Var) -> None:
        """A column outside the image."""
        k = self.k
        values = [k.let("value", v) for v in _forward([x_zeros] * SIDE)]
        with k.loop("pair", channels, 0, 2, rolled=True):
            for i, value in enumerate(values):
                k.store(to, self._column_at(i, channels), value)
            k.assign(to, offset(to, COLUMNS))

    def _column_at(self, position: int, channels: Expr) -> Expr:
        """The offset of one of four values of a column, from the first."""
        return channels * (position * COLUMNS // 2)

    def _transform_rows(self) -> None:
        """The second transformation: of six values in a row, for two tiles."""
        k = self.k
        with k.part(
            "winograd_rows",
            "Six transformed columns, transformed along their rows for two tiles.",
            columns=self.columns,
            tiles=self.tiles,
            channels=self.channels,
        ) as (columns, tiles, channels):
            x = k.let("x", columns)
            with k.loop("row", SIDE) as row:
                to = k.let("to", offset(tiles, channels * (SIDE * row)))
                with k.loop("pair", channels, 0, 2, rolled=True):
                    d = [k.let("d", load(x, i)) for i in range(COLUMNS)]
                    both = [_forward(d[2 * t : 2 * t + SIDE]) for t in range(TILES)]
                    for j in range(SIDE):
                        for t in range(TILES):
                            k.store(to, channels * j + t, both[t][j])
                    k.assign(x, offset(x, COLUMNS))
                    k.assign(to, offset(to, TILES))

    def _channels(self, y: Expr) -> None:
        """Computes all output channels of two tiles, in a separate function."""
        k, layer, outer = self.k, self.layer, self.finish
        odd = layer.window.out_channels % OUTPUTS > 0
        ends = kind(layer.epilogue, is_usual(layer.epilogue))
        parts = ("winograd_dot", "odd" if odd else "", ends, f"by{layer.unrolled}")
        with k.part(
            "_".join(p for p in parts if p),
            f"{OUTPUTS} output channels of two tiles at a time: the sums of all 16 "
            "positions, then transformed back to 2 x 4 pixels; weights forward.",
            tiles=self.tiles,
            sums=self.columns,
            weights=self.weights,
            epilogue=self.ends,
            y=y,
            out_channels=self.out_channels,
            line=self.out_width * self.out_channels,
            turns=k.arg("turns", layer.window.channels // 2 // layer.unrolled),
            **self.finish.values,
        ) as params:
            inner = {p.name: p for p in params}
            self.finish = outer.inside(inner)
            w, end = k.let("w", inner["weights"]), k.let("at", inner["epilogue"])
            with k.loop("o", inner["out_channels"], 0, OUTPUTS) as o:
                if odd:
                    o = k.let("first", minimum(o, inner["out_channels"] - OUTPUTS))
                self._products(inner, w)
                self._back(inner, end, offset(inner["y"], o))
        self.finish = outer

    def _products(self, inner: Mapping[str, Var], w: Var) -> None:
        """The sums over all channels at each position of two tiles."""
        k, unrolled = self.k, self.layer.unrolled
        x, to = k.let("x", inner["tiles"]), k.let("to", inner["sums"])
        with k.loop("position", SIDE * SIDE, rolled=True):
            sums = [[k.let(f"sum{b}_{t}", 0) for t in range(TILES)]
                    for b in range(OUTPUTS)]  # fmt: skip
            with k.loop("turn", inner["turns"], rolled=True):
                for pair in range(unrolled):
                    values = [k.let("v", load(x, pair * TILES + t))
                              for t in range(TILES)]  # fmt: skip
                    for b, row in enumerate(sums):
                        weight = k.let("weight", load(w, pair * OUTPUTS + b))
                        for value, total in zip(values, row, strict=True):
                            k.assign(total, DOT2(value, weight, total))
                k.assign(x, offset(x, unrolled * TILES))
                k.assign(w, offset(w, unrolled * OUTPUTS))
            for at, total in enumerate(t for row in sums for t in row):
                k.store(to, at, total)
            k.assign(to, offset(to, OUTPUTS * TILES))

    def _back(self, inner: Mapping[str, Var], ends: Var, y: Expr) -> None:
        """Sums transformed to outputs, four of a channel and tile."""
        k = self.k
        m = k.let("m", inner["sums"])
        channels, line = inner["out_channels"], inner["line"]
        with k.loop("b", OUTPUTS, rolled=True) as b:
            end = [k.let("end", load(ends, i)) for i in range(self.layer.end)]
            with k.loop("tile", TILES, rolled=True) as tile:
                columns = [
                    self._folded(
                        [load(m, (i * SIDE + j) * OUTPUTS * TILES) for i in range(SIDE)]
                    )
                    for j in range(SIDE)
                ]
                to = k.let("to", offset(y, channels * (tile * 2) + b))
                for row in zip(*columns, strict=True):
                    for x, value in enumerate(self._folded(row)):
                        k.store(to, channels * x, self._ended(value, end))
                    k.assign(to, offset(to, line))
                k.assign(m, offset(m, 1))
            k.assign(ends, offset(ends, self.layer.end))

    def _folded(self, m: Sequence[Expr]) -> list[Var]:
        """Two outputs from four sums in a row or column."""
        k = self.k
        one, two = k.let("one", m[1]), k.let("two", m[2])
        first = k.let("first_of", m[0] + (one + two))
        return [first, k.let("second", one - two - m[3])]

    def _ended(self, total: Expr, end: Sequence[Expr]) -> Expr:
        """The value of 4 times a sum without its bias."""
        scaled = total * (1 << FRACTION - 2) + end[0]
        if self.layer.epilogue.below is not None:
            scaled = corrected(self.k.let("scaled", scaled), end[1], end[2])
        return self.finish.narrow(scaled, end[-1])
