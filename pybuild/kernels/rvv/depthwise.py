"""Depthwise convolution of int8 and int16 on vectors of channels of any length: all
taps of a pixel in turn, by weights that stay in registers for a row.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pybuild.dtype import Array, DType
from pybuild.ir.graph import Graph, Node
from pybuild.ir.loop import (
    INT8,
    INT16,
    INT32,
    Expr,
    Operand,
    Var,
    const,
    i32,
    minimum,
    offset,
)
from pybuild.kernels.base.builder import Builder, told
from pybuild.kernels.base.candidate import Candidate, Packed, RowAccess
from pybuild.kernels.base.once import once
from pybuild.kernels.base.taps import UNROLLED, bind, outside_pixel
from pybuild.kernels.base.window import Window
from pybuild.kernels.layers.depthwise import inside
from pybuild.kernels.layers.weights import fixed, kernels_of
from pybuild.kernels.mve.epilogue import Epilogue
from pybuild.kernels.rvv.epilogue import Finish, ended, table
from pybuild.kernels.rvv.loops import Steps
from pybuild.kernels.rvv.vectors import FEATURE, vectors
from pybuild.records import dataclass
from pybuild.targets.target import Target

_LANES = 16
# taps whose weights the registers hold beside a sum and its end: as bytes, or halves
_HELD = {INT8: 12, INT16: 9}
_ENDS = ("inside_from", "inside_to")


@dataclass(frozen=True)
class Layer:
    """A depthwise convolution, one output of each channel, as its kernel sees it.

    paired  the products of two neighbouring taps fit int16 together
    elem    of inputs and outputs
    """

    window: Window
    epilogue: Epilogue
    paired: bool
    elem: DType = INT8

    @property
    def taps(self) -> int:
        """Pixels under the window."""
        return self.window.kernel_h * self.window.kernel_w

    @property
    def pixels(self) -> int:
        """Neighbouring pixels that a vector has the channels of."""
        begin, end = inside(self.window)
        most = _LANES // self.window.channels
        return most if self.window.stride_w == 1 and 1 < most <= end - begin else 1

    @property
    def instructions(self) -> int:
        """Estimated, of a row: a tap reads a vector; beside the row it is sought."""
        begin, end = inside(self.window)
        blocks = -(-self.window.channels // _LANES)
        beside = self.window.out_width - (end - begin)
        pixels = beside + -(-(end - begin) // self.pixels)
        pixels *= (5 if self.held else 6) * self.taps + 12
        return blocks * (pixels + beside * 3 * self.taps + 2 * self.taps)

    @property
    def held(self) -> bool:
        """The weights of all taps stay in registers."""
        return self.taps <= _HELD[self.elem]

    @property
    def name(self) -> str:
        w = self.window
        short = "_s16" if self.elem is INT16 else ""
        parts = (
            f"depthwise{short}_rvv_{w.kernel_h}x{w.kernel_w}",
            "pairs" if self.paired else "",
            f"pixels{self.pixels}" if self.pixels > 1 else "",
            w.key,
            self.epilogue.key,
        )
        return "_".join(p for p in parts if p)

    @property
    def doc(self) -> str:
        """The comment in the kernel's C."""
        w, once_ = self.window, "; weights once for the row" * self.held
        some = "a vector of channels at a time, pixel by pixel"
        if self.pixels > 1:
            some = f"all channels of {self.pixels} pixels at a time"
        beside = ", which may leave the row" * w.padded
        gaps = ", with gaps between taps" * w.dilated
        return told(
            f"depthwise convolution, {self.elem.value}: {w.kernel_h}x{w.kernel_w} "
            "windows"
            f"{beside}{gaps}",
            f"{some}, all taps written out{', two and two' * self.paired}{once_}",
            self.epilogue.words,
        )


def candidates(
    node: Node,
    graph: Graph,
    target: Target,
    window: Window,
    rows: tuple[RowAccess, RowAccess],
    calls: tuple[int, int],
) -> list[Candidate]:
    """The kernels of this file that suit a layer: none, or one."""
    if FEATURE not in target.features or not fixed(node, graph):
        return []
    kernels = kernels_of(node, graph)
    if window.channels != window.out_channels or kernels.shape[1] > UNROLLED:
        return []
    made = ended(node, graph, target, kernels)
    if made is None:
        return []
    paired = made.elem is INT8 and _fits_pairs(kernels)
    layer = Layer(window, made.epilogue, paired, made.elem)
    k, (images, bands) = kernel(layer), calls
    order = "of each tap: all channels"
    if layer.pixels > 1:
        order += f", {layer.pixels} times"
    kernels = np.tile(kernels, (layer.pixels, 1))
    ends = table(made.epilogue, made.bias, layer.pixels)
    return [
        Candidate(
            func=k.finish(),
            args=tuple(k.values),
            outputs=rows[:1],
            inputs=rows[1:],
            constants=(
                Packed("weights", np.ascontiguousarray(kernels.T), order=order),
                ends,
                *outside_pixel(window, made.x_zero, made.elem),
            ),
            images=images,
            bands=bands,
            cost=images * bands * layer.instructions,
        )
    ]


