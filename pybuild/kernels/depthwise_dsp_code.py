"""The code of depthwise_dsp.py's kernels: rows of widened channels, then sums.

Knows no weight and no node.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pybuild.kernels.affine import Affine
from pybuild.kernels.affine_finish import AffineFinish, corrected
from pybuild.kernels.builder import Builder
from pybuild.kernels.intrin import EVEN_BYTES, MLA_HIGH, MLA_LOW, ODD_BYTES
from pybuild.kernels.window import Window
from pybuild.loop import (
    INT8,
    INT32,
    Const,
    Expr,
    Var,
    const,
    equal,
    load,
    maximum,
    minimum,
    offset,
    select,
    wide,
)

GROUP = 4  # channels in one word of input
UNROLLED = 9  # taps whose rows are written out


@dataclass(frozen=True)
class Image:
    """The rows of a layer whose kernel takes an image at once; `top` is padding."""

    height: int
    out_height: int
    stride_h: int
    top: int

    def padded(self, window: int) -> bool:
        """Some window of so many rows reaches past the first or last row."""
        last = (self.out_height - 1) * self.stride_h - self.top + window
        return self.top > 0 or last > self.height


@dataclass(frozen=True)
class Layer:
    """A depthwise convolution as its kernel sees it; `columns` are done together.

    image  None: a call makes one row, of rows that need not be neighbours
    """

    window: Window
    ending: Affine
    x_zero: int
    image: Image | None = None

    @property
    def padded(self) -> bool:
        rows = self.image is not None and self.image.padded(self.window.rows)
        return self.window.padded or rows

    @property
    def slots(self) -> int:
        """Widened rows that are kept."""
        return self.window.kernel_h if self.image is None else self.window.rows

    @property
    def columns(self) -> int:
        """Pixels of a row whose sums the registers hold, with few left over."""
        w = self.window
        if w.kernel_w > 3 or w.dilation_w > 1:
            return min(2, w.out_width)
        if w.out_width <= 5:
            return w.out_width
        return 3 if w.out_width % 3 < w.out_width % 4 else 4

    @property
    def taps(self) -> int:
        return self.window.kernel_h * self.window.kernel_w

    @property
    def pitch(self) -> int:
        """Columns of a widened row, padding included."""
        w = self.window
        return (w.out_width - 1) * w.stride_w + (w.kernel_w - 1) * w.dilation_w + 1

    @property
    def scratch(self) -> int:
        """Bytes: two words for each column of each row."""
        return 8 * self.slots * self.pitch

    @property
    def name(self) -> str:
        w = self.window
        parts = (
            "depthwise_dsp" if self.image is None else "depthwise_dsp_image",
            f"{w.kernel_h}x{w.kernel_w}",
            f"stride{w.stride_w}" if w.stride_w > 1 else "",
            f"dilated{w.dilation_w}" if w.dilation_w > 1 else "",
            "padded" if self.padded else "",
            "tail" if w.channels % GROUP else "",
            self.ending.key,
            str(self.columns),
        )
        return "_".join(p for p in parts if p)


def kernel(layer: Layer) -> Builder:
    """y[ox,c] = clamp(requant(bias[c] + sum over taps (x[c] * w[tap,c]))).

    Shapes  rows x [W,C], y [OW,C]; weights of `pack`; ends of `table`
    Source  columns outside the row count as x_zero; rows are the runner's
    """
    return _Writer(layer).write()


class _Writer:
    """The pieces of one kernel being written."""

    def __init__(self, layer: Layer) -> None:
        self.layer, self.w = layer, layer.window
        w = self.w
        self.k = k = Builder(layer.name)
        self.dilation_h: Expr = const(1)
        if w.dilation_h > 1:
            self.dilation_h = k.arg("dilation_h", w.dilation_h)
        self.rows = self.dilation_h * (w.kernel_h - 1) + 1
        after = self.rows + 1 if layer.image is None else const(2)
        self.y = k.row("y", 0, INT8, writable=True)
        self.weights = k.row("weights", after, INT32)
        self.ends = k.row("ends", after + 1, INT32)
        self.lines = k.row("lines", after + 2, INT32, writable=True)
        self.channels = k.arg("channels", w.channels)
        self.out_width = k.arg("out_width", w.out_width)
        self.pitch = k.arg("pitch", layer.pitch)
        self.inside = self.pitch
        self.left: Expr = const(0)
        if w.padded:
            self.left = k.arg("left", w.left)
            self.inside = k.arg("inside", min(w.width, layer.pitch - w.left))
        if layer.padded:
            self.fill = k.arg("fill", layer.x_zero * 65536 + (layer.x_zero & 0xFFFF))
        self.finish = AffineFinish(k, layer.ending)
        self.half = self.pitch * self._slots

    @property
    def _slots(self) -> Expr:
        return self.rows if self.layer.image else const(self.w.kernel_h)

    def write(self) -> Builder:
        k, w = self.k, self.w
        self.half = k.let("half_size", self.half)
        weights, ends = k.let("w", self.weights), k.let("end", self.ends)
        if w.padded:
            # margins never change: they are written once
            with k.loop("at", self.half * 2, rolled=True) as at:
                k.store(self.lines, at, self.fill)
        with k.loop("c", self.channels, 0, GROUP) as c:
            if w.channels % GROUP:
                c = k.let("first", minimum(c, self.channels - GROUP))
            if self.layer.image is None:
                with k.loop("ky", w.kernel_h) as ky:
                    row = k.row("row", ky * self.dilation_h + 1, INT8)
                    self._widen(offset(row, c), ky)
                at_rows = [const(0)] * w.kernel_h
                self._halves(weights, ends, offset(self.y, c), at_rows, const(0))
            else:
                self._image(self.layer.image, weights, ends, c)
            size = 8 if self.layer.ending.below is None else 16
            k.assign(weights, offset(weights, 2 * self.layer.taps))
            k.assign(ends, offset(ends, size))
        return k

    def _image(self, image: Image, weights: Var, ends: Var, c: Expr) -> None:
        """All rows of four channels; each row is widened once, into a ring."""
        k, w, rows = self.k, self.w, self.rows
        height, stride = k.arg("height", image.height), k.arg("stride", image.stride_h)
        top = k.arg("top", image.top) if self.layer.padded else const(0)
        x = k.row("x", 1, INT8)
        width = k.arg("row_bytes", w.width * w.channels)
        y = k.let("to", offset(self.y, c))
        with k.loop("oy", k.arg("out_height", image.out_height)) as oy:
            start = k.let("start", oy * stride)
            new = start + maximum(rows - stride, 0)
            first = k.let("new", select(equal(oy, 0), 0, new))
            with k.loop("r", start + rows, first) as r:
                slot = k.let("slot", r % rows)
                row = k.let("row", r - top)
                source = offset(x, row * width + c)
                if image.padded(w.rows):
                    with k.when(const(0) <= minimum(row, height - 1 - row)):
                        self._widen(source, slot)
                    with k.otherwise():
                        self._blank(slot)
                else:
                    self._widen(source, slot)
            at_rows = []
            if self.layer.taps <= UNROLLED:
                for ky in range(w.kernel_h):
                    which = (start + self.dilation_h * ky) % rows
                    at_rows.append(k.let(f"at{ky}", which * self.pitch))
            self._halves(weights, ends, y, at_rows, start)
            k.assign(y, offset(y, self.out_width * self.channels))

    def _widen(self, source: Expr, slot: Expr) -> None:
        """One row of four channels into the two halves of a slot."""
        k = self.k
        x = k.let("x", source)
        at = k.let("at", offset(self.lines, slot * self.pitch + self.left))
        other = k.let("other", offset(at, self.half))
        with k.loop("column", self.inside, rolled=True) as column:
            word = k.let("word", wide(x))
            k.store(at, column, EVEN_BYTES(word))
            k.store(other, column, ODD_BYTES(word))
            k.assign(x, offset(x, self.channels))

    def _blank(self, slot: Expr) -> None:
        k = self.k
        at = k.let("at", offset(self.lines, slot * self.pitch + self.left))
        with k.loop("column", self.inside, rolled=True) as column:
            k.store(at, column, self.fill)
            k.store(at, self.half + column, self.fill)

    def _halves(
        self,
        weights: Expr,
        ends: Expr,
        y: Expr,
        at_rows: Sequence[Expr],
        start: Expr,
    ) -> None:
        """The row's even channels, then its odd ones, in a function of their own."""
        shared = {
            "channels": self.channels,
            "out_width": self.out_width,
            "pitch": self.pitch,
            "half_size": self.half,
            "rows": self.rows,
            "dilation_h": self.dilation_h,
            "start": start,
            **{f"at{ky}": at for ky, at in enumerate(at_rows)},
        }
        given = {n: v for n, v in shared.items() if not isinstance(v, Const)}
        with self.k.part(
            self._part_name(),
            lines=self.lines,
            weights=weights,
            ends=ends,
            y=y,
            **given,
            **self.finish.values,
        ) as params:
            known = {p.name: p for p in params}
            inner = _Sums(self.k, self.layer, {**shared, **known}, self.finish, known)
            inner.write(len(at_rows))

    def _part_name(self) -> str:
        """What distinguishes the code of two layers here."""
        layer, w = self.layer, self.w
        rest = w.out_width % layer.columns > 0
        rows = "image" if layer.image is not None else "rows"
        parts = (
            f"depthwise_dsp_{rows}_{w.kernel_h}x{w.kernel_w}_sum{layer.columns}",
            "rest" if rest else "",
            f"stride{w.stride_w}" if w.stride_w > 1 else "",
            f"dilated{w.dilation_h}_{w.dilation_w}" if w.dilated else "",
            layer.ending.key,
        )
        return "_".join(p for p in parts if p)


