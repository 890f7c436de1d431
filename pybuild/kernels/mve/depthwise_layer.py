"""A depthwise convolution as its kernels on vectors see it. Knows no code and no
weight.
"""

from __future__ import annotations

from dataclasses import dataclass

from pybuild.kernels.base.builder import told
from pybuild.kernels.base.window import Window
from pybuild.kernels.mve.epilogue import Epilogue
from pybuild.kernels.mve.pixel_epilogue import pixel_key

PIXELS = 4  # of a channel, in one vector
SIDE = 4  # rows in a word, columns in a vector
_SHORTEST = 6  # row of which eight pixels are summed together
_FURTHEST = 32767  # bytes from a pixel that is stored to another


@dataclass(frozen=True)
class Layer:
    """A depthwise convolution as its kernel sees it.

    exact  no column is read but those under windows, where that can be
    """

    window: Window
    epilogue: Epilogue
    x_zero: int
    exact: bool = False

    @property
    def wide(self) -> bool:
        """A window is more than one vector."""
        w = self.window
        return max(w.kernel_h, w.kernel_w) > SIDE or w.dilation_w > 1

    @property
    def planes(self) -> int:
        """Woven rows, each of four rows or what is left."""
        return -(-self.window.kernel_h // SIDE)

    @property
    def words(self) -> tuple[tuple[int, int], ...]:
        """(plane, column) of each word of a window; the last vector is filled up, or
        two of each plane that have a column in common."""
        if not self.wide:
            last = self.window.kernel_w if self.alone else SIDE
            return tuple((0, column if column < last else 0) for column in range(SIDE))
        columns = range(self.window.kernel_w)
        if self.halved:
            starts = (0, SIDE - 1)
            pairs = [(plane, at) for at in starts for plane in range(self.planes)]
            return tuple((p, at + i) for p, at in pairs for i in range(SIDE))
        words = [(plane, x) for plane in range(self.planes) for x in columns]
        return (*words, *[(0, 0)] * (-len(words) % SIDE))

    @property
    def alone(self) -> bool:
        """A vector is one window, and what it reads behind that is its first word."""
        return self.exact and not self.wide and self.together == 1

    @property
    def halved(self) -> bool:
        """The vectors of a window's right half are those of its left one, three columns
        on: of seven columns, in two planes."""
        w = self.window
        return (w.kernel_w, w.dilation_w, self.planes) == (2 * SIDE - 1, 1, 2)

    @property
    def steps(self) -> int:
        """Vectors of a window."""
        return len(self.words) // SIDE

    @property
    def together(self) -> int:
        """Windows that lie in one vector."""
        w = self.window
        if self.wide:
            return 1
        return min((SIDE - w.kernel_w) // w.stride_w + 1, w.out_width)

    @property
    def lead(self) -> int:
        """Columns of zeros before the weights of a channel."""
        return (self.together - 1) * self.window.stride_w

    @property
    def columns(self) -> int:
        """Of the woven row, padding included, and what a vector reads behind."""
        w = self.window
        last = (w.out_width - 1) * w.stride_w
        full = self.lead + w.kernel_w == SIDE and SIDE % self.together == 0
        if self.alone or (self.exact and full and w.out_width % self.together == 0):
            return max(w.left + w.width, w.columns)
        return max(w.left + w.width, last + (self.window.span if self.wide else SIDE))

    @property
    def eights(self) -> int:
        """Pixels of which eight of a channel are summed together, the last eight again
        or, of a row of six or seven, some of them twice."""
        width = self.window.out_width
        most = (width - 1) * self.window.channels
        if self.steps > 1 or width < _SHORTEST or most > _FURTHEST:
            return 0
        rest = width % (2 * PIXELS)
        if width < 4 * PIXELS and rest in (1, 2):
            return 0  # one by one they take less
        return width - rest if 1 <= rest <= PIXELS < width - rest else width

    @property
    def fours(self) -> bool:
        """Four pixels of a channel are summed together, or three that are all."""
        if self.eights:
            return self.eights < self.window.out_width
        return self.window.out_width >= PIXELS - (self.steps > 1)

    @property
    def in_pixels(self) -> bool:
        """Pixels of a channel are summed together."""
        return self.fours or self.eights > 0

    @property
    def overlapped(self) -> bool:
        """The last four pixels begin before those before them end."""
        width = self.window.out_width
        return self.eights == 0 and width > PIXELS and width % PIXELS == PIXELS - 1

    @property
    def singles(self) -> int:
        """Pixels behind all fours, whose channels are summed together."""
        width = self.window.out_width
        if self.eights:
            return 0
        if not self.fours:
            return width
        return 0 if self.overlapped or width < PIXELS else width % PIXELS

    @property
    def channels_outside(self) -> bool:
        """The columns are the inner loop: they are many, and channels few."""
        w = self.window
        return not self.in_pixels and w.channels < w.out_width // self.together

    @property
    def scratch(self) -> int:
        """Bytes: a word for each column and channel; fills may end a vector later."""
        return 4 * self.planes * self.plane + 16

    @property
    def plane(self) -> int:
        """Words of a woven row."""
        return self.columns * self.window.channels

    @property
    def name(self) -> str:
        w = self.window
        parts = (
            "depthwise_mve",
            f"rows{w.kernel_h}",
            "dilated" if w.dilation_h > 1 else "",
            "left" if w.left else "",
            "right" if w.right else "",
            "overlapping" if w.width * w.channels % 16 else "",
            self.sum_key,
        )
        return "_".join(p for p in parts if p)

    @property
    def doc(self) -> str:
        """What the kernel's C says."""
        w = self.window
        gaps = ", with gaps between taps" if w.dilated else ""
        return told(
            f"depthwise convolution, int8, int32 sums: {w.kernel_h} rows{gaps}",
            "the rows under the window are woven, a word of four rows for each pixel "
            "and channel; then the sums of the whole row",
            self.epilogue.words,
        )

    @property
    def sum_doc(self) -> str:
        """What the C of the sums says."""
        many = f"{self.together} pixels" if self.together > 1 else "a pixel"
        inner = ("channels", "pixels") if self.channels_outside else ("pixels", "them")
        order = f"{inner[0]} are the outer loop"
        first = ""
        if self.eights:
            first = "eight pixels of a channel at a time, "
        if self.fours:
            first += "four pixels of a channel at a time, "
            order = "the rest" if self.singles else ""
        ways = f"four channels of {many} at a time, {order}" if self.singles else ""
        return (
            f"Sums of woven rows: {first}{ways}; a vector "
            f"is four words, {self.steps} of them a window."
        )

    @property
    def sum_key(self) -> str:
        """What distinguishes the code of the sums of two layers."""
        w = self.window
        parts = (
            "columns" if self.channels_outside else "",
            f"{w.kernel_h}x{w.kernel_w}" if self.wide else "",
            "apart" if w.dilation_w > 1 else "",
            f"{self.together}by{w.stride_w}",
            f"alone{w.kernel_w}" if self.alone else "",
            self._eights_key,
            ("fours" if w.out_width >= PIXELS else "threes") if self.fours else "",
            "overlapped" if self.overlapped else "",
            str(self.singles) if self.fours and self.singles else "",
            "rest" if not self.in_pixels and w.out_width % self.together else "",
            "odd" if w.channels % 4 else "",
            pixel_key(self.epilogue) if self.in_pixels else self.epilogue.key,
        )
        return "_".join(p for p in parts if p)

    @property
    def _eights_key(self) -> str:
        if not self.eights:
            return ""
        if self.eights < 2 * PIXELS:
            return "eight"
        return "eights_again" if self.eights % (2 * PIXELS) else "eights"
