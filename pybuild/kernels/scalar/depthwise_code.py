"""The code of depthwise.py's kernels: one channel's pixels, then its sums.

Knows no weight and no node.
"""

from __future__ import annotations

from collections.abc import Sequence

from pybuild.dtype import DType
from pybuild.ir.loop import (
    INT8,
    INT32,
    Const,
    Expr,
    Var,
    cast,
    const,
    load,
    minimum,
    offset,
)
from pybuild.kernels.base.builder import Builder, told
from pybuild.kernels.base.once import once
from pybuild.kernels.base.window import Window
from pybuild.kernels.epilogues.by_channel import (
    AnyEpilogue,
    BoundEnd,
    columns,
    exact_of,
    finish_of,
)
from pybuild.kernels.epilogues.end16 import End16
from pybuild.kernels.layers.depthwise import UNROLLED
from pybuild.kernels.layers.image import Image
from pybuild.kernels.layers.zero_points import HALF
from pybuild.records import dataclass

UINT8 = DType.UINT8


@dataclass(frozen=True)
class Layer:
    """A depthwise convolution as its kernel sees it.

    image     None: a call makes one row, of rows that need not be neighbours
    pixels    of a row whose sums are computed together
    unsigned  pixels are copied with HALF added; those of int16 as words
    weights   their element type: int16 of nine bits
    """

    window: Window
    epilogue: AnyEpilogue
    x_zero: int
    pixels: int
    image: Image | None = None
    unsigned: bool = False
    weights: DType = INT8

    @property
    def elem(self) -> DType:
        """The element type of inputs and outputs."""
        return DType.INT16 if isinstance(self.epilogue, End16) else INT8

    @property
    def line_elem(self) -> DType:
        """The element type of copied rows."""
        if self.elem is INT8:
            return UINT8 if self.unsigned else INT8
        return INT32 if self.unsigned else self.elem

    @property
    def half(self) -> int:
        """The number that is added to each copied pixel."""
        return HALF if self.line_elem is UINT8 else 0

    @property
    def types(self) -> str:
        """The part of the key that depends on the types of values."""
        if self.elem is INT8:
            wide = "" if self.weights is INT8 else "w16"
            return "_".join(p for p in ("unsigned" * self.unsigned, wide) if p)
        return "s16_words" if self.unsigned else "s16"

    @property
    def area(self) -> int:
        """Pixels that are copied, margins included."""
        return self.lines * self.pitch

    @property
    def padded(self) -> bool:
        rows = self.image is not None and self.image.padded(self.window.rows)
        return self.window.padded or rows

    @property
    def taps(self) -> int:
        return self.window.kernel_h * self.window.kernel_w

    @property
    def out_rows(self) -> int:
        return 1 if self.image is None else self.image.out_height

    @property
    def lines(self) -> int:
        """Rows of pixels that are copied, or stand for those outside."""
        if self.image is None:
            return self.window.kernel_h
        return (self.out_rows - 1) * self.image.stride_h + self.window.rows

    @property
    def pitch(self) -> int:
        """Columns of a row of pixels, padding included."""
        return self.window.columns

    @property
    def inside(self) -> int:
        """Columns that are copied."""
        return min(self.window.width, self.pitch - self.window.left)

    @property
    def copied(self) -> int:
        """Columns that are copied in one turn."""
        return next(n for n in (6, 5, 4, 3, 2, 1) if self.inside % n == 0)

    @property
    def scratch(self) -> int:
        return self.area * self.line_elem.bytes

    @property
    def over(self) -> bool:
        """The last block computes pixels of the one before again."""
        return self.window.out_width % self.pixels > 0

    @property
    def name(self) -> str:
        w = self.window
        parts = (
            "depthwise_block" if self.image is None else "depthwise_block_image",
            f"{w.kernel_h}x{w.kernel_w}",
            self.types,
            f"stride{w.stride_w}" if w.stride_w > 1 else "",
            f"dilated{w.dilation_h}_{w.dilation_w}" if w.dilated else "",
            "padded" if self.padded else "",
            f"copy{self.copied}",
            "over" if self.over else "",
            self.epilogue.key,
            str(self.pixels),
        )
        return "_".join(p for p in parts if p)

    @property
    def doc(self) -> str:
        """The comment in the kernel's C."""
        w = self.window
        beside = ", which may leave the image" if self.padded else ""
        gaps = ", with gaps between taps" if w.dilated else ""
        nine = " x int16" * (self.weights is not INT8)
        whole = "the rows under the window" if self.image is None else "the whole plane"
        return told(
            f"depthwise convolution, {self.elem.value}{nine}, int32 sums: "
            f"{w.kernel_h}x{w.kernel_w} windows, stride {w.stride_w}{beside}{gaps}",
            f"channel by channel: {whole} copied side by side, margins included, then "
            "its sums; weights forward",
            self.epilogue.words,
        )


