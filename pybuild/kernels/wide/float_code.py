"""The code of floats.py's kernels: rows as they are, or copied with their padding, then
products by lanes. Knows no weight and no node.
"""

from __future__ import annotations

from pybuild.ir.loop import (
    FLOAT32,
    INT16,
    INT32,
    Expr,
    Var,
    const,
    load,
    minimum,
    offset,
)
from pybuild.kernels.base.builder import Builder
from pybuild.kernels.base.once import once
from pybuild.kernels.base.reals import FROM_HALVES4, FROM_HIGH_HALVES4
from pybuild.kernels.base.vectors import words_at
from pybuild.kernels.base.window import Bound
from pybuild.kernels.wide.float_layer import FloatLayer


@once
def kernel(layer: FloatLayer) -> Builder:
    """y[ox,o] = clamp(bias[o] + sum(x * w)), taps in their order.

    Shapes  rows x [W,C], y [OW,O]; weights of floats.pack; bias [O]
    Source  columns outside the row count as 0; rows are the runner's
    """
    return _Writer(layer).write()


class _Writer:
    """The pieces of one kernel being written."""

    def __init__(self, layer: FloatLayer) -> None:
        self.layer, w, self.v = layer, layer.window, layer.vectors
        self.k = k = Builder(layer.name, layer.doc)
        self.g = g = Bound(k, w)
        self.y = k.row("y", 0, FLOAT32, writable=True)
        kind = FLOAT32
        if layer.halves:
            kind = INT32 if layer.in_pairs else INT16
        self.weights = k.row("weights", g.rows + 1, kind)
        self.bias = k.row("bias", g.rows + 2, FLOAT32)
        self.low, self.high = layer.finish.bind_ends(k, g.rows + 3)
        after = g.rows + 3 + len(layer.finish.tables())
        self.words: Expr = const(0)  # weights of one or two vectors
        self.copies: Var | None = None
        if w.padded:
            self.copies = k.row("copies", after, FLOAT32, writable=True)
            self.row_values = k.arg("row_values", layer.row)
        self.out_channels = k.arg("out_channels", w.out_channels)
        self.turns = k.arg("turns", w.run // layer.unrolled)

    def write(self) -> Builder:
        """The last pixels of a row may be computed twice."""
        k, g, layer = self.k, self.g, self.layer
        if self.copies is not None:
            self._rows(self.copies)
        with k.loop("at", g.out_width, 0, layer.pixels, rolled=True) as at:
            ox: Expr = at
            if layer.window.out_width % layer.pixels:
                ox = k.let("ox", minimum(at, g.out_width - layer.pixels))
            first = k.let("column", ox * g.stride * g.channels)
            self._blocks(first, k.let("to", offset(self.y, ox * self.out_channels)))
        return k

    def _rows(self, copies: Var) -> None:
        """The rows under the windows, with zeros beside them."""
        k, g, w = self.k, self.g, self.layer.window
        inside = min(w.width, w.columns - w.left) * w.channels
        count = k.arg("copied", inside)
        with k.loop("ky", g.kernel_h) as ky:
            to = k.let("to", offset(copies, ky * self.row_values))
            if w.left:
                left = k.let("before", g.left * g.channels)
                self._zeros(to, left)
                k.assign(to, offset(to, left))
            x = k.row("row", ky * g.dilation_h + 1, FLOAT32)
            with k.loop("value", count) as value:
                k.store(to, value, load(x, value))
            if w.right:
                k.assign(to, offset(to, count))
                self._zeros(to, k.arg("right", w.right) * g.channels)

    def _zeros(self, to: Var, count: Expr) -> None:
        with self.k.loop("value", count) as value:
            self.k.store(to, value, const(0.0, FLOAT32))

    def _blocks(self, first: Var, to: Var) -> None:
        """All output channels of some pixels."""
        k, layer, count = self.k, self.layer, self.out_channels
        w = k.let("w", self.weights)
        with k.loop("channel", count, 0, layer.together, rolled=True) as channel:
            at: Expr = channel
            if layer.window.out_channels % layer.together:
                at = k.let("first", minimum(channel, count - layer.together))
            for pixel, vectors in enumerate(self._sums(first, w, at)):
                for i, total in enumerate(vectors):
                    value = self.v.clamped(total, self.low, self.high)
                    k.store(to, at + count * pixel + self.v.lanes * i, value)

    def _sums(self, first: Var, w: Var, channel: Expr) -> list[list[Var]]:
        """The sums of each pixel, for each vector of channels."""
        k, g, layer = self.k, self.g, self.layer
        starts = [
            k.let("start", self.v.at(self.bias, channel + self.v.lanes * i))
            for i in range(layer.blocks)
        ]
        sums = [
            [k.let(f"sum{pixel}_{i}", start) for i, start in enumerate(starts)]
            for pixel in range(layer.pixels)
        ]
        with k.loop("ky", g.kernel_h) as ky, k.loop("kx", g.row_runs) as kx:
            row: Expr = k.row("row", ky * g.dilation_h + 1, FLOAT32)
            if self.copies is not None:
                row = offset(self.copies, ky * self.row_values)
            at = first + kx * (g.dilation_w * g.channels)
            x = k.let("x", offset(row, at))
            with k.loop("turn", self.turns, rolled=True):
                for tap in range(layer.unrolled):
                    self._tap(sums, w, x, tap)
                k.assign(w, offset(w, layer.unrolled * self.tap_elements))
                k.assign(x, offset(x, layer.unrolled))
        return sums

    def _tap(self, sums: list[list[Var]], w: Var, x: Var, tap: int) -> None:
        """A vector of weights for each block, for all pixels."""
        k, layer = self.k, self.layer
        begin = self.tap_elements * tap
        weights = [self._weight(w, begin, i) for i in range(layer.blocks)]
        for pixel, vectors in enumerate(sums):
            value = k.let("value", load(x, layer.pitch * pixel + tap))
            for total, weight in zip(vectors, weights, strict=True):
                k.assign(total, self.v.add_product(total, value, weight))

    @property
    def tap_elements(self) -> int:
        """Elements of the weights of a tap: two in a word, or one each."""
        together = self.layer.together
        return together // 2 if self.layer.in_pairs else together

    def _weight(self, w: Var, begin: int, block: int) -> Var:
        """A vector of weights of a tap, whose weights begin there."""
        k, lanes = self.k, self.v.lanes
        if not self.layer.halves:
            return k.let("weight", self.v.at(w, begin + lanes * block))
        if self.layer.in_pairs and block % 2:
            return k.let("weight", FROM_HIGH_HALVES4(self.words))
        at = block // 2 if self.layer.in_pairs else block
        self.words = k.let("halves", words_at(w, begin + lanes * at))
        return k.let("weight", FROM_HALVES4(self.words))
