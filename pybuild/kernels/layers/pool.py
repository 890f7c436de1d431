"""A pooling layer as its kernels see it. Knows no node and no code."""

from __future__ import annotations

from collections.abc import Callable

from pybuild.dtype import DType
from pybuild.ir.loop import Expr
from pybuild.kernels.base.builder import told
from pybuild.kernels.base.operands import short
from pybuild.kernels.base.window import Window
from pybuild.kernels.epilogues.int8 import FloatClamp
from pybuild.kernels.epilogues.requantise import Requant
from pybuild.ops.pool import PoolParameters
from pybuild.records import dataclass

UNROLLED = 9  # taps, at most
SIZES = "windows of any size"
DIVIDED = "divided by the number of cells, rounded to nearest, ties away from zero"
LOWEST = float("-inf")


@dataclass(frozen=True)
class Rows:
    """The vertical geometry of a window, for a kernel that processes whole images."""

    images: int
    height: int
    out_height: int
    stride_h: int
    top: int


@dataclass(frozen=True)
class Reduction:
    """How the cells of a window are reduced, inside a kernel being written.

    start  the initial total, given the number of cells
    add    adds one more cell
    end    the stored value, given the total and the number of cells
    """

    start: Callable[[Expr], Expr]
    add: Callable[[Expr, Expr], Expr]
    end: Callable[[Expr, Expr], Expr]


@dataclass(frozen=True)
class Layer:
    """A pooling layer as its kernel sees it.

    limits   the clamp of floats
    made     the integer parameters of an int8 or int16 layer
    rule     how an int8 average is scaled; None: by division
    counted  every cell counts, padding included: one divisor for all windows
    rows     whole images in one call; None: the runner passes rows
    elem     the element type of the tensors
    numbers  no float is NaN
    """

    window: Window
    average: bool
    limits: FloatClamp
    made: PoolParameters | None
    rule: Requant | None
    counted: bool
    rows: Rows | None = None
    elem: DType = DType.INT8
    numbers: bool = False

    @property
    def is_float(self) -> bool:
        return self.made is None

    @property
    def varies(self) -> bool:
        """True if windows at the edges average fewer cells."""
        ragged = self.window.padded or self.rows is not None
        return self.average and ragged and not self.counted

    @property
    def unrolled(self) -> bool:
        taps = self.window.kernel_h * self.window.kernel_w
        return taps <= UNROLLED and self.rows is None

    @property
    def fill(self) -> float:
        """The value of a cell outside the image."""
        if not self.average:
            return LOWEST if self.made is None else self.elem.low
        if self.made is None or not self.made.include_pad:
            return 0
        return self.made.x_zero

    @property
    def begins_with_a_cell(self) -> bool:
        """True if the first cell is the start value, instead of one below all
        values."""
        return self.is_float and not self.average

    @property
    def name(self) -> str:
        w = self.window
        finish = self.limits.key if self.is_float else ""
        if self.average and not self.is_float:
            finish = self.rule.key if self.rule is not None else "divide"
        parts = ("avg_pool" if self.average else "max_pool",
                 short(self.elem),
                 f"{w.kernel_h}x{w.kernel_w}" if self.unrolled else "large",
                 "whole" if self.rows is not None else "",
                 "padded" if w.padded else "",
                 "numbers" if self.is_float and self.numbers else "",
                 "ragged" if self.varies else "", finish)  # fmt: skip
        return "_".join(p for p in parts if p)

    @property
    def end(self) -> str:
        """How a sum becomes a stored value, for readers of the C."""
        if self.is_float or not self.average:
            divided = ["divided by the number of cells"] * self.average
            return ", ".join(filter(None, (*divided, self.limits.words)))
        return self.rule.words if self.rule is not None else DIVIDED

    def doc(self, order: str, end: str = "") -> str:
        """Return the comment in the kernel's C; `end`: replaces this layer's
        epilogue."""
        w, kind = self.window, "average" if self.average else "maximum"
        taps = f"{w.kernel_h}x{w.kernel_w} windows" if self.unrolled else SIZES
        beside = ", which may leave the row" if w.padded else ""
        fewer = ", of the cells that are inside" if self.varies else ""
        what = f"{kind} over {taps}{beside}{fewer}, {self.elem.value}"
        return told(what, order, end or self.end)
