"""The geometry of layers that slide a window along rows, as Loop IR.

Shared by convolution, depthwise convolution and pooling.
"""

from __future__ import annotations

from dataclasses import dataclass

from pybuild.graph import Node, Tensor
from pybuild.kernels.builder import Builder
from pybuild.loop import Expr, const, maximum, minimum


@dataclass(frozen=True)
class Window:
    """One layer's window. Units: pixels, channels; `left` is padding.

    channels, out_channels  of the whole layer; groups divide both
    """

    width: int
    out_width: int
    channels: int
    out_channels: int
    kernel_h: int
    kernel_w: int
    stride_w: int = 1
    dilation_h: int = 1
    dilation_w: int = 1
    left: int = 0
    groups: int = 1

    @property
    def rows(self) -> int:
        """Input rows under the window, gaps of a dilation included."""
        return (self.kernel_h - 1) * self.dilation_h + 1

    @property
    def padded(self) -> bool:
        """Some window reaches past an end of the row."""
        last = (self.out_width - 1) * self.stride_w - self.left
        return (
            self.left > 0 or last + (self.kernel_w - 1) * self.dilation_w >= self.width
        )

    @property
    def dilated(self) -> bool:
        return self.dilation_h > 1 or self.dilation_w > 1

    @property
    def pointwise(self) -> bool:
        """One tap, which is always inside."""
        return self.kernel_h == self.kernel_w == 1 and not self.padded

    @property
    def key(self) -> str:
        """What distinguishes the code of two layers."""
        if self.pointwise:
            parts = ["pointwise", "strided" if self.stride_w > 1 else ""]
        else:
            parts = ["padded" if self.padded else "", "dilated" if self.dilated else ""]
        parts.append("grouped" if self.groups > 1 else "")
        return "_".join(p for p in parts if p)


def convolution_window(
    node: Node, x: Tensor, y: Tensor, kernel: tuple[int, int]
) -> Window:
    """The window of a convolution; a kernel of one tap a side has no dilation there.

    Shapes  x [N,H,W,C]  y [N,OH,OW,O]  kernel (KH, KW)
    """
    dilation_h, dilation_w = node.attrs.get("dilations", (1, 1))
    return Window(
        width=x.shape[2],
        out_width=y.shape[2],
        channels=x.shape[3],
        out_channels=y.shape[3],
        kernel_h=kernel[0],
        kernel_w=kernel[1],
        stride_w=node.attrs.get("strides", (1, 1))[1],
        dilation_h=dilation_h if kernel[0] > 1 else 1,
        dilation_w=dilation_w if kernel[1] > 1 else 1,
        left=node.attrs.get("pads", (0, 0, 0, 0))[1],
        groups=node.attrs.get("groups", 1),
    )


def dilation_arguments(k: Builder, w: Window) -> tuple[Expr, Expr]:
    """Rows and columns between taps; an argument only where it is not 1."""
    one = const(1)
    return (
        k.arg("dilation_h", w.dilation_h) if w.dilation_h > 1 else one,
        k.arg("dilation_w", w.dilation_w) if w.dilation_w > 1 else one,
    )


class Bound:
    """A Window's integers inside a kernel: its arguments, or constants."""

    def __init__(self, k: Builder, w: Window) -> None:
        one: Expr = const(1)
        self.window = w
        self.out_width = k.arg("out_width", w.out_width)
        self.channels = k.arg("channels", w.channels)
        strided = not w.pointwise or w.stride_w > 1
        self.stride = k.arg("stride", w.stride_w) if strided else one
        self.kernel_h = one if w.pointwise else k.arg("kernel_h", w.kernel_h)
        self.kernel_w = one if w.pointwise else k.arg("kernel_w", w.kernel_w)
        self.dilation_h, self.dilation_w = dilation_arguments(k, w)
        self.width = k.arg("width", w.width) if w.padded else const(w.width)
        self.left = k.arg("left", w.left) if w.padded else const(0)
        self.rows = (self.kernel_h - 1) * self.dilation_h + 1

    def inside(self, k: Builder, x0: Expr) -> tuple[Expr, Expr]:
        """Taps [first, last) of a window at pixel x0 that lie inside the row."""
        if not self.window.padded:
            return const(0), self.kernel_w
        step = self.dilation_w
        first = minimum(maximum((step - 1 - x0) / step, 0), self.kernel_w)
        ahead = (self.width - x0 + step - 1) / step
        start = k.let("first", first)
        return start, k.let("last", maximum(minimum(ahead, self.kernel_w), start))
