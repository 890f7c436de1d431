"""The code of fours.py's kernels: rows of four channels side by side, then sums.

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
    ADD_EVEN,
    ADD_ODD,
    EVEN_BYTES,
    ODD_BYTES,
)
from pybuild.kernels.base.once import once
from pybuild.kernels.dsp.fours_end import End, bits_of, row_words
from pybuild.kernels.dsp.fours_layer import PAIRS, Layer
from pybuild.kernels.dsp.fours_sums import Sums
from pybuild.kernels.epilogues.affine_end import AffineFinish, is_usual
from pybuild.kernels.epilogues.by_channel import exact_of
from pybuild.kernels.epilogues.end16 import Bound16, End16
from pybuild.kernels.epilogues.staircase import FRACTION
from pybuild.kernels.layers.depthwise import GROUP


@once
def kernel(layer: Layer) -> Builder:
    """y[oy,ox,c] = clamp(requant(bias[c] + sum over taps (x[c] * w[tap,c]))).

    Shapes  x [H,W,C], y [OH,OW,C]; weights of `pack`; ends of `table`
    Source  pixels outside the image count as x_zero
    """
    return _Writer(layer).write()


def _both(value: int) -> int:
    """A word whose halves are the value."""
    return value * 65536 + (value & 0xFFFF)


class _Writer:
    """The pieces of one kernel being written."""

    def __init__(self, layer: Layer) -> None:
        self.layer, self.w = layer, layer.window
        w = self.w
        self.k = k = Builder(layer.name, layer.doc)
        self.y = k.row("y", 0, layer.elem, writable=True)
        self.x = k.row("x", 1, layer.elem)
        self.packed = k.row("weights", 2, INT32)
        self.ends = k.row("epilogue", 3, INT32)
        rules, after = None, 4
        if exact_of(layer.epilogue) is not None:
            rules, after = k.row("exact", after, INT32), after + 1
        self.lines = k.row("lines", after, INT32, writable=True)
        self.channels = k.arg("channels", w.channels)
        # from a pixel to the next
        self.x_step = self.y_step = self.channels
        if layer.across:
            self.x_step = k.arg("x_step", layer.image.height * w.channels)
            self.y_step = k.arg("y_step", layer.image.out_height * w.channels)
        self.out_width = k.arg("out_width", w.out_width)
        self.left: Expr = const(0)
        if w.left and not layer.skips_columns:
            self.left = k.arg("left", w.left)
        self.inside = k.arg("inside", layer.inside)
        self.fill: Expr = const(0)
        if layer.padded and layer.x_zero and not layer.centred:
            self.fill = k.arg("fill", _both(layer.x_zero))
        self.less = k.arg("less", _both(-layer.x_zero)) if layer.centred else None
        self.step = layer.step
        self.plane = k.arg("plane", layer.plane)
        self.taps_plane = k.arg("taps_plane", layer.taps_plane)
        self.finish: AffineFinish | Bound16
        if isinstance(layer.epilogue, End16):
            self.finish = Bound16(k, layer.epilogue)
        else:
            usual = is_usual(layer.epilogue)
            self.finish = AffineFinish(k, layer.epilogue, usual, rows=rules)

    def write(self) -> Builder:
        k, w, layer = self.k, self.w, self.layer
        packed, ends = k.let("w", self.packed), k.let("next_epilogue", self.ends)
        self.widened = k.let("widened", offset(self.lines, self.plane * PAIRS))
        columns = k.arg("columns", layer.columns)
        if layer.whole:
            if layer.has_margins:
                self._margin(self.lines, self.plane * PAIRS)
        else:
            self._margins()
        with k.loop("c", self.channels, 0, GROUP) as c:
            if w.channels % GROUP:
                c = k.let("first", minimum(c, self.channels - GROUP))
            self._weights(packed)
            if layer.whole:
                self._whole(columns, ends, c)
            else:
                self._image(columns, ends, c)
            size = GROUP * row_words(layer.epilogue)
            k.assign(ends, offset(ends, size))
        return k

    def _margins(self) -> None:
        """Padding beside the columns never changes: it is written once."""
        k, layer = self.k, self.layer
        lines = k.let("margins", self.lines)
        with k.loop("half", PAIRS, rolled=True):
            if self.w.left:
                self._margin(lines, self.left * self.step)
            if layer.behind:
                at = (self.left + self.inside) * self.step
                words = k.arg("behind", layer.behind) * self.step
                self._margin(offset(lines, at), words)
            k.assign(lines, offset(lines, self.plane))

    def _margin(self, at: Expr, words: Expr) -> None:
        with self.k.loop("word", words, rolled=True) as word:
            self.k.store(at, word, self.fill)

    def _weights(self, packed: Var) -> None:
        """The weights of four channels, those of two of them after the others'."""
        k, layer, rows = self.k, self.layer, self.w.kernel_h
        to = k.let("weights_to", self.widened)
        with k.loop("tap_row", rows, rolled=True) as row:
            places = [to]
            if layer.turn:
                again = select(equal(row, rows - 1), const(0), rows * layer.row_words)
                places.append(k.let("twin", offset(to, again)))
            seconds = [k.let("second_to", offset(at, self.taps_plane)) for at in places]
            for kx in range(self.w.kernel_w):
                for at, half in zip(
                    (places, seconds), self._halves(packed, kx), strict=True
                ):
                    for place in at:
                        k.store(place, kx, half)
            k.assign(to, offset(to, layer.row_words))
            k.assign(packed, offset(packed, self.w.kernel_w))

    def _halves(self, packed: Var, kx: int) -> tuple[Var, Var]:
        """A tap of four channels, of int8 shifted left."""
        k, bits = self.k, bits_of(self.layer.epilogue)
        if bits < FRACTION:
            word = k.let("word", load(packed, kx))
            first, second = EVEN_BYTES(word), ODD_BYTES(word)
            if bits == 1:
                even, odd = k.let("tap", first), k.let("tap", second)
                first, second = ADD2(even, even), ADD2(odd, odd)
            return k.let("first", first), k.let("second", second)
        taps = k.let("word", cast(load(packed, kx), DType.UINT32))
        mask = const(0xFF00FF00, DType.UINT32)
        return k.let("even", i32((taps << 8) & mask)), k.let("odd", i32(taps & mask))

    def _image(self, columns: Expr, ends: Var, c: Expr) -> None:
        """Computes all rows of four channels; each row is widened once, into a ring."""
        k, w, layer, image = self.k, self.w, self.layer, self.layer.image
        y, rows = k.let("to", offset(self.y, c)), self.w.kernel_h
        height, stride = k.arg("height", image.height), k.arg("stride", image.stride_h)
        top = k.arg("top", image.top) if layer.padded else const(0)
        width = k.arg("row_size", w.width * w.channels)
        # the slot of the next row; the weights that belong to the first slot
        slot, turned = k.let("slot", 0), k.let("turned", 0)
        with k.loop("oy", k.arg("out_height", image.out_height)) as oy:
            start = k.let("start", oy * stride)
            new = start + maximum(rows - stride, 0)
            first = k.let("new", select(equal(oy, 0), 0, new))
            with k.loop("r", start + rows, first) as r:
                row = k.let("row", r - top)
                source = offset(self.x, row * width + c)
                if image.padded(w.rows):
                    with k.when(const(0) <= minimum(row, height - 1 - row)):
                        self._widen(source, slot)
                    with k.otherwise():
                        self._blank(slot, columns)
                else:
                    self._widen(source, slot)
                after = k.let("after", slot + 1)
                k.assign(slot, select(after < rows, after, 0))
            self._sums(ends, y, offset(self.widened, turned))
            k.assign(y, offset(y, self.out_width * self.channels))
            if layer.turn:
                less = k.let("less", turned - k.arg("turn", layer.turn))
                more = less + rows * layer.row_words
                k.assign(turned, select(less < 0, more, less))

    def _whole(self, columns: Expr, ends: Var, c: Expr) -> None:
        """Computes all rows of four channels, widened at once."""
        k, layer, w = self.k, self.layer, self.w
        pitch = columns
        top = k.arg("top", layer.image.top) if layer.image.top else const(0)
        above = const(0) if layer.skips_rows else top
        at = offset(self.lines, above * pitch + self.left)
        given = {
            "x_step": self.x_step,
            "inside": self.inside,
            "plane": self.plane,
            "rows": k.arg("rows", layer.read),
            "pitch": pitch,
            "row_size": k.arg(
                "row_size", w.channels * (1 if layer.across else w.width)
            ),
        }
        source, n = offset(self.x, c), layer.together
        if self.less is not None:
            given["less"] = self.less
        kind = "_s16" if layer.elem is not INT8 else "_centred" * layer.centred
        doc = "The image of four channels, two of them in each word."
        name = f"fours_dsp{kind}_whole_by{n}"
        given = {n: v for n, v in given.items() if not isinstance(v, Const)}
        with k.part(name, doc, source=source, lines=at, **given) as params:
            known = {p.name: p for p in params}
            x, to = known["source"], known["lines"]
            row, line = k.let("row", x), k.let("line", to)
            with k.loop("r", known["rows"], rolled=True):
                self._widen_row(k.let("x", row), k.let("to", line), known)
                k.assign(row, offset(row, known["row_size"]))
                k.assign(line, offset(line, known["pitch"]))
        more = {
            "out_height": k.arg("out_height", layer.image.out_height),
            "pitch": pitch,
            "y_down": self.channels if layer.across else self.out_width * self.channels,
        }
        stride = k.arg("stride", layer.image.stride_h)
        if layer.skips_rows:
            more |= {"stride": stride, "top": top, "height": given["rows"]}
        else:
            more["down"] = k.let("down", pitch * stride)
        self._sums(ends, offset(self.y, c), self.widened, more)

    def _widen(self, source: Expr, slot: Expr) -> None:
        """Widens one row of four channels into a slot."""
        k, rows = self.k, self.w.kernel_h
        at = offset(self.lines, self.left * self.step + slot)
        given = {
            "x_step": self.x_step,
            "inside": self.inside,
            "plane": self.plane,
        }
        wide16 = "_s16" if self.layer.elem is not INT8 else ""
        doc = "A row of four channels, two of them in each word."
        with k.part(
            f"fours_dsp{wide16}_{rows}_by{self.layer.together}",
            doc,
            source=source,
            lines=at,
            **given,
        ) as params:
            known = {p.name: p for p in params}
            x, to = k.let("x", known["source"]), k.let("to", known["lines"])
            self._widen_row(x, to, known)

    def _widen_row(self, x: Var, to: Var, known: Mapping[str, Var]) -> None:
        k, n, step = self.k, self.layer.together, self.step
        second = k.let("second_to", offset(to, known["plane"]))
        with k.loop("column", known["inside"], 0, n, rolled=True):
            for i in range(0, n, 2):
                pixels = []
                for _ in range(i, min(i + 2, n)):
                    pixels.append(self._pixel(x, known.get("less")))
                    k.assign(x, offset(x, known["x_step"]))
                for at, halves in zip(
                    (to, second), zip(*pixels, strict=True), strict=True
                ):
                    for j, half in enumerate(halves):
                        k.store(at, (i + j) * step, half)
            k.assign(to, offset(to, n * step))
            k.assign(second, offset(second, n * step))

    def _pixel(self, x: Var, less: Var | None) -> tuple[Var, Var]:
        """The two words of four channels of a pixel; `less`: what is added to each."""
        k = self.k
        if self.layer.elem is not INT8:
            return k.let("first", wide(x)), k.let("second", wide(x, PAIRS))
        word = k.let("word", wide(x))
        if less is not None:
            return k.let("even", ADD_EVEN(less, word)), k.let(
                "odd", ADD_ODD(less, word)
            )
        return k.let("even", EVEN_BYTES(word)), k.let("odd", ODD_BYTES(word))

    def _blank(self, slot: Expr, columns: Expr) -> None:
        k = self.k
        at = k.let("at", offset(self.lines, slot))
        with k.loop("column", columns * PAIRS, rolled=True):
            k.store(at, 0, self.fill)
            k.assign(at, offset(at, self.step))

    def _sums(
        self, ends: Expr, y: Expr, weights: Expr, more: Mapping[str, Expr] | None = None
    ) -> None:
        """The row of all four channels, or all rows, in a function of its own."""
        k, layer = self.k, self.layer
        shared = {
            "y_step": self.y_step,
            "out_width": self.out_width,
            "plane": self.plane,
            "taps_plane": self.taps_plane,
            **(more or {}),
        }
        given = {n: v for n, v in shared.items() if not isinstance(v, Const)}
        with k.part(
            f"depthwise_dsp_fours_{layer.key}_sums",
            f"Outputs of four channels: of two, {layer.pixels} pixels at a time.",
            lines=self.lines,
            weights=weights,
            epilogue=ends,
            y=y,
            **given,
            **self.finish.values,
        ) as params:
            known = {p.name: p for p in params}
            ends = k.let("next_epilogue", known["epilogue"])
            end = End(k, layer.epilogue, self.finish.inside(known), ends)
            Sums(k, layer, known, end).write()
