"""The layer that conv_code.py writes kernels for: a convolution, and how many of its
pixels and channels are summed together. Knows no weight and no node.
"""

from __future__ import annotations

from pybuild.kernels.base.builder import told
from pybuild.kernels.base.wide_vectors import LANES, TAPS
from pybuild.kernels.base.window import Window
from pybuild.kernels.mve.epilogue import Epilogue
from pybuild.records import dataclass

_PIXELS = {1: 12, 2: 8, 3: 6, 4: 5, 5: 4, 6: 4, 7: 3, 8: 3}  # sums held by registers
_BLOCKS = {True: 8, False: 4}  # whether there is one pixel
STEP = 16  # bytes that are copied together


@dataclass(frozen=True)
class Layer:
    """A convolution as its kernel sees it.

    zero  is added to weights of nine bits, which makes uint8 of them; None: they have
          eight
    """

    window: Window
    epilogue: Epilogue
    x_zero: int
    zero: int | None = None

    @property
    def blocks(self) -> int:
        """Vectors of output channels that are summed together: as few as possible are
        computed twice."""
        channels = self.window.out_channels
        whole = max(channels // LANES, 1)
        most = min(_BLOCKS[self.window.out_width == 1], whole)
        return min(range(most, 0, -1), key=lambda n: -(-channels // (LANES * n)) * n)

    @property
    def together(self) -> int:
        """Output channels that are summed together."""
        return min(LANES * self.blocks, self.window.out_channels)

    @property
    def pixels(self) -> int:
        """The number of pixels of a row that are computed together: chosen so that few
        are computed twice."""
        width = self.window.out_width
        most = min(_PIXELS[self.blocks], width)
        return min(range(most, most * 2 // 3, -1), key=lambda n: -(-width // n) * n)

    @property
    def pitch(self) -> int:
        """Bytes between pixels; constants in the code are not registers."""
        return self.window.stride_w * self.window.channels

    @property
    def run_steps(self) -> int:
        """Vectors for a run of neighbouring values, the last with zeros behind it."""
        return -(-self.window.run // TAPS)

    @property
    def runs(self) -> int:
        """The number of runs of contiguous taps in a window."""
        return self.window.taps // self.window.run

    @property
    def odd(self) -> bool:
        """The last channels of a pixel are computed twice."""
        return self.window.out_channels % self.together > 0

    @property
    def spilled(self) -> bool:
        """A vector is more than a pixel has."""
        return self.window.out_channels < LANES

    @property
    def whole_rows(self) -> bool:
        """True if a whole row under the windows is copied at once, instead of some
        pixels."""
        return not self.window.pointwise or self.window.stride_w > 1

    @property
    def copied(self) -> int:
        """Values of a row that are copied together."""
        w = self.window
        columns = min(w.width, w.columns - w.left) if self.whole_rows else self.pixels
        return columns * w.channels

    @property
    def row_bytes(self) -> int:
        """The bytes of a copy of a row; the last vector may read behind it."""
        w = self.window
        columns = w.columns if self.whole_rows else self.pixels
        return columns * w.channels + -w.run % TAPS

    @property
    def scratch(self) -> int:
        """Bytes of the copies, and of a vector that is spilled."""
        return self.window.kernel_h * self.row_bytes + LANES * self.spilled

    @property
    def name(self) -> str:
        w = self.window
        channels = f"of{w.out_channels}" if self.spilled else f"by{self.together}"
        parts = (
            "conv2d_wide",
            str(self.pixels),
            channels,
            f"every{self.pitch}" if self.pixels > 1 else "",
            "rest" if w.out_width % self.pixels else "",
            "odd" if self.odd else "",
            w.key,
            "left" if w.left else "",
            "right" if w.right else "",
            "columns" if w.by_taps else "",
            form(self.copied),
            "w9" if self.zero is not None else "",
            self.epilogue.key,
        )
        return "_".join(p for p in parts if p)

    @property
    def doc(self) -> str:
        """The comment in the kernel's C."""
        rows = "the rows under them copied" if self.whole_rows else "copied"
        return told(
            f"convolution, int8, int32 sums: {self.window.words}",
            f"{self.pixels} pixels at a time, {rows} without the sign; "
            f"{self.together} output channels at a time, {TAPS} taps of each a "
            "vector; weights forward, once for these pixels",
            self.epilogue.words,
        )


def form(count: int) -> str:
    """The way to copy so many values: in a loop of vectors, or unrolled."""
    if count < STEP:
        return f"run{count}"
    return "overlapping" if count % STEP else "vectors"
