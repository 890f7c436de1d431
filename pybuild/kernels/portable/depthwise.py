"""Depthwise convolution by rows: int8 and int16 with requantisation, and float32.

Channels are innermost, in the input, the weights and the output alike.
"""

from __future__ import annotations

from pybuild.dtype import DType
from pybuild.ir.graph import Tensor
from pybuild.ir.loop import (
    FLOAT32,
    INT8,
    INT16,
    INT32,
    INT64,
    UINT16,
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
from pybuild.kernels.base.candidate import Candidate, Packed, RowAccess
from pybuild.kernels.base.operands import short
from pybuild.kernels.base.reals import FROM_HALF
from pybuild.kernels.base.taps import UNROLLED, bind, outside_pixel
from pybuild.kernels.base.window import Window
from pybuild.kernels.epilogues.bare import Bare
from pybuild.kernels.epilogues.int8 import Finish, FloatClamp
from pybuild.kernels.layers.pool import SIZES
from pybuild.records import dataclass

BLOCK = 16  # channels that the kernel for large windows accumulates together


@dataclass(frozen=True)
class Layer:
    """A depthwise convolution as its kernel sees it.

    x_zero   input zero point (0 for float)
    elem     of activations; the weights are float32 or int8
    total    of the sums
    halves   float32 weights are float16
    wide     int8 weights are int16: of nine bits
    """

    window: Window
    finish: Finish
    x_zero: int = 0
    elem: DType = INT8
    total: DType = INT32
    halves: bool = False
    wide: bool = False

    @property
    def is_float(self) -> bool:
        return isinstance(self.finish, FloatClamp)

    @property
    def is_bare(self) -> bool:
        """True if sums are stored directly, without a bias."""
        return isinstance(self.finish, Bare)

    @property
    def out(self) -> DType:
        """The type of what is stored."""
        return INT32 if self.is_bare else self.elem

    @property
    def stored(self) -> DType:
        """The type of weights; of float16 their bits."""
        if self.halves:
            return UINT16
        whole = INT16 if self.wide else INT8
        return FLOAT32 if self.is_float else whole

    @property
    def multiplier(self) -> int:
        """Output channels of one input channel."""
        return self.window.out_channels // self.window.channels

    @property
    def unrolled(self) -> bool:
        return self.window.kernel_h * self.window.kernel_w <= UNROLLED

    @property
    def name(self) -> str:
        w = self.window
        parts = (
            "depthwise",
            short(self.elem) + ("_s64" if self.total is INT64 else ""),
            "f16" * self.halves + "w16" * self.wide,
            f"{w.kernel_h}x{w.kernel_w}" if self.unrolled else "large",
            "padded" if w.padded else "",
            "dilated" if w.dilated else "",
            "multiplied" if self.multiplier > 1 else "",
            self.finish.key,
        )
        return "_".join(p for p in parts if p)

    @property
    def _kinds(self) -> str:
        whole = f"{self.elem.value} x {self.stored.value}, {self.total.value} sums"
        real = "float32" + " x float16" * self.halves
        return real if self.is_float else whole

    @property
    def doc(self) -> str:
        """The comment in the kernel's C."""
        w = self.window
        taps = f"{w.kernel_h}x{w.kernel_w} windows" if self.unrolled else SIZES
        beside = ", which may leave the row" if w.padded else ""
        several = " for each of its outputs" if self.multiplier > 1 else ""
        order = f"channel by channel{several}, all taps written out"
        if not self.unrolled:
            order = f"{BLOCK} sums at a time, tap by tap"
        return told(
            f"depthwise convolution, {self._kinds}: "
            f"{taps}{beside}{', with gaps between taps' * w.dilated}",
            f"pixel by pixel; {order}; weights from the first to the last",
            self.finish.words,
        )

    def tables(self) -> tuple[Packed, ...]:
        """The tables after weights and bias."""
        outside = outside_pixel(self.window, self.x_zero, self.elem)
        return self.finish.tables() + outside


def kernel(layer: Layer) -> Builder:
    """y[ox,c*M+m] = finish(bias[c*M+m] + sum over taps (x[c] * w[tap,c*M+m])).

    Shapes  rows x [W,C], y [OW,C*M]; weights [KH*KW,C*M]; bias [C*M]
            (int8: int32, with -x_zero * sum(w) folded in)
    Source  columns outside the row count as x_zero; rows are the runner's
    """
    return _Writer(layer).write()


class _Writer:
    """The pieces of one kernel being written."""

    def __init__(self, layer: Layer) -> None:
        self.layer = layer
        self.k = k = Builder(layer.name, layer.doc)
        w = layer.window
        self.elem, self.total = layer.elem, layer.total
        self.factor = FLOAT32 if layer.is_float else INT32
        self.y = k.row("y", 0, layer.out, writable=True)
        self.kernel_h: Expr = const(w.kernel_h)
        self.kernel_w: Expr = const(w.kernel_w)
        if not layer.unrolled:
            self.kernel_h = k.arg("kernel_h", w.kernel_h)
            self.kernel_w = k.arg("kernel_w", w.kernel_w)
        tables = 1 if layer.is_bare else 2
        after = tables + len(layer.finish.tables())
        self.pixels = bind(k, w, self.elem, self.kernel_h, after)
        self.weights = k.row("weights", self.pixels.rows + 1, layer.stored)
        self.bias = k.row("bias", self.pixels.rows + 2, self.total)
        self.out_width = k.arg("out_width", w.out_width)
        self.out_channels = self.pixels.channels
        self.multiplier: Expr = const(1)
        if layer.multiplier > 1:
            self.multiplier = k.arg("per_channel", layer.multiplier)
            product = self.pixels.channels * self.multiplier
            self.out_channels = k.let("out_channels", product)
        self.finish = layer.finish.bind(k, self.pixels.rows + tables + 1)

    def write(self) -> Builder:
        if self.layer.unrolled:
            self._unrolled()
        else:
            self._large()
        return self.k

    def _unrolled(self) -> None:
        k, w = self.k, self.layer.window
        rows = [self.pixels.row(k, ky) for ky in range(w.kernel_h)]
        weights = [
            k.let(f"w{ky}_{kx}", self._tap_weights(ky * w.kernel_w + kx))
            for ky in range(w.kernel_h)
            for kx in range(w.kernel_w)
        ]
        with k.loop("ox", self.out_width) as ox:
            pixels = self.pixels.all(k, rows, ox)
            y = k.let("to", offset(self.y, ox * self.out_channels))
            with k.loop("c", self.pixels.channels) as c:
                if self.layer.multiplier == 1:
                    values = [load(pixel, c) for pixel in pixels]
                    self._sum(values, weights, y, c)
                    return
                values = [
                    k.let(f"value{i}", cast(load(pixel, c), self.factor))
                    for i, pixel in enumerate(pixels)
                ]
                base = k.let("base", c * self.multiplier)
                with k.loop("m", self.multiplier) as m:
                    self._sum(values, weights, y, k.let("channel", base + m))

    def _tap_weights(self, tap: int) -> Expr:
        return offset(self.weights, self.out_channels * tap)

    def _sum(
        self, values: list[Expr], weights: list[Var], y: Expr, channel: Expr
    ) -> None:
        k = self.k
        acc = k.let("acc", self._start(channel))
        for value, weight in zip(values, weights, strict=True):
            product = self._product(value, load(weight, channel))
            k.assign(acc, acc + product)
        k.store(y, channel, self.finish.apply(acc, channel))

    def _start(self, channel: Expr) -> Expr:
        return const(0) if self.layer.is_bare else load(self.bias, channel)

    def _product(self, value: Expr, weight: Expr) -> Expr:
        weight = FROM_HALF(i32(weight)) if self.layer.halves else weight
        product = cast(value, self.factor) * cast(weight, self.factor)
        return cast(product, self.total)

    def _large(self) -> None:
        """Any number of taps: a block of channels at a time, taps around it."""
        k = self.k
        accs = k.array("acc", self.total, BLOCK)
        with k.loop("ox", self.out_width) as ox:
            x0 = k.let("x0", self.pixels.start(ox))
            with k.loop("base", self.out_channels, 0, BLOCK) as base:
                count = k.let("count", minimum(self.out_channels - base, BLOCK))
                with k.loop("j", count) as j:
                    k.store(accs, j, self._start(base + j))
                self._taps(accs, x0, base, count)
                to = k.let("to", ox * self.out_channels + base)
                with k.loop("j", count) as j:
                    acc = load(accs, j)
                    k.store(self.y, to + j, self.finish.apply(acc, base + j))

    def _taps(self, accs: Var, x0: Expr, base: Expr, count: Expr) -> None:
        k, pixels = self.k, self.pixels
        with k.loop("ky", self.kernel_h) as ky:
            row = pixels.row(k, ky)
            with k.loop("kx", self.kernel_w) as kx:
                column = k.let("column", x0 + kx * pixels.dilation_w)
                margin = pixels.margin(k, column)
                x = k.let("x", pixels.pixel(row, column, margin))
                tap = ky * self.kernel_w + kx
                w = k.let("w", offset(self.weights, tap * self.out_channels + base))
                with k.loop("j", count) as j:
                    channel: Expr = base + j
                    if self.layer.multiplier > 1:
                        channel = channel / self.multiplier
                    product = self._product(load(x, channel), load(w, j))
                    k.store(accs, j, load(accs, j) + product)


def offer(
    layer: Layer,
    out: RowAccess,
    source: RowAccess,
    tables: tuple[Packed, ...],
    y: Tensor,
) -> Candidate:
    k = kernel(layer)
    taps = layer.window.kernel_h * layer.window.kernel_w
    return Candidate(
        func=k.finish(),
        args=tuple(k.values),
        outputs=(out,),
        inputs=(source,),
        constants=tables,
        images=y.shape[0],
        bands=y.shape[1],
        cost=y.size * (7 * taps + 24),
    )
