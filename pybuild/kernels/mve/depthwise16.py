"""int16 depthwise convolution on vectors of four channels (VMUL, VADD).

Two pixels of a row are summed together: what is loaded of a column serves both, and so
does each weight. Rows with columns outside are copied first, zeros around them.
"""

from __future__ import annotations

import numpy as np

from pybuild.dtype import Array
from pybuild.ir.graph import Graph, Node
from pybuild.ir.loop import INT8, INT16, INT32, Const, Expr, Var, const, minimum, offset
from pybuild.kernels.base.builder import Builder, told
from pybuild.kernels.base.candidate import Candidate, Packed, RowAccess
from pybuild.kernels.base.once import once
from pybuild.kernels.base.vectors import (
    ALL4,
    PLUS4,
    TIMES4,
    halves_at,
    words_at,
)
from pybuild.kernels.base.window import Window
from pybuild.kernels.layers.sums16 import sums16, takes_int16
from pybuild.kernels.layers.weights import constant, in_blocks
from pybuild.kernels.mve.epilogue import numbers_of
from pybuild.kernels.mve.exact import Exact, ExactFinish, exact16
from pybuild.records import dataclass
from pybuild.targets.target import Target

BLOCK = 4  # channels of a vector
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
        """True if rows are copied because some window reads beside them."""
        return self.window.padded

    @property
    def columns(self) -> int:
        """The number of columns of a row, padding included."""
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
        """The key that distinguishes the code of the sums of two layers."""
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
        """The comment in the kernel's C."""
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
        """The comment in the C of the sums."""
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
    epilogue, bias, x_zero = sums16(node, graph, kernels, target)
    # rules of files without zero points
    four = None if epilogue.long or x_zero else exact16(epilogue)
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


@once
def kernel(layer: Layer) -> Builder:
    """y[ox,c] = clamp(requant(bias[c] + sum over taps (x[c] * w[tap,c]))).

    Shapes  rows x [W,C], y [OW,C]; weights of `pack`; ends of Exact's table
    Source  columns outside the row count as 0; rows are the runner's
    """
    return _Writer(layer).write()


class _Writer:
    """The pieces of one kernel being written."""

    def __init__(self, layer: Layer) -> None:
        self.layer, w = layer, layer.window
        self.k = k = Builder(layer.name, layer.doc)
        self.dilation_h: Expr = const(1)
        if w.dilation_h > 1:
            self.dilation_h = k.arg("dilation_h", w.dilation_h)
        self.rows = self.dilation_h * (w.kernel_h - 1) + 1
        self.y = k.row("y", 0, INT16, writable=True)
        self.weights = k.row("weights", self.rows + 1, INT8)
        self.ends = k.row("epilogue", self.rows + 2, INT32)
        self.channels = k.arg("channels", w.channels)
        self.out_width = k.arg("out_width", w.out_width)
        self.finish = ExactFinish(k, layer.epilogue)

    def write(self) -> Builder:
        k = self.k
        rows = [
            k.row(f"row{ky}", self.dilation_h * ky + 1, INT16)
            for ky in range(self.layer.window.kernel_h)
        ]
        if self.layer.copied:
            rows = self._copied(rows)
        given: dict[str, Expr] = {f"x{ky}": row for ky, row in enumerate(rows)}
        given |= {"weights": self.weights, "epilogue": self.ends, "y": self.y}
        given |= {"channels": self.channels, "out_width": self.out_width}
        given |= self.finish.values
        name = f"sum16_mve_{self.layer.sum_key}"
        with k.part(name, self.layer.sum_doc, **given) as params:
            known = {p.name: p for p in params}
            _Sums(k, self.layer, known, self.finish.inside(known)).write()
        return k

    def _copied(self, rows: list[Var]) -> list[Var]:
        """Each row with zeros around it, one behind the other in scratch. In order:
        what is filled behind one is written again by the next."""
        k, layer, w = self.k, self.layer, self.layer.window
        plane = k.arg("plane", layer.plane)
        begin: Expr = const(0)
        if w.left:
            begin = k.let("begin", k.arg("left", w.left) * self.channels)
        size = k.let("size", k.arg("width", w.width) * self.channels)
        zeros = k.let("zeros", ALL4(const(0)))
        scratch = k.row("copy", self.rows + 3, INT16, writable=True)
        found = []
        for ky, row in enumerate(rows):
            to = k.let(f"to{ky}", offset(scratch, plane * ky))
            if w.left:
                self._fill(to, const(0), begin, zeros)
            if layer.window.right:
                end = k.let("end", begin + size)
                right = end + k.arg("right", layer.window.right) * self.channels
                self._fill(to, end, right, zeros)
            inside = offset(to, begin)
            with k.loop("at", size - (_PAIR - 1), 0, _PAIR, rolled=True) as at:
                k.store(inside, at, halves_at(row, at))
            if w.width * w.channels % _PAIR:
                last = k.let("last", size - _PAIR)
                k.store(inside, last, halves_at(row, last))
            found.append(to)
        return found

    def _fill(self, to: Var, first: Expr, last: Expr, zeros: Var) -> None:
        """Zeros, and up to three more."""
        k = self.k
        with k.loop("at", last, first, BLOCK, rolled=True) as at:
            k.store(to, at, zeros)


