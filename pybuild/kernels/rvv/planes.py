"""Rows in planes, inside a kernel on vectors that is being written: a plane for each
value between the windows of two neighbouring pixels, so that a vector reads a tap of
many pixels where it lies. Knows no layer.
"""

from __future__ import annotations

from pybuild.dtype import DType
from pybuild.ir.loop import Expr, Operand, Var, cast, offset
from pybuild.kernels.base.builder import Builder
from pybuild.kernels.base.window import Bound, Window
from pybuild.kernels.rvv.loops import Steps
from pybuild.kernels.rvv.vectors import Vectors


def plane_size(w: Window) -> int:
    """Values of a plane."""
    return w.out_width + (w.span - 1) // w.stride_w


def planes_size(w: Window) -> int:
    """Values of the planes of all rows under a window."""
    return w.kernel_h * w.stride_w * w.channels * plane_size(w)


class Planes:
    """The planes of the rows under the windows `g`, in scratch.

    size  of a plane
    all   values of all of them
    """

    def __init__(self, k: Builder, g: Bound, elem: DType, space: Var) -> None:
        self.k, self.g, self.elem, self.space = k, g, elem, space
        w = g.window
        self.size = k.arg("plane", plane_size(w))
        self.row_size = k.arg("planes", w.stride_w * w.channels * plane_size(w))
        self.all = g.kernel_h * self.row_size

    def tap(self, kx: int) -> Expr:
        """The place of a column of the window in a row's planes: its first channel."""
        w = self.g.window
        column = kx * w.dilation_w
        plane = self.g.channels * (column % w.stride_w) * self.size
        return plane + column // w.stride_w

    def row(self, ky: Expr) -> Expr:
        """The planes of one row."""
        return offset(self.space, ky * self.row_size)

    def fill(self, v: Vectors, x_zero: int) -> None:
        """Writes them; x_zero: what stands beside a row."""
        k, g, w = self.k, self.g, self.g.window
        pitch = k.arg("pitch", w.stride_w * w.channels)
        zero: Expr | None = None
        if w.padded:
            zero = k.let("beside", cast(k.arg("x_zero", x_zero), self.elem))
        known = []
        for phase in range(w.stride_w):
            begin, end = _inside(w, phase)
            count = k.arg("inside", end - begin)
            known.append((phase, begin, end, count, Steps(k, v, count)))
        with k.loop("ky", g.kernel_h) as ky:
            planes = k.let("to", self.row(ky))
            row = k.row("row", ky * g.dilation_h + 1, self.elem)
            for phase, begin, end, count, steps in known:
                first = begin * w.stride_w + phase - w.left
                with k.loop("c", g.channels) as c:
                    channel = g.channels * phase + c
                    plane = k.let("plane_of", offset(planes, channel * self.size))
                    x = offset(row, g.channels * first + c)
                    if zero is not None:
                        self._beside(plane, zero, 0, begin)
                    with steps.each() as (at, n):
                        apart = v.APART_AS_THEY_ARE[self.elem]
                        some = apart(offset(x, at * pitch), pitch, n)
                        k.store(plane, begin + at, some, count=n)
                    if zero is not None:
                        rest = plane_size(w) - end
                        self._beside(plane, zero, begin + count, rest)

    def _beside(self, plane: Var, zero: Expr, begin: Operand, count: int) -> None:
        for i in range(count):
            self.k.store(plane, begin + i, zero)


def _inside(w: Window, phase: int) -> tuple[int, int]:
    """Of a plane, the columns that are in the row: from, to."""
    begin, end = (
        max(0, -(-(at - phase) // w.stride_w)) for at in (w.left, w.left + w.width)
    )
    size = plane_size(w)
    return min(begin, size), min(end, size)
