"""The code of conv16.py's kernels: a patch of pairs of values, then blocks of sums.

Knows no weight and no node.
"""

from __future__ import annotations

from typing import Any

from pybuild.ir.loop import (
    INT16,
    INT32,
    Expr,
    Var,
    WideLoad,
    const,
    equal,
    i32,
    load,
    minimum,
    offset,
    select,
    wide,
)
from pybuild.kernels.base.builder import Builder
from pybuild.kernels.base.intrin import DOT2, EVEN_BYTES, LOW_HALVES, ODD_BYTES
from pybuild.kernels.base.once import once
from pybuild.kernels.base.window import Bound
from pybuild.kernels.epilogues.end16 import Bound16
from pybuild.kernels.layers.sums16 import LongSums

# conv16.py's Layer
Layer = Any


@once
def kernel(layer: Layer) -> Builder:
    """y[ox,o] = finish(bias[o] + sum(x * w)), a block at a time.

    Shapes  rows x [W,C], y [OW,O]; weights of `pack`; ends of End16
    Source  columns outside the row count as x_zero; rows are the runner's
    """
    return _Writer(layer).write()


class _Writer:
    """The pieces of one kernel being written."""

    def __init__(self, layer: Layer) -> None:
        self.layer, self.w = layer, layer.window
        self.k = k = Builder(layer.name, layer.doc)
        self.g = g = Bound(k, layer.window)
        self.y = k.row("y", 0, INT16, writable=True)
        self.weights = k.row("weights", g.rows + 1, INT32)
        self.ends = k.row("epilogue", g.rows + 2, INT32)
        self.out_channels = k.arg("out_channels", self.w.out_channels)
        self.turns = k.arg("turns", layer.words // layer.unrolled)
        self.finish = Bound16(k, layer.epilogue)
        # of a group, and its first input
        self.inputs: Expr = g.channels
        self.outputs: Expr = self.out_channels
        self.start: Expr = const(0)
        self.x_zero: Expr = const(0)
        if layer.edges and layer.x_zero:
            self.x_zero = k.arg("x_zero", layer.x_zero)
        if not layer.direct:
            self.patch = k.row("patch", g.rows + 3, INT32, writable=True)

    def write(self) -> Builder:
        k, layer = self.k, self.layer
        if self.w.groups == 1:
            self._row(self.weights, self.ends, const(0))
            return k
        self.inputs = k.arg("group_inputs", self.w.group_channels)
        self.outputs = k.arg("group_outputs", layer.group_outputs)
        channels = layer.blocks * layer.channels
        words = k.arg("group_words", channels * layer.words)
        ends = k.arg("group_ends", channels * layer.epilogue.size)
        with k.loop("group", k.arg("groups", self.w.groups)) as group:
            self.start = k.let("start", group * self.inputs)
            weights = k.let("its_weights", offset(self.weights, group * words))
            its_ends = k.let("its_ends", offset(self.ends, group * ends))
            self._row(weights, its_ends, k.let("base", group * self.outputs))
        return k

    def _row(self, weights: Var, ends: Var, base: Expr) -> None:
        """Computes all pixels of a group."""
        k, g, layer = self.k, self.g, self.layer
        where = weights, ends, base
        whole = g.out_width - layer.rest if layer.rest else g.out_width
        with k.loop("ox", whole, 0, layer.pixels) as ox:
            self._pixels(layer.pixels, ox, *where)
        if layer.rest:
            self._pixels(layer.rest, k.let("last", whole), *where)

    def _pixels(
        self, count: int, ox: Expr, weights: Var, ends: Var, base: Expr
    ) -> None:
        """Computes some neighbouring pixels of a row."""
        k, g = self.k, self.g
        self.pixels = count
        if self.layer.direct:
            at = ox * g.stride * g.channels + self.start
            x: Expr = k.let("x", offset(k.row("row", 1, INT16), at))
        else:
            with k.loop("pixel", count) as pixel:
                self._gather(ox + pixel, pixel)
            x = self.patch
        at = ox * self.out_channels + base
        self._channels(x, weights, ends, offset(self.y, at))

    def _gather(self, ox: Expr, pixel: Expr) -> None:
        """Copies the window of one pixel into every so many words of the patch."""
        k, g = self.k, self.g
        to = k.let("to", offset(self.patch, pixel))
        x0 = k.let("x0", ox * g.stride - g.left)
        if not self.w.padded:
            self._inside(x0, to)
            return
        with k.when(g.fits(x0)):
            self._inside(x0, to)
        with k.otherwise():
            if self.layer.edges.startswith("odd"):
                self._halves(x0, to)
            else:
                self._columns(x0, to)

    def _inside(self, x0: Expr, to: Var) -> None:
        """A window that lies in the row."""
        k, g = self.k, self.g
        begin = k.let("begin", x0 * g.channels + self.start)
        run = self.inputs if self.w.by_taps else self.inputs * g.kernel_w
        run = k.let("run", run)
        with g.runs(k, begin, INT16) as x:
            self._copy(x, run, to)

    def _copy(self, x: Var, count: Expr, to: Var) -> None:
        """A run of values, two a word; the last may be alone."""
        k, n, words = self.k, self.pixels, self.layer.copied
        odd = self.layer.run % 2
        if self.layer.run > 1:
            with k.loop("at", count - 1 if odd else count, 0, 2 * words) as at:
                for i in range(words):
                    k.store(to, i * n, wide(x, at + 2 * i))
                k.assign(to, offset(to, words * n))
        if odd:
            k.store(to, 0, i32(load(x, count - 1)))
            k.assign(to, offset(to, n))

    def _columns(self, x0: Expr, to: Var) -> None:
        """A window that leaves the row, column by column, each of whole words."""
        k, g, n = self.k, self.g, self.pixels
        with g.columns(k, x0, INT16) as (inside, source):
            with k.when(inside):
                x = k.let("x", offset(source, self.start))
                with k.loop("at", self.inputs, 0, 2) as at:
                    k.store(to, 0, wide(x, at))
                    k.assign(to, offset(to, n))
            with k.otherwise():
                both = self.x_zero
                if self.layer.x_zero:
                    both = k.let("both", LOW_HALVES(both, both))
                with k.loop("at", self.inputs, 0, 2):
                    k.store(to, 0, both)
                    k.assign(to, offset(to, n))

    def _halves(self, x0: Expr, to: Var) -> None:
        """Copies value by value, because a column may end within a word."""
        k, g, n = self.k, self.g, self.pixels
        lane, word = k.let("lane", 0), k.let("word", 0)
        with k.loop("ky", g.kernel_h) as ky:
            row = k.row("row", ky * g.dilation_h + 1, INT16)
            with k.loop("kx", g.kernel_w) as kx:
                column = k.let("column", x0 + kx * g.dilation_w)
                inside = const(0) <= minimum(column, g.width - 1 - column)
                x = k.let("x", offset(row, column * g.channels + self.start))
                with k.loop("at", self.inputs) as at:
                    value = k.let("value", self.x_zero)
                    with k.when(inside):
                        k.assign(value, i32(load(x, at)))
                    # the high half of a word that ends here has a weight of 0
                    both = LOW_HALVES(word, value)
                    k.assign(word, select(equal(lane & 1, 0), value, both))
                    k.store(to, (lane >> 1) * n, word)
                    k.assign(lane, lane + 1)
                if self.w.by_taps:
                    k.assign(lane, lane + (lane & 1))
            k.assign(lane, lane + (lane & 1))

    def _channels(self, x: Expr, weights: Expr, ends: Expr, y: Expr) -> None:
        """Computes all output channels of some pixels, in a separate function."""
        k, layer = self.k, self.layer
        given: dict[str, Expr] = {
            "x": x,
            "weights": weights,
            "epilogue": ends,
            "y": y,
            "outputs": self.outputs,
            "turns": self.turns,
        }
        if self.pixels > 1:
            given["out_channels"] = self.out_channels
        if layer.run_turns:
            turns = layer.words // layer.unrolled
            given["run_turns"] = k.arg("run_turns", layer.run_turns)
            given["runs"] = k.arg("runs", -(-turns // layer.run_turns))
        given |= self.finish.values
        name = f"dot16_dsp_{layer.sum_key(self.pixels)}"
        with k.part(name, layer.part_doc(self.pixels), **given) as params:
            known = {p.name: p for p in params}
            _Sums(k, layer, self.pixels, known, self.finish.inside(known)).write()


class _Sums:
    """The part of a kernel that multiplies a patch with all weights."""

    def __init__(
        self, k: Builder, layer: Layer, pixels: int, known: dict[str, Var],
        finish: Bound16,
    ) -> None:  # fmt: skip
        self.k, self.layer, self.pixels = k, layer, pixels
        self.known, self.finish = known, finish

    def write(self) -> None:
        k, known, n = self.k, self.known, self.layer.channels
        w, ends = (
            k.let("w", known["weights"]),
            k.let("next_epilogue", known["epilogue"]),
        )
        outputs = known["outputs"]
        with k.loop("channel", outputs, 0, n, rolled=True) as channel:
            first: Expr = channel
            if self.layer.group_outputs % n:
                first = k.let("first", minimum(channel, outputs - n))
            self._block(w, ends, k.let("out", offset(known["y"], first)))
            k.assign(ends, offset(ends, n * self.layer.epilogue.size))

    def _block(self, w: Var, ends: Var, y: Var) -> None:
        k, layer, size = self.k, self.layer, self.layer.epilogue.size
        sums = []
        for c in range(layer.channels):
            start = k.let(f"start{c}", self.finish.start(ends, size * c))
            sums.append([k.let(f"sum{c}_{p}", start) for p in range(self.pixels)])
        x = k.let("at", self.known["x"])
        if layer.run_turns:
            sums = self._runs(sums, w, x)
        else:
            self._turns(self.known["turns"], sums, w, x)
        step = self.known.get("out_channels", const(0))
        for c, accs in enumerate(sums):
            at = size * c
            row = self.finish.row(k, ends, at)
            each = [(acc, y, step * p + c) for p, acc in enumerate(accs)]
            self.finish.store(k, each, row, offset(ends, at))

    def _turns(self, count: Expr, sums: list[list[Var]], w: Var, x: Var) -> None:
        k, layer = self.k, self.layer
        unrolled, step = layer.unrolled, 4 if layer.direct else 2 * self.pixels
        with k.loop("turn", count, rolled=True):
            for word in range(unrolled):
                self._word(sums, w, x, word)
            k.assign(w, offset(w, unrolled * layer.channels))
            k.assign(x, offset(x, unrolled * step))

    def _runs(self, sums: list[list[Var]], w: Var, x: Var) -> list[list[Var]]:
        """The sums of each run are added to sums of 64 bits."""
        known, longs = self.known, LongSums(self.k, sums)
        longs.add_runs(
            known["runs"], known["turns"], known["run_turns"],
            lambda count: self._turns(count, sums, w, x),
        )  # fmt: skip
        return longs.totals

    def _word(self, sums: list[list[Var]], w: Var, x: Var, word: int) -> None:
        """Adds four taps: two pairs for each channel, each multiplied with values of
        all pixels."""
        k, layer = self.k, self.layer
        fours = [
            k.let("four", load(w, word * layer.channels + c))
            for c in range(layer.channels)
        ]
        many = layer.widened_together
        for half, widened in enumerate((EVEN_BYTES, ODD_BYTES)):
            first = (2 * word + half) * self.pixels
            values: list[Var] = []
            for c in range(0, layer.channels, many):
                pairs = [k.let("pair", widened(four)) for four in fours[c : c + many]]
                for p in range(self.pixels):
                    if p == len(values):
                        values += self._values(x, first, p)
                    for accs, pair in zip(sums[c : c + many], pairs, strict=True):
                        k.assign(accs[p], DOT2(values[p], pair, accs[p]))

    def _values(self, x: Var, first: int, pixel: int) -> list[Var]:
        """Two taps of a pixel and of the next, or of all: one instruction loads two
        neighbours."""
        many = 2 if self.layer.widened_together > 1 else self.pixels
        at = range(first + pixel, first + min(pixel + many, self.pixels))
        return [self.k.let("value", self._value(x, word)) for word in at]

    def _value(self, x: Var, word: int) -> Expr:
        """Loads two taps of a pixel."""
        if self.layer.direct:
            return WideLoad(x, const(2 * word), INT32, 2)
        return load(x, word)
