"""Convolutions and fully connected layers of int16 with pairs of products (SMLAD).

A window is put together in scratch, so that edges need no second code; one that lies
in memory as it is read is not copied. Four int8 weights of a word become two pairs of
int16. Two output channels of two pixels are computed together.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pybuild.dtype import Array
from pybuild.ir.graph import Graph, Node
from pybuild.ir.loop import INT16, INT32, Expr, Var, const, load, minimum, offset, wide
from pybuild.kernels.base.builder import Builder, told
from pybuild.kernels.base.candidate import EACH, Candidate, Packed, RowAccess
from pybuild.kernels.base.intrin import DOT2, EVEN_BYTES, ODD_BYTES
from pybuild.kernels.base.window import Bound, Window
from pybuild.kernels.epilogues.int8 import Finish
from pybuild.kernels.layers.weights import block_starts, on_pairs16, quads
from pybuild.targets.target import Target

_FEWEST_TAPS = 4
_UNROLLED = 2  # words in one turn of the innermost loop


@dataclass(frozen=True)
class Layer:
    """A layer as its kernel sees it; `pixels` of a row are done together."""

    window: Window
    finish: Finish
    pixels: int

    @property
    def taps(self) -> int:
        w = self.window
        return w.kernel_h * w.kernel_w * w.group_channels

    @property
    def outputs(self) -> int:
        """Output channels of a group."""
        return self.window.group_outputs

    @property
    def pairs(self) -> int:
        """Of these, of which the last two may be in two of them."""
        return (self.outputs + 1) // 2

    @property
    def words(self) -> int:
        """Of four taps each; whole turns where they are many."""
        words = -(-self.taps // 4)
        return words + words % self.unrolled

    @property
    def unrolled(self) -> int:
        """Words in one turn; a window that is not copied has no room behind it."""
        return _UNROLLED if self.copies or self.taps % (4 * _UNROLLED) == 0 else 1

    @property
    def copies(self) -> bool:
        """Windows are put together in scratch."""
        return not self.window.pointwise or self.window.group_channels % 4 > 0

    @property
    def scratch(self) -> int:
        return self.pixels * self.words * 8 if self.copies else 0

    @property
    def name(self) -> str:
        form = f"{'copied' if self.copies else 'direct'}{self.unrolled}"
        w = self.window
        single = "single" if w.groups > 1 and w.group_channels == 1 else ""
        parts = ("conv2d_s16_dsp", w.key, single, form, f"by{self.pixels}",
                 self.finish.key)  # fmt: skip
        return "_".join(p for p in parts if p)

    @property
    def doc(self) -> str:
        """What the kernel's C says."""
        first = "copied into the patch" if self.copies else "read where they lie"
        return told(
            "convolution, int16 x int8, int32 sums by pairs of int16 (SMLAD): "
            f"{self.window.words}",
            f"{self.pixels} pixel{'s' * (self.pixels > 1)} at a time, {first}; then "
            f"two output channels at a time, {4 * self.unrolled} taps in a turn; "
            "weights forward, four taps a word",
            self.finish.words,
        )


def pack(layer: Layer, kernels: Array) -> Packed:
    """Weights [O, taps] as words of four taps, two channels side by side."""
    words = quads(kernels, layer.words)
    of_group = np.asarray(block_starts(layer.outputs, 2))
    groups = np.arange(0, len(kernels), layer.outputs)
    first = (groups[:, None] + of_group).reshape(-1)
    pairs = np.stack([words[first], words[first + 1]], 2)
    order = "of each two output channels, words of four taps of one and the other"
    made = np.ascontiguousarray(pairs).view("<i4").reshape(-1)
    return Packed("weights", made, order=order)


def kernel(layer: Layer) -> Builder:
    """y[ox,o] = finish(bias[o] + sum(x * w)), two channels of a few pixels at a time.

    Shapes  rows x [W,C], y [OW,O]; weights of `pack`; bias int32[O]
    Source  columns outside the row count as 0; rows are the runner's
    """
    return _Writer(layer).write()


