"""The code of conv.py's kernels: products of a value and a vector of weights.

Knows no weight and no node.
"""

from __future__ import annotations

from pybuild.ir.loop import INT8, INT32, Expr, Var, const, i32, load, minimum, offset
from pybuild.kernels.base.builder import Builder
from pybuild.kernels.base.once import once
from pybuild.kernels.base.window import Bound
from pybuild.kernels.rvv.conv_layer import Layer
from pybuild.kernels.rvv.epilogue import Finish
from pybuild.kernels.rvv.loops import Steps
from pybuild.kernels.rvv.rows import Rows
from pybuild.kernels.rvv.vectors import vectors


@once
def kernel(layer: Layer) -> Builder:
    """y[ox,o] = clamp(requant(bias[o] + sum(x * w)))

    Shapes  rows x [W,C], y [OW,O]; weights [taps,O]; epilogue of `table`
    Source  columns outside the row count as x_zero; rows are the runner's
    """
    return _Writer(layer).write()


class _Writer:
    """The pieces of one kernel being written."""

    def __init__(self, layer: Layer) -> None:
        self.layer, w = layer, layer.window
        self.k = k = Builder(layer.name, layer.doc)
        self.v = vectors(layer.lanes)
        self.g = g = Bound(k, w)
        self.y = k.row("y", 0, layer.elem, writable=True)
        self.weights = k.row("weights", g.rows + 1, INT8)
        self.ends = k.row("epilogue", g.rows + 2, INT32)
        self.rows = Rows(k, g, layer.elem, g.rows + 3, layer.copied)
        self.out_channels = k.arg("out_channels", w.out_channels)
        self.outputs: Expr = self.out_channels  # of a group
        if w.groups > 1:
            self.outputs = k.arg("group_outputs", w.group_outputs)
        self.run_turns = k.arg("run_turns", w.run // layer.unrolled)
        self.finish = Finish(k, self.v, layer.epilogue, self.out_channels)

    def write(self) -> Builder:
        self.rows.copy(self.v, self.layer.x_zero)
        k, w = self.k, self.layer.window
        blocks = Steps(k, self.v, self.outputs)
        if w.groups == 1:
            self._group(blocks, const(0), self.weights)
            return k
        inputs = k.arg("group_channels", w.group_channels)
        taps = k.arg("taps", w.taps)
        with k.loop("group", k.arg("groups", w.groups), rolled=True) as group:
            of_group = group * self.outputs
            first_of = k.let("first_of", of_group)
            weights = k.let("group_weights", offset(self.weights, of_group * taps))
            self._group(blocks, first_of, weights, group * inputs)
        return k

    def _group(
        self, blocks: Steps, begin: Expr, weights: Var, column: Expr | None = None
    ) -> None:
        """The output channels of a group, which begin with `begin`, of all pixels; the
        last ones of a row may be computed twice.

        column  the group's first channel of a pixel
        """
        k, g, n = self.k, self.g, self.layer.pixels
        with k.loop("pixel", g.out_width, 0, n) as pixel:
            ox: Expr = pixel
            if self.layer.window.out_width % n:
                ox = k.let("ox", minimum(pixel, g.out_width - n))
            x = ox * g.stride * g.channels
            first = k.let("first", x if column is None else x + column)
            to = k.let("to", offset(self.y, ox * self.out_channels))
            with blocks.each() as (at, count):
                channel = at if column is None else k.let("channel", begin + at)
                w = offset(weights, at)
                self._block((first, w), offset(to, channel), channel, count)

    def _block(self, read: tuple[Expr, Expr], to: Expr, at: Expr, n: Expr) -> None:
        """Some output channels of some pixels.

        read  the first value of the first pixel; the weights
        """
        k, finish, (first, weights) = self.k, self.finish, read
        ends = k.let("ends", offset(self.ends, at))
        start = k.let("start", finish.start(ends, n))
        sums = [k.let(f"sum{p}", start) for p in range(self.layer.pixels)]
        w = k.let("w", weights)
        self._sum(sums, first, w, n)
        for pixel, value in enumerate(finish.narrow(k, sums, ends, n)):
            k.store(to, self.out_channels * pixel, value, count=n)

    def _sum(self, sums: list[Var], first: Expr, w: Var, n: Expr) -> None:
        k, g, layer = self.k, self.g, self.layer
        with k.loop("ky", g.kernel_h) as ky, k.loop("kx", g.row_runs) as kx:
            row = self.rows.row(ky)
            x = k.let("x", offset(row, first + kx * (g.dilation_w * g.channels)))
            with k.loop("step", self.run_turns, rolled=True):
                for tap in range(layer.unrolled):
                    weights = k.let("weights", self.v.WIDENED(w, n))
                    for pixel, total in enumerate(sums):
                        value = i32(load(x, layer.pitch * pixel + tap))
                        k.assign(total, self.v.MAC_ONE(total, value, weights, n))
                    k.assign(w, offset(w, self.outputs))
                k.assign(x, offset(x, layer.unrolled))
