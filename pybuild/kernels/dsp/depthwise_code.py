"""The code of depthwise.py's kernels: rows of widened channels, then sums.

Knows no weight and no node.
"""

from __future__ import annotations

from collections.abc import Mapping

from pybuild.dtype import DType
from pybuild.ir.loop import (
    INT8,
    INT32,
    Const,
    Expr,
    Operand,
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
    wide,
)
from pybuild.kernels.base.builder import Builder
from pybuild.kernels.base.intrin import (
    ADD2,
    EVEN_BYTES,
    HIGH_HALVES,
    LOW_HALVES,
    ODD_BYTES,
)
from pybuild.kernels.base.once import once
from pybuild.kernels.dsp.depthwise_sums import Sums
from pybuild.kernels.epilogues.affine_end import AffineFinish, is_usual, kind
from pybuild.kernels.epilogues.bare import Bare
from pybuild.kernels.epilogues.by_channel import exact_of
from pybuild.kernels.layers.depthwise import GROUP, Layer
from pybuild.kernels.layers.image import Image


@once
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
        self.k = k = Builder(layer.name, layer.doc)
        self.dilation_h: Expr = const(1)
        if w.dilation_h > 1:
            self.dilation_h = k.arg("dilation_h", w.dilation_h)
        self.rows = self.dilation_h * (w.kernel_h - 1) + 1
        after = self.rows + 1 if layer.image is None else const(2)
        bare = isinstance(layer.epilogue, Bare)
        self.y = k.row("y", 0, INT32 if bare else INT8, writable=True)
        self.packed = k.row("weights", after, INT32)
        self.ends = k.row("epilogue", after + 1, INT32)
        after, rules = after + (1 if bare else 2), None
        if exact_of(layer.epilogue) is not None:
            rules, after = k.row("exact", after, INT32), after + 1
        self.lines = k.row("lines", after, INT32, writable=True)
        self.channels = k.arg("channels", w.channels)
        self.multiplier: Expr = const(1)
        self.out_channels = self.channels
        if layer.multiplier > 1:
            self.multiplier = k.arg("multiplier", layer.multiplier)
            self.out_channels = k.let("out_channels", self.channels * self.multiplier)
        self.out_width = k.arg("out_width", w.out_width)
        self.pitch = k.arg("pitch", layer.pitch)
        self.pairs = k.arg("pairs", (layer.inside - layer.head) // 2)
        self.left: Expr = const(0)
        if w.left // 2:
            self.left = k.arg("left", w.left // 2)
        self.fill: Expr = const(0)
        if layer.padded:
            self.fill = k.arg("fill", layer.x_zero * 65536 + (layer.x_zero & 0xFFFF))
        self.rest: Expr = const(layer.rest)
        if layer.may_rest:
            self.rest = k.arg("rest", layer.rest)
        usual = is_usual(layer.epilogue)
        self.finish = AffineFinish(k, layer.epilogue, usual, rows=rules)
        self.plane = k.arg("plane_size", layer.plane)

    def write(self) -> Builder:
        k, w, layer = self.k, self.w, self.layer
        packed, ends = k.let("w", self.packed), k.let("next_epilogue", self.ends)
        if layer.image is not None:
            self.weights = k.let("widened", offset(self.lines, self.plane * GROUP))
        if layer.whole and layer.padded:
            words = k.arg("words", self.layer.plane * GROUP)
            with k.loop("at", words, rolled=True) as at:
                k.store(self.lines, at, self.fill)
        elif layer.padded:
            self._margins()
        lines = self._lines()
        with k.loop("c", self.channels, 0, GROUP) as c:
            if w.channels % GROUP:
                c = k.let("first", minimum(c, self.channels - GROUP))
            y = k.let("to", offset(self.y, c * self.multiplier))
            if layer.image is None:
                for slot, row in enumerate(lines):
                    self._widen(offset(row, c), const(slot))
                if not lines:
                    with k.loop("ky", w.kernel_h) as ky:
                        row = k.row("row", ky * self.dilation_h + 1, INT8)
                        self._widen(offset(row, c), ky)
                self._sums(ends, y, packed)
                k.assign(packed, offset(packed, self.multiplier * GROUP * layer.words))
            elif layer.whole:
                self._weights(packed)
                self._whole(layer.image, ends, y, c)
            else:
                self._weights(packed)
                self._image(layer.image, ends, y, c)
            size = GROUP * layer.end_size
            k.assign(ends, offset(ends, self.multiplier * size))
        return k

    def _lines(self) -> list[Var]:
        """The rows of the input, where they are few."""
        if self.layer.image is not None or self.w.kernel_h > 3:
            return []
        step = self.dilation_h
        rows = range(self.w.kernel_h)
        return [self.k.row(f"row{ky}", step * ky + 1, INT8) for ky in rows]

    def _margins(self) -> None:
        """Padding beside the columns never changes: it is written once."""
        k, behind = self.k, self.k.arg("behind", self.layer.behind)
        plane = k.let("margins", self.lines)
        with k.loop("channel", GROUP, rolled=True):
            if self.w.left // 2:
                with k.loop("at", self.left * self.w.kernel_h, rolled=True) as at:
                    k.store(plane, at, self.fill)
            k.assign(plane, offset(plane, self.plane))
            with k.loop("at", const(0), const(0) - behind, rolled=True) as at:
                k.store(plane, at, self.fill)

    def _image(self, image: Image, ends: Var, y: Var, c: Expr) -> None:
        """Computes all rows of four channels; each row is widened once, into a ring."""
        k, w, rows = self.k, self.w, self.rows
        height, stride = k.arg("height", image.height), k.arg("stride", image.stride_h)
        top = k.arg("top", image.top) if self.layer.padded else const(0)
        x = k.row("x", 1, INT8)
        width = k.arg("row_bytes", w.width * w.channels)
        # the slot of the next row; the weights that belong to the first slot
        slot, turned = k.let("slot", 0), k.let("turned", 0)
        # rows between windows never come to the ring
        coming = min(image.stride_h, w.kernel_h)
        turn = coming % w.kernel_h * self.layer.row_words
        back = k.arg("turn", turn) if turn else const(0)
        with k.loop("oy", k.arg("out_height", image.out_height)) as oy:
            start = k.let("start", oy * stride)
            new = start + maximum(rows - stride, 0)
            first = k.let("new", select(equal(oy, 0), 0, new))
            with k.loop("r", start + rows, first) as r:
                row = k.let("row", r - top)
                source = offset(x, row * width + c)
                if image.padded(w.rows):
                    with k.when(const(0) <= minimum(row, height - 1 - row)):
                        self._widen(source, slot)
                    with k.otherwise():
                        self._blank(slot)
                else:
                    self._widen(source, slot)
                after = k.let("after", slot + 1)
                k.assign(slot, select(after < w.kernel_h, after, 0))
            self._sums(ends, y, offset(self.weights, turned))
            k.assign(y, offset(y, self.out_width * self.out_channels))
            if turn:
                less = k.let("less", turned - back)
                more = less + w.kernel_h * self.layer.row_words
                k.assign(turned, select(less < 0, more, less))

    def _weights(self, packed: Var) -> None:
        """The weights of four channels of an image as pairs of int16, shifted left."""
        k, layer = self.k, self.layer
        to = k.let("weights_to", self.weights)
        rows = self.w.kernel_h
        with k.loop("copy", self.multiplier, rolled=True):
            with k.loop("tap_row", rows, rolled=True) as row:
                places = [to]
                if layer.ring:
                    last, words = equal(row, rows - 1), rows * layer.row_words
                    again = select(last, const(0), words)
                    places.append(k.let("twin", offset(to, again)))
                self._weight_row(packed, places)
            left = layer.words * GROUP - layer.row_words * rows
            k.assign(to, offset(to, left))

    def _weight_row(self, packed: Var, places: list[Var]) -> None:
        """A row of taps, of a ring once more behind all rows: but the last, which is
        there."""
        k, layer, width = self.k, self.layer, self.w.kernel_w
        before = self._halves(packed, 0)
        for kx in range(1, max(width, 2)):
            after = self._halves(packed, kx) if kx < width else before
            for place in places:
                self._store(place, kx - 1, before, after, layer.words)
            before = after
        k.assign(places[0], offset(places[0], layer.row_words))
        k.assign(packed, offset(packed, width))

    def _halves(self, packed: Var, kx: int) -> tuple[Var, Var]:
        """A tap of four channels: the even ones and the odd ones, shifted left."""
        k = self.k
        if self.layer.fraction == 1:
            taps = k.let("word", load(packed, kx))
            even, odd = (k.let("tap", to(taps)) for to in (EVEN_BYTES, ODD_BYTES))
            return k.let("even", ADD2(even, even)), k.let("odd", ADD2(odd, odd))
        word = k.let("word", cast(load(packed, kx), DType.UINT32))
        mask = const(0xFF00FF00, DType.UINT32)
        return k.let("even", i32((word << 8) & mask)), k.let("odd", i32(word & mask))

    def _widen(self, source: Expr, slot: Expr) -> None:
        """Widens one row of four channels into a slot of their planes, two columns a
        word."""
        k, rows = self.k, self.w.kernel_h
        left = self.left * rows if self.w.left // 2 else const(0)
        at = offset(self.lines, slot + left)
        doc = "A row of four channels, widened: two columns of a channel in each word."
        given = {"source": source, "lines": at, **self._widening()}
        with k.part(self._widen_name(str(rows)), doc, **given) as params:
            known = {p.name: p for p in params}
            x, to = k.let("x", known["source"]), k.let("to", known["lines"])
            self._widen_row(x, to, known)

    def _widening(self) -> dict[str, Expr]:
        """The arguments for the widening of a row."""
        given = {
            "channels": self.channels,
            "pairs": self.pairs,
            "plane_size": self.plane,
        }
        return given | ({"fill": self.fill} if self.layer.padded else {})

    def _widen_name(self, rows: str) -> str:
        layer = self.layer
        ends = ("", "head", "last", "ends")[layer.head + 2 * layer.last]
        padded = "padded" if layer.padded and ends else ""
        pairs = f"pairs{layer.written_out}" if layer.written_out else ""
        parts = (f"widen_dsp_{rows}", ends, padded, pairs)
        return "_".join(p for p in parts if p)

    def _widen_row(self, x: Var, to: Var, known: Mapping[str, Var]) -> None:
        k, layer, step = self.k, self.layer, self.layer.step
        channels, plane = known["channels"], known["plane_size"]
        fill = (known.get("fill", const(0)),) * 2
        if layer.head:
            self._store(to, 0, fill, self._column(x, channels), plane)
            k.assign(to, offset(to, step))
        done = layer.written_out
        for pair in range(done):
            before = self._column(x, channels)
            after = self._column(x, channels)
            self._store(to, pair * step, before, after, plane)
        if not done:
            with k.loop("pair", known["pairs"], rolled=True):
                before = self._column(x, channels)
                self._store(to, 0, before, self._column(x, channels), plane)
                k.assign(to, offset(to, step))
        if layer.last:
            self._store(to, done * step, self._column(x, channels), fill, plane)

    def _whole(self, image: Image, ends: Var, y: Var, c: Expr) -> None:
        """Computes all rows of four channels, widened at once."""
        k, layer, w = self.k, self.layer, self.w
        pitch = self.pitch
        top = k.arg("top", image.top) if image.top else const(0)
        at = offset(self.lines, top * pitch + self.left)
        more = {
            "rows": k.arg("rows", layer.read),
            "pitch": pitch,
            "row_size": k.arg("row_size", w.width * w.channels),
        }
        source = offset(k.row("x", 1, INT8), c)
        doc = "The image of four channels: two columns of a channel in each word."
        given = {"source": source, "lines": at, **self._widening(), **more}
        with k.part(self._widen_name("whole"), doc, **given) as params:
            known = {p.name: p for p in params}
            row, line = k.let("row", known["source"]), k.let("line", known["lines"])
            with k.loop("r", known["rows"], rolled=True):
                self._widen_row(k.let("x", row), k.let("to", line), known)
                k.assign(row, offset(row, known["row_size"]))
                k.assign(line, offset(line, known["pitch"]))
        sums = {
            "out_height": k.arg("out_height", image.out_height),
            "pitch": pitch,
            "down": k.let("down", pitch * k.arg("stride", image.stride_h)),
        }
        self._sums(ends, y, self.weights, sums)

    def _column(self, x: Var, channels: Expr) -> tuple[Expr, Expr]:
        """Loads four channels of the next pixel: the even ones and the odd ones."""
        k = self.k
        word = k.let("word", wide(x))
        k.assign(x, offset(x, channels))
        return k.let("even", EVEN_BYTES(word)), k.let("odd", ODD_BYTES(word))

    def _store(
        self,
        to: Var,
        at: Operand,
        before: tuple[Expr, Expr],
        after: tuple[Expr, Expr],
        apart: Operand,
    ) -> None:
        """Stores two neighbours of four channels, whose planes lie `apart`."""
        for channel in range(GROUP):
            pack = LOW_HALVES if channel < 2 else HIGH_HALVES
            odd = channel % 2
            where = at + apart * channel
            self.k.store(to, where, pack(before[odd], after[odd]))

    def _blank(self, slot: Expr) -> None:
        k = self.k
        at = k.let("at", offset(self.lines, slot))
        with k.loop("word", self.pitch * GROUP, rolled=True):
            k.store(at, 0, self.fill)
            k.assign(at, offset(at, self.w.kernel_h))

    def _sums(
        self, ends: Expr, y: Expr, weights: Expr, more: Mapping[str, Expr] | None = None
    ) -> None:
        """The row of all four channels, or all rows, in a function of its own."""
        shared = {
            "channels": self.out_channels,
            "multiplier": self.multiplier,
            "out_width": self.out_width,
            "plane_size": self.plane,
            "rest": self.rest,
            **(more or {}),
        }
        given = {n: v for n, v in shared.items() if not isinstance(v, Const)}
        with self.k.part(
            self._part_name(),
            self.layer.part_doc,
            lines=self.lines,
            weights=weights,
            epilogue=ends,
            y=y,
            **given,
            **self.finish.values,
        ) as params:
            known = {p.name: p for p in params}
            inner = Sums(self.k, self.layer, {**shared, **known}, self.finish, known)
            inner.write(self._part_name())

    def _part_name(self) -> str:
        """The name of the part, which distinguishes the code of two layers here."""
        layer, w = self.layer, self.w
        parts = (
            f"depthwise_dsp_{layer.of or 'rows'}",
            f"{w.kernel_h}x{w.kernel_w}_sum{layer.columns}",
            "once" if layer.once else "",
            f"rest{layer.rest}" if layer.rest and not layer.may_rest else "",
            f"stride{w.stride_w}" if w.stride_w > 1 else "",
            f"dilated{w.dilation_h}_{w.dilation_w}" if w.dilated else "",
            "multiplied" if layer.multiplier > 1 else "",
            "w9" if layer.nine else "",
            kind(layer.epilogue, is_usual(layer.epilogue)),
        )
        return "_".join(p for p in parts if p)
