"""The sums of depthwise_dsp_code.py's kernels: four channels of a row.

Knows no weight and no node.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pybuild.kernels.affine_finish import AffineFinish, corrected
from pybuild.kernels.builder import Builder
from pybuild.kernels.depthwise_dsp_layer import UNROLLED, Layer
from pybuild.kernels.intrin import MLA_HIGH, MLA_LOW
from pybuild.loop import Expr, Var, load, offset


class Sums:
    """The part of a kernel that sums a row of four channels that are widened."""

    def __init__(
        self,
        k: Builder,
        layer: Layer,
        shared: Mapping[str, Expr],
        finish: AffineFinish,
        known: Mapping[str, Var],
    ) -> None:
        self.k, self.layer, self.w = k, layer, layer.window
        self.shared, self.known = shared, known
        self.finish = finish.inside(known)
        self.channels, self.out_width = shared["channels"], shared["out_width"]

    def write(self, unrolled_rows: int) -> None:
        k, layer, known = self.k, self.layer, self.known
        size = 4 if layer.ending.below is None else 8
        at_rows = [self.shared[f"at{ky}"] for ky in range(unrolled_rows)]
        if layer.image is None:
            at_rows = [self.shared["pitch"] * ky for ky in range(unrolled_rows)]
        with k.loop("half", 2) as half:
            w = k.let("taps", offset(known["weights"], half * layer.taps))
            end = k.let("last", offset(known["ends"], half * size))
            line = k.let(
                "line", offset(known["lines"], half * self.shared["half_size"])
            )
            out = k.let("out", offset(known["y"], half))
            self._columns(line, at_rows, self.shared["start"], (w, end, out))

    def _columns(
        self,
        lines: Var,
        at_rows: Sequence[Expr],
        start: Expr,
        where: tuple[Var, Var, Var],
    ) -> None:
        k, n = self.k, self.layer.columns
        whole = self.out_width
        rest = self.w.out_width % n
        if rest:
            whole = k.let("whole", self.out_width - self.out_width % n)
        with k.loop("ox", whole, 0, n, rolled=True):
            self._sum(n, lines, at_rows, start, where)
        if rest:
            with k.loop("ox", self.out_width, whole, rolled=True):
                self._sum(1, lines, at_rows, start, where)

    def _sum(
        self,
        n: int,
        lines: Var,
        at_rows: Sequence[Expr],
        start: Expr,
        where: tuple[Var, Var, Var],
    ) -> None:
        k, w, (weights, ends, y) = self.k, self.w, where
        signed = self.layer.ending.below is not None
        second = 4 if signed else 2
        sums = [
            (k.let(f"low{i}", load(ends)), k.let(f"high{i}", load(ends, second)))
            for i in range(n)
        ]
        if self.layer.taps <= UNROLLED:
            for row, at in enumerate(at_rows):
                self._row(sums, offset(lines, at), weights, row * w.kernel_w)
        else:
            taps = k.let("row_taps", weights)
            with k.loop("ky", w.kernel_h, rolled=True) as ky:
                slot: Expr = ky
                if self.layer.image is not None:
                    slot = start + self.shared["dilation_h"] * ky
                    slot = slot % self.shared["rows"]
                at = slot * self.shared["pitch"]
                self._row(sums, offset(lines, at), taps, 0)
                k.assign(taps, offset(taps, w.kernel_w))
        for which in (0, 1):
            self._finish([s[which] for s in sums], offset(ends, second * which),
                         offset(y, 2 * which))  # fmt: skip
        k.assign(lines, offset(lines, n * w.stride_w))
        k.assign(y, offset(y, self.channels * n))

    def _row(
        self, sums: list[tuple[Var, Var]], line: Expr, weights: Expr, first: int
    ) -> None:
        """One row of taps, column by column; each weight and value read once."""
        k, w = self.k, self.w
        line = k.let("row", line)
        known: dict[int, Var] = {}
        uses: dict[int, list[tuple[int, int]]] = {}
        for i in range(len(sums)):
            for kx in range(w.kernel_w):
                at = i * w.stride_w + kx * w.dilation_w
                uses.setdefault(at, []).append((i, kx))
        for at in sorted(uses):
            value = k.let("value", load(line, at))
            for i, kx in uses[at]:
                if kx not in known:
                    known[kx] = k.let(f"tap{kx}", load(weights, first + kx))
                low, high = sums[i]
                k.assign(low, MLA_LOW(value, known[kx], low))
                k.assign(high, MLA_HIGH(value, known[kx], high))

    def _finish(self, sums: list[Var], ends: Expr, y: Expr) -> None:
        k = self.k
        signed = self.layer.ending.below is not None
        if signed:
            plus, minus = k.let("plus", load(ends, 1)), k.let("minus", load(ends, 2))
        factor = k.let("factor", load(ends, 3 if signed else 1))
        for i, acc in enumerate(sums):
            scaled: Expr = acc
            if signed:
                scaled = corrected(acc, plus, minus)
            k.store(y, self.channels * i, self.finish.narrow(scaled, factor))
