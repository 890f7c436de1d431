"""A depthwise convolution as the kernels of four channels side by side see it. Knows no
code.
"""

from __future__ import annotations

from dataclasses import dataclass

from pybuild.dtype import DType
from pybuild.kernels.base.builder import told
from pybuild.kernels.base.window import Window
from pybuild.kernels.dsp.fours_end import FourEnds, epilogue_key
from pybuild.kernels.epilogues.end16 import End16
from pybuild.kernels.layers.depthwise import GROUP, Image

PAIRS = GROUP // 2  # words of a pixel


@dataclass(frozen=True)
class Layer:
    """A depthwise convolution of whole images as its kernel sees it.

    whole  all rows of four channels are widened at once, padding beside them; else
           those under a window, in a ring
    """

    window: Window
    epilogue: FourEnds
    x_zero: int
    image: Image
    whole: bool = False

    @property
    def elem(self) -> DType:
        """Of inputs and outputs."""
        return DType.INT16 if isinstance(self.epilogue, End16) else DType.INT8

    @property
    def padded(self) -> bool:
        return self.window.padded or self.image.padded(self.window.rows)

    @property
    def taps(self) -> int:
        return self.window.kernel_h * self.window.kernel_w

    @property
    def inside(self) -> int:
        """Columns of an input row that are widened."""
        return min(self.window.width, self.window.columns - self.window.left)

    @property
    def together(self) -> int:
        """Columns that are widened in one turn."""
        return next(n for n in range(8, 0, -1) if self.inside % n == 0)

    @property
    def behind(self) -> int:
        """Columns of padding behind those."""
        return self.window.columns - self.window.left - self.inside

    @property
    def rows(self) -> int:
        """Rows that are held."""
        if not self.whole:
            return self.window.kernel_h
        return (self.image.out_height - 1) * self.image.stride_h + self.window.rows

    @property
    def read(self) -> int:
        """Rows of the image that are held."""
        return min(self.image.height, self.rows - self.image.top)

    @property
    def turn(self) -> int:
        """Words of weights that the ring turns by for each output row."""
        rows = self.window.kernel_h
        turned = self.image.out_height > 1 and not self.whole
        return self.image.stride_h % rows * self.row_words if turned else 0

    @property
    def row_words(self) -> int:
        """Words of weights of a row of taps."""
        return PAIRS * self.window.kernel_w

    @property
    def lines(self) -> int:
        """Words of the rows that are held."""
        return PAIRS * self.rows * self.window.columns

    @property
    def scratch(self) -> int:
        """Bytes of these, and of weights: twice where they begin with any row."""
        rows = self.window.kernel_h
        return 4 * (self.lines + self.row_words * (2 * rows - 1 if self.turn else rows))

    @property
    def key(self) -> str:
        """What distinguishes the code of the sums."""
        w = self.window
        parts = (
            "whole" if self.whole else "",
            f"{w.kernel_h}x{w.kernel_w}",
            "s16" if self.elem is not DType.INT8 else "",
            f"dilated{w.dilation_w}" if w.dilation_w > 1 else "",
            epilogue_key(self.epilogue),
        )
        return "_".join(p for p in parts if p)

    @property
    def name(self) -> str:
        w = self.window
        parts = (
            "depthwise_dsp_fours",
            self.key,
            f"stride{w.stride_w}" if w.stride_w > 1 else "",
            "padded" if self.padded else "",
            "turned" if self.turn else "",
            f"by{self.together}",
            "tail" if w.channels % GROUP else "",
        )
        return "_".join(p for p in parts if p)

    @property
    def doc(self) -> str:
        """What the kernel's C says."""
        w = self.window
        beside = ", which may leave the image" if self.padded else ""
        gaps = ", with gaps between taps" if w.dilation_w > 1 else ""
        held = "each input row is widened once"
        if self.whole:
            held = "their image is widened, margins included"
        return told(
            f"depthwise convolution, {self.elem.value}, int32 sums by halves of words "
            f"(SMLABB): {w.kernel_h}x{w.kernel_w} windows, stride {w.stride_w}{beside}"
            f"{gaps}",
            f"four channels at a time, side by side: {held}; then pixel by pixel their "
            "four sums; weights forward",
            self.epilogue.words,
        )
