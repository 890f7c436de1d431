"""The sums of fours_code.py's kernels: two channels of a few pixels.

Knows no weight and no node.
"""

from __future__ import annotations

from collections.abc import Mapping

from pybuild.ir.loop import INT8, Expr, Var, const, load, maximum, minimum, offset
from pybuild.kernels.base.builder import Builder
from pybuild.kernels.base.intrin import IN_ORDER, MLA_HIGH, MLA_LOW
from pybuild.kernels.dsp.fours_end import End
from pybuild.kernels.dsp.fours_layer import PAIRS, Layer
from pybuild.kernels.layers.depthwise import UNROLLED


class Sums:
    """The part of a kernel that sums a row of four channels that are widened."""

    def __init__(
        self, k: Builder, layer: Layer, known: Mapping[str, Var], end: End
    ) -> None:
        self.k, self.layer, self.known, self.end = k, layer, known, end
        # of the channels of a word, and from the first of one to that of the next
        self.two, self.next = ((0, 2), 1) if layer.elem is INT8 else ((0, 1), 2)
        # rows of a window
        self.rows: Expr = const(layer.window.kernel_h)

    def write(self) -> None:
        """Computes two channels, then the other two."""
        k, known = self.k, self.known
        taps, plane = k.let("taps", known["weights"]), k.let("plane", known["lines"])
        out = k.let("out", known["y"])
        with k.loop("half", PAIRS, rolled=True):
            x, to = k.let("line", plane), k.let("to", out)
            if self.layer.whole:
                with k.loop("oy", known["out_height"], rolled=True) as oy:
                    if self.layer.skips_rows:
                        self._inside(oy, x, taps, to)
                    else:
                        self._pixels(x, taps, to)
                        k.assign(x, offset(x, known["down"]))
                    k.assign(to, offset(to, known["y_down"]))
            else:
                self._pixels(x, taps, to)
            k.assign(taps, offset(taps, known["taps_plane"]))
            k.assign(plane, offset(plane, known["plane"]))
            k.assign(out, offset(out, self.next))
            self.end.step(self.next)

    def _inside(self, oy: Expr, plane: Var, taps: Var, out: Var) -> None:
        """A row of outputs, of the rows of its windows that lie in the image."""
        k, known, layer = self.k, self.known, self.layer
        above = k.let("above", self._known("top") - oy * self._known("stride"))
        first = k.let("first", maximum(above, 0))
        last = minimum(above + known["height"], layer.window.kernel_h)
        self.rows = k.let("inside", last - first)
        line = k.let("inner", offset(plane, (first - above) * known["pitch"]))
        self._pixels(
            line, k.let("inner_taps", offset(taps, first * layer.row_words)), out
        )

    def _known(self, name: str) -> Expr:
        """The argument of that name, or the constant 0."""
        return self.known.get(name, const(0))

    def _pixels(self, line: Var, taps: Var, out: Var) -> None:
        """A row of outputs."""
        k, known, layer, n = self.k, self.known, self.layer, self.layer.pixels
        if layer.once:
            self._block(n, line, taps, out)
            return
        if layer.skips_columns:
            count = layer.window.out_width
            for first in range(0, count, n):
                to = offset(out, known["y_step"] * first)
                self._block(min(n, count - first), line, taps, k.let("y_at", to), first)
            return
        x, to, whole = k.let("at", line), k.let("y_at", out), known["out_width"]
        with k.loop("ox", whole - layer.rest, 0, n, rolled=True):
            self._block(n, x, taps, to)
            k.assign(x, offset(x, n * layer.window.stride_w * layer.step))
            k.assign(to, offset(to, known["y_step"] * n))
        if layer.rest:
            self._block(layer.rest, x, taps, to)

    def _block(self, pixels: int, x: Var, taps: Var, to: Var, first: int = 0) -> None:
        """So many pixels of two channels; `first`: as `Layer.uses` has it."""
        k, layer, rows = self.k, self.layer, self.layer.window.kernel_h
        down: Expr = self.known["pitch"] if layer.whole else const(1)
        starts = [k.let("start", self.end.start(c)) for c in self.two]
        sums = [[k.let(f"sum{i}", start) for i in range(pixels)] for start in starts]
        # gcc would keep the weights, on the stack, for all rows
        k.assign(sums[0][0], IN_ORDER(sums[0][0]))
        if layer.taps <= UNROLLED:
            for row in range(rows):
                line = k.let("line", offset(x, down * row)) if row else x
                self._row(sums, line, taps, row * layer.row_words, first)
        else:
            tap, line = k.let("row_taps", taps), k.let("line", x)
            with k.loop("row", self.rows, rolled=True):
                self._row(sums, line, tap, 0, first)
                k.assign(tap, offset(tap, layer.row_words))
                k.assign(line, offset(line, down))
        for channel, accs in zip(self.two, sums, strict=True):
            self.end.store(channel, accs, to, self.known["y_step"])

    def _row(
        self, sums: list[list[Var]], x: Var, taps: Var, first: int, pixel: int
    ) -> None:
        """A row of taps; one instruction loads two words that are neighbours."""
        k, step = self.k, self.layer.step
        found = self.layer.uses(len(sums[0]), pixel)
        used = {kx for uses in found.values() for _, kx in uses}
        values, words = dict[int, Var](), dict[int, Var]()
        for column, uses in found.items():
            if column not in values:
                both = [c for c in (column, column + 1) if c in found]
                for c in both if step == 1 else both[:1]:
                    values[c] = k.let("value", load(x, c * step))
            for i, kx in uses:
                if kx not in words:
                    for at in sorted({kx, kx + 1} & used):
                        words[at] = k.let("tap", load(taps, first + at))
                for accs, product in zip(sums, (MLA_LOW, MLA_HIGH), strict=True):
                    k.assign(accs[i], product(values[column], words[kx], accs[i]))