def _fits_pairs(kernels: Array) -> bool:
    """True if no two neighbouring weights [O, taps] are both -128: of the least input
    their products are 2^15."""
    least = kernels == -128
    return not (least[:, :-1] & least[:, 1:]).any()


@once
def kernel(layer: Layer) -> Builder:
    """y[ox,c] = clamp(requant(bias[c] + sum over taps (x[c] * w[tap,c])))

    Shapes  rows x [W,C], y [OW,C]; weights [KH*KW,C]; epilogue of `table`
    Source  columns outside the row count as x_zero; rows are the runner's
    """
    return _Writer(layer).write()


class _Writer:
    """The pieces of one kernel being written."""

    def __init__(self, layer: Layer) -> None:
        self.layer, w, self.v = layer, layer.window, vectors(_LANES)
        self.k = k = Builder(layer.name, layer.doc)
        self.y = k.row("y", 0, layer.elem, writable=True)
        self.under = under = bind(k, w, layer.elem, i32(w.kernel_h), 2)
        self.weights = k.row("weights", under.rows + 1, INT8)
        self.ends = k.row("epilogue", under.rows + 2, INT32)
        self.rows = [under.row(k, ky) for ky in range(w.kernel_h)]
        self.out_width = k.arg("out_width", w.out_width)
        self.pitch: Expr = under.channels  # of a tap's weights, and of the ends
        if layer.pixels > 1:
            self.pitch = k.arg("together", layer.pixels * w.channels)
        self.finish = Finish(k, self.v, layer.epilogue, self.pitch)

    def write(self) -> Builder:
        """The weights of some channels stay in registers for all pixels of the row."""
        k, layer = self.k, self.layer
        ends = []
        if layer.window.padded:
            both = zip(_ENDS, inside(layer.window), strict=True)
            ends = [k.arg(*one) for one in both]
        if layer.pixels > 1:
            self._channels(ends, (const(0), self.under.channels))
            return k
        with Steps(k, self.v, self.under.channels).each() as some:
            self._channels(ends, some)
        return k

    def _channels(self, ends: Sequence[Expr], some: tuple[Expr, Expr]) -> None:
        """Some channels of all pixels; ends: of those whose windows are in the row."""
        k, layer, at = self.k, self.layer, some[0]
        many = self.pitch if layer.pixels > 1 else some[1]
        held: list[Var] = []
        if layer.held:
            held = [
                k.let(f"w{tap}", self._weight(tap, at, many))
                for tap in range(layer.taps)
            ]
        if not ends:
            self._row(0, self.out_width, (at, many), held)
        else:
            begin, end = ends
            self._row(0, begin, some, held, beside=True)
            self._row(begin, end, (at, many), held)
            self._row(end, self.out_width, some, held, beside=True)

    def _weight(self, tap: int, at: Expr, n: Expr) -> Expr:
        lie = offset(self.weights, self.pitch * tap + at)
        return (self.v.BYTES if self.layer.elem is INT8 else self.v.WIDENED)(lie, n)

    def _row(
        self,
        begin: Operand,
        end: Expr,
        some: tuple[Expr, Expr],
        held: list[Var],
        beside: bool = False,
    ) -> None:
        """Some channels, the first of them and how many, of the pixels from `begin` to
        `end`, which may stand beside the row; the last ones may be computed twice."""
        k, (at, n) = self.k, some
        step = 1 if beside else self.layer.pixels
        with k.loop("pixel" if step > 1 else "ox", end, begin, step, rolled=True) as x:
            ox: Expr = x if step == 1 else k.let("ox", minimum(x, end - step))
            ends = offset(self.ends, at)
            total = k.let("sum", self.finish.start(ends, n))
            pixels = self.under.all(k, self.rows, ox) if beside else self._inside(ox)
            self._sum(total, pixels, some, held)
            to = k.let("to", ox * self.under.channels + at)
            (value,) = self.finish.narrow(k, [total], ends, n)
            k.store(self.y, to, value, count=n)

    def _inside(self, ox: Expr) -> list[Expr]:
        under, w = self.under, self.layer.window
        first = self.k.let("first_value", under.start(ox) * under.channels)
        return [
            offset(row, first + under.dilation_w * kx * under.channels)
            for row in self.rows
            for kx in range(w.kernel_w)
        ]

    def _sum(
        self,
        total: Var,
        pixels: Sequence[Expr],
        some: tuple[Expr, Expr],
        held: list[Var],
    ) -> None:
        """Adds the products of all taps: of two bytes, as int16, at once."""
        k, v, (at, n) = self.k, self.v, some
        if self.layer.elem is INT16:
            for tap, pixel in enumerate(pixels):
                x = v.HALVES(offset(pixel, at), n)
                w = held[tap] if held else self._weight(tap, at, n)
                k.assign(total, v.MAC(total, x, w, n))
            return
        step = 2 if self.layer.paired else 1
        for tap in range(0, len(pixels), step):
            product: Var | None = None
            for i in range(tap, min(tap + step, len(pixels))):
                x = v.BYTES(offset(pixels[i], at), n)
                w = held[i] if held else self._weight(i, at, n)
                if product is None:
                    product = k.let("product", v.PRODUCT(x, w, n))
                else:
                    k.assign(product, v.MORE(product, x, w, n))
            assert product is not None
            k.assign(total, v.ADD(total, product, n))
