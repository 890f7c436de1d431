"""The code of conv_small.py's kernel: one for all forms of a window.

Knows no weight and no node.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pybuild.kernels.affine import Affine
from pybuild.kernels.affine_finish import AffineFinish, corrected
from pybuild.kernels.builder import Builder, Named
from pybuild.kernels.intrin import DOT2, EVEN_BYTES, IN_ORDER, ODD_BYTES
from pybuild.kernels.window import Window, dilation_arguments
from pybuild.loop import (
    INT8,
    INT32,
    Expr,
    Var,
    cast,
    const,
    load,
    minimum,
    offset,
    wide,
)

BLOCK = 4  # output channels done together, as two pairs
UNROLLED = 4  # pairs of taps in one turn of the innermost loop


@dataclass(frozen=True)
class Layer:
    """A convolution as its kernel sees it."""

    window: Window
    ending: Affine
    x_zero: int

    @property
    def merged(self) -> bool:
        """The columns under the window are neighbours, and all in the row."""
        return not self.window.padded and self.window.dilation_w == 1

    @property
    def columns(self) -> int:
        return 1 if self.merged else self.window.kernel_w

    @property
    def run(self) -> int:
        """Bytes of a column, or of all."""
        w = self.window
        return w.channels * (w.kernel_w if self.merged else 1)

    @property
    def by_words(self) -> int:
        """Of those so many are widened by words: pairs of taps must not be torn."""
        alone = self.columns * self.window.kernel_h == 1
        return self.run - self.run % 4 if alone or self.run % 2 == 0 else 0

    @property
    def head(self) -> int:
        """Words before the weights, which stand for a column outside the row."""
        return -(-self.run // 4) if self.window.padded else 0

    @property
    def order(self) -> tuple[int, ...]:
        """The tap of every int16 of a patch, up to whole turns; -1: its weight is 0."""
        lanes: list[int] = []
        for start in range(0, self.window.kernel_h * self.columns * self.run, self.run):
            for at in range(start, start + self.by_words, 4):
                lanes += [at, at + 2, at + 1, at + 3]
            lanes += range(start + self.by_words, start + self.run)
        return (*lanes, *[-1] * (-len(lanes) % (2 * UNROLLED)))

    @property
    def pair_step(self) -> int:
        """From the first pair of channels of a block to the second: of two or three
        output channels some are computed twice."""
        return min(2, self.window.out_channels - 2)

    @property
    def arguments(self) -> tuple[tuple[Named, Named], ...]:
        """Two by two, as the kernel takes them."""
        w, turns = self.window, len(self.order) // 2 // UNROLLED
        return (
            (("out_width", w.out_width), ("out_channels", w.out_channels)),
            (("turns", turns), ("head", self.head)),
            (("stride", w.stride_w), ("left", w.left)),
            (("width", w.width), ("channels", w.channels)),
            (("kernel_h", w.kernel_h), ("columns", self.columns)),
            (("run", self.run), ("by_words", self.by_words)),
        )

    @property
    def name(self) -> str:
        dilated = "dilated" if self.window.dilated else ""
        parts = ("conv2d_small", dilated, "clamped" if self.ending.clamped else "")
        return "_".join(p for p in parts if p)


def kernel(layer: Layer) -> Builder:
    """y[ox,o] = clamp(requant(bias[o] + sum(x * w))), two pixels at a time.

    Shapes  rows x [W,C], y [OW,O]; weights of `pack`
    Source  columns outside the row count as x_zero; rows are the runner's
    """
    return _Writer(layer).write()


class _Writer:
    """The pieces of the kernel being written."""

    def __init__(self, layer: Layer) -> None:
        self.layer, w = layer, layer.window
        self.k = k = Builder(layer.name)
        pairs = layer.arguments
        (self.out_width, self.out_channels), (self.turns, self.head) = (
            k.halves(*pair) for pair in pairs[:2]
        )
        (self.stride, self.left), (self.width, self.channels) = (
            k.halves(*pair) for pair in pairs[2:4]
        )
        (self.kernel_h, self.columns), (self.run, self.by_words) = (
            k.halves(*pair) for pair in pairs[4:]
        )
        self.dilation_h, self.dilation_w = dilation_arguments(k, w)
        if w.dilated and w.dilation_h == 1:
            self.dilation_h = k.arg("dilation_h", 1)
        if w.dilated and w.dilation_w == 1:
            self.dilation_w = k.arg("dilation_w", 1)
        rows = (self.kernel_h - 1) * self.dilation_h + 1
        after = k.let("after", rows + 1)
        self.y = k.row("y", 0, INT8, writable=True)
        self.outside = k.row("outside", after, INT8)
        self.weights = k.row("weights", after, INT32)
        self.patch = k.row("patch", after + 1, INT32, writable=True)
        self.bytes = k.row("lanes", after + 1, INT8, writable=True)
        self.finish = AffineFinish(k, layer.ending, False)

    def write(self) -> Builder:
        k = self.k
        with k.loop("ox", self.out_width, 0, 2) as ox:
            # a last pixel alone is both of its pair
            more = k.let("more", minimum(self.out_width - 1 - ox, 1))
            self._gather(ox * self.stride - self.left, more)
            self._channels(ox, more)
        return k

    def _gather(self, begin: Expr, more: Expr) -> None:
        """Widens the windows of two pixels: a word of one, then one of the other."""
        k = self.k
        with k.loop("p", 2) as p:
            x0 = k.let("x0", begin + p * more * self.stride)
            words, lanes = (k.let("to", offset(self.patch, p)), self.bytes)
            lane = k.let("lane", 0)
            with k.loop("ky", self.kernel_h) as ky, k.loop("kx", self.columns) as kx:
                row = k.row("row", ky * self.dilation_h + 1, INT8)
                x = self._column(row, x0 + kx * self.dilation_w)
                with k.loop("at", self.by_words, 0, 4, rolled=True) as at:
                    word = k.let("word", wide(x, at))
                    k.store(words, lane, EVEN_BYTES(word))
                    k.store(words, lane + 2, ODD_BYTES(word))
                    k.assign(lane, lane + 4)
                with k.loop("at", self.run, self.by_words, rolled=True) as at:
                    to = k.let("byte", lane * 4 - (lane & 1) * 2 + p * 4)
                    value = k.let("value", cast(load(x, at), INT32))
                    k.store(lanes, to, cast(value, INT8))
                    k.store(lanes, to + 1, cast(value >> 8, INT8))
                    k.assign(lane, lane + 1)

    def _column(self, row: Expr, at: Expr) -> Var:
        """Where a column is, or what stands for it outside the row."""
        k = self.k
        column, x = k.let("column", at), k.let("x", self.outside)
        with k.when(const(0) <= minimum(column, self.width - 1 - column)):
            k.assign(x, offset(row, column * self.channels))
        return x

    def _channels(self, ox: Expr, more: Expr) -> None:
        """All output channels of two pixels, in a function of their own."""
        k = self.k
        with k.part(
            "dot_small" + "_clamped" * self.layer.ending.clamped,
            patch=self.patch,
            weights=offset(self.weights, self.head),
            y=offset(self.y, ox * self.out_channels),
            apart=more * self.out_channels,
            out_channels=self.out_channels,
            turns=self.turns,
            **self.finish.values,
        ) as params:
            inner = {p.name: p for p in params}
            w = k.let("w", inner["weights"])
            # of two or three output channels some are computed twice
            step = k.let("pair_step", minimum(inner["out_channels"] - 2, 2))
            most = inner["out_channels"] - step - 2
            finish = self.finish.inside(inner)
            with k.loop("first", inner["out_channels"], 0, BLOCK) as first:
                sums = self._sums(w, inner)
                y = k.let("to", offset(inner["y"], minimum(first, most)))
                for pair in sums:
                    _finish(k, finish, pair, w, y, inner["apart"])
                    k.assign(y, offset(y, step))

    def _sums(self, w: Var, inner: dict[str, Var]) -> list[list[tuple[Var, Var]]]:
        """Of two pairs of channels, of two pixels: 256 * a + b, and b."""
        k = self.k
        sums = [
            [
                (k.let("both", load(w, at)), k.let("low", load(w, at + 1)))
                for _ in range(2)
            ]
            for at in (0, 2)
        ]
        k.assign(w, offset(w, 4))
        x = k.let("x", inner["patch"])
        with k.loop("turn", inner["turns"], rolled=True):
            for tap in range(0, 2 * UNROLLED, 2):
                for b, block in enumerate(sums):
                    pair = k.let("pair", IN_ORDER(load(w, tap + b)))
                    if b == 0:
                        values = [k.let("value", load(x, tap + p)) for p in (0, 1)]
                    for value, (both, _) in zip(values, block, strict=True):
                        k.assign(both, DOT2(value, pair, both))
                    low = k.let("single", EVEN_BYTES(pair))
                    for value, (_, alone) in zip(values, block, strict=True):
                        k.assign(alone, DOT2(value, low, alone))
            k.assign(w, offset(w, 2 * UNROLLED))
            k.assign(x, offset(x, 2 * UNROLLED))
        return sums


def _finish(
    k: Builder,
    finish: AffineFinish,
    pair: Sequence[tuple[Var, Var]],
    w: Var,
    y: Expr,
    apart: Expr,
) -> None:
    """Stores a pair of output channels of two pixels."""
    for which in range(2):
        plus, minus, factor = (k.let("end", load(w, i)) for i in range(3))
        for p, (both, alone) in enumerate(pair):
            scaled = k.let("scaled", alone * 256 if which else both - alone)
            value = finish.narrow(corrected(scaled, plus, minus), factor)
            k.store(y, apart * p + which, value)
        k.assign(w, offset(w, 3))
