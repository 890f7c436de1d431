"""Convolutions of few output channels on vectors of any length: a lane for each pixel
of a row, a weight at a time (vwmacc.vx). Knows no weight and no node.
"""

from __future__ import annotations

from pybuild.dtype import DType
from pybuild.ir.loop import INT8, INT32, Expr, Var, i32, load, minimum, offset
from pybuild.kernels.base.builder import Builder, told
from pybuild.kernels.base.once import once
from pybuild.kernels.base.window import Bound, Window
from pybuild.kernels.mve.epilogue import Epilogue
from pybuild.kernels.mve.exact import Exact
from pybuild.kernels.rvv.epilogue import OfPixels
from pybuild.kernels.rvv.loops import Steps
from pybuild.kernels.rvv.planes import Planes, planes_size
from pybuild.kernels.rvv.vectors import vectors
from pybuild.records import dataclass

_MOST_CHANNELS = 15  # a vector holds those of a pixel, and has lanes left over
_LEAST_PIXELS = 8
_MOST_PIXELS = 128  # that are computed together, however long registers are
_SPREAD = 4  # columns beside a row that are written one by one
# by lanes: channels whose sums the registers hold; of ends by a rule
_TOGETHER = {16: 4, 32: 2}
_TOGETHER_BY_RULE = {16: 3, 32: 1}
_UNROLLED = 4  # taps, at most, where not all of a row are written out
_WRITTEN_OUT = 16


