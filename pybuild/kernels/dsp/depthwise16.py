"""int16 depthwise convolution with several outputs of each channel (SMLAD).

The values under a window are paired in registers once, for all outputs of a channel;
their int8 weights lie together, four taps a word.
"""

from __future__ import annotations

import numpy as np

from pybuild.dtype import Array
from pybuild.ir.graph import Graph, Node
from pybuild.ir.loop import INT16, INT32, Expr, Var, const, i32, load, offset
from pybuild.kernels.base.builder import Builder, told
from pybuild.kernels.base.candidate import EACH, Candidate, Packed, RowAccess
from pybuild.kernels.base.intrin import DOT2, EVEN_BYTES, LOW_HALVES, ODD_BYTES
from pybuild.kernels.base.taps import bind, outside_pixel
from pybuild.kernels.base.window import Window
from pybuild.kernels.epilogues.int8 import Finish
from pybuild.kernels.layers.weights import on_pairs16, quads
from pybuild.records import dataclass
from pybuild.targets.target import Target

_MOST_TAPS = 12  # whose pairs registers hold


@dataclass(frozen=True)
class Layer:
    """A depthwise convolution as its kernel sees it."""

    window: Window
    finish: Finish

    @property
    def taps(self) -> int:
        return self.window.kernel_h * self.window.kernel_w

    @property
    def words(self) -> int:
        """The number of weight words of an output."""
        return -(-self.taps // 4)

    @property
    def multiplier(self) -> int:
        return self.window.out_channels // self.window.channels

    @property
    def name(self) -> str:
        w = self.window
        parts = (f"depthwise_s16_dsp_{w.kernel_h}x{w.kernel_w}", w.key, self.finish.key)
        return "_".join(p for p in parts if p)

    @property
    def doc(self) -> str:
        """The comment in the kernel's C."""
        w = self.window
        return told(
            "depthwise convolution, int16 x int8, int32 sums by pairs of int16 "
            f"(SMLAD): {w.kernel_h}x{w.kernel_w}, {w.words}",
            "pixel by pixel, channel by channel: its values are paired once, then all "
            "its outputs; weights forward, four taps a word",
            self.finish.words,
        )


def pack(layer: Layer, kernels: Array) -> Packed:
    """Weights [O, taps] as words of four taps."""
    words = np.ascontiguousarray(quads(kernels, layer.words)).view("<i4")
    order = "output channels, words of four taps"
    return Packed("weights", words.reshape(-1), order=order)


def kernel(layer: Layer) -> Builder:
    """y[ox,c*M+m] = finish(bias[c*M+m] + sum over taps (x[c] * w[tap,c*M+m])).

    Shapes  rows x [W,C], y [OW,C*M]; weights of `pack`; bias int32[C*M]
    Source  columns outside the row count as x_zero; rows are the runner's
    """
    k, w = Builder(layer.name, layer.doc), layer.window
    y = k.row("y", 0, INT16, writable=True)
    after = 2 + len(layer.finish.tables())
    pixels = bind(k, w, INT16, const(w.kernel_h), after)
    weights = k.row("weights", pixels.rows + 1, INT32)
    bias = k.row("bias", pixels.rows + 2, INT32)
    finish = layer.finish.bind(k, pixels.rows + 3)
    out_width = k.arg("out_width", w.out_width)
    multiplier = k.arg("per_channel", layer.multiplier)
    rows = [pixels.row(k, ky) for ky in range(w.kernel_h)]
    to = k.let("to", y)
    with k.loop("ox", out_width) as ox:
        under = pixels.all(k, rows, ox)
        words, channel = k.let("words", weights), k.let("channel", 0)
        with k.loop("c", pixels.channels) as c:
            values = _pairs(k, [load(pixel, c) for pixel in under])
            with k.loop("m", multiplier):
                total = k.let("total", load(bias, channel))
                _add(k, total, values, words)
                k.store(to, 0, finish.apply(total, channel))
                k.assign(words, offset(words, layer.words))
                k.assign(channel, channel + 1)
                k.assign(to, offset(to, 1))
    return k


def _pairs(k: Builder, taps: list[Expr]) -> list[Var]:
    """Neighbouring taps in one word; the last may be alone."""
    values = [k.let(f"value{i}", i32(tap)) for i, tap in enumerate(taps)]
    found = []
    for i in range(0, len(values), 2):
        both = values[i : i + 2]
        found.append(k.let(f"pair{i}", LOW_HALVES(*both)) if both[1:] else both[0])
    return found


def _add(k: Builder, total: Var, values: list[Var], words: Var) -> None:
    """Adds all products of an output."""
    for at in range(0, len(values), 2):
        four = k.let("four", load(words, at // 2))
        halves = zip(values[at : at + 2], (EVEN_BYTES, ODD_BYTES), strict=False)
        for value, half in halves:
            k.assign(total, DOT2(value, half(four), total))


def candidates(
    node: Node,
    graph: Graph,
    target: Target,
    window: Window,
    rows: tuple[RowAccess, RowAccess],
    calls: tuple[int, int],
) -> list[Candidate]:
    """The kernel of this file where it suits a layer."""
    taps = window.kernel_h * window.kernel_w
    suits = window.out_channels > window.channels and 1 < taps <= _MOST_TAPS
    known = on_pairs16(node, graph, target) if suits else None
    if known is None:
        return []
    kernels, finish, bias, x_zero = known
    layer = Layer(window, finish)
    k = kernel(layer)
    tables = (pack(layer, kernels), Packed("bias", bias, order=EACH), *finish.tables())
    pixels = calls[0] * calls[1] * window.out_width
    each = 3 * layer.taps + layer.multiplier * (2 * layer.taps + 20)
    return [
        Candidate(
            func=k.finish(),
            args=tuple(k.values),
            outputs=rows[:1],
            inputs=rows[1:],
            constants=tables + outside_pixel(window, x_zero, INT16),
            images=calls[0],
            bands=calls[1],
            cost=pixels * window.channels * each,
        )
    ]
