"""The code of conv.py's kernels: bytes without a sign, then dot products by lanes.

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
from pybuild.kernels.layers.zero_points import half_zero
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
        self.layer, w = layer, layer.window
        self.k = k = Builder(layer.name, layer.doc)
        self.g = g = Bound(k, w)
        self.y = k.row("y", 0, INT8, writable=True)
        self.weights = k.row("weights", g.rows + 1, INT8)
        self.ends = k.row("epilogue", g.rows + 2, INT32)
        self.copies = k.row("copies", g.rows + 3, INT8, writable=True)
        self.out_channels = k.arg("out_channels", w.out_channels)
        self.run_steps = k.arg("run_steps", layer.run_steps)
        self.row_bytes = k.arg("row_bytes", layer.row_bytes)
        if layer.zero is not None:
            self.run = k.arg("run_bytes", w.run)
            self.less_zero = k.arg("less_zero", -half_zero(layer.zero))
        self.finish = Finish(k, layer.epilogue)
        self.outside = k.arg("outside", layer.x_zero ^ _SIGN) if w.padded else const(0)

    def write(self) -> Builder:
        """The last pixels of a row may be computed twice."""
        k, g, n = self.k, self.g, self.layer.pixels
        if self.layer.whole_rows:
            self._rows()
        with k.loop("at", g.out_width, 0, n) as at:
            ox: Expr = at
            if self.layer.window.out_width % n:
                ox = k.let("ox", minimum(at, g.out_width - n))
            first = self.copies
            if self.layer.whole_rows:
                first = k.let("window", offset(first, ox * g.stride * g.channels))
            else:
                x = k.let("x", offset(k.row("row", 1, INT8), ox * g.channels))
                self._copy(x, first, g.channels * n)
            self._blocks(first, k.let("to", offset(self.y, ox * self.out_channels)))
        return k

    def _rows(self) -> None:
        """The rows under the windows, and what is beside them."""
        k, g, w = self.k, self.g, self.layer.window
        count: Expr = const(self.layer.copied)
        if self.layer.copied >= STEP:
            count = k.arg("copied", self.layer.copied)
        with k.loop("ky", g.kernel_h) as ky:
            to = k.let("to", offset(self.copies, ky * self.row_bytes))
            if w.left:
                left = k.let("before", g.left * g.channels)
                self._fill(to, left)
                k.assign(to, offset(to, left))
            self._copy(k.row("row", ky * g.dilation_h + 1, INT8), to, count)
            if w.right:
                k.assign(to, offset(to, count))
                self._fill(to, k.arg("right", w.right) * g.channels)

    def _fill(self, to: Var, count: Expr) -> None:
        with self.k.loop("byte", count) as byte:
            self.k.store(to, byte, cast(self.outside, INT8))

    def _copy(self, x: Var, to: Var, count: Expr) -> None:
        """`count` values without their sign. The last vector, or word, may reach
        back."""
        k, known = self.k, self.layer.copied
        if known >= STEP:
            with k.loop("byte", count - (STEP - 1), 0, STEP) as byte:
                k.store(to, byte, v.FLIP(few_at(x, byte)))
            if known % STEP:
                k.store(to, count - STEP, v.FLIP(few_at(x, count - STEP)))
        elif known >= v.TAPS:
            ends = [*range(0, known - 3, 4), *([known - 4] if known % 4 else [])]
            for begin in ends:
                k.store(to, begin, wide(x, begin) ^ _SIGNS, wide=True)
        else:
            for at in range(known):
                k.store(to, at, cast(i32(load(x, at)) ^ _SIGN, INT8))

    def _blocks(self, first: Var, to: Var) -> None:
        """All output channels of some pixels."""
        k, layer, count = self.k, self.layer, self.out_channels
        if layer.zero is not None:
            self.less = self._less(first)
        w, ends = k.let("w", self.weights), k.let("next_epilogue", self.ends)
        with k.loop("channel", count, 0, layer.together) as channel:
            at: Expr = channel
            if layer.odd:
                at = k.let("first", minimum(channel, count - layer.together))
            for pixel, vectors in enumerate(self._sums(first, w, ends)):
                for i, total in enumerate(vectors):
                    value = self.finish.narrow(total, offset(ends, self.size * i))
                    self._store(to, at + count * pixel + v.LANES * i, value)
            k.assign(ends, offset(ends, self.size * layer.blocks))

    @property
    def size(self) -> int:
        """Words of the table of a vector of channels."""
        return size_of(self.layer.epilogue) * v.LANES

    def _sums(self, first: Var, w: Var, ends: Var) -> list[list[Var]]:
        """The sums of each pixel, for each vector of channels."""
        k, g, layer = self.k, self.g, self.layer
        starts = [
            k.let("start", v.words_at(ends, self.size * i)) for i in range(layer.blocks)
        ]
        sums = [
            [
                k.let(f"acc{pixel}_{i}", self._start(start, pixel))
                for i, start in enumerate(starts)
            ]
            for pixel in range(layer.pixels)
        ]
        with k.loop("ky", g.kernel_h) as ky, k.loop("kx", g.row_runs) as kx:
            at = ky * self.row_bytes + kx * (g.dilation_w * g.channels)
            run = k.let("run", offset(first, at))
            with k.loop("step", self.run_steps, rolled=True) as step:
                self._step(sums, w, offset(run, step * v.TAPS))
        return sums

    def _less(self, first: Var) -> list[Var]:
        """What the zero point of the weights takes off all sums of each pixel."""
        k, g, layer = self.k, self.g, self.layer
        totals = [k.let(f"total{pixel}", 0) for pixel in range(layer.pixels)]
        with k.loop("ky", g.kernel_h) as ky, k.loop("kx", g.row_runs) as kx:
            at = ky * self.row_bytes + kx * (g.dilation_w * g.channels)
            run = k.let("run", offset(first, at))
            with k.loop("byte", self.run) as byte:
                for pixel, total in enumerate(totals):
                    value = i32(load(run, byte + layer.pitch * pixel)) & 0xFF
                    k.assign(total, total + value)
        return [k.let("less", total * self.less_zero) for total in totals]

    def _start(self, start: Expr, pixel: int) -> Expr:
        return start if self.layer.zero is None else v.ADD(start, self.less[pixel])

    def _step(self, sums: list[list[Var]], w: Var, x: Expr) -> None:
        """A vector of weights for each block, for all pixels."""
        k, size = self.k, v.LANES * v.TAPS
        weights = [
            k.let("weight", v.bytes_at(w, size * i)) for i in range(self.layer.blocks)
        ]
        for pixel, vectors in enumerate(sums):
            four = k.let("x", v.SPREAD(wide(x, self.layer.pitch * pixel)))
            for total, weight in zip(vectors, weights, strict=True):
                k.assign(total, v.DOT(total, four, weight))
        k.assign(w, offset(w, size * self.layer.blocks))

    def _store(self, to: Var, at: Expr, value: Expr) -> None:
        """A vector, or as much of it as a pixel has."""
        k, layer = self.k, self.layer
        if not layer.spilled:
            k.store(to, at, value)
            return
        end = self.g.kernel_h * self.row_bytes
        spill = k.let("spill", offset(self.copies, end))
        k.store(spill, 0, value)
        for byte in range(layer.window.out_channels):
            k.store(to, at + byte, load(spill, byte))
