"""A depthwise convolution as the kernels of four channels side by side see it. Knows no
code.
"""

from __future__ import annotations

from dataclasses import replace

from pybuild.dtype import DType
from pybuild.kernels.base.builder import told
from pybuild.kernels.base.window import Window
from pybuild.kernels.dsp.fours_end import FourEnds, epilogue_key
from pybuild.kernels.epilogues.end16 import End16
from pybuild.kernels.layers.depthwise import GROUP, UNROLLED
from pybuild.kernels.layers.image import Image
from pybuild.records import dataclass

PAIRS = GROUP // 2  # words of a pixel, each in a plane of its own
_REGISTERS = 13  # of sums, taps, two values, and two pointers
_BLOCKS = 3  # of a row, that are written out each for itself


@dataclass(frozen=True)
class Layer:
    """A depthwise convolution of whole images as its kernel sees it.

    whole   all rows of four channels are widened at once, padding beside them; else
            those under a window, in a ring
    across  of an image that is whole: its columns are this layer's rows
    """

    window: Window
    epilogue: FourEnds
    x_zero: int
    image: Image
    whole: bool = False
    across: bool = False

    @property
    def shorter(self) -> Layer:
        """The layer of a whole image along its rows, or across, which takes less where
        rows are short and many."""
        w, image = self.window, self.image
        if not self.whole or w.dilation_w > 1:
            return self
        turned = replace(
            w,
            width=image.height,
            out_width=image.out_height,
            kernel_h=w.kernel_w,
            kernel_w=w.kernel_h,
            stride_w=image.stride_h,
            left=image.top,
        )
        rows = Image(w.width, w.out_width, w.stride_w, w.left)
        other = replace(self, window=turned, image=rows, across=True)
        return other if 2 * other.blocks <= self.blocks else self

    @property
    def blocks(self) -> int:
        """The number of blocks of pixels that are summed together, in an image."""
        return self.image.out_height * -(-self.window.out_width // self.pixels)

    @property
    def elem(self) -> DType:
        """The element type of inputs and outputs."""
        return DType.INT16 if isinstance(self.epilogue, End16) else DType.INT8

    @property
    def padded(self) -> bool:
        return self.window.padded or self.image.padded(self.window.rows)

    @property
    def taps(self) -> int:
        return self.window.kernel_h * self.window.kernel_w

    @property
    def may_skip(self) -> bool:
        """Taps on padding add nothing: of bytes the zero point is taken off as they are
        widened."""
        return self.whole and (self.elem is DType.INT8 or self.x_zero == 0)

    @property
    def skips_rows(self) -> bool:
        """Windows that reach above or below the image sum only the rows inside it:
        there is a loop over these rows, and no padding is stored."""
        beside = self.may_skip and self.image.padded(self.window.rows)
        met = min(self.image.inside(self.window.rows)) > 0
        return beside and met and self.taps > UNROLLED

    @property
    def skips_columns(self) -> bool:
        """The same of columns, of rows of a few blocks: each has its own code. Those of
        3x3 and stride 1 share theirs with layers of other widths."""
        w = self.window
        few = -(-w.out_width // self.pixels) <= _BLOCKS
        shared = self.taps <= UNROLLED and w.stride_w == 1 and self.elem is DType.INT8
        return self.may_skip and w.padded and few and not shared

    @property
    def skips(self) -> str:
        """The part of the key that says which taps on padding are left out."""
        w = self.window
        beside = f"less{w.left}of{w.width}" if self.skips_columns else ""
        return "_".join(n for n in (beside, "inside" if self.skips_rows else "") if n)

    @property
    def centred(self) -> bool:
        """The zero point is taken off as bytes are widened, so that padding is 0."""
        return bool(self.skips) and self.x_zero != 0

    @property
    def has_margins(self) -> bool:
        """Padding is held beside the image."""
        columns = self.window.padded and not self.skips_columns
        return columns or (self.image.padded(self.window.rows) and not self.skips_rows)

    @property
    def inside(self) -> int:
        """The number of columns of an input row that are widened."""
        return min(self.window.width, self.window.columns - self.window.left)

    @property
    def together(self) -> int:
        """The number of columns that are widened in one iteration."""
        return next(n for n in range(8, 0, -1) if self.inside % n == 0)

    @property
    def behind(self) -> int:
        """The number of columns of padding after those."""
        return self.window.columns - self.window.left - self.inside

    @property
    def rows(self) -> int:
        """The number of rows that are held in scratch."""
        if not self.whole:
            return self.window.kernel_h
        return self.read if self.skips_rows else self._under

    @property
    def _under(self) -> int:
        """Rows under the windows of an image, padding included."""
        return (self.image.out_height - 1) * self.image.stride_h + self.window.rows

    @property
    def read(self) -> int:
        """The number of rows of the image that are held in scratch."""
        return min(self.image.height, self._under - self.image.top)

    @property
    def columns(self) -> int:
        """The number of columns that are held in scratch."""
        return self.inside if self.skips_columns else self.window.columns

    @property
    def turn(self) -> int:
        """Words of weights that the ring turns by for each output row: rows between
        windows never come to it."""
        rows = self.window.kernel_h
        new = min(self.image.stride_h, rows)
        turned = self.image.out_height > 1 and not self.whole
        return new % rows * self.row_words if turned else 0

    @property
    def row_words(self) -> int:
        """Words of weights of a row of taps, of two channels."""
        return self.window.kernel_w

    @property
    def taps_plane(self) -> int:
        """Words of weights of two channels: twice where they begin with any row."""
        rows = self.window.kernel_h
        return self.row_words * (2 * rows - 1 if self.turn else rows)

    @property
    def plane(self) -> int:
        """Words of the rows that are held, of two channels."""
        return self.rows * self.columns

    @property
    def scratch(self) -> int:
        """Bytes of the held rows, and of weights."""
        return 4 * PAIRS * (self.plane + self.taps_plane)

    @property
    def step(self) -> int:
        """Words from a column to the next."""
        return 1 if self.whole else self.window.kernel_h

    @property
    def pixels(self) -> int:
        """The number of pixels of a row that are summed together, for two channels:
        they share weights and some values."""
        w = self.window
        able = [n for n in (2, 3) if self._registers(n) <= _REGISTERS]
        return min(max(able, default=1), w.out_width)

    def _registers(self, pixels: int) -> int:
        w = self.window
        taps = min(w.kernel_w, w.stride_w * (pixels - 1) + 1)
        return PAIRS * pixels + (taps if w.dilation_w == 1 else w.kernel_w) + 4

    @property
    def once(self) -> bool:
        return self.pixels == self.window.out_width

    @property
    def rest(self) -> int:
        """The number of pixels after the last whole group."""
        return self.window.out_width % self.pixels

    def uses(self, pixels: int, first: int = 0) -> dict[int, list[tuple[int, int]]]:
        """For so many pixels: column that is held -> (pixel, tap); `first`: pixel of
        the row, if it has its own code."""
        w, found = self.window, dict[int, list[tuple[int, int]]]()
        for i in range(pixels):
            for kx in range(w.kernel_w):
                column = (first + i) * w.stride_w + kx * w.dilation_w
                if self.skips_columns:
                    column -= w.left
                    if not 0 <= column < w.width:
                        continue
                found.setdefault(column, []).append((i, kx))
        return dict(sorted(found.items()))

    @property
    def key(self) -> str:
        """The key that distinguishes the code of the sums."""
        w = self.window
        parts = (
            "whole" if self.whole else "",
            f"{w.kernel_h}x{w.kernel_w}",
            "s16" if self.elem is not DType.INT8 else "",
            f"stride{w.stride_w}" if w.stride_w > 1 else "",
            f"dilated{w.dilation_w}" if w.dilation_w > 1 else "",
            f"{self.pixels}once" if self.once else f"{self.pixels}rest{self.rest}",
            self._written,
            epilogue_key(self.epilogue),
        )
        return "_".join(p for p in parts if p)

    @property
    def _written(self) -> str:
        """The facts about pixels whose code is unrolled."""
        whole = self.window.out_width // self.pixels
        many = f"blocks{whole}" if self.skips_columns and not self.once else ""
        return "_".join(n for n in (many, self.skips) if n)

    @property
    def name(self) -> str:
        w = self.window
        parts = (
            "depthwise_dsp_fours",
            self.key,
            "centred" if self.centred else "",
            "across" if self.across else "",
            "padded" if self.padded else "",
            "turned" if self.turn else "",
            f"by{self.together}",
            "tail" if w.channels % GROUP else "",
        )
        return "_".join(p for p in parts if p)

    @property
    def doc(self) -> str:
        """The comment in the kernel's C."""
        w = self.window
        beside = ", which may leave the image" if self.padded else ""
        gaps = ", with gaps between taps" if w.dilation_w > 1 else ""
        held = "each input row is widened once"
        if self.whole:
            held = "their image is widened, margins included"
        if self.skips:
            held = "their image is widened; what stands beside it is not a product"
        return told(
            f"depthwise convolution, {self.elem.value}, int32 sums by halves of words "
            f"(SMLABB): {w.kernel_h}x{w.kernel_w} windows, stride {w.stride_w}{beside}"
            f"{gaps}",
            f"four channels at a time, two of them a word: {held}; then sums of two of "
            f"them, {self.pixels} pixels at a time; weights forward",
            self.epilogue.words,
        )
