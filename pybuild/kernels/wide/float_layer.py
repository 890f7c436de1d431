"""The layer that float_code.py writes kernels for: a convolution, and how many of its
pixels and channels are summed together. Knows no weight and no node.
"""

from __future__ import annotations

from pybuild.kernels.base.builder import told
from pybuild.kernels.base.real_vectors import WIDE, RealVectors
from pybuild.kernels.base.window import Window
from pybuild.kernels.epilogues.int8 import FloatClamp
from pybuild.records import dataclass

_LATENCY = 3  # cycles until a sum can be added to again


@dataclass(frozen=True)
class FloatLayer:
    """A float32 convolution as its kernel sees it.

    blocks  vectors of output channels, and pixels: summed together
    halves  weights are float16
    """

    window: Window
    finish: FloatClamp
    blocks: int
    pixels: int
    vectors: RealVectors
    halves: bool = False

    @property
    def together(self) -> int:
        """Output channels that are summed together."""
        return self.vectors.lanes * self.blocks

    @property
    def in_pairs(self) -> bool:
        """True if each word has the weights of two vectors."""
        return self.halves and self.blocks % 2 == 0

    @property
    def weight_loads(self) -> float:
        """Instructions that load the weights of a tap."""
        if self.halves:
            return self.blocks * (1.5 if self.in_pairs else 2)
        return self.blocks

    @property
    def pitch(self) -> int:
        """Values between pixels; constants in the code are not registers."""
        return self.window.stride_w * self.window.channels

    @property
    def unrolled(self) -> int:
        """Taps in one turn, of which a run has a whole number."""
        return next(n for n in self.vectors.unrolled if self.window.run % n == 0)

    @property
    def row(self) -> int:
        """Values of a copied row, padding included."""
        return self.window.columns * self.window.channels

    @property
    def scratch(self) -> int:
        """Bytes of copied rows: of those that padding is beside."""
        return 4 * self.window.kernel_h * self.row if self.window.padded else 0

    @property
    def cycles(self) -> int:
        """Estimated, of a row: on wide vectors two products and two sums begin in each,
        and half a vector of weights comes from where they are; else an instruction."""
        w = self.window
        blocks = -(-w.out_width // self.pixels) * -(-w.out_channels // self.together)
        tap: float = self.weight_loads + self.pixels * (1 + 2 * self.blocks)
        if self.vectors is WIDE:
            tap = max(_LATENCY, self.blocks * self.pixels / 2, 2 * self.blocks)
        turns = w.taps // self.unrolled
        block = int(tap * w.taps) + 2 * turns + 4 * self.blocks * self.pixels + 10
        return blocks * block + self.scratch // 16

    @property
    def name(self) -> str:
        w = self.window
        parts = (
            f"conv2d_f32_{self.vectors.key}_{self.pixels}_by{self.together}",
            "f16" * self.halves,
            f"every{self.pitch}" if self.pixels > 1 else "",
            "rest" if w.out_width % self.pixels else "",
            "odd" if w.out_channels % self.together else "",
            w.key,
            "left" if w.left else "",
            "right" if w.right else "",
            "columns" if w.by_taps else "",
            f"run{self.unrolled}",
            self.finish.key,
        )
        return "_".join(p for p in parts if p)

    @property
    def doc(self) -> str:
        """The comment in the kernel's C."""
        rows = "the rows under them copied with their padding; " * self.window.padded
        pixels = "a pixel" if self.pixels == 1 else f"{self.pixels} pixels"
        return told(
            f"convolution, float32{' x float16' * self.halves}: {self.window.words}",
            f"{pixels} at a time, {rows}{self.together} output channels at a time, all "
            "taps in order; weights forward, once for these pixels",
            self.finish.words,
        )


def best_layer(
    window: Window, finish: FloatClamp, vectors: RealVectors, halves: bool = False
) -> FloatLayer | None:
    """The one that takes least time; None: a vector is more than a pixel has."""
    layers = [
        FloatLayer(window, finish, blocks, pixels, vectors, halves)
        for blocks, pixels in (vectors.half_shapes if halves else vectors.shapes)
        if vectors.lanes * blocks <= window.out_channels and pixels <= window.out_width
    ]
    return min(layers, key=lambda layer: layer.cycles, default=None)
