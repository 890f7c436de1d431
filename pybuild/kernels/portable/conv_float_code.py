"""The code of conv_float.py's kernels: windows of a few pixels, then blocks of sums.

Knows no weight and no node.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pybuild.ir.loop import (
    FLOAT32,
    INT8,
    INT32,
    UINT32,
    Expr,
    Var,
    cast,
    const,
    i32,
    load,
    minimum,
    offset,
)
from pybuild.kernels.base.builder import Builder, told
from pybuild.kernels.base.intrin import FLOAT_IN_ORDER
from pybuild.kernels.base.reals import FROM_HALF, FROM_HIGH_HALF
from pybuild.kernels.base.window import Bound, Window
from pybuild.kernels.epilogues.int8 import FloatClamp
from pybuild.records import dataclass

MOST_PRODUCTS = 64  # in one turn of the innermost loop


@dataclass(frozen=True)
class Layer:
    """A convolution as its kernel sees it.

    channels, pixels  of the output whose sums are computed together
    halves            weights are float16, those of two channels in a word
    block             taps whose weights are integers of few bits times a scale of each
                      channel, packed in words; shifted: and an integer is added first;
                      0: weights are real
    bits              of such an integer: 2 or 4
    """

    window: Window
    finish: FloatClamp
    channels: int
    pixels: int
    halves: bool = False
    block: int = 0
    bits: int = 4
    shifted: bool = False

    @property
    def each(self) -> int:
        """Integers of few bits in a word."""
        return 32 // self.bits

    @property
    def taps(self) -> int:
        return self.window.kernel_h * self.window.kernel_w * self.window.channels

    @property
    def direct(self) -> bool:
        """True if pixels are read in place."""
        return self.window.pointwise

    @property
    def unrolled(self) -> int:
        """Taps in one turn, of which there is a whole number; 0: there is no kernel."""
        most = max(MOST_PRODUCTS // (self.channels * self.pixels), 1)
        whole, least = self.block or self.taps, 1
        if self.block:  # whole words of weights
            least = max(self.each // self.channels, 1)
        for n in (8, 4, 3, 2, 1):
            if n <= most and whole % n == 0 and n % least == 0:
                return n
        return 0

    @property
    def words(self) -> int:
        """Words of the weights of a turn."""
        weights = self.channels * self.unrolled
        if self.block:
            return weights // self.each
        return weights // (2 if self.halves else 1)

    @property
    def kind(self) -> str:
        """How weights are stored, in names of kernels."""
        if self.block:
            return f"int{self.bits}" + "_shifted" * self.shifted
        return "f16" * self.halves

    @property
    def weights(self) -> str:
        """The same for readers of the C."""
        if self.block:
            added = " and an integer" * self.shifted
            return f" x {self.bits} bits with a scale{added} for each block"
        return " x float16" * self.halves

    @property
    def scratch(self) -> int:
        return 0 if self.direct else 4 * self.taps * self.pixels

    @property
    def run(self) -> int:
        """Values of a row that are neighbours in the window."""
        return self.window.run

    @property
    def copied(self) -> int:
        """Neighbours that are copied in one turn."""
        size = self.window.channels if self.window.padded else self.run
        return next(n for n in (4, 3, 2, 1) if size % n == 0)

    @property
    def name(self) -> str:
        w = self.window
        parts = (
            f"conv2d_f32_block{self.channels}x{self.pixels}",
            self.kind,
            w.key,
            "" if self.direct else f"copy{self.copied}",
            "channels_over" if w.out_channels % self.channels else "",
            "pixels_over" if w.out_width % self.pixels else "",
            self.finish.key,
            f"by{self.unrolled}",
        )
        return "_".join(p for p in parts if p)

    @property
    def doc(self) -> str:
        """The comment in the kernel's C."""
        many = "a pixel" if self.pixels == 1 else f"{self.pixels} pixels"
        first = "" if self.direct else "their windows are copied side by side; then "
        return told(
            f"convolution, float32{self.weights}: {self.window.words}",
            f"{many} at a time: {first}{self.channels} output channels "
            f"at a time, all taps in order, {self.unrolled} in a turn; weights "
            "forward, once for all pixels of a block",
            self.finish.words,
        )


