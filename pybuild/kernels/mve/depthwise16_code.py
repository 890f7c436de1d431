"""The code of depthwise16.py's kernels: rows with zeros around them, then sums.

Knows no weight and no node.
"""

from __future__ import annotations

from typing import Any

from pybuild.ir.loop import INT8, INT16, INT32, Const, Expr, Var, const, minimum, offset
from pybuild.kernels.base.builder import Builder
from pybuild.kernels.base.once import once
from pybuild.kernels.base.vectors import (
    ALL4,
    PLUS4,
    TIMES4,
    halves_at,
    words_at,
)
from pybuild.kernels.mve.epilogue import numbers_of
from pybuild.kernels.mve.exact import ExactFinish

BLOCK = 4  # channels of a vector
_HALVES = 8  # int16 of one

# depthwise16.py's Layer
Layer = Any


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
            with k.loop("at", size - (_HALVES - 1), 0, _HALVES, rolled=True) as at:
                k.store(inside, at, halves_at(row, at))
            if w.width * w.channels % _HALVES:
                last = k.let("last", size - _HALVES)
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
