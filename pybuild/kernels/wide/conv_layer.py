"""What the kernels of conv_code.py are made from: a convolution, and how many of its
pixels and channels are summed together. Knows no weight and no node.
"""

from __future__ import annotations

from dataclasses import dataclass

from pybuild.kernels.base.builder import told
from pybuild.kernels.base.wide_vectors import LANES, TAPS
from pybuild.kernels.base.window import Window
from pybuild.kernels.mve.epilogue import Epilogue

_PIXELS = {1: 12, 2: 8, 3: 6, 4: 5, 5: 4, 6: 4, 7: 3, 8: 3}  # sums held by registers
_BLOCKS = {True: 8, False: 4}  # whether there is one pixel
STEP = 16  # bytes that are copied together


@dataclass(frozen=True)
class Layer:
    """A convolution as its kernel sees it."""

    window: Window
    epilogue: Epilogue
    x_zero: int

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
        """Of a row, done together."""
        return min(_PIXELS[self.blocks], self.window.out_width)

    @property
    def steps(self) -> int:
        return -(-self.window.taps // TAPS)

    @property
    def odd(self) -> bool:
        """The last channels of a pixel are computed twice."""
        return self.window.out_channels % self.together > 0

    @property
    def spilled(self) -> bool:
        """A vector is more than a pixel has."""
        return self.window.out_channels < LANES

    @property
    def scratch(self) -> int:
        """Bytes of the patch, and of a vector that is spilled."""
        return self.pixels * self.steps * TAPS + (LANES if self.spilled else 0)

    @property
    def name(self) -> str:
        w = self.window
        channels = f"of{w.out_channels}" if self.spilled else f"by{self.together}"
        parts = (
            "conv2d_wide",
            str(self.pixels),
            channels,
            "rest" if w.out_width % self.pixels else "",
            "odd" if self.odd else "",
            w.key,
            form(w.run),
            form(w.group_channels) if w.padded else "",
            "columns" if w.by_taps else "",
            self.epilogue.key,
        )
        return "_".join(p for p in parts if p)

    @property
    def doc(self) -> str:
        """What the kernel's C says."""
        return told(
            f"convolution, int8, int32 sums: {self.window.words}",
            f"{self.pixels} pixels at a time, copied into the patch without their "
            f"sign; then {self.together} output channels at a time, {TAPS} taps of "
            "each a vector; weights forward, once for these pixels",
            self.epilogue.words,
        )


def form(count: int) -> str:
    """How so many values are copied: in a loop of vectors, or written out."""
    if count < STEP:
        return f"run{count}"
    return "overlapping" if count % STEP else "vectors"
