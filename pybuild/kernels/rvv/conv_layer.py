"""The layer that conv_code.py writes kernels for: a convolution, and how many of its
pixels and channels are summed together. Knows no weight and no node.
"""

from __future__ import annotations

from pybuild.dtype import DType
from pybuild.ir.loop import INT8
from pybuild.kernels.base.builder import told
from pybuild.kernels.base.window import Window
from pybuild.kernels.mve.epilogue import Epilogue
from pybuild.kernels.mve.exact import Exact
from pybuild.kernels.rvv.epilogue import by_rule
from pybuild.records import dataclass

# pixels whose sums the registers hold beside a vector of weights and a number of their
# end, by lanes; of ends by a rule beside more
_PIXELS = {16: 6, 32: 3}
_PIXELS_BY_RULE = {16: 4, 32: 1}
_UNROLLED = {16: 4, 32: 2}  # taps, at most: compilers load the weights of all first


@dataclass(frozen=True)
class Layer:
    """A convolution as its kernel sees it.

    elem  of inputs and outputs
    row   a call makes a row from a row, over which it may write it: that is copied
          first
    """

    window: Window
    epilogue: Epilogue
    x_zero: int
    elem: DType = INT8
    row: bool = False

    @property
    def copied(self) -> bool:
        """True if it reads copies of rows."""
        return self.window.padded or self.row

    @property
    def lanes(self) -> int:
        """Of a vector of 128-bit registers: few channels leave half of
        the longer ones empty, short runs are better unrolled as a whole."""
        w = self.window
        many = w.group_outputs > 16 and w.run > _UNROLLED[16]
        few = by_rule(self.epilogue) and (w.out_width > 1 or self._precise)
        return 32 if many and not few else 16

    @property
    def _precise(self) -> bool:
        """True if its rule leaves no register free."""
        return isinstance(self.epilogue, Exact) and self.epilogue.rule == "precise"

    @property
    def pixels(self) -> int:
        """The number of pixels of a row that are computed together: chosen so that few
        are computed twice."""
        width = self.window.out_width
        held = (_PIXELS_BY_RULE if by_rule(self.epilogue) else _PIXELS)[self.lanes]
        most = 1 if self._precise else min(held, width)
        return min(range(most, most * 2 // 3, -1), key=lambda n: -(-width // n) * n)

    @property
    def pitch(self) -> int:
        """Values between pixels; constants in the code are not registers."""
        return self.window.stride_w * self.window.channels

    @property
    def unrolled(self) -> int:
        """Taps of a turn of the innermost loop."""
        lanes = 16 if self.pixels == 1 else self.lanes
        few = range(min(_UNROLLED[lanes], self.window.run), 0, -1)
        return next(n for n in few if self.window.run % n == 0)

    @property
    def row_values(self) -> int:
        """The values of a copy of a row."""
        return self.window.columns * self.window.channels

    @property
    def scratch(self) -> int:
        """Bytes of the copies of rows that windows leave."""
        values = self.window.kernel_h * self.row_values if self.copied else 0
        return values * self.elem.bytes

    @property
    def instructions(self) -> int:
        """Estimated, of a row: a tap has a vector of weights, and of each pixel a value
        and a product."""
        w, n = self.window, self.pixels
        blocks = -(-w.out_width // n) * -(-w.group_outputs // self.lanes) * w.groups
        copied = self.scratch // 4 if self.copied else 0
        return blocks * (w.taps * (4 + 2 * n) + 10 * n + 20) + copied

    @property
    def name(self) -> str:
        w = self.window
        parts = (
            "conv2d_rvv" if self.elem is INT8 else "conv2d_s16_rvv",
            f"{self.pixels}by{self.lanes}",
            f"every{self.pitch}" if self.pixels > 1 else "",
            f"taps{self.unrolled}",
            "rest" if w.out_width % self.pixels else "",
            w.key,
            "over" if self.row else "",
            "left" if w.left else "",
            "right" if w.right else "",
            "columns" if w.by_taps else "",
            self.epilogue.key,
        )
        return "_".join(p for p in parts if p)

    @property
    def doc(self) -> str:
        """The comment in the kernel's C."""
        w = self.window
        what = "rows with their padding" if w.padded else "the row"
        copied = f"copies of {what} first; " * self.copied
        return told(
            f"convolution, {self.elem.value}: {w.words}",
            f"{copied}{self.pixels} pixels and a vector of output channels at a time, "
            "tap by tap",
            self.epilogue.words,
        )