class _Writer:
    """The pieces of one kernel being written."""

    def __init__(self, layer: Layer) -> None:
        self.layer = layer
        self.k = k = Builder(layer.name, layer.doc)
        self.g = g = Bound(k, layer.window)
        self.y = k.row("y", 0, INT16, writable=True)
        self.weights = k.row("weights", g.rows + 1, INT32)
        self.bias = k.row("bias", g.rows + 2, INT32)
        self.finish = layer.finish.bind(k, g.rows + 3)
        self.out_channels = k.arg("out_channels", layer.window.out_channels)
        self.words = k.arg("words", layer.words)
        # of a group, and its first input and output channel
        self.outputs, self.inputs = self.out_channels, g.channels
        self.first: Expr | None = None
        self.base: Expr = const(0)
        self.patch: Var | None = None
        if layer.copies:
            after = g.rows + 3 + len(layer.finish.tables())
            self.patch = k.row("patch", after, INT16, writable=True)

    def write(self) -> Builder:
        k, w = self.k, self.layer.window
        if w.groups == 1:
            self._row()
            return k
        many = w.group_channels > 1
        self.inputs = k.arg("group_inputs", w.group_channels) if many else const(1)
        self.outputs = k.arg("group_outputs", self.layer.outputs)
        self.first, self.base = first, base = k.let("first", 0), k.let("base", 0)
        self.weights = weights = k.let("group_weights", self.weights)
        words = k.arg("group_words", self.layer.pairs * self.layer.words * 2)
        with k.loop("group", k.arg("groups", w.groups)):
            self._row()
            k.assign(first, first + self.inputs)
            k.assign(base, base + self.outputs)
            k.assign(weights, offset(weights, words))
        return k

    def _row(self) -> None:
        """All pixels of a group."""
        k, g, n = self.k, self.g, self.layer.pixels
        with k.loop("ox", g.out_width, 0, n) as ox:
            # the last pixel is computed twice where it has no neighbour
            at = [ox] + [k.let("next", minimum(ox + 1, g.out_width - 1))] * (n - 1)
            windows = [self._window(pixel, i) for i, pixel in enumerate(at)]
            to = [
                k.let(f"to{i}", offset(self.y, pixel * self.out_channels))
                for i, pixel in enumerate(at)
            ]
            w = k.let("w", self.weights)
            with k.loop("pair", self.outputs, 0, 2) as pair:
                channel = minimum(pair, self.outputs - 2)
                if self.first is not None:
                    channel = self.base + channel
                self._channels(k.let("channel", channel), w, windows, to)

    def _at(self, pixel: Expr) -> Expr:
        """Where the group's channels of a pixel begin."""
        at = pixel * self.g.channels
        return at if self.first is None else at + self.first

    def _window(self, ox: Expr, number: int) -> Var:
        k, g = self.k, self.g
        x0 = k.let(f"x{number}", ox * g.stride - g.left)
        if self.patch is None:
            row = k.row(f"row{number}", 1, INT16)
            return k.let(f"window{number}", offset(row, self._at(x0)))
        patch = k.let(f"window{number}", offset(self.patch, self.words * (4 * number)))
        to = k.let(f"at{number}", patch)
        ends = g.inside(k, x0)
        with k.loop("ky", g.kernel_h) as ky:
            row = k.row("row", ky * g.dilation_h + 1, INT16)
            self._outside(to, const(0), ends[0])
            with k.loop("kx", ends[1], ends[0]) as kx:
                column = self._at(x0 + kx * g.dilation_w)
                source = k.let("source", offset(row, column))
                with k.loop("c", self.inputs) as c:
                    k.store(to, c, load(source, c))
                k.assign(to, offset(to, self.inputs))
            self._outside(to, ends[1], g.kernel_w)
        # weights behind the last tap are 0, whatever is there
        return patch

    def _outside(self, to: Var, first: Expr, last: Expr) -> None:
        """Zeros for the columns that are not in the row."""
        if not self.layer.window.padded:
            return
        k = self.k
        count = k.let("outside", (last - first) * self.inputs)
        with k.loop("c", count) as c:
            k.store(to, c, const(0, INT16))
        k.assign(to, offset(to, count))

    def _channels(
        self, channel: Expr, w: Var, windows: list[Var], to: list[Var]
    ) -> None:
        k = self.k
        sums = [
            [k.let(f"sum{c}_{p}", load(self.bias, channel + c)) for c in (0, 1)]
            for p in range(len(windows))
        ]
        moving = [k.let(f"x_{p}", window) for p, window in enumerate(windows)]
        unrolled = self.layer.unrolled
        with k.loop("word", self.words, 0, unrolled, rolled=True):
            for word in range(unrolled):
                self._multiply(sums, w, moving, word)
            for x in moving:
                k.assign(x, offset(x, 4 * unrolled))
            k.assign(w, offset(w, 2 * unrolled))
        for p, pixel in enumerate(sums):
            for c, total in enumerate(pixel):
                stored = self.finish.apply(total, channel + c)
                k.store(to[p], channel + c, stored)

    def _multiply(
        self, sums: list[list[Var]], w: Var, windows: list[Var], word: int
    ) -> None:
        """Four taps."""
        k = self.k
        values = [
            [k.let("value", wide(x, 4 * word + 2 * h)) for h in (0, 1)] for x in windows
        ]
        for c in (0, 1):
            four = k.let("four", load(w, 2 * word + c))
            for h, half in enumerate((EVEN_BYTES(four), ODD_BYTES(four))):
                pair = k.let("pair", half)
                for p, value in enumerate(values):
                    k.assign(sums[p][c], DOT2(value[h], pair, sums[p][c]))


def candidates(
    node: Node,
    graph: Graph,
    target: Target,
    window: Window,
    rows: tuple[RowAccess, RowAccess],
    calls: tuple[int, int],
) -> list[Candidate]:
    """The kernels of this file that suit a layer: none, or one."""
    known = on_pairs16(node, graph, target)
    if known is None:
        return []
    kernels, finish, bias = known
    layer = Layer(window, finish, 2 if window.out_width > 1 else 1)
    if layer.taps < _FEWEST_TAPS or layer.outputs < 2:
        return []
    k = kernel(layer)
    pixels = calls[0] * calls[1] * window.out_width
    copied = layer.taps * window.groups if layer.copies else 0
    tables = (pack(layer, kernels), Packed("bias", bias, order=EACH), *finish.tables())
    return [
        Candidate(
            func=k.finish(),
            args=tuple(k.values),
            outputs=rows[:1],
            inputs=rows[1:],
            constants=tables,
            images=calls[0],
            bands=calls[1],
            scratch=layer.scratch,
            cost=pixels * (window.out_channels * (2 * layer.taps + 24) + 8 * copied),
        )
    ]
