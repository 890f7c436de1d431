"""Convolutions and fully connected layers of int16 with pairs of products (SMLAD).

The windows of a few pixels are copied side by side into scratch, two taps a word. Four
int8 weights of a word become two pairs of int16, once for these pixels. Sums that may
leave 32 bits are summed in runs that do not.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from pybuild.dtype import Array, Ints
from pybuild.ir.graph import Graph, Node
from pybuild.kernels.base.builder import told
from pybuild.kernels.base.candidate import Candidate, Packed, RowAccess
from pybuild.kernels.base.window import Window
from pybuild.kernels.dsp.conv16_code import kernel
from pybuild.kernels.epilogues.end16 import End16
from pybuild.kernels.layers.sums16 import sums16, takes_int16, turns_of_run
from pybuild.kernels.layers.weights import in_blocks, kernels_of, quads
from pybuild.ops.fixed_point.chunks import chunks, filled
from pybuild.records import dataclass
from pybuild.targets.target import Target

_FEWEST_TAPS = 4
_LANES = 4  # taps of a word of weights
_MANY = 8  # words, of which one more is not a large part


@dataclass(frozen=True)
class Layer:
    """A layer as its kernel sees it.

    x_zero            of the input: what a column beside the row holds
    channels, pixels  of the output that are summed together
    run_turns         of the innermost loop, whose sums are then added to those of 64
                      bits; 0: there are none
    """

    window: Window
    epilogue: End16
    x_zero: int
    channels: int
    pixels: int
    run_turns: int = 0

    @property
    def taps(self) -> int:
        return self.window.taps

    @property
    def direct(self) -> bool:
        """True if the window of a single pixel is read in place."""
        alone = self.pixels == 1 and self.window.pointwise
        return alone and self.taps % _LANES == 0

    @property
    def run(self) -> int:
        """The number of values of a row that are contiguous in the window."""
        return self.window.run

    @property
    def copied(self) -> int:
        """The number of words of a run that are copied in one iteration."""
        return next(n for n in (4, 2, 1) if n == 1 or self.run % (2 * n) == 0)

    @property
    def order(self) -> tuple[int, ...]:
        """The tap of each half of the words that are multiplied; -1: its weight is 0.
        Each run begins with a new word."""
        lanes: list[int] = []
        for start in range(0, self.taps, self.run):
            lanes += [*range(start, start + self.run), *([-1] * (self.run % 2))]
        return (*lanes, *[-1] * (-len(lanes) % (_LANES * self.unrolled)))

    @property
    def unrolled(self) -> int:
        """The number of weight words of a channel in one iteration of the innermost
        loop."""
        runs = self.taps // self.run
        words = -(-runs * (self.run + self.run % 2) // _LANES)
        for count in (4, 3, 2):
            if words % count == 0:
                return count
        return 2 if words > _MANY and not self.direct else 1

    @property
    def widened_together(self) -> int:
        """Channels whose weights are pairs at once: of a loop fewer registers hold more
        values; of a single turn gcc spills these."""
        return 2 if self.words == self.unrolled and self.channels == 2 else 1

    @property
    def words(self) -> int:
        """The number of weight words of a channel."""
        return len(self.order) // _LANES

    @property
    def group_outputs(self) -> int:
        return self.window.group_outputs

    @property
    def blocks(self) -> int:
        """The number of blocks of channels that are summed together, in a group."""
        return -(-self.group_outputs // self.channels)

    @property
    def scratch(self) -> int:
        """Bytes of the patch."""
        return 0 if self.direct else 8 * self.words * self.pixels

    @property
    def edges(self) -> str:
        """The part of the key for copying windows that leave the row."""
        if not self.window.padded:
            return ""
        kind = "odd" if self.window.group_channels % 2 else "even"
        return kind + "zero" * bool(self.x_zero)

    @property
    def rest(self) -> int:
        """The number of pixels after the last whole block."""
        return self.window.out_width % self.pixels

    def sum_key(self, pixels: int) -> str:
        """The key that distinguishes the code of the sums of two layers, for so many
        pixels."""
        parts = (
            f"{self.channels}x{pixels}_by{self.unrolled}",
            "once" if self.widened_together > 1 else "",
            "direct" if self.direct else "",
            "over" if self.group_outputs % self.channels else "",
            "runs" if self.run_turns else "",
            self.epilogue.key,
        )
        return "_".join(p for p in parts if p)

    @property
    def name(self) -> str:
        w = self.window
        parts = (
            "conv2d_s16_dsp",
            w.key,
            "" if self.direct else f"run{self.run % 2}{self.edges}by{self.copied}",
            f"rest{self.rest}" if self.rest else "",
            self.sum_key(self.pixels),
        )
        return "_".join(p for p in parts if p)

    @property
    def doc(self) -> str:
        """The comment in the kernel's C."""
        first = "read where it lies" if self.direct else "copied side by side"
        many = f"{self.pixels} pixels" if self.pixels > 1 else "a pixel"
        return told(
            f"convolution, int16 x int8, int{64 if self.run_turns else 32} sums by "
            f"pairs of int16 (SMLAD): {self.window.words}",
            f"{many} at a time, {first}; then {self.channels} output channels at a "
            "time; weights forward, four taps a word",
            self.epilogue.words,
        )

    def part_doc(self, pixels: int) -> str:
        """The comment in the C of the sums."""
        return (
            f"Sums of {self.channels} output channels x {pixels} pixels in "
            f"registers, {_LANES * self.unrolled} taps in a turn."
        )


