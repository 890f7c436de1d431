"""The code of depthwise_dsp.py's kernels: rows of widened channels, then sums.

Knows no weight and no node.
"""

from __future__ import annotations

from collections.abc import Sequence

from pybuild.kernels.affine_finish import AffineFinish, is_usual, kind
from pybuild.kernels.builder import Builder
from pybuild.kernels.depthwise_dsp_layer import GROUP, UNROLLED, Image, Layer
from pybuild.kernels.depthwise_dsp_sums import Sums
from pybuild.kernels.intrin import EVEN_BYTES, ODD_BYTES
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
        self.packed = k.row("weights", after, INT32)
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
        self.finish = AffineFinish(k, layer.ending, is_usual(layer.ending))
        self.half = self.pitch * self._slots
        at = k.arg("weights_at", 2 * layer.slots * layer.pitch)
        self.weights = offset(self.lines, at)

    @property
    def _slots(self) -> Expr:
        return self.rows if self.layer.image else const(self.w.kernel_h)

    def write(self) -> Builder:
        k, w = self.k, self.w
        self.half = k.let("half_size", self.half)
        packed, ends = k.let("w", self.packed), k.let("end", self.ends)
        self.weights = weights = k.let("widened", self.weights)
        if w.padded:
            # margins never change: they are written once
            with k.loop("at", self.half * 2, rolled=True) as at:
                k.store(self.lines, at, self.fill)
        with k.loop("c", self.channels, 0, GROUP) as c:
            if w.channels % GROUP:
                c = k.let("first", minimum(c, self.channels - GROUP))
            with k.loop("tap", self.layer.taps, rolled=True) as tap:
                self._weights(load(packed, tap), tap)
            if self.layer.image is None:
                with k.loop("ky", w.kernel_h) as ky:
                    row = k.row("row", ky * self.dilation_h + 1, INT8)
                    self._widen(offset(row, c), ky)
                at_rows = [const(0)] * w.kernel_h
                self._halves(weights, ends, offset(self.y, c), at_rows, const(0))
            else:
                self._image(self.layer.image, weights, ends, c)
            size = 8 if self.layer.ending.below is None else 16
            k.assign(packed, offset(packed, self.layer.taps))
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

    def _weights(self, word: Expr, tap: Expr) -> None:
        """The weights of four channels as int16, times 256, into the two halves."""
        k = self.k
        word = k.let("word", word)
        even = k.let("even", EVEN_BYTES(word))
        low = (even & 0xFF) * 256
        k.store(self.weights, tap, (even >> 16) * (1 << 24) + low)
        k.store(self.weights, tap + self.layer.taps, word & -0xFF0100)

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
            inner = Sums(self.k, self.layer, {**shared, **known}, self.finish, known)
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
            kind(layer.ending, is_usual(layer.ending)),
        )
        return "_".join(p for p in parts if p)
