"""int16 depthwise convolution on vectors of four channels (VMUL, VADD).

Two pixels of a row are summed together: what is loaded of a column serves both, and so
does each weight. Rows with columns outside are copied first, zeros around them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pybuild.dtype import Array
from pybuild.ir.graph import Graph, Node
from pybuild.kernels.base.builder import told
from pybuild.kernels.base.candidate import Candidate, Packed, RowAccess
from pybuild.kernels.base.window import Window
from pybuild.kernels.layers.sums16 import sums16, takes_int16
from pybuild.kernels.layers.weights import constant, in_blocks
from pybuild.kernels.mve.depthwise16_code import BLOCK, kernel
from pybuild.kernels.mve.exact import Exact, exact16
from pybuild.targets.target import Target

_MOST_ROWS = 9  # of a window: each has a pointer
_MOST_STRIDE = 2
_TOGETHER = 2  # pixels
_PAIR = 8  # int16 that are copied at once


@dataclass(frozen=True)
class Layer:
    """A depthwise convolution as its kernel sees it."""

    window: Window
    epilogue: Exact

    @property
    def together(self) -> int:
        """Pixels that are summed at once."""
        return min(_TOGETHER, self.window.out_width)

    @property
    def copied(self) -> bool:
        """Rows are copied: some window reads beside them."""
        return self.window.padded

    @property
    def columns(self) -> int:
        """Of a row, padding included."""
        return self.window.left + self.window.width + self.window.right

    @property
    def plane(self) -> int:
        """Values of a copied row, and what filling it writes behind."""
        return self.columns * self.window.channels + _PAIR

    @property
    def scratch(self) -> int:
        """Bytes of copied rows."""
        return 2 * self.plane * self.window.kernel_h if self.copied else 0

    @property
    def sum_key(self) -> str:
        """What distinguishes the code of the sums of two layers."""
        w = self.window
        parts = (
            f"{w.kernel_h}x{w.kernel_w}",
            f"apart{w.dilation_w}" if w.dilation_w > 1 else "",
            f"{self.together}by{w.stride_w}",
            "rest" if w.out_width % self.together else "",
            "odd" if w.channels % BLOCK else "",
            self.epilogue.key,
        )
        return "_".join(p for p in parts if p)

    @property
    def name(self) -> str:
        w = self.window
        parts = (
            "depthwise_mve_s16",
            "dilated" if w.dilation_h > 1 else "",
            "left" if w.left else "",
            "right" if w.right else "",
            "overlapping" if self.copied and w.width * w.channels % _PAIR else "",
            self.sum_key,
        )
        return "_".join(p for p in parts if p)

    @property
    def doc(self) -> str:
        """What the kernel's C says."""
        w = self.window
        gaps = ", with gaps between taps" if w.dilated else ""
        first = "rows are copied, zeros around them; then " if self.copied else ""
        return told(
            "depthwise convolution, int16 x int8, int32 sums: "
            f"{w.kernel_h}x{w.kernel_w}{gaps}",
            f"{first}four channels at a time, {self.together} pixels together along "
            "the row",
            self.epilogue.words,
        )

    @property
    def sum_doc(self) -> str:
        """What the C of the sums says."""
        return (
            f"Sums of four channels of {self.together} pixels in registers, row by "
            "row, column by column: each value and each weight is loaded once."
        )


def pack(layer: Layer, weights: Array) -> Packed:
    """Weights [KH, KW, C] as the taps of four channels after those of others."""
    w = layer.window
    blocks = weights.reshape(-1, w.channels)[:, in_blocks(w.channels, BLOCK)]
    made = blocks.reshape(len(blocks), -1, BLOCK).transpose(1, 0, 2)
    order = "of each four channels all taps, row by row, of four channels each"
    return Packed("weights", np.ascontiguousarray(made), order=order)


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
    if w.out_channels != w.channels or w.channels < BLOCK:
        return []
    if w.kernel_h > _MOST_ROWS or w.stride_w > _MOST_STRIDE:
        return []
    if w.width * w.channels < _PAIR:
        return []
    weights = constant(node, graph, 1)
    kernels = weights.reshape(-1, w.channels).T
    epilogue, bias = sums16(node, graph, kernels, target)
    four = None if epilogue.long else exact16(epilogue)
    if four is None:
        return []
    layer = Layer(window, four)
    k = kernel(layer)
    images, bands = calls
    pixels = w.out_width * -(-w.channels // BLOCK)
    summed = pixels * (4 * w.kernel_h * w.kernel_w + 12)
    copied = layer.plane * w.kernel_h // 3 if layer.copied else 0
    ends = four.table(bias, in_blocks(w.channels, BLOCK))
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
            cost=images * bands * (summed + copied),
        )
    ]