def _order(layer: Layer) -> Ints:
    """Return the output channels in order of computation."""
    blocks = in_blocks(layer.group_outputs, layer.channels)
    each = layer.group_outputs
    return np.concatenate([blocks + each * g for g in range(layer.window.groups)])


def _lanes(layer: Layer, kernels: Array) -> Array:
    """Return weights [O, taps] in order of multiplication, with zeros in unused
    lanes."""
    order = np.asarray(layer.order)
    made: Array = kernels[:, np.maximum(order, 0)]
    made[:, order < 0] = 0
    return made


def pack(layer: Layer, kernels: Array) -> Packed:
    """Weights [O, taps] as words of four taps, channels of a block side by side."""
    lie = f"of each {layer.channels} output channels: words of four taps of each"
    return Packed.later("weights", lie, _arranged, layer, kernels)


def _arranged(layer: Layer, kernels: Array) -> Array:
    order, each = _order(layer), layer.words * _LANES

    def words(channels: Ints) -> Array:
        few = quads(_lanes(layer, kernels[channels]), layer.words)
        blocks = few.reshape(-1, layer.channels, layer.words, _LANES)
        return np.ascontiguousarray(blocks.transpose(0, 2, 1, 3)).view("<i4")

    parts = map(words, chunks(order, each, layer.channels))
    return filled(np.empty(len(order) * layer.words, np.int32), parts)


def _cost(layer: Layer) -> int:
    """Estimated instructions of a row of a group."""
    blocks, rest = divmod(layer.window.out_width, layer.pixels)
    whole = blocks * _block_cost(layer, layer.pixels)
    return whole + (_block_cost(layer, rest) if rest else 0)


def _block_cost(layer: Layer, pixels: int) -> int:
    c, p = layer.channels, pixels
    word = -(-c // 2) + 2 * -(-p // 2) + 2 * c + 2 * c * p
    block = layer.words * word + 5 * layer.words // layer.unrolled + c * (8 * p + 10)
    copied = 0 if layer.direct else p * (6 * layer.words + 8 * layer.window.kernel_h)
    return layer.blocks * block + copied


def _layers(window: Window, epilogue: End16, x_zero: int) -> list[Layer]:
    ways = ((2, 3), (2, 2), (4, 1), (2, 1))
    return [
        Layer(window, epilogue, x_zero, channels, pixels)
        for channels, pixels in ways
        if channels <= window.group_outputs and pixels <= window.out_width
    ]


def candidates(
    node: Node,
    graph: Graph,
    target: Target,
    window: Window,
    rows: tuple[RowAccess, RowAccess],
    calls: tuple[int, int],
) -> list[Candidate]:
    """The kernels of this file that suit a layer: none, or one."""
    if "dsp" not in target.features or not takes_int16(node, graph):
        return []
    kernels = kernels_of(node, graph)
    if kernels.shape[1] < _FEWEST_TAPS or window.group_outputs < 2:
        return []
    epilogue, bias, x_zero = sums16(node, graph, kernels, target)
    layer = min(_layers(window, epilogue, x_zero), key=_cost)
    if epilogue.long:
        lanes = _lanes(layer, kernels)
        most = turns_of_run(lanes, lanes.shape[1], _LANES * layer.unrolled)
        layer = replace(layer, run_turns=most)
    k = kernel(layer)
    return [
        Candidate(
            func=k.finish(),
            args=tuple(k.values),
            outputs=rows[:1],
            inputs=rows[1:],
            constants=(pack(layer, kernels), epilogue.table(bias, _order(layer))),
            images=calls[0],
            bands=calls[1],
            scratch=layer.scratch,
            cost=calls[0] * calls[1] * window.groups * _cost(layer),
        )
    ]
