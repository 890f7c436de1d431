"""The code of conv.py's kernels: a patch of widened pixels, then all products.

Knows no weight and no node.
"""

from __future__ import annotations

import numpy as np

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
from pybuild.kernels.base.intrin import EVEN_BYTES, KEPT, ODD_BYTES
from pybuild.kernels.base.once import once
from pybuild.kernels.base.window import Bound
from pybuild.kernels.dsp.conv_int4 import Int4Sums
from pybuild.kernels.dsp.conv_sums import Sums
from pybuild.kernels.epilogues.affine_end import AffineFinish, is_usual, kind
from pybuild.kernels.epilogues.bare import Bare
from pybuild.kernels.epilogues.by_channel import exact_of
from pybuild.kernels.layers.conv import WRITTEN_OUT, Layer
from pybuild.kernels.layers.zero_points import HALF


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
        bare = isinstance(layer.epilogue, Bare)
        self.y = k.row("y", 0, INT32 if bare else INT8, writable=True)
        self.weights = k.row("weights", g.rows + 1, INT32)
        self.ends = k.row("epilogue", g.rows + 2, INT32)
        self.after, rules = g.rows + (2 if bare else 3), None
        if exact_of(layer.epilogue) is not None:
            rules = k.row("exact", self.after, INT32)
            self.after = self.after + 1
        if not layer.direct:
            self.scratch = k.row("patch", self.after, INT32, writable=True)
        self.out_channels = k.arg("out_channels", layer.window.out_channels)
        # of a group, and the first of its bytes of a pixel
        self.outputs, self.inputs = self.out_channels, g.channels
        self.first: Expr = const(0)
        if layer.window.groups > 1:
            self.outputs = k.arg("group_outputs", layer.outputs)
            self.inputs = k.arg("group_inputs", layer.window.group_channels)
        self.given = dict[str, Expr]()
        if not layer.long or layer.pixels > 1:  # there is a loop over turns
            self.given["turns"] = k.arg("turns", layer.turns)
        if layer.centres:
            zero = layer.zero or 0
            lanes = len(layer.lanes) // 2 // layer.counted
            self.given["lanes"] = k.arg("lanes", lanes)
            self.given["high_zero"] = k.arg("high_zero", HALF - zero)
            self.given["low_zero"] = k.arg("low_zero", -zero)
        if layer.runs > 1:
            self.given["runs"] = k.arg("runs", layer.runs)
            self.given["run_turns"] = k.arg("run_turns", layer.run_turns)
        self.run = self._run()
        usual = is_usual(layer.epilogue)
        self.finish = AffineFinish(k, layer.epilogue, usual, rows=rules)
        if layer.window.padded:
            zeros = layer.x_zero * 65536 + (layer.x_zero & 0xFFFF)
            self.x_zeros = k.arg("x_zeros", zeros)
        if layer.copies:
            spare = k.row("spare", self.after, INT8, writable=True)
            at = k.arg("patch_bytes", 4 * layer.patch)
            self.outside = k.let("outside", offset(spare, at))
        if layer.cut:
            zeros = np.full(4, layer.x_zero, np.int8).view(np.int32).item()
            self.four_zeros = k.arg("four_zeros", zeros)

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
        words = k.arg("words", self.layer.group_words)
        end_words = k.arg("end_words", self.layer.pairs * self.layer.end_size)
        with k.loop("group", k.arg("groups", w.groups)):
            self._row()
            k.assign(first, first + self.inputs)
            k.assign(weights, offset(weights, words))
            k.assign(ends, offset(ends, end_words))
            k.assign(y, offset(y, self.outputs))
        return k

    def _row(self) -> None:
        """Computes all pixels, a few at a time."""
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
            self._patch(ox, count)
            with k.when(const(n) <= count):
                self._channels(n, ox, self.scratch)
            with k.otherwise(), k.when(left_over), k.loop("i", count) as i:
                self._channels(1, ox + i, offset(self.scratch, i))

    def _patch(self, ox: Expr, count: Expr) -> None:
        """The windows of a few pixels: together where all lie in the row."""
        k, g, n = self.k, self.g, self.layer.pixels
        if self.layer.gathered:
            with k.loop("i", count) as i:
                self._gather(ox + i, offset(self.scratch, i))
            return
        x0 = k.let("first_x", ox * g.stride - g.left)
        inside = g.fits(x0, n) if self.layer.window.padded else const(n) <= count
        with k.when(inside):
            self._inside(x0, k.let("to", self.scratch), n)
        with k.otherwise(), k.loop("i", count) as i:
            self._gather(ox + i, offset(self.scratch, i))

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

    def _inside(self, x0: Expr, to: Var, pixels: int = 1) -> None:
        """A window that lies in the row, and those of the next pixels."""
        k, g = self.k, self.g
        begin = k.let("begin", self._at(x0 * g.channels))
        for ky in range(self.layer.written_rows):
            row = k.row("row", ky + 1, INT8)
            x = k.let("x", offset(row, begin))
            self._widen(
                self._side(x, pixels), to, self.run, self.layer.run, WRITTEN_OUT
            )
        if self.layer.written_rows:
            return
        if not self.layer.gathered:
            with g.runs(k, begin, INT8) as x:
                xs = self._side(x, pixels)
                self._widen(xs, to, self.run, self.layer.run, WRITTEN_OUT)
            return
        copy, run = k.let("copy", self.outside), self.layer.window.run
        with g.runs(k, begin, INT8) as x:
            for byte in range(run):
                k.store(copy, byte, load(x, byte))
            k.assign(copy, offset(copy, run))
        self._widen_copy(to)

    def _side(self, x: Var, pixels: int) -> list[Var]:
        """The same row of windows side by side."""
        g, found = self.g, [x]
        for _ in range(1, pixels):
            after = offset(found[-1], g.stride * g.channels)
            found.append(self.k.let("next_x", after))
        return found

    def _at(self, at: Expr) -> Expr:
        """The offset of the group's channels in a pixel."""
        return at if self.layer.window.groups == 1 else at + self.first

    def _columns(self, x0: Expr, to: Var) -> None:
        """A window that leaves the row, in columns of whole words."""
        k, g = self.k, self.g
        with g.columns(k, x0, INT8) as (inside, source):
            with k.when(inside):
                x = k.let("x", self._group(source))
                self._widen([x], to, self.inputs, self.layer.window.group_channels, 0)
            with k.otherwise(), k.loop("at", self.inputs, 0, 4, rolled=True):
                k.store(to, 0, self.x_zeros)
                k.store(to, self.layer.pixels, self.x_zeros)
                k.assign(to, offset(to, 2 * self.layer.pixels))

    def _copied(self, x0: Expr, to: Var) -> None:
        """A window that leaves the row, copied byte by byte and then widened."""
        k, g = self.k, self.g
        if self.layer.cut:
            self._cut(x0, to)
            return
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

    def _cut(self, x0: Expr, to: Var) -> None:
        """The same of taps that are neighbours: zero points, then over them what is
        inside, row by row."""
        copy = self.k.let("copy", self.outside)
        with self.g.cut_runs(self.k, x0, INT8, copy, self.run):
            self._zeros(copy, self.run, self.layer.run)
        self._widen_copy(to)

    def _zeros(self, to: Var, count: Expr, known: int) -> None:
        """`count` zero points, in words of which the last may reach back."""
        k = self.k
        four = self.four_zeros
        if known <= WRITTEN_OUT:
            for byte in range(0, known - 3, 4):
                k.store(to, byte, four, wide=True)
        else:
            with k.loop("c", count - 3, 0, 4, rolled=True) as c:
                k.store(to, c, four, wide=True)
        if known % 4:
            k.store(to, count - 4, four, wide=True)

    def _group(self, pixel: Expr) -> Expr:
        """The group's channels of a pixel."""
        return pixel if self.layer.window.groups == 1 else offset(pixel, self.first)

    def _widen_copy(self, to: Var) -> None:
        """A window that was put together byte by byte."""
        k, g = self.k, self.g
        spare = k.let("spare", self.outside)
        runs = const(1) if self.layer.gathered else g.kernel_h * g.row_runs
        with k.loop("run", runs):
            self._widen([spare], to, self.run, self.layer.run, WRITTEN_OUT)
            k.assign(spare, offset(spare, self.run))

    def _widen(
        self, xs: list[Var], to: Var, count: Expr, known: int, written_out: int
    ) -> None:
        """`count` bytes of each of xs; `known`: as many, of which the code may depend
        on the form."""
        k, step = self.k, self.layer.pixels
        if known <= written_out:
            for first in range(0, known - 3, 4):
                self._words(xs, first, to, first // 2 * step)
            k.assign(to, offset(to, known // 4 * 2 * step))
            count = const(known)
        else:
            words = 2 if known % 8 == 0 else 1
            with k.loop("at", count - 3, 0, 4 * words, rolled=True) as at:
                for i in range(words):
                    self._words(xs, at + 4 * i, to, 2 * i * step)
                k.assign(to, offset(to, 2 * words * step))
        tail = known % 4
        if tail:
            self._words(xs, count - 4, to, 0, tail)
            k.assign(to, offset(to, step * min(tail, 2)))

    def _words(
        self, xs: list[Var], at: Operand, to: Var, first: int, tail: int = 0
    ) -> None:
        """A word of each of xs; `tail`: of so many bytes, the others were before."""
        k, step = self.k, self.layer.pixels
        words = [k.let("word", wide(x, at)) for x in xs]
        halves = (EVEN_BYTES, ODD_BYTES)[tail == 1 :]
        pairs = [[k.let("pair", half(word)) for word in words] for half in halves]
        for i, pair in enumerate(pairs):
            for j, value in enumerate(pair):  # neighbours: one instruction stores two
                k.store(to, first + i * step + j, value)

    def _channels(self, pixels: int, ox: Expr, patch: Expr) -> None:
        """Computes all output channels of some pixels, in a separate function."""
        k = self.k
        given: dict[str, Expr] = {"out_channels": self.out_channels}
        if self.layer.window.groups > 1:
            given = {"outputs": self.outputs, **given}
        given = {**given, **self.given}
        if self.layer.long and pixels == self.layer.pixels:
            given["turns"] = const(1)
        with k.part(
            self._part_name(pixels),
            self.layer.part_doc(pixels),
            taps=patch,
            weights=self.weights,
            epilogue=self.ends,
            y=offset(self.y, ox * self.out_channels),
            **given,
            **self.finish.values,
        ) as params:
            inner = {p.name: p for p in params}
            if "factor" in inner:
                inner["factor"] = k.let("factor", KEPT(inner["factor"]))
            sums = Int4Sums if self.layer.int4 else Sums
            sums(k, self.layer, inner, self.finish.inside(inner)).write(pixels)

    def _part_name(self, pixels: int) -> str:
        """The name of the part, which distinguishes the code of two layers here."""
        layer = self.layer
        parts = (
            f"dot_dsp_{pixels}of{layer.pixels}_by{layer.unrolled_of(pixels)}",
            "direct" if layer.direct else "",
            f"blocks{layer.blocks}" if layer.whole else "",
            "rest" if 0 < layer.whole < layer.outputs else "",
            layer.odd,
            layer.sums,
            "grouped" if layer.window.groups > 1 else "",
            "twice" if pixels < layer.pixels and layer.twice else "",
            kind(layer.epilogue, is_usual(layer.epilogue)),
        )
        return "_".join(p for p in parts if p)