@dataclass(frozen=True)
class Layer:
    """A convolution whose lanes are pixels, as its kernel sees it.

    elem  of inputs and outputs
    """

    window: Window
    epilogue: Epilogue
    x_zero: int
    elem: DType = INT8

    @property
    def lanes(self) -> int:
        """Lanes of 128-bit registers: with more, fewer are full at a row's end."""
        return min((32, 16), key=self._sums)

    def _sums(self, lanes: int) -> int:
        """Estimated instructions of the sums of a row."""
        n = self._together(lanes)
        blocks = -(-self.window.out_width // lanes) * -(-self.window.out_channels // n)
        return blocks * (self.window.taps * (3 + 2 * n) + 18 * n)

    def _together(self, lanes: int) -> int:
        by_rule = isinstance(self.epilogue, Exact)
        most = (_TOGETHER_BY_RULE if by_rule else _TOGETHER)[lanes]
        channels = self.window.out_channels
        return -(-channels // -(-channels // most))

    @property
    def pixels(self) -> int:
        """The most that are computed together."""
        return min(_MOST_PIXELS, self.window.out_width)

    @property
    def together(self) -> int:
        """Output channels that are summed together; the last ones may be computed
        twice."""
        return self._together(self.lanes)

    @property
    def written_out(self) -> bool:
        """All taps of a row are written out."""
        return self.window.kernel_w * self.window.channels <= _WRITTEN_OUT

    @property
    def unrolled(self) -> int:
        """Channels of a turn of the innermost loop."""
        channels = self.window.channels
        most = channels if self.written_out else min(_UNROLLED, channels)
        return next(n for n in range(most, 0, -1) if channels % n == 0)

    @property
    def scratch(self) -> int:
        """Bytes: planes of the input, then one of some pixels for each output
        channel."""
        made = self.window.out_channels * self.pixels
        return (planes_size(self.window) + made) * self.elem.bytes

    @property
    def instructions(self) -> int:
        """Estimated, of a row."""
        w = self.window
        planes = w.kernel_h * w.stride_w * w.channels
        turns = -(-w.out_width // self.lanes)
        return self._sums(self.lanes) + 6 * w.out_width + planes * (10 * turns + 8)

    @property
    def name(self) -> str:
        w = self.window
        parts = (
            "conv2d_rvv" if self.elem is INT8 else "conv2d_s16_rvv",
            f"pixels{self.lanes}_by{self.together}",
            f"taps{w.kernel_w}_{w.stride_w}_{w.dilation_w}of{self.unrolled}",
            "all" if self.written_out else "",
            "rest" if w.out_channels % self.together else "",
            w.key,
            f"left{w.left}" if w.left else "",
            f"right{w.right}" if w.right else "",
            self.epilogue.key,
        )
        return "_".join(p for p in parts if p)

    @property
    def doc(self) -> str:
        """The comment in the kernel's C."""
        w = self.window
        channels = (
            "an output channel"
            if self.together == 1
            else (f"{self.together} output channels")
        )
        return told(
            f"convolution, {self.elem.value}: {w.words}",
            "rows in planes first, with what stands beside them; "
            f"{channels} of a vector of pixels at a time, tap by tap, into a plane "
            "each; then pixel by pixel out of these planes",
            self.epilogue.words,
        )


def suits(window: Window) -> bool:
    """True if a layer has few output channels, and pixels enough."""
    few = 1 < window.out_channels <= _MOST_CHANNELS and window.groups == 1
    near = max(window.left, window.right) <= _SPREAD * window.stride_w
    return few and near and window.out_width >= _LEAST_PIXELS


@once
def kernel(layer: Layer) -> Builder:
    """y[ox,o] = clamp(requant(bias[o] + sum(x * w)))

    Shapes  rows x [W,C], y [OW,O]; weights [block,taps,together]; epilogue of `table`
    Source  columns outside the row count as x_zero; rows are the runner's
    """
    return _Writer(layer).write()


class _Writer:
    """The pieces of one kernel being written."""

    def __init__(self, layer: Layer) -> None:
        self.layer, w = layer, layer.window
        self.k = k = Builder(layer.name, layer.doc)
        self.v, self.g = vectors(layer.lanes), Bound(k, w)
        self.y = k.row("y", 0, layer.elem, writable=True)
        self.weights = k.row("weights", self.g.rows + 1, INT8)
        self.ends = k.row("epilogue", self.g.rows + 2, INT32)
        space = k.row("scratch", self.g.rows + 3, layer.elem, writable=True)
        self.planes = Planes(k, self.g, layer.elem, space)
        self.made = k.let("made", offset(space, self.planes.all))
        self.out_channels = k.arg("out_channels", w.out_channels)
        self.finish = OfPixels(k, self.v, layer.epilogue, self.out_channels)

    def write(self) -> Builder:
        """Some pixels, of them all output channels."""
        k, layer, g = self.k, self.layer, self.g
        self.planes.fill(self.v, layer.x_zero)
        taps = k.arg("taps", layer.window.taps)
        steps = Steps(k, self.v, g.out_width, k.arg("most_pixels", layer.pixels))
        with steps.each("some") as (at, n):
            w = k.let("w", self.weights)
            with k.loop("channel", self.out_channels, 0, layer.together) as channel:
                begin: Expr = channel
                if layer.window.out_channels % layer.together:
                    last = self.out_channels - layer.together
                    begin = k.let("begin", minimum(channel, last))
                self._block(at, w, begin, (n, steps.lanes))
                k.assign(w, offset(w, taps * layer.together))
            self._by_pixels(at, n, steps.lanes)
        return k

    def _by_pixels(self, first: Expr, count: Expr, pitch: Expr) -> None:
        """Some pixels out of their planes, `pitch` values from each to the next."""
        k, layer = self.k, self.layer
        apart = self.v.APART_AS_THEY_ARE[layer.elem]
        to = k.let("to", offset(self.y, first * self.out_channels))
        made = k.let("pixel_of", self.made)
        with k.loop("pixel", count, rolled=True):
            values = apart(made, pitch, self.out_channels)
            k.store(to, 0, values, count=self.out_channels)
            k.assign(made, offset(made, 1))
            k.assign(to, offset(to, self.out_channels))

    def _block(self, at: Expr, w: Var, begin: Expr, count: tuple[Expr, Expr]) -> None:
        """Some output channels of some pixels: into their planes.

        count  the pixels; values from a plane to the next
        """
        k, (n, pitch) = self.k, count
        ends = k.let("ends", offset(self.ends, begin))
        each = [offset(ends, j) for j in range(self.layer.together)]
        starts = [self.finish.start(end, n) for end in each]
        sums = [k.let(f"sum{j}", start) for j, start in enumerate(starts)]
        self._sum(sums, at, k.let("at_w", w), n)
        to = k.let("plane_to", offset(self.made, begin * pitch))
        for total, end in zip(sums, each, strict=True):
            (value,) = self.finish.narrow(k, [total], end, n)
            k.store(to, 0, value, count=n)
            k.assign(to, offset(to, pitch))

    def _sum(self, sums: list[Var], at: Expr, w: Var, n: Expr) -> None:
        k, g, layer = self.k, self.g, self.layer
        turns = layer.window.channels // layer.unrolled
        with k.loop("ky", g.kernel_h, rolled=True) as ky:
            row = k.let("row_at", offset(self.planes.row(ky), at))
            for kx in range(layer.window.kernel_w):
                if turns == 1:
                    self._taps(sums, offset(row, self.planes.tap(kx)), w, n)
                    continue
                x = k.let("x", offset(row, self.planes.tap(kx)))
                with k.loop("step", k.arg("turns", turns), rolled=True):
                    self._taps(sums, x, w, n)
                    k.assign(x, offset(x, self.planes.size * layer.unrolled))

    def _taps(self, sums: list[Var], x: Expr, w: Var, n: Expr) -> None:
        """Some channels of a column of the window."""
        k, layer = self.k, self.layer
        load_ = self.v.AS_HALVES[layer.elem]
        for channel in range(layer.unrolled):
            values = k.let("values", load_(offset(x, self.planes.size * channel), n))
            for j, total in enumerate(sums):
                weight = i32(load(w, layer.together * channel + j))
                k.assign(total, self.v.MAC_ONE(total, weight, values, n))
        k.assign(w, offset(w, layer.together * layer.unrolled))
