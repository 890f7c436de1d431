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
from pybuild.kernels.rvv.rows import Rows
from pybuild.kernels.rvv.vectors import vectors
from pybuild.records import dataclass

_LANES = 16
_MOST_CHANNELS = 15  # a vector holds those of a pixel, and has lanes left over
_LEAST_PIXELS = 8
_MOST_PIXELS = 64  # that are computed together, however long registers are
_TOGETHER = 6  # channels whose sums the registers hold; of ends by a rule fewer
_TOGETHER_BY_RULE = 4
_UNROLLED = 4  # taps, at most


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
    def copied(self) -> bool:
        """True if it reads copies of rows."""
        return self.window.padded

    @property
    def pixels(self) -> int:
        """The most that are computed together."""
        return min(_MOST_PIXELS, self.window.out_width)

    @property
    def together(self) -> int:
        """Output channels that are summed together; the last ones may be computed
        twice."""
        by_rule = isinstance(self.epilogue, Exact)
        most = _TOGETHER_BY_RULE if by_rule else _TOGETHER
        if by_rule and self.epilogue.key.endswith("precise"):
            most = 1
        channels = self.window.out_channels
        return -(-channels // -(-channels // most))

    @property
    def pitch(self) -> int:
        """Values from a pixel's window to that of the next."""
        return self.window.stride_w * self.window.channels

    @property
    def unrolled(self) -> int:
        """Taps of a turn of the innermost loop."""
        few = range(min(_UNROLLED, self.window.run), 0, -1)
        return next(n for n in few if self.window.run % n == 0)

    @property
    def row_values(self) -> int:
        """The values of a copy of a row."""
        return self.window.columns * self.window.channels

    @property
    def copies(self) -> int:
        """Values of scratch with copies of rows."""
        return self.window.kernel_h * self.row_values if self.copied else 0

    @property
    def scratch(self) -> int:
        """Bytes: the copies, then a plane of some pixels for each output channel."""
        planes = self.window.out_channels * self.pixels
        return (self.copies + planes) * self.elem.bytes

    @property
    def instructions(self) -> int:
        """Estimated, of a row."""
        w, n = self.window, self.together
        blocks = -(-w.out_width // _LANES) * -(-w.out_channels // n)
        sums = w.taps * (4 + 2 * n) + 12 * n
        return blocks * sums + 6 * w.out_width + self.copies // 4

    @property
    def name(self) -> str:
        w = self.window
        parts = (
            "conv2d_rvv" if self.elem is INT8 else "conv2d_s16_rvv",
            f"pixels_by{self.together}",
            f"taps{self.unrolled}",
            "rest" if w.out_channels % self.together else "",
            w.key,
            "left" if w.left else "",
            "right" if w.right else "",
            "columns" if w.by_taps else "",
            self.epilogue.key,
        )
        return "_".join(p for p in parts if p)

    @property
    def doc(self) -> str:
        """The comment in the kernel's C."""
        w = self.window
        copied = "copies of rows with their padding first; " * self.copied
        return told(
            f"convolution, {self.elem.value}: {w.words}",
            f"{copied}{self.together} output channels of a vector of pixels at a time, "
            "tap by tap, into a plane each; then pixel by pixel out of the planes",
            self.epilogue.words,
        )


def suits(window: Window) -> bool:
    """True if a layer has few output channels, and pixels enough."""
    few = 1 < window.out_channels <= _MOST_CHANNELS and window.groups == 1
    return few and window.out_width >= _LEAST_PIXELS


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
        self.v, self.g = vectors(_LANES), Bound(k, w)
        self.y = k.row("y", 0, layer.elem, writable=True)
        self.weights = k.row("weights", self.g.rows + 1, INT8)
        self.ends = k.row("epilogue", self.g.rows + 2, INT32)
        scratch = self.g.rows + 3
        self.rows = Rows(k, self.g, layer.elem, scratch, layer.copied)
        written = k.row("planes", scratch, layer.elem, writable=True)
        read = k.row("planes_read", scratch, layer.elem)
        self.planes, self.planes_read = (
            offset(one, self.rows.copied) for one in (written, read)
        )
        self.pitch = k.arg("pitch", layer.pitch)
        self.out_channels = k.arg("out_channels", w.out_channels)
        self.run_turns = k.arg("run_turns", w.run // layer.unrolled)
        self.finish = OfPixels(k, self.v, layer.epilogue, self.out_channels)

    def write(self) -> Builder:
        """Some pixels, of them all output channels."""
        k, layer, g = self.k, self.layer, self.g
        self.rows.copy(self.v, layer.x_zero)
        taps = k.arg("taps", layer.window.taps)
        steps = Steps(k, self.v, g.out_width, k.arg("most_pixels", layer.pixels))
        with steps.each("some") as (at, n):
            first = k.let("first", at * self.pitch)
            w = k.let("w", self.weights)
            with k.loop("channel", self.out_channels, 0, layer.together) as channel:
                begin: Expr = channel
                if layer.window.out_channels % layer.together:
                    last = self.out_channels - layer.together
                    begin = k.let("begin", minimum(channel, last))
                self._block(first, w, begin, (n, steps.lanes))
                k.assign(w, offset(w, taps * layer.together))
            with k.loop("pixel", n, rolled=True) as pixel:
                plane = offset(self.planes_read, pixel)
                apart = self.v.APART_AS_THEY_ARE[layer.elem]
                values = apart(plane, steps.lanes, self.out_channels)
                to = (at + pixel) * self.out_channels
                k.store(self.y, to, values, count=self.out_channels)
        return k

    def _block(
        self, first: Expr, w: Var, begin: Expr, count: tuple[Expr, Expr]
    ) -> None:
        """Some output channels of some pixels: into their planes.

        count  the pixels; places from a plane to the next
        """
        k, (n, pitch) = self.k, count
        ends = [
            k.let(f"end{j}", offset(self.ends, begin + j))
            for j in range(self.layer.together)
        ]
        sums = [
            k.let(f"sum{j}", self.finish.start(end, n)) for j, end in enumerate(ends)
        ]
        self._sum(sums, first, k.let("at_w", w), n)
        for j, (total, end) in enumerate(zip(sums, ends, strict=True)):
            (value,) = self.finish.narrow(k, [total], end, n)
            to = offset(self.planes, (begin + j) * pitch)
            k.store(to, 0, value, count=n)

    def _sum(self, sums: list[Var], first: Expr, w: Var, n: Expr) -> None:
        k, g, layer = self.k, self.g, self.layer
        apart = self.v.APART_AS_HALVES[layer.elem]
        with k.loop("ky", g.kernel_h) as ky, k.loop("kx", g.row_runs) as kx:
            at = first + kx * (g.dilation_w * g.channels)
            x = k.let("x", offset(self.rows.row(ky), at))
            with k.loop("step", self.run_turns, rolled=True):
                for tap in range(layer.unrolled):
                    values = k.let("values", apart(offset(x, tap), self.pitch, n))
                    for j, total in enumerate(sums):
                        weight = i32(load(w, layer.together * tap + j))
                        k.assign(total, self.v.MAC_ONE(total, weight, values, n))
                k.assign(w, offset(w, layer.together * layer.unrolled))
                k.assign(x, offset(x, layer.unrolled))
