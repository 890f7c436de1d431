"""int16 depthwise convolution on vectors of eight taps of one channel (VMLADAV).

Rows are turned into planes first: of each channel its columns, of each column the rows
under the window. So a window is one run of values. Of four pixels the sums are a
vector, to which the last tap of 9, 25 or 49 is added (VMLA).
"""

from __future__ import annotations

import numpy as np

from pybuild.dtype import Array
from pybuild.ir.graph import Graph, Node
from pybuild.kernels.base.builder import told
from pybuild.kernels.base.candidate import Candidate, Packed, RowAccess
from pybuild.kernels.base.window import Window
from pybuild.kernels.layers.sums16 import sums16, takes_int16
from pybuild.kernels.layers.weights import constant
from pybuild.kernels.mve.depthwise16_planes_code import FOUR, VECTOR, kernel
from pybuild.kernels.mve.epilogue import table
from pybuild.kernels.mve.exact import Exact, exact16
from pybuild.records import dataclass
from pybuild.targets.target import Target

_MOST_ROWS = 9  # of a window: each has a pointer
_FURTHEST = 32767  # elements from one that is stored to another
_SINGLES = 3  # taps, of which more are a vector with zeros


@dataclass(frozen=True)
class Planes:
    """A depthwise convolution as its kernel sees it."""

    window: Window
    epilogue: Exact

    @property
    def taps(self) -> int:
        return self.window.kernel_h * self.window.kernel_w

    @property
    def singles(self) -> int:
        """Taps that are added one by one."""
        rest = self.taps % VECTOR
        return rest if self.taps > VECTOR and rest <= _SINGLES else 0

    @property
    def steps(self) -> int:
        """Vectors of a window."""
        return -(-(self.taps - self.singles) // VECTOR)

    @property
    def weight_bytes(self) -> int:
        """The bytes of a channel's weights."""
        return VECTOR * self.steps + self.singles

    @property
    def apart(self) -> int:
        """Values from a window to the next."""
        return self.window.kernel_h * self.window.stride_w

    @property
    def plane(self) -> int:
        """Values of a channel, padding included."""
        w = self.window
        return max(w.left + w.width + w.right, w.columns) * w.kernel_h

    @property
    def scratch(self) -> int:
        """Bytes of all planes, and of what vectors reach behind them."""
        return 2 * (self.plane * self.window.channels + VECTOR)

    @property
    def eights(self) -> bool:
        """Eight pixels are a turn, of which some may be in another, too."""
        return self.window.out_width > FOUR

    @property
    def counts(self) -> tuple[int, ...]:
        """The number of pixels in each group of four of an iteration."""
        width = self.window.out_width
        return (FOUR, min(width - FOUR, FOUR)) if self.eights else (min(width, FOUR),)

    @property
    def ends_with_four(self) -> bool:
        """True if less than half an iteration is left of a row."""
        width = self.window.out_width
        return width > 2 * FOUR and 0 < width % (2 * FOUR) <= FOUR

    @property
    def sum_key(self) -> str:
        """The key that distinguishes the code of the sums of two layers."""
        width = self.window.out_width
        parts = (
            f"{self.steps}and{self.singles}" if self.singles else str(self.steps),
            f"by{self.apart}",
            f"of{width}" if width < 2 * FOUR else "",
            "four" if self.ends_with_four else "",
            "again" if width > 2 * FOUR and width % (2 * FOUR) > FOUR else "",
            "held" if self.held else "",
        )
        return "_".join(p for p in parts if p)

    @property
    def held(self) -> bool:
        """True if its limits are tighter than int16's own."""
        return (self.epilogue.low, self.epilogue.high) != (-32768, 32767)

    @property
    def name(self) -> str:
        w = self.window
        parts = (
            "depthwise_mve_s16_planes",
            f"{w.kernel_h}rows",
            f"left{self.filled[0]}" if w.left else "",
            f"right{self.filled[1]}" if w.right else "",
            "odd" if w.channels % VECTOR else "",
            self.sum_key,
        )
        return "_".join(p for p in parts if p)

    @property
    def filled(self) -> tuple[int, int]:
        """Vectors of zeros before and behind the values of a channel."""
        w = self.window
        left, right = (w.kernel_h * columns for columns in (w.left, w.right))
        return -(-left // VECTOR), -(-right // VECTOR)

    @property
    def doc(self) -> str:
        """The comment in the kernel's C."""
        w = self.window
        return told(
            f"depthwise convolution, int16 x int8, int32 sums: {w.kernel_h}x"
            f"{w.kernel_w}",
            "rows are turned into a plane of each channel, of each column all rows; "
            "then channel after channel, four pixels of the row in a vector of sums, "
            f"{VECTOR} taps at a time",
            self.epilogue.words,
        )

    @property
    def sum_doc(self) -> str:
        """The comment in the C of the sums."""
        more = f", and {self.singles} more one by one" * (self.singles > 0)
        return f"Sums of four pixels of a channel: {VECTOR} taps at a time{more}."


def pack(layer: Planes, weights: Array) -> Packed:
    """Weights [KH, KW, C] channel after channel, of each column after column."""
    channels = layer.window.channels
    made = np.zeros((channels, layer.weight_bytes), np.int8)
    made[:, : layer.taps] = weights.transpose(2, 1, 0).reshape(channels, -1)
    order = "of each channel its taps, column by column"
    return Packed("weights", made, order=order)


def candidates(
    node: Node,
    graph: Graph,
    target: Target,
    window: Window,
    rows: tuple[RowAccess, RowAccess],
    calls: tuple[int, int],
) -> list[Candidate]:
    """The kernel of this file where it suits a layer."""
    w = window
    if "mve" not in target.features or not takes_int16(node, graph):
        return []
    if w.out_channels != w.channels or w.channels < VECTOR or w.dilated:
        return []
    weights = constant(node, graph, 1)
    kernels = weights.reshape(-1, w.channels).T
    epilogue, bias, x_zero = sums16(node, graph, kernels, target)
    # rules of files without zero points
    four = None if epilogue.long or x_zero else exact16(epilogue)
    if w.kernel_h > _MOST_ROWS or four is None:
        return []
    layer = Planes(window, four)
    if max(VECTOR * layer.plane, 2 * FOUR * w.channels) > _FURTHEST:
        return []
    images, bands = calls
    fours = w.channels * -(-w.out_width // FOUR)
    turned = w.kernel_h * layer.window.width * -(-w.channels // VECTOR)
    k = kernel(layer)
    ends = table(four, bias, np.arange(w.channels), turned=False)
    return [
        Candidate(
            func=k.finish(),
            args=tuple(k.values),
            outputs=rows[:1],
            inputs=rows[1:],
            constants=(pack(layer, weights), ends),
            images=images,
            bands=bands,
            scratch=layer.scratch,
            cost=images * bands * (3 * turned + fours * (9 * layer.steps + 16)),
        )
    ]