class _Sums:
    """The part of a kernel that sums a row of four channels that are widened."""

    def __init__(
        self,
        k: Builder,
        layer: Layer,
        shared: Mapping[str, Expr],
        finish: AffineFinish,
        known: Mapping[str, Var],
    ) -> None:
        self.k, self.layer, self.w = k, layer, layer.window
        self.shared, self.known = shared, known
        self.finish = finish.inside(known)
        self.channels, self.out_width = shared["channels"], shared["out_width"]

    def write(self, unrolled_rows: int) -> None:
        k, layer, known = self.k, self.layer, self.known
        size = 4 if layer.ending.below is None else 8
        at_rows = [self.shared[f"at{ky}"] for ky in range(unrolled_rows)]
        if layer.image is None:
            at_rows = [self.shared["pitch"] * ky for ky in range(unrolled_rows)]
        with k.loop("half", 2) as half:
            w = k.let("taps", offset(known["weights"], half * layer.taps))
            end = k.let("last", offset(known["ends"], half * size))
            line = k.let(
                "line", offset(known["lines"], half * self.shared["half_size"])
            )
            out = k.let("out", offset(known["y"], half))
            self._columns(line, at_rows, self.shared["start"], (w, end, out))

    def _columns(
        self,
        lines: Var,
        at_rows: Sequence[Expr],
        start: Expr,
        where: tuple[Var, Var, Var],
    ) -> None:
        k, n = self.k, self.layer.columns
        whole = self.out_width
        rest = self.w.out_width % n
        if rest:
            whole = k.let("whole", self.out_width - self.out_width % n)
        with k.loop("ox", whole, 0, n, rolled=True):
            self._sum(n, lines, at_rows, start, where)
        if rest:
            with k.loop("ox", self.out_width, whole, rolled=True):
                self._sum(1, lines, at_rows, start, where)

    def _sum(
        self,
        n: int,
        lines: Var,
        at_rows: Sequence[Expr],
        start: Expr,
        where: tuple[Var, Var, Var],
    ) -> None:
        k, w, (weights, ends, y) = self.k, self.w, where
        signed = self.layer.ending.below is not None
        second = 4 if signed else 2
        sums = [
            (k.let(f"low{i}", load(ends)), k.let(f"high{i}", load(ends, second)))
            for i in range(n)
        ]
        if self.layer.taps <= UNROLLED:
            for row, at in enumerate(at_rows):
                self._row(sums, offset(lines, at), weights, row * w.kernel_w)
        else:
            taps = k.let("row_taps", weights)
            with k.loop("ky", w.kernel_h, rolled=True) as ky:
                slot: Expr = ky
                if self.layer.image is not None:
                    slot = start + self.shared["dilation_h"] * ky
                    slot = slot % self.shared["rows"]
                at = slot * self.shared["pitch"]
                self._row(sums, offset(lines, at), taps, 0)
                k.assign(taps, offset(taps, w.kernel_w))
        for which in (0, 1):
            self._finish([s[which] for s in sums], offset(ends, second * which),
                         offset(y, 2 * which))  # fmt: skip
        k.assign(lines, offset(lines, n * w.stride_w))
        k.assign(y, offset(y, self.channels * n))

    def _row(
        self, sums: list[tuple[Var, Var]], line: Expr, weights: Expr, first: int
    ) -> None:
        """One row of taps, column by column; each weight and value read once."""
        k, w = self.k, self.w
        line = k.let("row", line)
        known: dict[int, Var] = {}
        uses: dict[int, list[tuple[int, int]]] = {}
        for i in range(len(sums)):
            for kx in range(w.kernel_w):
                at = i * w.stride_w + kx * w.dilation_w
                uses.setdefault(at, []).append((i, kx))
        for at in sorted(uses):
            value = k.let("value", load(line, at))
            for i, kx in uses[at]:
                if kx not in known:
                    known[kx] = k.let(f"tap{kx}", load(weights, first + kx))
                low, high = sums[i]
                k.assign(low, MLA_LOW(value, known[kx], low))
                k.assign(high, MLA_HIGH(value, known[kx], high))

    def _finish(self, sums: list[Var], ends: Expr, y: Expr) -> None:
        k = self.k
        signed = self.layer.ending.below is not None
        if signed:
            plus, minus = k.let("plus", load(ends, 1)), k.let("minus", load(ends, 2))
        factor = k.let("factor", load(ends, 3 if signed else 1))
        for i, acc in enumerate(sums):
            scaled: Expr = acc
            if signed:
                scaled = corrected(acc, plus, minus)
            k.store(y, self.channels * i, self.finish.narrow(scaled, factor))
