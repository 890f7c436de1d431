"""A depthwise convolution as its kernels on vectors see it. Knows no code and no
weight.
"""

from __future__ import annotations

from pybuild.kernels.base.builder import told
from pybuild.kernels.base.window import Window
from pybuild.kernels.mve.epilogue import Epilogue
from pybuild.kernels.mve.pixel_epilogue import pixel_key
from pybuild.records import dataclass

PIXELS = 4  # of a channel, in one vector
SIDE = 4  # rows in a word, columns in a vector
_SHORTEST = 6  # row of which eight pixels are summed together
_FURTHEST = 32767  # bytes from a pixel that is stored to another; halves to gather
_VECTOR = 16  # bytes


@dataclass(frozen=True)
class Layer:
    """A depthwise convolution as its kernel sees it.

    exact  no column is read but those under windows, where that can be
    nine   weights have nine bits: each is the sum of two, which lie in two tables
    """

    window: Window
    epilogue: Epilogue
    x_zero: int
    exact: bool = False
    nine: bool = False

    @property
    def wide(self) -> bool:
        """A window is more than one vector."""
        w = self.window
        return max(w.kernel_h, w.kernel_w) > SIDE or w.dilation_w > 1

    @property
    def halves(self) -> bool:
        """Rows are woven in twos: a pixel of a channel is a half of a word, and of the
        last row, which is alone, a pixel and that on its right. So a vector holds two
        windows of 3x3 that slide by two, and 5x5 is two of them and not three."""
        w = self.window
        if w.kernel_h % 2 == 0 or w.dilation_w > 1 or w.stride_w > 2:
            return False
        if (w.width - 1) * w.channels < _VECTOR or w.channels < self._least_channels:
            return False
        planes, columns = (w.kernel_h + 1) // 2, w.left + w.width + w.right + 2
        reach = (planes - 1) * columns + w.kernel_w + SIDE * w.stride_w
        if reach * w.channels > _FURTHEST:
            return False
        if (w.kernel_h, w.kernel_w) == (3, 3):
            return w.stride_w == 2 and w.out_width > 1
        if not self.wide or (w.kernel_w == 2 * SIDE - 1 and w.kernel_h > SIDE):
            return False
        words = -(-w.kernel_h // SIDE) * w.kernel_w
        halves = w.kernel_h // 2 * w.kernel_w + (w.kernel_w + 1) // 2
        return -(-halves // 8) < -(-words // 4)

    @property
    def _least_channels(self) -> int:
        """A row that is alone is woven pixel by pixel, if it slides by two."""
        return _VECTOR if self.window.stride_w == 2 or self.exact else 1

    @property
    def lanes(self) -> int:
        """Words, or halves of words, in a vector."""
        return 2 * SIDE if self.halves else SIDE

    @property
    def unit(self) -> int:
        """Bytes of a lane: rows in it."""
        return _VECTOR // self.lanes

    @property
    def planes(self) -> int:
        """Woven rows, each of four rows, or two, or what is left."""
        return -(-self.window.kernel_h // self.unit)

    @property
    def words(self) -> tuple[tuple[int, int], ...]:
        """(plane, column) of each lane of a window; the last vector is filled up, or
        two of each plane that have a column in common."""
        if self.halves:
            return self._halves
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
    def _halves(self) -> tuple[tuple[int, int], ...]:
        """As `words`; of 3x3 those of the window that slides by two are three lanes
        behind those of the first."""
        columns, last = range(self.window.kernel_w), self.planes - 1
        if not self.wide:
            both = ((0, 0), (1, 0), (0, 1), (0, 2), (1, 2), (0, 3), (0, 4), (1, 4))
            return both if self.together > 1 else (*both[:5], *both[:1] * 3)
        words = [(plane, x) for plane in range(last) for x in columns]
        words += [(last, x) for x in columns[::2]]
        return (*words, *[(0, 0)] * (-len(words) % self.lanes))

    @property
    def weight_bytes(self) -> int:
        """Of a table of weights, which has `lead` lanes before them."""
        lanes = self.window.channels * self.lanes * self.steps
        return self.unit * (lanes + (0 if self.wide and not self.halves else self.lead))

    @property
    def apart(self) -> int:
        """Lanes from the weights of a window to those of the next in its vector."""
        return 3 if self.halves else self.window.stride_w

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
        return len(self.words) // self.lanes

    @property
    def together(self) -> int:
        """Windows that lie in one vector."""
        w = self.window
        if self.wide:
            return 1
        if self.halves:
            return min(2, w.out_width)
        return min((SIDE - w.kernel_w) // w.stride_w + 1, w.out_width)

    @property
    def lead(self) -> int:
        """Lanes of zeros before the weights of a channel."""
        return (self.together - 1) * self.apart

    @property
    def columns(self) -> int:
        """Of the woven row, padding included, and what a vector reads behind."""
        w = self.window
        last = (w.out_width - 1) * w.stride_w
        if self.halves:
            return last + w.kernel_w + 2 * (self.singles % self.together)
        full = self.lead + w.kernel_w == SIDE and SIDE % self.together == 0
        if self.alone or (self.exact and full and w.out_width % self.together == 0):
            return max(w.left + w.width, w.columns)
        return max(w.left + w.width, last + (self.window.span if self.wide else SIDE))

    @property
    def inside(self) -> int:
        """Columns of a row that are woven."""
        w = self.window
        return min(w.width, self.columns - w.left) if self.halves else w.width

    @property
    def eights(self) -> int:
        """Pixels of which eight of a channel are summed together, the last eight again
        or, of a row of six or seven, some of them twice."""
        width = self.window.out_width
        most = (width - 1) * self.window.channels
        if self.steps > 1 or width < _SHORTEST or most > _FURTHEST:
            return 0
        rest = width % (2 * PIXELS)
        return width - rest if 1 <= rest <= PIXELS < width - rest else width

    @property
    def fours(self) -> bool:
        """True if four pixels of a channel are summed together, or three if these are
        all."""
        if self.eights:
            return self.window.out_width - self.eights >= PIXELS - 1
        return self.window.out_width >= PIXELS - (self.steps > 1)

    @property
    def in_pixels(self) -> bool:
        """True if pixels of a channel are summed together."""
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
            return 0 if self.fours else width - self.eights
        if not self.fours:
            return width
        return 0 if self.overlapped or width < PIXELS else width % PIXELS

    @property
    def turned(self) -> bool:
        """True if the epilogue's table holds vectors of four channels; otherwise it
        goes channel by channel."""
        return self.singles > 0 and not self.eights

    @property
    def channels_outside(self) -> bool:
        """The columns are the inner loop: they are many, and channels few."""
        w = self.window
        return not self.in_pixels and w.channels < w.out_width // self.together

    @property
    def scratch(self) -> int:
        """Bytes: a lane for each column and channel; fills may end a vector later."""
        return self.unit * self.planes * self.plane + _VECTOR

    @property
    def plane(self) -> int:
        """Lanes of a woven row."""
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
            "overlapping" if self.inside * w.channels % 16 else "",
            self._sparse_key,
            self.sum_key,
        )
        return "_".join(p for p in parts if p)

    @property
    def meets_right(self) -> bool:
        """Of a last row that is alone, the last pixel has a half of its own."""
        w = self.window
        return self.exact or w.stride_w == 1 or (w.left + self.inside) % 2 > 0

    @property
    def _sparse_key(self) -> str:
        w = self.window
        if not self.halves:
            return ""
        ragged = "ragged" if w.channels % _VECTOR else ""
        return "_".join(p for p in ("last" * self.meets_right, ragged) if p)

    @property
    def doc(self) -> str:
        """The comment in the kernel's C."""
        w = self.window
        gaps = ", with gaps between taps" if w.dilated else ""
        nine = " x int16, as sums of two int8" * self.nine
        return told(
            f"depthwise convolution, int8{nine}, int32 sums: {w.kernel_h} rows{gaps}",
            f"the rows under the window are woven, {self._woven} for each pixel and "
            "channel; then the sums of the whole row",
            self.epilogue.words,
        )

    @property
    def _woven(self) -> str:
        if not self.halves:
            return "a word of four rows"
        return (
            "a half of a word of two rows, or of the last one and its right neighbour"
        )

    @property
    def sum_doc(self) -> str:
        """The comment in the C of the sums."""
        many = f"{self.together} pixels" if self.together > 1 else "a pixel"
        inner = ("channels", "pixels") if self.channels_outside else ("pixels", "them")
        order = f"{inner[0]} are the outer loop"
        first = ""
        if self.eights:
            first = "eight pixels of a channel at a time, "
        if self.fours:
            first += "four pixels of a channel at a time, "
        if self.in_pixels:
            order = "the rest" if self.singles else ""
        lanes = "eight halves of words" if self.halves else "four words"
        ways = f"four channels of {many} at a time, {order}" if self.singles else ""
        return (
            f"Sums of woven rows: {first}{ways}; a vector "
            f"is {lanes}, {self.steps} of them a window."
        )

    @property
    def sum_key(self) -> str:
        """The key that distinguishes the code of the sums of two layers."""
        w = self.window
        parts = (
            "columns" if self.channels_outside else "",
            f"{w.kernel_h}x{w.kernel_w}" if self.wide else "",
            "apart" if w.dilation_w > 1 else "",
            f"{self.together}by{w.stride_w}",
            f"alone{w.kernel_w}" if self.alone else "",
            "halves" if self.halves else "",
            self._eights_key,
            ("fours" if w.out_width >= PIXELS else "threes") if self.fours else "",
            "overlapped" if self.overlapped else "",
            str(self.singles) if self.in_pixels and self.singles else "",
            "rest" if not self.in_pixels and w.out_width % self.together else "",
            "odd" if w.channels % 4 else "",
            "w9" if self.nine else "",
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
