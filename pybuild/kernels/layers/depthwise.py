"""A depthwise convolution as the kernels on pairs of int16 see it. Knows no code."""

from __future__ import annotations

from pybuild.kernels.base.builder import told
from pybuild.kernels.base.window import Window
from pybuild.kernels.epilogues.affine import Affine
from pybuild.kernels.epilogues.affine_end import (
    fraction,
    is_signed,
    is_usual,
    kind,
    row_words,
)
from pybuild.kernels.epilogues.exact import Exact
from pybuild.kernels.epilogues.staircase import FRACTION
from pybuild.kernels.layers.image import Image
from pybuild.records import dataclass

GROUP = 4  # channels in one word of input
UNROLLED = 9  # taps whose rows are written out
MOST_SCRATCH = 1 << 12  # bytes of an image that is widened at once


@dataclass(frozen=True)
class Layer:
    """A depthwise convolution as its kernel sees it; `columns` are done together.

    image  the rows of a whole image per call; None: a call makes one row, from rows
           that need not be adjacent
    whole  for an image: all rows of four channels are widened at once, with padding
           between them; otherwise only the rows under a window, in a ring
    nine   weights have nine bits: a word of flash holds a pair of them, and sums are
           not shifted
    """

    window: Window
    epilogue: Affine | Exact
    x_zero: int
    image: Image | None = None
    whole: bool = False
    nine: bool = False

    @property
    def padded(self) -> bool:
        rows = self.image is not None and self.image.padded(self.window.rows)
        return self.window.padded or rows

    @property
    def columns(self) -> int:
        """Pixels of a row whose sums fit in registers: an even number, or the whole
        row."""
        w = self.window
        if w.dilation_w > 1:
            return min(2, w.out_width)
        most = 5 if w.kernel_w <= 3 else 4
        return w.out_width if w.out_width <= most else 4

    @property
    def once(self) -> bool:
        return self.columns == self.window.out_width

    @property
    def rest(self) -> int:
        """Pixels after the last full group of columns."""
        return self.window.out_width % self.columns

    @property
    def may_rest(self) -> bool:
        """True if layers with and without a leftover pair of pixels share a kernel."""
        return self.columns == 4 and self.rest in (0, 2)

    @property
    def taps(self) -> int:
        return self.window.kernel_h * self.window.kernel_w

    @property
    def multiplier(self) -> int:
        return self.window.out_channels // self.window.channels

    @property
    def row_words(self) -> int:
        """Pairs of weights that are adjacent in a row: any such pair may be needed."""
        return max(self.window.kernel_w - 1, 1)

    @property
    def line(self) -> int:
        """Words of a row of weights as the sums read them: one pair of int16 each, or
        two pairs if a single row is computed, which widens them on use."""
        pairs = self.image is not None or self.nine
        return self.row_words if pairs else (self.row_words + 1) // 2

    @property
    def words(self) -> int:
        """Words of weights of a channel; in a ring nearly twice as many, so that they
        can begin with any row, as the ring does."""
        rows = self.window.kernel_h
        return self.line * (2 * rows - 1 if self.ring else rows)

    @property
    def ring(self) -> bool:
        return self.image is not None and not self.whole

    @property
    def fraction(self) -> int:
        """The number of bits by which sums, and the weights of an image, are shifted
        left."""
        if self.nine:
            return 0
        return FRACTION if self.image is None else fraction(self.epilogue)

    @property
    def starts_sums(self) -> bool:
        """True if sums begin with the first number of the epilogue table; otherwise it
        is added after the shift, or by the rule itself."""
        if isinstance(self.epilogue, Exact):
            return False
        return not self.nine or is_signed(self.epilogue)

    @property
    def end_size(self) -> int:
        """Words of the epilogue table for each channel."""
        return row_words(self.epilogue)

    @property
    def pitch(self) -> int:
        """Words of a widened row of one channel, padding included."""
        return (self.window.columns - 1) // 2 + 1

    @property
    def plane(self) -> int:
        """Words of the widened rows of one channel."""
        return self.held * self.pitch

    @property
    def held(self) -> int:
        """The number of rows that are widened."""
        if not self.whole or self.image is None:
            return self.window.kernel_h
        return (self.image.out_height - 1) * self.image.stride_h + self.window.rows

    @property
    def read(self) -> int:
        """The number of widened rows that lie inside the image."""
        assert self.image is not None
        return min(self.image.height, self.held - self.image.top)

    @property
    def step(self) -> int:
        """The distance between pairs of columns of a row, in words."""
        return 1 if self.whole else self.window.kernel_h

    @property
    def inside(self) -> int:
        """Columns of an input row that are widened."""
        return min(self.window.width, 2 * self.pitch - self.window.left)

    @property
    def head(self) -> bool:
        """True if the first column shares its word with padding."""
        return self.window.left % 2 > 0

    @property
    def last(self) -> bool:
        """True if the last column shares its word with padding, or with nothing."""
        return (self.inside - self.head) % 2 > 0

    @property
    def written_out(self) -> int:
        """Pairs of columns that are unrolled, if a single row is computed: that widens
        all rows under its window each time."""
        pairs = (self.inside - self.head) // 2
        return pairs if self.image is None and pairs <= 2 else 0

    @property
    def behind(self) -> int:
        """Words of a plane after its last column: all padding."""
        columns = (self.inside + self.head + 1) // 2
        words = self.pitch - self.window.left // 2 - columns
        return words * self.window.kernel_h

    @property
    def scratch(self) -> int:
        """Bytes of the widened rows of four channels and, for an image, of their
        weights after those."""
        weights = 0 if self.image is None else self.words * self.multiplier
        return 4 * GROUP * (self.plane + weights)

    @property
    def name(self) -> str:
        w = self.window
        parts = (
            "depthwise_dsp",
            self.of,
            f"{w.kernel_h}x{w.kernel_w}",
            f"stride{w.stride_w}" if w.stride_w > 1 else "",
            f"dilated{w.dilation_w}" if w.dilation_w > 1 else "",
            "padded" if self.padded else "",
            ("", "head", "last", "ends")[self.head + 2 * self.last],
            "tail" if w.channels % GROUP else "",
            "multiplied" if self.multiplier > 1 else "",
            kind(self.epilogue, is_usual(self.epilogue)),
            "once" if self.once else "",
            str(self.columns),
            f"rest{self.rest}" if self.rest and not self.may_rest else "",
            f"pairs{self.written_out}" if self.written_out else "",
            "w9" if self.nine else "",
        )
        return "_".join(p for p in parts if p)

    @property
    def of(self) -> str:
        """The extent of one call: a row, an image row by row, or an image at once."""
        return "" if self.image is None else "whole" if self.whole else "image"

    @property
    def doc(self) -> str:
        """The comment in the kernel's C."""
        w = self.window
        beside = ", which may leave the image" if self.padded else ""
        gaps = ", with gaps between taps" if w.dilated else ""
        rows = "the rows under the window are widened"
        if self.whole:
            rows = "their image is widened, margins included"
        elif self.image is not None:
            rows = "output row by output row; each input row is widened once"
        return told(
            f"depthwise convolution, int8{' x int16' * self.nine}, int32 sums by pairs "
            "of int16 (SMLAD): "
            f"{w.kernel_h}x{w.kernel_w} windows, stride {w.stride_w}{beside}{gaps}",
            f"four channels at a time: {rows}, two columns a word; then their "
            "sums; weights forward",
            self.epilogue.words,
        )

    @property
    def part_doc(self) -> str:
        """The comment in the C of the sums."""
        return (
            f"{'Rows' if self.whole else 'A row'} of four channels, one channel after "
            f"the other: {self.columns} pixels at a "
            "time, each word of the widened rows and of the weights read once for them."
        )


def inside(window: Window) -> tuple[int, int]:
    """Return the first output whose window lies wholly in the row, and the end of
    these."""
    w = window
    begin = min(-(-w.left // w.stride_w), w.out_width)
    end = (w.width + w.left - w.span) // w.stride_w + 1
    return begin, min(max(end, begin), w.out_width)
