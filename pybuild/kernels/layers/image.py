"""Layers whose kernel processes a whole image per call. Knows no code."""

from __future__ import annotations

from pybuild.ir.graph import Graph, Node
from pybuild.kernels.base.candidate import RowAccess
from pybuild.records import dataclass


@dataclass(frozen=True)
class Image:
    """The rows of a layer whose kernel processes a whole image; `top` is padding."""

    height: int
    out_height: int
    stride_h: int
    top: int

    def inside(self, window: int) -> list[int]:
        """The number of window rows that lie in the image, for each output row."""
        above = [self.top - oy * self.stride_h for oy in range(self.out_height)]
        return [min(a + self.height, window) - max(a, 0) for a in above]

    def padded(self, window: int) -> bool:
        """True if some window of so many rows reaches past the first or last row."""
        last = (self.out_height - 1) * self.stride_h - self.top + window
        return self.top > 0 or last > self.height


def image_of(node: Node, graph: Graph) -> Image:
    """Return the rows of a layer [N,H,W,C] that slides a window."""
    x, y = graph.tensor(node.inputs[0]), graph.tensor(node.output)
    strides, pads = node.attrs.get("strides", (1, 1)), node.attrs.get("pads", (0,))
    return Image(x.shape[1], y.shape[1], strides[0], pads[0])


def whole_images(node: Node, graph: Graph) -> tuple[RowAccess, RowAccess]:
    """Return the accesses of such a layer if one call makes a whole image."""
    x, y = graph.tensor(node.inputs[0]), graph.tensor(node.output)
    out, source = (RowAccess(t.name, 1, t.bytes // x.shape[0], 1, 1) for t in (y, x))
    return out, source