@once
def kernel(layer: Layer) -> Builder:
    """y[ox,c] = clamp(requant(bias[c] + sum over taps (x[c] * w[c,tap]))).

    Shapes  rows x [W,C], y [OW,C]; weights [C, taps]; ends of scalar_finish.table
    Source  columns outside the row count as x_zero; rows are the runner's
    """
    return _Writer(layer).write()


class _Writer:
    """The pieces of one kernel being written."""

    def __init__(self, layer: Layer) -> None:
        self.layer, self.w = layer, layer.window
        self.elem = layer.line_elem
        w = self.w
        self.k = k = Builder(layer.name, layer.doc)
        self.dilation_h: Expr = const(1)
        if w.dilation_h > 1:
            self.dilation_h = k.arg("dilation_h", w.dilation_h)
        after = self.dilation_h * (w.kernel_h - 1) + 2
        after = after if layer.image is None else const(2)
        self.y = k.row("y", 0, layer.elem, writable=True)
        self.weights = k.row("weights", after, layer.weights)
        self.ends = k.row("epilogue", after + 1, INT32)
        after, rules = after + 2, None
        if exact_of(layer.epilogue) is not None:
            rules, after = k.row("exact", after, INT32), after + 1
        self.lines = k.row("lines", after, self.elem, writable=True)
        self.channels = k.arg("channels", w.channels)
        self.out_width = k.arg("out_width", w.out_width)
        self.pitch = k.arg("pitch", layer.pitch)
        self.inside = self.pitch
        self.left: Expr = const(0)
        if w.padded:
            self.left = k.arg("left", w.left)
            self.inside = k.arg("inside", layer.inside)
        self.finish = finish_of(k, layer.epilogue, rules)

    def write(self) -> Builder:
        k, layer = self.k, self.layer
        weights, ends = k.let("w", self.weights), k.let("next_epilogue", self.ends)
        if layer.padded:
            # margins never change: they are written once
            fill = k.arg("fill", layer.x_zero + layer.half)
            with k.loop("at", k.arg("area", layer.area), rolled=True) as at:
                k.store(self.lines, at, cast(fill, self.elem))
        with k.loop("c", self.channels, rolled=True) as c:
            if layer.image is None:
                with k.loop("ky", self.w.kernel_h) as ky:
                    row = k.row("row", ky * self.dilation_h + 1, layer.elem)
                    self._copy(offset(row, c), ky)
            else:
                self._image(layer.image, c)
            self._sums(weights, ends, offset(self.y, c))
            k.assign(weights, offset(weights, layer.taps))
            k.assign(ends, offset(ends, columns(layer.epilogue)))
        return k

    def _image(self, image: Image, c: Expr) -> None:
        """Copies the channel, but rows that no window reaches."""
        k, layer = self.k, self.layer
        top = k.arg("top", image.top) if image.top else const(0)
        count = min(image.height, layer.lines - image.top)
        size = k.arg("row_bytes", self.w.width * self.w.channels)
        x = k.let("source", offset(k.row("x", 1, layer.elem), c))
        with k.loop("r", k.arg("rows", count)) as r:
            self._copy(x, r + top)
            k.assign(x, offset(x, size))

    def _copy(self, source: Expr, line: Expr) -> None:
        """Copies one row of the channel into a line."""
        k, n = self.k, self.layer.copied
        x = k.let("x", source)
        to = k.let("to", offset(self.lines, line * self.pitch + self.left))
        with k.loop("column", self.inside, 0, n, rolled=True):
            for i in range(n):
                value: Expr = load(x)
                if self.layer.unsigned:
                    value = cast(cast(value, INT32) + self.layer.half, self.elem)
                k.store(to, i, value)
                k.assign(x, offset(x, self.channels))
            k.assign(to, offset(to, n))

    def _sums(self, weights: Expr, ends: Expr, y: Expr) -> None:
        """Computes all outputs of the channel, in a separate function."""
        k, w, layer = self.k, self.w, self.layer
        stride: Expr = const(1)
        if layer.image is not None:
            stride = k.arg("stride", layer.image.stride_h)
        shared = {
            "out_rows": k.arg("out_rows", layer.out_rows),
            "out_width": self.out_width,
            "channels": self.channels,
            "line_step": stride * self.pitch,
            "tap_step": self.pitch
            if layer.image is None
            else self.dilation_h * self.pitch,
        }
        if layer.image is None:
            shared["out_rows"] = const(1)
        given = {n: v for n, v in shared.items() if not isinstance(v, Const)}
        pointers = {"lines": self.lines, "weights": weights, "epilogue": ends, "y": y}
        parts = (
            f"depthwise_block_{w.kernel_h}x{w.kernel_w}_sum{layer.pixels}",
            "row" if layer.image is None else "image",
            layer.types,
            "over" if layer.over else "",
            f"stride{w.stride_w}" if w.stride_w > 1 else "",
            f"dilated{w.dilation_w}" if w.dilation_w > 1 else "",
            layer.epilogue.key,
        )
        name = "_".join(p for p in parts if p)
        doc = f"All outputs of a channel, {layer.pixels} neighbours of a row at a time."
        given = {**pointers, **given, **self.finish.values}
        with k.part(name, doc, **given) as params:
            known = {p.name: p for p in params}
            finish = self.finish.inside(known)
            _Sums(k, layer, {**shared, **known}, finish).write()


