"""Depthwise convolution of float32 on vectors of channels: all taps of a pixel
in turn, by weights that stay in registers for a row; products and sums are rounded one
by one.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from pybuild.dtype import Array, fits_half
from pybuild.ir.graph import Graph, Node
from pybuild.ir.loop import FLOAT32, INT16, Expr, Operand, Var, i32, minimum, offset
from pybuild.kernels.base.builder import Builder, told
from pybuild.kernels.base.candidate import EACH, Candidate, Packed, RowAccess
from pybuild.kernels.base.once import once
from pybuild.kernels.base.real_vectors import RealVectors, real_vectors
from pybuild.kernels.base.reals import FROM_HALVES4
from pybuild.kernels.base.taps import UNROLLED, bind, outside_pixel
from pybuild.kernels.base.vectors import words_at
from pybuild.kernels.base.window import Window
from pybuild.kernels.epilogues.int8 import FloatClamp
from pybuild.kernels.layers.depthwise import inside
from pybuild.kernels.layers.weights import constant, fixed, halves
from pybuild.ops.base.operator import clamp_of
from pybuild.records import dataclass
from pybuild.targets.target import Target

_ORDER = "taps, channels"
_ENDS = ("inside_from", "inside_to")


@dataclass(frozen=True)
class Layer:
    """A depthwise convolution, one output of each channel, as its kernel sees it.

    halves  weights are float16
    """

    window: Window
    finish: FloatClamp
    vectors: RealVectors
    halves: bool = False

    @property
    def taps(self) -> int:
        """Pixels under the window."""
        return self.window.kernel_h * self.window.kernel_w

    @property
    def cycles(self) -> int:
        """Estimated, of a row: a tap reads a vector; beside the row it is sought."""
        begin, end = inside(self.window)
        blocks = -(-self.window.channels // self.vectors.lanes)
        beside = self.window.out_width - (end - begin)
        pixels = self.window.out_width * (self.taps + 4) + beside * 3 * self.taps
        return blocks * (pixels + 2 * self.taps)

    @property
    def name(self) -> str:
        w = self.window
        parts = (
            f"depthwise_f32_{self.vectors.key}_{w.kernel_h}x{w.kernel_w}",
            "f16" * self.halves,
            w.key,
            "odd" if w.channels % self.vectors.lanes else "",
            self.finish.key,
        )
        return "_".join(p for p in parts if p)

    @property
    def doc(self) -> str:
        """The comment in the kernel's C."""
        w = self.window
        beside = ", which may leave the row" * w.padded
        gaps = ", with gaps between taps" * w.dilated
        return told(
            f"depthwise convolution, float32{' x float16' * self.halves}: "
            f"{w.kernel_h}x{w.kernel_w} windows{beside}{gaps}",
            f"{self.vectors.lanes} channels at a time, pixel by pixel, all taps "
            "written out; weights once for the row",
            self.finish.words,
        )


def candidates(
    node: Node,
    graph: Graph,
    target: Target,
    window: Window,
    rows: tuple[RowAccess, RowAccess],
    calls: tuple[int, int],
) -> list[Candidate]:
    """The kernels of this file that suit a layer: none, one, or another one whose
    weights are float16 in flash."""
    if graph.tensor(node.output).dtype is not FLOAT32 or not fixed(node, graph):
        return []
    vectors = real_vectors(target)
    if vectors is None or window.channels != window.out_channels:
        return []
    layer = Layer(window, FloatClamp(*clamp_of(node)), vectors)
    if window.channels < vectors.lanes or layer.taps > UNROLLED:
        return []
    weights = constant(node, graph, 1)
    bias = constant(node, graph, 2, np.zeros(window.channels, np.float32))
    found = [_offer(layer, Packed("weights", weights, order=_ORDER), bias, rows, calls)]
    if vectors.half_shapes and fits_half(weights):
        layer = replace(layer, halves=True)
        found.append(_offer(layer, halves(weights, _ORDER), bias, rows, calls))
    return found