def kernel(layer: Layer) -> Builder:
    """y[ox,o] = clamp(bias[o] + sum(x * w)), a block at a time, taps in their order.

    Shapes  rows x [W,C], y [OW,O]; weights of conv_float.pack; bias [O]
    Source  columns outside the row count as 0; rows are the runner's
    """
    return _Writer(layer).write()


class _Writer:
    """The pieces of one kernel being written."""

    def __init__(self, layer: Layer) -> None:
        self.layer = layer
        self.k = k = Builder(layer.name, layer.doc)
        self.g = g = Bound(k, layer.window)
        self.y = k.row("y", 0, FLOAT32, writable=True)
        kind = INT32 if layer.kind else FLOAT32
        self.weights = k.row("weights", g.rows + 1, kind)
        self.bias = k.row("bias", g.rows + 2, FLOAT32)
        after = g.rows + 3
        if layer.block:
            self.scales = k.row("scales", after, FLOAT32)
            self.offsets = k.row("offsets", after + 1, INT8) if layer.shifted else None
            after += 1 + layer.shifted
        self.finish = layer.finish.bind(k, after)
        self.both: Expr = const(0)  # a word of weights
        self.patch: Var | None = None
        if not layer.direct:
            after += len(layer.finish.tables())
            self.patch = k.row("patch", after, FLOAT32, writable=True)
        self.out_channels = k.arg("out_channels", layer.window.out_channels)
        self.turns = k.arg("turns", (layer.block or layer.taps) // layer.unrolled)
        if layer.block:
            self.blocks = k.arg("blocks", layer.taps // layer.block)
        self.of_channel: list[tuple[Expr, Expr | None]] = []  # scales and offsets

    def write(self) -> Builder:
        k, g, layer = self.k, self.g, self.layer
        n = layer.pixels
        with k.loop("block", g.out_width, 0, n, rolled=True) as block:
            ox = block
            if layer.window.out_width % n:
                # the last block may compute pixels of the one before again
                ox = k.let("ox", minimum(block, g.out_width - n))
            y = k.let("to", offset(self.y, ox * self.out_channels))
            if self.patch is None:
                row = k.row("row", 1, FLOAT32)
                pixel = g.stride * g.channels
                first = ox * pixel
                sources = [offset(row, first + pixel * i) for i in range(n)]
                self._channels([k.let(f"x{i}", x) for i, x in enumerate(sources)], y)
            else:
                with k.loop("pixel", n) as pixel:
                    self._gather(ox + pixel, k.let("into", offset(self.patch, pixel)))
                self._channels([self.patch], y)
        return k

    def _gather(self, ox: Expr, to: Var) -> None:
        """Copies the window of one pixel into every so many values of the patch."""
        k, g, w = self.k, self.g, self.layer.window
        x0 = k.let("x0", ox * g.stride - g.left)
        if not w.padded:
            self._inside(x0, to)
            return
        with k.when(g.fits(x0)):
            self._inside(x0, to)
        with k.otherwise():
            self._columns(x0, to)

    def _inside(self, x0: Expr, to: Var) -> None:
        """A window that lies in the row."""
        k, g, w = self.k, self.g, self.layer.window
        begin = k.let("begin", x0 * g.channels)
        run = g.channels
        if w.dilation_w == 1:
            run = k.let("run", g.channels * g.kernel_w)
        with g.runs(k, begin, FLOAT32) as x:
            self._copy(x, run, to)

    def _columns(self, x0: Expr, to: Var) -> None:
        """A window that leaves the row, column by column."""
        k, g = self.k, self.g
        with g.columns(k, x0, FLOAT32) as (inside, source):
            with k.when(inside):
                x = k.let("x", source)
                self._copy(x, g.channels, to)
            with k.otherwise():
                self._copy(None, g.channels, to)

    def _copy(self, x: Var | None, count: Expr, to: Var) -> None:
        """`count` values into the patch; None: zero as often."""
        k, layer = self.k, self.layer
        with k.loop("at", count, 0, layer.copied, rolled=True) as at:
            for i in range(layer.copied):
                value = const(0.0, FLOAT32) if x is None else load(x, at + i)
                k.store(to, i * layer.pixels, value)
            k.assign(to, offset(to, layer.copied * layer.pixels))

    def _channels(self, pixels: list[Var], y: Var) -> None:
        """All output channels of a block of pixels."""
        k, n, outputs = self.k, self.layer.channels, self.out_channels
        w = k.let("w", self.weights)
        with k.loop("channel", outputs, 0, n, rolled=True) as channel:
            first: Expr = channel
            if self.layer.window.out_channels % n:
                first = k.let("first", minimum(channel, outputs - n))
            sums = self._sums(pixels, w, first)
            out = k.let("out", offset(y, first))
            for p in range(self.layer.pixels):
                for j in range(n):
                    value = self.finish.apply(sums[j][p], first + j)
                    k.store(out, outputs * p + j, value)

    def _sums(self, pixels: list[Var], w: Var, first: Expr) -> list[list[Var]]:
        """The sums of a block, by channel and pixel."""
        k, layer = self.k, self.layer
        sums = []
        for j in range(layer.channels):
            bias = k.let(f"bias{j}", load(self.bias, first + j))
            sums.append([k.let(f"sum{j}_{p}", bias) for p in range(layer.pixels)])
        at = [k.let(f"at{i}", x) for i, x in enumerate(pixels)]
        step = layer.unrolled * (1 if layer.direct else layer.pixels)
        with self._of_block(first), k.loop("turn", self.turns, rolled=True):
            for tap in range(layer.unrolled):
                self._tap(sums, w, at, tap)
            k.assign(w, offset(w, layer.words))
            for x in at:
                k.assign(x, offset(x, step))
        return sums

    @contextmanager
    def _of_block(self, first: Expr) -> Iterator[None]:
        """Code for the taps that have the same scales."""
        k, layer = self.k, self.layer
        if not layer.block:
            yield
            return
        with k.loop("of_scale", self.blocks) as block:
            begin = k.let("scale_at", first + block * self.out_channels)
            self.of_channel = []
            for j in range(layer.channels):
                scale = k.let(f"scale{j}", load(self.scales, begin + j))
                more = None
                if self.offsets is not None:
                    more = k.let(f"offset{j}", i32(load(self.offsets, begin + j)))
                self.of_channel.append((scale, more))
            yield

    def _tap(self, sums: list[list[Var]], w: Var, at: list[Var], tap: int) -> None:
        k, layer = self.k, self.layer
        values = [load(x, tap) for x in at]
        if not layer.direct:
            first = tap * layer.pixels
            values = [load(at[0], first + p) for p in range(layer.pixels)]
        values[0] = FLOAT_IN_ORDER(values[0])
        values = [k.let(f"value{p}", value) for p, value in enumerate(values)]
        for j, accs in enumerate(sums):
            weight = k.let(f"weight{j}", self._weight(w, tap, j))
            for acc, value in zip(accs, values, strict=True):
                k.assign(acc, acc + value * weight)

    def _weight(self, w: Var, tap: int, channel: int) -> Expr:
        number = tap * self.layer.channels + channel
        if self.layer.block:
            return self._of_few_bits(w, number, channel)
        if not self.layer.halves:
            return load(w, number)
        if number % 2:
            return FROM_HIGH_HALF(self.both)
        self.both = self.k.let("both", load(w, number // 2))
        return FROM_HALF(self.both)

    def _of_few_bits(self, w: Var, number: int, channel: int) -> Expr:
        """That of a turn's weights, times its scale."""
        bits, each = self.layer.bits, self.layer.each
        word, at = divmod(number, each)
        if at == 0:
            self.both = self.k.let("packed", cast(load(w, word), UINT32))
        up = const(32 - bits * (at + 1), UINT32)
        whole = i32(self.both << up) >> const(32 - bits)
        scale, more = self.of_channel[channel]
        return cast(whole if more is None else whole + more, FLOAT32) * scale
