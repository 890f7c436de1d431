"""A depthwise convolution as the kernels on pairs of int16 see it. Knows no code."""

from __future__ import annotations

from dataclasses import dataclass

from pybuild.kernels.affine import Affine
from pybuild.kernels.affine_finish import is_usual, kind
from pybuild.kernels.window import Window

GROUP = 4  # channels in one word of input
UNROLLED = 9  # taps whose rows are written out


@dataclass(frozen=True)
class Image:
    """The rows of a layer whose kernel takes an image at once; `top` is padding."""

    height: int
    out_height: int
    stride_h: int
    top: int

    def padded(self, window: int) -> bool:
        """Some window of so many rows reaches past the first or last row."""
        last = (self.out_height - 1) * self.stride_h - self.top + window
        return self.top > 0 or last > self.height


@dataclass(frozen=True)
class Layer:
    """A depthwise convolution as its kernel sees it; `columns` are done together.

    image  None: a call makes one row, of rows that need not be neighbours
    """

    window: Window
    ending: Affine
    x_zero: int
    image: Image | None = None

    @property
    def padded(self) -> bool:
        rows = self.image is not None and self.image.padded(self.window.rows)
        return self.window.padded or rows

    @property
    def columns(self) -> int:
        """Pixels of a row whose sums the registers hold: an even number, or all."""
        w = self.window
        if w.kernel_w > 3 or w.dilation_w > 1:
            return min(2, w.out_width)
        return w.out_width if w.out_width <= 5 else 4

    @property
    def once(self) -> bool:
        return self.columns == self.window.out_width

    @property
    def rest(self) -> int:
        """Pixels behind the last whole group of columns."""
        return self.window.out_width % self.columns

    @property
    def taps(self) -> int:
        return self.window.kernel_h * self.window.kernel_w

    @property
    def multiplier(self) -> int:
        return self.window.out_channels // self.window.channels

    @property
    def row_words(self) -> int:
        """Pairs of weights that are neighbours in a row: any two may be needed."""
        return max(self.window.kernel_w - 1, 1)

    @property
    def words(self) -> int:
        """Words of weights of a channel: of an image twice, so that they may begin
        with any row, as the ring does."""
        rows = self.window.kernel_h
        return self.row_words * (rows if self.image is None else 2 * rows - 1)

    @property
    def end_size(self) -> int:
        """Words of the table of ends for each channel."""
        return 2 if self.ending.below is None else 4

    @property
    def pitch(self) -> int:
        """Words of a widened row of one channel, padding included."""
        w = self.window
        last = (w.out_width - 1) * w.stride_w + (w.kernel_w - 1) * w.dilation_w
        return last // 2 + 1

    @property
    def plane(self) -> int:
        """Words of the widened rows of one channel."""
        return self.window.kernel_h * self.pitch

    @property
    def inside(self) -> int:
        """Columns of an input row that are widened."""
        return min(self.window.width, 2 * self.pitch - self.window.left)

    @property
    def head(self) -> bool:
        """The first column shares its word with padding."""
        return self.window.left % 2 > 0

    @property
    def last(self) -> bool:
        """The last column shares its word with padding, or with nothing."""
        return (self.inside - self.head) % 2 > 0

    @property
    def scratch(self) -> int:
        """Bytes of the widened rows of four channels and, behind, their weights."""
        return 4 * GROUP * (self.plane + self.words * self.multiplier)

    @property
    def name(self) -> str:
        w = self.window
        parts = (
            "depthwise_dsp" if self.image is None else "depthwise_dsp_image",
            f"{w.kernel_h}x{w.kernel_w}",
            f"stride{w.stride_w}" if w.stride_w > 1 else "",
            f"dilated{w.dilation_w}" if w.dilation_w > 1 else "",
            "padded" if self.padded else "",
            ("", "head", "last", "ends")[self.head + 2 * self.last],
            "tail" if w.channels % GROUP else "",
            "multiplied" if self.multiplier > 1 else "",
            kind(self.ending, is_usual(self.ending)),
            "once" if self.once else "",
            str(self.columns),
            f"rest{self.rest}" if self.rest else "",
        )
        return "_".join(p for p in parts if p)