def _offer(
    layer: Layer,
    weights: Packed,
    bias: Array,
    rows: tuple[RowAccess, RowAccess],
    calls: tuple[int, int],
) -> Candidate:
    k, (images, bands) = kernel(layer), calls
    return Candidate(
        func=k.finish(),
        args=tuple(k.values),
        outputs=rows[:1],
        inputs=rows[1:],
        constants=(
            weights,
            Packed("bias", bias, order=EACH),
            *layer.finish.tables(),
            *outside_pixel(layer.window, 0, FLOAT32),
        ),
        images=images,
        bands=bands,
        cost=images * bands * layer.cycles,
    )


@once
def kernel(layer: Layer) -> Builder:
    """y[ox,c] = clamp(bias[c] + sum over taps (x[c] * w[tap,c])), taps in their order.

    Shapes  rows x [W,C], y [OW,C]; weights [KH*KW,C]; bias [C]
    Source  columns outside the row count as 0; rows are the runner's
    """
    return _Writer(layer).write()


class _Writer:
    """The pieces of one kernel being written."""

    def __init__(self, layer: Layer) -> None:
        self.layer, w, self.v = layer, layer.window, layer.vectors
        self.k = k = Builder(layer.name, layer.doc)
        self.y = k.row("y", 0, FLOAT32, writable=True)
        after = 2 + len(layer.finish.tables())
        self.under = under = bind(k, w, FLOAT32, i32(w.kernel_h), after)
        kind = INT16 if layer.halves else FLOAT32
        self.weights = k.row("weights", under.rows + 1, kind)
        self.bias = k.row("bias", under.rows + 2, FLOAT32)
        self.low, self.high = layer.finish.bind_ends(k, under.rows + 3)
        self.rows = [under.row(k, ky) for ky in range(w.kernel_h)]
        self.out_width = k.arg("out_width", w.out_width)

    def write(self) -> Builder:
        """The weights of some channels stay in registers for all pixels of the row."""
        k, layer, channels = self.k, self.layer, self.under.channels
        lanes = self.v.lanes
        with k.loop("channel", channels, 0, lanes, rolled=True) as channel:
            at: Expr = channel
            if layer.window.channels % lanes:
                at = k.let("first", minimum(channel, channels - lanes))
            weights = [
                k.let(f"w{tap}", self._weights(channels * tap + at))
                for tap in range(layer.taps)
            ]
            start = k.let("start", self.v.at(self.bias, at))
            if not layer.window.padded:
                self._row(0, self.out_width, at, start, weights)
                return k
            both = zip(_ENDS, inside(layer.window), strict=True)
            begin, end = (k.arg(*of) for of in both)
            self._row(0, begin, at, start, weights, beside=True)
            self._row(begin, end, at, start, weights)
            self._row(end, self.out_width, at, start, weights, beside=True)
        return k

    def _weights(self, index: Expr) -> Expr:
        """Those of some channels."""
        if self.layer.halves:
            return FROM_HALVES4(words_at(self.weights, index))
        return self.v.at(self.weights, index)

    def _row(
        self,
        begin: Operand,
        end: Expr,
        at: Expr,
        start: Var,
        weights: list[Var],
        beside: bool = False,
    ) -> None:
        """Some channels of the pixels from `begin` to `end`, which may stand beside."""
        k = self.k
        with k.loop("ox", end, begin, rolled=True) as ox:
            total = k.let("sum", start)
            pixels = self.under.all(k, self.rows, ox) if beside else self._inside(ox)
            for pixel, weight in zip(pixels, weights, strict=True):
                value = k.let("value", self.v.at(pixel, at))
                k.assign(total, self.v.add_products(total, value, weight))
            to = k.let("to", ox * self.under.channels + at)
            k.store(self.y, to, self.v.clamped(total, self.low, self.high))

    def _inside(self, ox: Expr) -> list[Expr]:
        under, w = self.under, self.layer.window
        first = self.k.let("first_value", under.start(ox) * under.channels)
        return [
            offset(row, first + under.dilation_w * kx * under.channels)
            for row in self.rows
            for kx in range(w.kernel_w)
        ]
