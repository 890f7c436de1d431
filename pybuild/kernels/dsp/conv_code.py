"""The code of conv.py's kernels: a patch of widened pixels, then all products.

Knows no weight and no node.
"""

from __future__ import annotations

from collections.abc import Sequence

from pybuild.ir.loop import (
    INT8,
    INT32,
    Expr,
    Operand,
    Var,
    cast,
    const,
    load,
    minimum,
    offset,
    wide,
)
from pybuild.kernels.base.builder import Builder
from pybuild.kernels.base.intrin import DOT2, EVEN_BYTES, ODD_BYTES
from pybuild.kernels.base.once import once
from pybuild.kernels.base.window import Bound
from pybuild.kernels.epilogues.affine_end import AffineFinish, corrected, is_usual, kind
from pybuild.kernels.layers.conv import WRITTEN_OUT, Layer


@once
def kernel(layer: Layer) -> Builder:
    """y[ox,o] = clamp(requant(bias[o] + sum(x * w))), a few pixels at a time.

    Shapes  rows x [W,C], y [OW,O]; weights of `pack`; ends of `table`
    Source  columns outside the row count as x_zero; rows are the runner's
    """
    return _Writer(layer).write()


class _Writer:
    """The pieces of one kernel being written."""

    def __init__(self, layer: Layer) -> None:
        self.layer = layer
        self.k = k = Builder(layer.name, layer.doc)
        self.g = g = Bound(k, layer.window)
        self.y = k.row("y", 0, INT8, writable=True)
        self.weights = k.row("weights", g.rows + 1, INT32)
        self.ends = k.row("epilogue", g.rows + 2, INT32)
        if not layer.direct:
            self.scratch = k.row("patch", g.rows + 3, INT32, writable=True)
        self.out_channels = k.arg("out_channels", layer.window.out_channels)
        # of a group, and the first of its bytes of a pixel
        self.outputs, self.inputs = self.out_channels, g.channels
        self.first: Expr = const(0)
        if layer.window.groups > 1:
            self.outputs = k.arg("group_outputs", layer.outputs)
            self.inputs = k.arg("group_inputs", layer.window.group_channels)
        self.turns = k.arg("turns", len(layer.order) // 2 // layer.unrolled)
        self.run = self._run()
        self.finish = AffineFinish(k, layer.ending, is_usual(layer.ending))
        if layer.window.padded:
            zeros = layer.x_zero * 65536 + (layer.x_zero & 0xFFFF)
            self.x_zeros = k.arg("x_zeros", zeros)
        if layer.copies:
            spare = k.row("spare", g.rows + 3, INT8, writable=True)
            at = k.arg("patch_bytes", 4 * layer.patch)
            self.outside = k.let("outside", offset(spare, at))

    def _run(self) -> Expr:
        """Layer.run."""
        k, g, w = self.k, self.g, self.layer.window
        if self.layer.run <= WRITTEN_OUT:
            return const(self.layer.run)
        if self.layer.gathered:
            return k.let("run", self.inputs * g.kernel_w * g.kernel_h)
        if w.pointwise or w.by_taps:
            return self.inputs
        return k.let("run", self.inputs * g.kernel_w)

    def write(self) -> Builder:
        k, w = self.k, self.layer.window
        if w.groups == 1:
            self._row()
            return k
        self.first = first = k.let("first", 0)
        self.weights = weights = k.let("group_weights", self.weights)
        self.ends = ends = k.let("group_ends", self.ends)
        self.y = y = k.let("group_y", self.y)
        words = k.arg("words", self.layer.pairs * len(self.layer.order) // 2)
        end_words = k.arg("end_words", self.layer.pairs * self.layer.end_size)
        with k.loop("group", k.arg("groups", w.groups)):
            self._row()
            k.assign(first, first + self.inputs)
            k.assign(weights, offset(weights, words))
            k.assign(ends, offset(ends, end_words))
            k.assign(y, offset(y, self.outputs))
        return k

    def _row(self) -> None:
        """All pixels, a few at a time."""
        k, g, n = self.k, self.g, self.layer.pixels
        if n > 1:
            # where no layer has one, the code for it falls away
            left_over = const(0) < k.arg("left_over", self.layer.window.out_width % n)
        with k.loop("ox", g.out_width, 0, n) as ox:
            if self.layer.direct:
                x = k.row("x", 1, INT8)
                self._channels(1, ox, offset(x, ox * g.stride * g.channels))
                return
            if n == 1:
                self._gather(ox, self.scratch)
                self._channels(1, ox, self.scratch)
                return
            count = k.let("count", minimum(g.out_width - ox, n))
            with k.loop("i", count) as i:
                self._gather(ox + i, offset(self.scratch, i))
            with k.when(const(n) <= count):
                self._channels(n, ox, self.scratch)
            with k.otherwise(), k.when(left_over), k.loop("i", count) as i:
                self._channels(1, ox + i, offset(self.scratch, i))

    def _gather(self, ox: Expr, patch: Expr) -> None:
        """Widens the window of one pixel into every so many words of the patch."""
        k, g, w = self.k, self.g, self.layer.window
        to = k.let("to", patch)
        x0 = k.let("x0", ox * g.stride - g.left)
        if not w.padded:
            self._inside(x0, to)
            return
        with k.when(g.fits(x0)):
            self._inside(x0, to)
        with k.otherwise():
            if self.layer.copies:
                self._copied(x0, to)
            else:
                self._columns(x0, to)

    def _inside(self, x0: Expr, to: Var) -> None:
        """A window that lies in the row."""
        k, g = self.k, self.g
        begin = k.let("begin", self._at(x0 * g.channels))
        for ky in range(self.layer.written_rows):
            row = k.row("row", ky + 1, INT8)
            x = k.let("x", offset(row, begin))
            self._widen(x, to, self.run, self.layer.run, WRITTEN_OUT)
        if self.layer.written_rows:
            return
        if not self.layer.gathered:
            with g.runs(k, begin, INT8) as x:
                self._widen(x, to, self.run, self.layer.run, WRITTEN_OUT)
            return
        copy, run = k.let("copy", self.outside), self.layer.window.run
        with g.runs(k, begin, INT8) as x:
            for byte in range(run):
                k.store(copy, byte, load(x, byte))
            k.assign(copy, offset(copy, run))
        self._widen_copy(to)

    def _at(self, at: Expr) -> Expr:
        """Where the group's channels begin, of a pixel that begins there."""
        return at if self.layer.window.groups == 1 else at + self.first

    def _columns(self, x0: Expr, to: Var) -> None:
        """A window that leaves the row, in columns of whole words."""
        k, g = self.k, self.g
        with g.columns(k, x0, INT8) as (inside, source):
            with k.when(inside):
                x = k.let("x", self._group(source))
                self._widen(x, to, self.inputs, self.layer.window.group_channels, 0)
            with k.otherwise(), k.loop("at", self.inputs, 0, 4, rolled=True):
                k.store(to, 0, self.x_zeros)
                k.store(to, self.layer.pixels, self.x_zeros)
                k.assign(to, offset(to, 2 * self.layer.pixels))

    def _copied(self, x0: Expr, to: Var) -> None:
        """A window that leaves the row, copied byte by byte and then widened."""
        k, g = self.k, self.g
        copy = k.let("copy", self.outside)
        with g.columns(k, x0, INT8) as (inside, source):
            with k.when(inside):
                x = k.let("x", self._group(source))
                with k.loop("c", self.inputs, rolled=True) as c:
                    k.store(copy, c, load(x, c))
            with k.otherwise(), k.loop("c", self.inputs, rolled=True) as c:
                k.store(copy, c, cast(self.x_zeros, INT8))
            k.assign(copy, offset(copy, self.inputs))
        self._widen_copy(to)

    def _group(self, pixel: Expr) -> Expr:
        """The group's channels of a pixel."""
        return pixel if self.layer.window.groups == 1 else offset(pixel, self.first)

    def _widen_copy(self, to: Var) -> None:
        """A window that was put together byte by byte."""
        k, g = self.k, self.g
        spare = k.let("spare", self.outside)
        runs = const(1) if self.layer.gathered else g.kernel_h * g.row_runs
        with k.loop("run", runs):
            self._widen(spare, to, self.run, self.layer.run, WRITTEN_OUT)
            k.assign(spare, offset(spare, self.run))

    def _widen(
        self, x: Var, to: Var, count: Expr, known: int, written_out: int
    ) -> None:
        """`count` bytes; `known`: as many, of which the code may depend on the form."""
        k, step = self.k, self.layer.pixels
        if known <= written_out:
            for first in range(0, known - 3, 4):
                self._word(x, first, to, first // 2 * step)
            k.assign(to, offset(to, known // 4 * 2 * step))
            count = const(known)
        else:
            words = 2 if known % 8 == 0 else 1
            with k.loop("at", count - 3, 0, 4 * words, rolled=True) as at:
                for i in range(words):
                    self._word(x, at + 4 * i, to, 2 * i * step)
                k.assign(to, offset(to, 2 * words * step))
        tail = known % 4
        if tail:
            word = k.let("word", wide(x, count - 4))
            if tail > 1:
                k.store(to, 0, EVEN_BYTES(word))
            k.store(to, step if tail > 1 else 0, ODD_BYTES(word))
            k.assign(to, offset(to, step * min(tail, 2)))

    def _word(self, x: Var, at: Operand, to: Var, first: int) -> None:
        k = self.k
        word = k.let("word", wide(x, at))
        k.store(to, first, EVEN_BYTES(word))
        k.store(to, first + self.layer.pixels, ODD_BYTES(word))

    def _channels(self, pixels: int, ox: Expr, patch: Expr) -> None:
        """All output channels of some pixels, in a function of their own."""
        k = self.k
        outer = (self.out_channels, self.outputs, self.turns, self.finish)
        given = {"out_channels": self.out_channels}
        if self.layer.window.groups > 1:
            given = {"outputs": self.outputs, **given}
        with k.part(
            self._part_name(pixels),
            self.layer.part_doc(pixels),
            taps=patch,
            weights=self.weights,
            epilogue=self.ends,
            y=offset(self.y, ox * self.out_channels),
            **given,
            turns=self.turns,
            **self.finish.values,
        ) as params:
            inner = {p.name: p for p in params}
            self.out_channels, self.turns = inner["out_channels"], inner["turns"]
            self.outputs = inner.get("outputs", self.out_channels)
            self.finish = self.finish.inside(inner)
            where = (inner["weights"], inner["epilogue"], inner["y"])
            self._blocks(pixels, where, inner["taps"])
        self.out_channels, self.outputs, self.turns, self.finish = outer

    def _part_name(self, pixels: int) -> str:
        """What distinguishes the code of two layers here."""
        layer = self.layer
        parts = (
            f"dot_dsp_{pixels}of{layer.pixels}_by{layer.unrolled}",
            "direct" if layer.direct else "",
            f"blocks{layer.blocks}" if layer.whole else "",
            "rest" if 0 < layer.whole < layer.outputs else "",
            layer.odd,
            "grouped" if layer.window.groups > 1 else "",
            "twice" if pixels < layer.pixels and layer.twice else "",
            kind(layer.ending, is_usual(layer.ending)),
        )
        return "_".join(p for p in parts if p)

    def _blocks(self, pixels: int, where: tuple[Expr, Expr, Expr], patch: Expr) -> None:
        """Blocks of pairs of output channels, then single pairs."""
        k, layer, (weights, table_of_ends, y) = self.k, self.layer, where
        memory = (k.let("w", weights), k.let("end", table_of_ends), patch)
        if layer.lone:
            self._lone(pixels, memory, y)
            return
        start: Expr = const(0)
        if layer.whole:
            across = 2 if pixels < layer.pixels and layer.twice else 1
            stop, size = self.outputs, 2 * layer.blocks * across
            if layer.whole < layer.outputs:
                stop = k.let("whole", stop - stop % size)
            with k.loop("channel", stop, start, size) as channel:
                self._block(pixels, layer.blocks, memory, y, channel, across)
            start = stop
        if layer.whole < layer.outputs:
            with k.loop("channel", self.outputs, start, 2) as channel:
                if layer.outputs % 2:
                    channel = k.let("first", minimum(channel, self.outputs - 2))
                self._block(pixels, 1, memory, y, channel)

    def _lone(self, pixels: int, where: tuple[Var, Var, Expr], y: Expr) -> None:
        """The only output channel."""
        k, layer, (w, ends, patch) = self.k, self.layer, where
        sums = [k.let(f"sum{p}", load(ends, 0)) for p in range(pixels)]
        x = k.let("x", patch)
        with k.loop("turn", self.turns, rolled=True):
            for tap in range(layer.unrolled):
                pair = k.let("pair", load(w, tap))
                values = self._values(x, tap, pixels)
                for value, total in zip(values, sums, strict=True):
                    k.assign(total, DOT2(value, pair, total))
            k.assign(w, offset(w, layer.unrolled))
            k.assign(x, offset(x, layer.unrolled * layer.step))
        plus, *minus, factor = (
            k.let(f"end{i}", load(ends, i)) for i in range(1, layer.end_size)
        )
        for p, total in enumerate(sums):
            scaled = total * 256 + plus
            if minus:
                scaled = corrected(k.let("scaled", total * 256), plus, minus[0])
            k.store(y, self.out_channels * p, self.finish.narrow(scaled, factor))

    def _block(
        self, pixels: int, blocks: int, where: tuple[Var, Var, Expr], y: Expr,
        channel: Expr, across: int = 1,
    ) -> None:  # fmt: skip
        """`blocks` pairs of output channels; `across`: of so many blocks, one after the
        other in flash."""
        k, (w, ends, patch) = self.k, where
        size = self.layer.end_size
        signed = self.layer.ending.below is not None
        sums = [
            [
                (
                    k.let(f"both{b}_{p}", load(ends, b * size)),
                    k.let(f"low{b}_{p}", load(ends, b * size + 1) if signed else 0),
                )
                for p in range(pixels)
            ]
            for b in range(blocks * across)
        ]
        words = [w]
        if across > 1:
            after = self.turns * (self.layer.unrolled * blocks)
            words.append(k.let("next", offset(w, after)))
        x = k.let("x", patch)
        with k.loop("turn", self.turns, rolled=True):
            for tap in range(self.layer.unrolled):
                self._multiply(sums, words, x, tap)
            for pairs in words:
                k.assign(pairs, offset(pairs, self.layer.unrolled * blocks))
            k.assign(x, offset(x, self.layer.unrolled * self.layer.step))
        if across > 1:
            k.assign(w, words[-1])
        for b in range(blocks * across):
            self._finish(sums[b], offset(ends, b * size), offset(y, channel + 2 * b))
        k.assign(ends, offset(ends, size * blocks * across))

    def _multiply(
        self, sums: list[list[tuple[Var, Var]]], words: list[Var], x: Var, tap: int
    ) -> None:
        k, blocks = self.k, len(sums) // len(words)
        values: list[Var] = []
        for b, block in enumerate(sums):
            at = tap * blocks + b % blocks
            pair = k.let("pair", load(words[b // blocks], at))
            if b == 0:
                values = self._values(x, tap, len(block))
            for value, (both, _) in zip(values, block, strict=True):
                k.assign(both, DOT2(value, pair, both))
            low = k.let("single", EVEN_BYTES(pair))
            for value, (_, alone) in zip(values, block, strict=True):
                k.assign(alone, DOT2(value, low, alone))

    def _values(self, x: Var, tap: int, pixels: int) -> list[Var]:
        """A pair of taps of each pixel: neighbours, so one load may read two; or half
        of the bytes of a word."""
        k, step = self.k, self.layer.pixels
        if not self.layer.direct:
            at = range(tap * step, tap * step + pixels)
            return [k.let("value", load(x, i)) for i in at]
        if tap % 2 == 0:
            self.word = k.let("word", wide(x, 2 * tap))
        return [k.let("value", (ODD_BYTES if tap % 2 else EVEN_BYTES)(self.word))]

    def _finish(self, sums: Sequence[tuple[Var, Var]], ends: Expr, y: Expr) -> None:
        k = self.k
        signed = self.layer.ending.below is not None
        for which in (0, 1):
            at = (2 + 3 * which) if signed else (1 + 2 * which)
            if signed:
                plus = k.let("plus", load(ends, at))
                minus, at = k.let("minus", load(ends, at + 1)), at + 2
            elif which:
                plus = k.let("plus", load(ends, at - 1))
            factor = k.let("factor", load(ends, at))
            for p, (both, alone) in enumerate(sums):
                scaled = both - alone if which == 0 else alone * 256
                if signed:
                    scaled = corrected(k.let("scaled", scaled), plus, minus)
                elif which:
                    scaled = scaled + plus
                value = self.finish.narrow(scaled, factor)
                k.store(y, self.out_channels * p + which, value)
