"""The code of conv.py's kernels: a patch of bytes, then dot products by lanes.

Knows no weight and no node.
"""

from __future__ import annotations

from pybuild.ir.loop import (
    INT8,
    INT32,
    Expr,
    Var,
    cast,
    const,
    i32,
    load,
    minimum,
    offset,
    wide,
)
from pybuild.kernels.base import wide_vectors as v
from pybuild.kernels.base.builder import Builder
from pybuild.kernels.base.once import once
from pybuild.kernels.base.vectors import bytes_at as few_at
from pybuild.kernels.base.window import Bound
from pybuild.kernels.wide.conv_layer import STEP, Layer
from pybuild.kernels.wide.epilogue import Finish, size_of

_SIGN = -128  # of a byte, which is 128 more without it
_SIGNS = -0x7F7F7F80  # of four


@once
def kernel(layer: Layer) -> Builder:
    """y[ox,o] = clamp(requant(start[o] + sum((x + 128) * w)))

    Shapes  rows x [W,C], y [OW,O]; weights of `pack`; starts and ends of `table`
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
        self.weights = k.row("weights", g.rows + 1, INT8)
        self.ends = k.row("epilogue", g.rows + 2, INT32)
        self.patch = k.row("patch", g.rows + 3, INT8, writable=True)
        self.out_channels = k.arg("out_channels", layer.window.out_channels)
        self.steps = k.arg("steps", layer.steps)
        self.pitch = k.let("pitch", self.steps * v.TAPS)
        self.finish = Finish(k, layer.epilogue)
        if layer.window.padded:
            self.outside = k.arg("outside", layer.x_zero ^ _SIGN)
        self.inputs: Expr = g.channels
        self.run: Expr = const(layer.window.run)
        if layer.window.run >= STEP:
            run = g.channels if layer.window.by_taps else g.channels * g.kernel_w
            self.run = k.let("run", run)

    def write(self) -> Builder:
        """The last pixels of a row may be computed twice."""
        k, g, n = self.k, self.g, self.layer.pixels
        with k.loop("at", g.out_width, 0, n) as at:
            ox: Expr = at
            if self.layer.window.out_width % n:
                ox = k.let("ox", minimum(at, g.out_width - n))
            self._gather(ox)
            self._blocks(k.let("made", offset(self.y, ox * self.out_channels)))
        return k

    def _gather(self, ox: Expr) -> None:
        k, g, w, n = self.k, self.g, self.layer.window, self.layer.pixels
        x0 = k.let("x0", ox * g.stride - g.left)
        if not w.padded:
            self._inside(x0)
            return
        with k.when(g.fits(x0, n)):
            self._inside(x0)
        with k.otherwise(), k.loop("pixel", n) as pixel:
            to = k.let("to", offset(self.patch, self.pitch * pixel))
            self._columns(k.let("begin", x0 + g.stride * pixel), to)

    def _inside(self, x0: Expr) -> None:
        """Windows that lie in the row."""
        k, g = self.k, self.g
        begin = k.let("begin", x0 * g.channels)
        to = k.let("to", self.patch)
        between = k.let("between", g.stride * g.channels)
        with g.runs(k, begin, INT8) as x:
            with k.loop("pixel", self.layer.pixels) as pixel:
                source = k.let("source", offset(x, between * pixel))
                there = k.let("there", offset(to, self.pitch * pixel))
                self._copy(source, there, self.run, self.layer.window.run)
            k.assign(to, offset(to, self.run))

    def _columns(self, x0: Expr, to: Var) -> None:
        """A window that leaves the row, column by column."""
        k, g, known = self.k, self.g, self.layer.window.channels
        with g.columns(k, x0, INT8) as (inside, source):
            with k.when(inside):
                self._copy(k.let("x", source), to, g.channels, known)
            with k.otherwise(), k.loop("c", g.channels) as c:
                k.store(to, c, cast(self.outside, INT8))
            k.assign(to, offset(to, g.channels))

    def _copy(self, x: Var, to: Var, count: Expr, known: int) -> None:
        """`count` values without their sign; `known`: as many, of which the code may
        depend on the form. The last vector, or word, may reach back."""
        k = self.k
        if known >= STEP:
            with k.loop("byte", count - (STEP - 1), 0, STEP) as byte:
                k.store(to, byte, v.FLIP(few_at(x, byte)))
            if known % STEP:
                k.store(to, count - STEP, v.FLIP(few_at(x, count - STEP)))
        elif known >= v.TAPS:
            ends = [*range(0, known - 3, 4), *([known - 4] if known % 4 else [])]
            for byte in ends:
                k.store(to, byte, wide(x, byte) ^ _SIGNS, wide=True)
        else:
            for byte in range(known):
                k.store(to, byte, cast(i32(load(x, byte)) ^ _SIGN, INT8))

    def _blocks(self, to: Var) -> None:
        """All output channels of the pixels whose patches are made."""
        k, layer, count = self.k, self.layer, self.out_channels
        w, ends = k.let("w", self.weights), k.let("next_epilogue", self.ends)
        with k.loop("channel", count, 0, layer.together) as channel:
            first = channel
            if layer.odd:
                first = k.let("first", minimum(channel, count - layer.together))
            sums = self._sums(w, ends)
            for pixel, vectors in enumerate(sums):
                for block, total in enumerate(vectors):
                    there = offset(ends, self.size * block)
                    value = self.finish.narrow(total, there)
                    at = first + count * pixel + v.LANES * block
                    self._store(to, at, value)
            k.assign(ends, offset(ends, self.size * layer.blocks))

    @property
    def size(self) -> int:
        """Words of the table of a vector of channels."""
        return size_of(self.layer.epilogue) * v.LANES

    def _sums(self, w: Var, ends: Var) -> list[list[Var]]:
        """Of each pixel, of each vector of channels."""
        k, layer = self.k, self.layer
        starts = [
            k.let("start", v.words_at(ends, self.size * block))
            for block in range(layer.blocks)
        ]
        sums = [
            [k.let(f"acc{pixel}_{block}", start) for block, start in enumerate(starts)]
            for pixel in range(layer.pixels)
        ]
        with k.loop("step", self.steps, rolled=True) as step:
            weights = [
                k.let("weight", v.bytes_at(w, v.LANES * v.TAPS * block))
                for block in range(layer.blocks)
            ]
            for pixel, vectors in enumerate(sums):
                at = self.pitch * pixel + step * v.TAPS
                x = k.let("x", v.SPREAD(wide(self.patch, at)))
                for total, weight in zip(vectors, weights, strict=True):
                    k.assign(total, v.DOT(total, x, weight))
            k.assign(w, offset(w, v.LANES * v.TAPS * layer.blocks))
        return sums

    def _store(self, to: Var, at: Expr, value: Expr) -> None:
        """A vector, or as much of it as a pixel has."""
        k, layer = self.k, self.layer
        if not layer.spilled:
            k.store(to, at, value)
            return
        spill = k.let("spill", offset(self.patch, self.pitch * layer.pixels))
        k.store(spill, 0, value)
        for byte in range(layer.window.out_channels):
            k.store(to, at + byte, load(spill, byte))
