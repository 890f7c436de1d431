"""The geometry of layers that slide a window along rows, as loop IR. Shared by
convolution, depthwise convolution and pooling.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pybuild.dtype import DType
from pybuild.ir.graph import Node, Tensor
from pybuild.ir.loop import Expr, Var, const, load, maximum, minimum, offset
from pybuild.kernels.base.builder import Builder
from pybuild.kernels.base.candidate import RowAccess
from pybuild.records import dataclass


@dataclass(frozen=True)
class Window:
    """One layer's window. Units: pixels, channels; `left` is padding.

    channels, out_channels  of the whole layer; groups divide both
    """

    width: int
    out_width: int
    channels: int
    out_channels: int
    kernel_h: int
    kernel_w: int
    stride_w: int = 1
    dilation_h: int = 1
    dilation_w: int = 1
    left: int = 0
    groups: int = 1

    @property
    def rows(self) -> int:
        """Input rows under the window, gaps of a dilation included."""
        return (self.kernel_h - 1) * self.dilation_h + 1

    @property
    def group_channels(self) -> int:
        """The number of input channels that an output channel depends on."""
        return self.channels // self.groups

    @property
    def taps(self) -> int:
        """The number of values from which an output is computed."""
        return self.kernel_h * self.kernel_w * self.group_channels

    @property
    def group_outputs(self) -> int:
        """Output channels of a group."""
        return self.out_channels // self.groups

    @property
    def by_taps(self) -> bool:
        """True if neighbouring taps are not adjacent in the row."""
        return self.dilation_w > 1 or self.groups > 1

    @property
    def run(self) -> int:
        """The number of values of a row that are contiguous in the window."""
        return self.group_channels * (1 if self.by_taps else self.kernel_w)

    @property
    def span(self) -> int:
        """The number of columns under a window, gaps of a dilation included."""
        return (self.kernel_w - 1) * self.dilation_w + 1

    @property
    def columns(self) -> int:
        """The number of columns under all windows of a row, padding included."""
        return (self.out_width - 1) * self.stride_w + self.span

    @property
    def right(self) -> int:
        """The number of columns of padding that some window reads after the row."""
        return max(self.columns - self.left - self.width, 0)

    @property
    def padded(self) -> bool:
        """True if some window reaches past an end of the row."""
        return self.left > 0 or self.right > 0

    @property
    def dilated(self) -> bool:
        return self.dilation_h > 1 or self.dilation_w > 1

    @property
    def pointwise(self) -> bool:
        """True if the window has one tap, which is always inside."""
        return self.kernel_h == self.kernel_w == 1 and not self.padded

    @property
    def key(self) -> str:
        """The key that distinguishes the code of two layers."""
        if self.pointwise:
            parts = ["pointwise", "strided" if self.stride_w > 1 else ""]
        else:
            parts = ["padded" if self.padded else "", "dilated" if self.dilated else ""]
        parts.append("grouped" if self.groups > 1 else "")
        return "_".join(p for p in parts if p)

    @property
    def words(self) -> str:
        """`key` in words, for readers of the C."""
        if self.pointwise:
            parts = [
                "1x1 windows",
                "every stride-th pixel" if self.stride_w > 1 else "",
            ]
        else:
            beside = "which may leave the row" if self.padded else "all in the row"
            gaps = "with gaps between taps" if self.dilated else ""
            parts = ["windows of any size", beside, gaps]
        parts.append("in groups of channels" if self.groups > 1 else "")
        return ", ".join(p for p in parts if p)


def convolution_window(
    node: Node, x: Tensor, y: Tensor, kernel: tuple[int, int]
) -> Window:
    """Return the window of a convolution; along an axis with a single tap, dilation is
    dropped.

    Shapes  x [N,H,W,C]  y [N,OH,OW,O]  kernel (KH, KW)
    """
    dilation_h, dilation_w = node.attrs.get("dilations", (1, 1))
    return Window(
        width=x.shape[2],
        out_width=y.shape[2],
        channels=x.shape[3],
        out_channels=y.shape[3],
        kernel_h=kernel[0],
        kernel_w=kernel[1],
        stride_w=node.attrs.get("strides", (1, 1))[1],
        dilation_h=dilation_h if kernel[0] > 1 else 1,
        dilation_w=dilation_w if kernel[1] > 1 else 1,
        left=node.attrs.get("pads", (0, 0, 0, 0))[1],
        groups=node.attrs.get("groups", 1),
    )


def is_row_by_row(
    window: Window, rows: tuple[RowAccess, RowAccess], calls: tuple[int, int]
) -> bool:
    """Return True if each call makes a row of pixels from the row of the same number
    alone, so that it may overwrite that row.

    rows   the accesses (written, read)
    calls  (images, bands)
    """
    alone = window.pointwise and window.stride_w == window.groups == 1
    return alone and calls[1] > 1 and (rows[1].window, rows[1].stride) == (1, 1)


def dilation_arguments(k: Builder, w: Window) -> tuple[Expr, Expr]:
    """Return the rows and columns between taps; each is an argument only if it is not
    1."""
    one = const(1)
    return (
        k.arg("dilation_h", w.dilation_h) if w.dilation_h > 1 else one,
        k.arg("dilation_w", w.dilation_w) if w.dilation_w > 1 else one,
    )


@dataclass(frozen=True)
class InsideRows:
    """The rows of an image that a window covers: pointer to the first, their count, and
    the values per row."""

    first: Var
    count: Expr
    size: Expr


class Bound:
    """A Window's integers inside a kernel: its arguments, or constants."""

    def __init__(self, k: Builder, w: Window) -> None:
        one: Expr = const(1)
        self.window = w
        self.out_width = k.arg("out_width", w.out_width)
        self.channels = k.arg("channels", w.channels)
        strided = not w.pointwise or w.stride_w > 1
        self.stride = k.arg("stride", w.stride_w) if strided else one
        self.kernel_h = one if w.pointwise else k.arg("kernel_h", w.kernel_h)
        self.kernel_w = one if w.pointwise else k.arg("kernel_w", w.kernel_w)
        self.dilation_h, self.dilation_w = dilation_arguments(k, w)
        self.width = k.arg("width", w.width) if w.padded else const(w.width)
        self.left = k.arg("left", w.left) if w.padded else const(0)
        self.rows = (self.kernel_h - 1) * self.dilation_h + 1
        # of a kernel that takes an image at once: of a window the rows inside
        self.inside_rows: InsideRows | None = None
        # of `Window.run` values each
        self.row_runs: Expr = self.kernel_w if w.by_taps else one

    def fits(self, x0: Expr, pixels: int = 1) -> Expr:
        """Return True if the windows of `pixels` pixels lie in the row; x0: the first's
        column."""
        span = (self.kernel_w - 1) * self.dilation_w + 1
        room = self.width - span - self.stride * (pixels - 1) - x0
        return const(0) <= minimum(x0, room)

    @property
    def _heights(self) -> Expr:
        return self.kernel_h if self.inside_rows is None else self.inside_rows.count

    def _row(self, k: Builder, ky: Expr, elem: DType) -> Var:
        inside = self.inside_rows
        if inside is None:
            return k.row("row", ky * self.dilation_h + 1, elem)
        return k.let("row", offset(inside.first, ky * inside.size))

    @contextmanager
    def runs(self, k: Builder, begin: Expr, elem: DType) -> Iterator[Var]:
        """Loop over each `Window.run` of a window that lies in the row; yield a pointer
        to it.

        begin  the window's start, in values of the row
        """
        with k.loop("ky", self._heights) as ky, k.loop("kx", self.row_runs) as kx:
            row = self._row(k, ky, elem)
            at = begin + kx * (self.dilation_w * self.channels)
            yield k.let("x", offset(row, at))

    @contextmanager
    def columns(self, k: Builder, x0: Expr, elem: DType) -> Iterator[tuple[Expr, Expr]]:
        """Loop over each tap of a window that leaves the row; yield whether its column
        is in the row, and a pointer to it."""
        with k.loop("ky", self._heights) as ky, k.loop("kx", self.kernel_w) as kx:
            row = self._row(k, ky, elem)
            column = k.let("column", x0 + kx * self.dilation_w)
            inside = const(0) <= minimum(column, self.width - 1 - column)
            yield inside, offset(row, column * self.channels)

    @contextmanager
    def cut_runs(
        self, k: Builder, x0: Expr, elem: DType, to: Var, run: Expr
    ) -> Iterator[None]:
        """Copy a window that leaves the row and whose taps are adjacent, `run` values
        per row: the loop's body fills `to` with the outside value, then the values
        inside the row are copied over it."""
        column = k.let("column", maximum(x0, 0))
        first = k.let("first", column - x0)
        taps = minimum(self.kernel_w - first, self.width - column)
        # also of a window that misses the row no pointer leaves it
        begin = k.let("begin", minimum(column, self.width) * self.channels)
        before = k.let("before", first * self.channels)
        count = k.let("inside", taps * self.channels)
        with k.loop("ky", self._heights) as ky:
            row = self._row(k, ky, elem)
            x = k.let("x", offset(row, begin))
            yield
            with k.loop("c", count, rolled=True) as c:
                k.store(to, before + c, load(x, c))
            k.assign(to, offset(to, run))

    def inside(self, k: Builder, x0: Expr) -> tuple[Expr, Expr]:
        """Return the taps [first, last) of a window at column x0 that lie inside the
        row."""
        if not self.window.padded:
            return const(0), self.kernel_w
        step = self.dilation_w
        first = minimum(maximum((step - 1 - x0) / step, 0), self.kernel_w)
        ahead = (self.width - x0 + step - 1) / step
        start = k.let("first", first)
        return start, k.let("last", maximum(minimum(ahead, self.kernel_w), start))
