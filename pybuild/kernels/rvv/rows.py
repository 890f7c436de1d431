"""The rows under the windows of a convolution, inside a kernel on vectors that is being
written: where they lie, or copies of them with what stands beside a row.
"""

from __future__ import annotations

from pybuild.dtype import DType
from pybuild.ir.loop import Expr, Var, const, offset
from pybuild.kernels.base.builder import Builder
from pybuild.kernels.base.window import Bound
from pybuild.kernels.rvv.loops import Steps
from pybuild.kernels.rvv.vectors import Vectors


class Rows:
    """The rows of a kernel whose window is `g`.

    scratch  the pointer of the copies, if rows are `are_copied`
    copied   the values of all copies
    """

    def __init__(
        self, k: Builder, g: Bound, elem: DType, scratch: Expr, are_copied: bool
    ) -> None:
        self.k, self.g, self.elem = k, g, elem
        self.copied: Expr = const(0)
        self.copies: Var | None = None
        if are_copied:
            values = g.window.columns * g.window.channels
            self.size = k.arg("row_values", values)
            self.copied = g.kernel_h * self.size
            self.copies = k.row("copies", scratch, elem, writable=True)

    def row(self, ky: Expr) -> Expr:
        """One of them."""
        if self.copies is None:
            return self._own(ky)
        return offset(self.copies, ky * self.size)

    def _own(self, ky: Expr) -> Var:
        return self.k.row("row", ky * self.g.dilation_h + 1, self.elem)

    def copy(self, v: Vectors, x_zero: int) -> None:
        """Copies them, if copies are read; x_zero: what stands beside a row."""
        if self.copies is None:
            return
        k, g, w = self.k, self.g, self.g.window
        values = min(w.width, w.columns - w.left) * w.channels
        copied = k.arg("copied", values)
        middle = Steps(k, v, copied)
        zero = k.arg("x_zero", x_zero) if w.padded else const(0)
        ends = [(w.left, const(0)), (w.right, g.left * g.channels + copied)]
        beside = [
            (Steps(k, v, k.arg("beside", columns * w.channels)), begin)
            for columns, begin in ends
            if columns
        ]
        with k.loop("ky", g.kernel_h) as ky:
            to = k.let("to", self.row(ky))
            row = self._own(ky)
            for steps, begin in beside:
                with steps.each() as (at, n):
                    filled = v.FILLED[self.elem](zero, n)
                    k.store(to, begin + at, filled, count=n)
            with middle.each() as (at, n):
                some = v.AS_THEY_ARE[self.elem](offset(row, at), n)
                k.store(to, g.left * g.channels + at, some, count=n)