class _Sums:
    """The part of a kernel that sums the windows of one channel."""

    def __init__(
        self, k: Builder, layer: Layer, known: dict[str, Expr], finish: BoundEnd
    ) -> None:
        self.k, self.layer, self.w = k, layer, layer.window
        self.known, self.finish = known, finish
        self.held: list[Expr] = []

    def write(self) -> None:
        k, known, layer = self.k, self.known, self.layer
        if layer.taps <= UNROLLED and not layer.unsigned:
            self.held = [k.let(f"tap{i}", self._weight(i)) for i in range(layer.taps)]
        row = self.finish.row(k, known["epilogue"], 0)
        line, y = k.let("line", known["lines"]), k.let("out", known["y"])
        width = known["out_width"]
        with k.loop("oy", known["out_rows"], rolled=True):
            with k.loop("ox", width, 0, layer.pixels, rolled=True) as ox:
                first: Expr = ox
                if layer.over:
                    first = k.let("first", minimum(ox, width - layer.pixels))
                at = k.let("at", offset(line, first * self.w.stride_w))
                to = k.let("to", offset(y, first * known["channels"]))
                self._store(self._block(at), row, to)
            k.assign(line, offset(line, known["line_step"]))
            k.assign(y, offset(y, width * known["channels"]))

    def _store(self, sums: list[Var], row: list[Var], to: Var) -> None:
        k, ends, step = self.k, self.known["epilogue"], self.known["channels"]
        if not self.finish.is_cheap:
            each = [(acc, to, step * p) for p, acc in enumerate(sums)]
            self.finish.store(k, each, row, ends)
            return
        for acc in sums:
            k.store(to, 0, self.finish.narrow(k, acc, row))
            k.assign(to, offset(to, step))

    def _weight(self, tap: int) -> Expr:
        return cast(load(self.known["weights"], tap), INT32)

    def _block(self, at: Var) -> list[Var]:
        """The sums of a few pixels."""
        k, layer, w = self.k, self.layer, self.w
        start = self.finish.start(self.known["epilogue"], 0)
        sums = [k.let(f"sum{p}", start) for p in range(layer.pixels)]
        if layer.taps <= UNROLLED:
            for ky in range(w.kernel_h):
                row = ky * w.kernel_w
                self._row(sums, at, [self._tap(row + kx) for kx in range(w.kernel_w)])
                if ky + 1 < w.kernel_h:
                    k.assign(at, offset(at, self.known["tap_step"]))
            return sums
        taps = k.let("taps", self.known["weights"])
        with k.loop("ky", w.kernel_h, rolled=True):
            row_taps = [cast(load(taps, kx), INT32) for kx in range(w.kernel_w)]
            self._row(sums, at, row_taps)
            k.assign(taps, offset(taps, w.kernel_w))
            k.assign(at, offset(at, self.known["tap_step"]))
        return sums

    def _tap(self, tap: int) -> Expr:
        return self.held[tap] if self.held else self._weight(tap)

    def _row(self, sums: list[Var], at: Var, weights: Sequence[Expr]) -> None:
        """One row of taps, each weight and value read once; few registers: each
        weight once."""
        k, w = self.k, self.w
        if self.layer.unsigned:
            for kx in range(w.kernel_w):
                tap = k.let("tap", weights[kx])
                for p, acc in enumerate(sums):
                    value = load(at, p * w.stride_w + kx * w.dilation_w)
                    k.assign(acc, acc + cast(value, INT32) * tap)
            return
        known: dict[int, Expr] = {}
        uses: dict[int, list[tuple[int, int]]] = {}
        for p in range(len(sums)):
            for kx in range(w.kernel_w):
                column = p * w.stride_w + kx * w.dilation_w
                uses.setdefault(column, []).append((p, kx))
        for column in sorted(uses):
            value = k.let("value", cast(load(at, column), INT32))
            for p, kx in uses[column]:
                if kx not in known:
                    held = weights[kx]
                    known[kx] = held if isinstance(held, Var) else k.let("tap", held)
                k.assign(sums[p], sums[p] + value * known[kx])