class _Sums:
    """The part of a kernel that sums whole rows."""

    def __init__(
        self, k: Builder, layer: Layer, known: dict[str, Var], finish: ExactFinish
    ) -> None:
        self.k, self.layer, self.known, self.finish = k, layer, known, finish

    def write(self) -> None:
        """Four channels after the other, the last ones again where they are no four."""
        k, known, w = self.k, self.known, self.layer.window
        channels, taps = known["channels"], w.kernel_h * w.kernel_w
        weights = k.let("w", known["weights"])
        ends = k.let("end", known["epilogue"])
        with k.loop("channel", channels, 0, BLOCK, rolled=True) as channel:
            first: Expr = channel
            if w.channels % BLOCK:
                first = k.let("first", minimum(channel, channels - BLOCK))
            self._columns(first, weights, ends)
            k.assign(weights, offset(weights, BLOCK * taps))
            k.assign(ends, offset(ends, self.layer.epilogue.size))

    def _columns(self, first: Expr, weights: Var, ends: Var) -> None:
        """Four channels of the whole row."""
        k, known, n, w = self.k, self.known, self.layer.together, self.layer.window
        channels, width = known["channels"], known["out_width"]
        rows = [
            k.let(f"at{ky}", offset(known[f"x{ky}"], first)) for ky in range(w.kernel_h)
        ]
        y = k.let("to", offset(known["y"], first))
        whole: Expr = width
        if w.out_width % n:
            whole = k.let("whole", width - width % n)
        ways = [(n, const(0), whole)] + [(1, whole, width)] * bool(w.out_width % n)
        for count, start, stop in ways:
            with k.loop("ox", stop, start, count, rolled=True):
                for i, total in enumerate(self._totals(count, rows, weights)):
                    numbers = numbers_of(self.layer.epilogue, ends)
                    value = self.finish.narrow(total, numbers)
                    k.store(y, channels * i, value)
                for row in rows:
                    k.assign(row, offset(row, channels * (count * w.stride_w)))
                k.assign(y, offset(y, channels * count))

    def _totals(self, count: int, rows: list[Var], weights: Var) -> list[Expr]:
        """The sums of some neighbours, without bias."""
        k, w, channels = self.k, self.layer.window, self.known["channels"]
        totals: list[Expr] = [const(0)] * count
        taps = [kx * w.dilation_w for kx in range(w.kernel_w)]
        columns = {tap + i * w.stride_w for tap in taps for i in range(count)}
        for ky, row in enumerate(rows):
            loaded: dict[int, Var] = {}
            for column in sorted(columns):
                x = k.let("x", words_at(row, channels * column))
                for i in range(count):
                    tap = column - i * w.stride_w
                    if tap not in taps:
                        continue
                    kx = taps.index(tap)
                    if kx not in loaded:
                        at = BLOCK * (ky * w.kernel_w + kx)
                        loaded[kx] = k.let("value", words_at(weights, at))
                    product = TIMES4(x, loaded[kx])
                    if not isinstance(totals[i], Const):
                        product = PLUS4(totals[i], product)
                    totals[i] = k.let(f"acc{i}", product)
        return totals
