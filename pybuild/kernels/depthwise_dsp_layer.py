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
    def slots(self) -> int:
        """Widened rows that are kept."""
        return self.window.kernel_h if self.image is None else self.window.rows

    @property
    def columns(self) -> int:
        """Pixels of a row whose sums the registers hold, with few left over."""
        w = self.window
        if w.kernel_w > 3 or w.dilation_w > 1:
            return min(2, w.out_width)
        if w.out_width <= 5:
            return w.out_width
        return 3 if w.out_width % 3 <= w.out_width % 4 else 4

    @property
    def taps(self) -> int:
        return self.window.kernel_h * self.window.kernel_w

    @property
    def pitch(self) -> int:
        """Columns of a widened row, padding included."""
        w = self.window
        return (w.out_width - 1) * w.stride_w + (w.kernel_w - 1) * w.dilation_w + 1

    @property
    def scratch(self) -> int:
        """Bytes: two words for each column of each row and, behind, for each tap."""
        return 8 * (self.slots * self.pitch + self.taps)

    @property
    def name(self) -> str:
        w = self.window
        parts = (
            "depthwise_dsp" if self.image is None else "depthwise_dsp_image",
            f"{w.kernel_h}x{w.kernel_w}",
            f"stride{w.stride_w}" if w.stride_w > 1 else "",
            f"dilated{w.dilation_w}" if w.dilation_w > 1 else "",
            "padded" if self.padded else "",
            "tail" if w.channels % GROUP else "",
            kind(self.ending, is_usual(self.ending)),
            str(self.columns),
        )
        return "_".join(p for p in parts if p)
