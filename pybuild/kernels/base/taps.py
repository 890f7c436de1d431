"""One pointer for each pixel under a window, for kernels with unrolled taps. All pixels
outside the row are one constant pixel, so the edges need no code of their own. Knows no
operator.
"""

from __future__ import annotations

import numpy as np

from pybuild.dtype import DType
from pybuild.ir.loop import Expr, Operand, Var, const, minimum, offset, select
from pybuild.kernels.base.builder import Builder
from pybuild.kernels.base.candidate import Packed
from pybuild.kernels.base.window import Window, dilation_arguments
from pybuild.records import dataclass

UNROLLED = 25  # taps, at most


def outside_pixel(window: Window, value: float, elem: DType) -> tuple[Packed, ...]:
    """The constant pixel that `Pixels` reads, if the window needs one."""
    if not window.padded:
        return ()
    pixel = np.full(window.channels, value, elem.numpy)
    return (Packed("outside", pixel, order="a pixel beside the row"),)


@dataclass(frozen=True)
class Pixels:
    """The positions of the pixels in one layer's windows.

    rows     rows under the window, gaps of a dilation included
    outside  pointer to the pixel that stands for those outside; None: not needed
    """

    window: Window
    channels: Expr
    width: Expr
    stride: Expr
    left: Expr
    dilation_h: Expr
    dilation_w: Expr
    rows: Expr
    outside: Expr | None
    elem: DType

    def row(self, k: Builder, ky: Operand) -> Var:
        """Return the row of pixels at height ky of the window."""
        name = f"row{ky}" if isinstance(ky, int) else "row"
        return k.row(name, self.dilation_h * ky + 1, self.elem)

    def start(self, ox: Expr) -> Expr:
        """Return the column of the window's first tap."""
        return ox * self.stride - self.left

    def pixel(self, row: Expr, column: Expr, margin: Expr | None) -> Expr:
        """Return a pointer to the pixel in a column of a row."""
        inside = offset(row, column * self.channels)
        if margin is None or self.outside is None:
            return inside
        return select(margin < 0, self.outside, inside)

    def margin(self, k: Builder, column: Expr, mark: str = "") -> Expr | None:
        """Return the distance of a column to the nearer end of the row; negative:
        outside."""
        if self.outside is None:
            return None
        nearer = minimum(column, self.width - 1 - column)
        return k.let(f"margin{mark}", nearer)

    def all(self, k: Builder, rows: list[Var], ox: Expr) -> list[Var]:
        """Return every pixel of the window of output pixel ox, row by row."""
        x0 = k.let("x0", self.start(ox))
        columns = [
            k.let(f"column{kx}", x0 + self.dilation_w * kx)
            for kx in range(self.window.kernel_w)
        ]
        margins = [self.margin(k, c, str(kx)) for kx, c in enumerate(columns)]
        return [
            k.let(f"x{ky}_{kx}", self.pixel(row, column, margins[kx]))
            for ky, row in enumerate(rows)
            for kx, column in enumerate(columns)
        ]


def bind(
    k: Builder, window: Window, elem: DType, kernel_h: Expr, after: int | None
) -> Pixels:
    """Bind the arguments and pointers of a window.

    after  number of constants before the pixel of `outside_pixel`; None: it is not used
    """
    zero = const(0)
    padded = window.padded
    channels = k.arg("channels", window.channels)
    stride = k.arg("stride", window.stride_w)
    dilation_h, dilation_w = dilation_arguments(k, window)
    rows = (kernel_h - 1) * dilation_h + 1
    outside: Var | None = None
    if padded and after is not None:
        outside = k.row("outside", rows + 1 + after, elem)
    return Pixels(
        window=window,
        channels=channels,
        width=k.arg("width", window.width) if padded else zero,
        stride=stride,
        left=k.arg("left", window.left) if padded else zero,
        dilation_h=dilation_h,
        dilation_w=dilation_w,
        rows=rows,
        outside=outside,
        elem=elem,
    )
