"""The sums of conv_code.py's kernels: a patch of pixels times all weights.

Knows no weight and no node.
"""

from __future__ import annotations

from collections.abc import Sequence

from pybuild.ir.loop import (
    INT8,
    INT16,
    INT32,
    Expr,
    Var,
    cast,
    const,
    load,
    minimum,
    offset,
)
from pybuild.kernels.base.builder import Builder
from pybuild.kernels.base.intrin import IN_ORDER
from pybuild.kernels.epilogues.by_channel import BoundEnd, columns
from pybuild.kernels.layers.sums16 import LongSums
from pybuild.kernels.scalar.conv_layer import Layer

# sums beyond which gcc also reads weights ahead, where there are no registers for them
_MANY = 8


class Sums:
    """The part of a kernel that multiplies a patch with all weights."""

    def __init__(
        self, k: Builder, layer: Layer, known: dict[str, Var], finish: BoundEnd
    ) -> None:
        self.k, self.layer, self.finish = k, layer, finish
        self.known = known

    def write(self) -> None:
        k, known, n = self.k, self.known, self.layer.channels
        w, ends = (
            k.let("w", known["weights"]),
            k.let("next_epilogue", known["epilogue"]),
        )
        outputs = known.get("group_outputs", known["out_channels"])
        with k.loop("channel", outputs, 0, n, rolled=True) as channel:
            first: Expr = channel
            if self.layer.group_outputs % n:
                first = k.let("first", minimum(channel, outputs - n))
            inner = w
            if self.layer.image is not None:
                inner = k.let("inner", offset(w, known["begin"]))
            self._block(inner, ends, k.let("out", offset(known["y"], first)))
            if self.layer.image is not None:
                k.assign(w, offset(w, known["block"]))
            words = columns(self.layer.epilogue)
            if words:
                k.assign(ends, offset(ends, n * words))

    def _block(self, w: Var, ends: Var, y: Var) -> None:
        k, layer = self.k, self.layer
        sums = [self._starts(ends, j) for j in range(layer.words)]
        x = k.let("at", self.known["x"])
        if layer.run_turns:
            sums = self._runs(sums, w, x)
        elif layer.skips_columns:
            with k.loop("row", self.known["window_rows"], rolled=True):
                self._turns(self.known["turns"], sums, w, x)
                k.assign(w, offset(w, self.known["gap"]))
        else:
            self._turns(self.known["turns"], sums, w, x)
        for j, accs in enumerate(sums):
            if layer.paired:
                lower = [k.let("lower", cast(cast(acc, INT16), INT32)) for acc in accs]
                upper = [(a - b) >> 16 for a, b in zip(accs, lower, strict=True)]
                self._end(ends, y, 2 * j, lower)
                self._end(ends, y, 2 * j + 1, upper)
            else:
                self._end(ends, y, j, accs)

    def _turns(self, count: Expr, sums: list[list[Var]], w: Var, x: Var) -> None:
        k, layer = self.k, self.layer
        with k.loop("turn", count, rolled=True):
            for tap in range(layer.unrolled):
                self._tap(sums, w, x, tap)
            k.assign(w, offset(w, layer.unrolled * layer.loads))
            k.assign(x, offset(x, layer.unrolled * layer.pixels))

    def _runs(self, sums: list[list[Var]], w: Var, x: Var) -> list[list[Var]]:
        """The sums of each run are added to sums of 64 bits."""
        known, longs = self.known, LongSums(self.k, sums)
        longs.add_runs(
            known["runs"], known["turns"], known["run_turns"],
            lambda count: self._turns(count, sums, w, x),
        )  # fmt: skip
        return longs.totals

    def _starts(self, ends: Var, j: int) -> list[Var]:
        """The sums of a channel, or of a pair, before anything is added."""
        k, layer = self.k, self.layer
        start: Expr = const(0)
        if not layer.paired:
            start = self.finish.start(ends, j * columns(layer.epilogue))
        if layer.halved and layer.pixels > 1:
            start = k.let(f"start{j}", start)
        row = []
        for p in range(layer.pixels):
            first = start
            if layer.halved:
                first = start + load(self.known["half_sums"], p)
            row.append(k.let(f"sum{j}_{p}", first))
        return row

    def _end(self, ends: Var, y: Var, j: int, accs: Sequence[Expr]) -> None:
        """A channel's values of all pixels."""
        k, layer = self.k, self.layer
        at = j * columns(layer.epilogue)
        words = self.finish.row(k, ends, at)
        if layer.paired:
            accs = [k.let("acc", acc + self.finish.start(ends, at)) for acc in accs]
        step = self.known["out_channels"]
        sums = [(acc, y, step * p + j) for p, acc in enumerate(accs)]
        self.finish.store(k, sums, words, offset(ends, at))

    def _tap(self, sums: list[list[Var]], w: Var, x: Var, tap: int) -> None:
        k, layer = self.k, self.layer
        values = [cast(load(x, tap * layer.pixels + p), INT32)
                  for p in range(layer.pixels)]  # fmt: skip
        values = [k.let("value", v) for v in (IN_ORDER(values[0]), *values[1:])]
        # RISC-V has no registers for weights that are read ahead, nor has an M3 where
        # each is two
        many = layer.words * layer.pixels > _MANY
        ordered = many or (layer.int4 and not layer.unsigned)
        for j in range(layer.loads):
            read: Expr = cast(load(w, tap * layer.loads + j), INT32)
            weight = k.let("weight", IN_ORDER(read) if ordered else read)
            if not layer.int4:
                self._add(sums[j], values, weight)
            elif layer.unsigned:
                self._add(sums[2 * j], values, k.let("high", weight >> 4))
                self._add(sums[2 * j + 1], values, k.let("low", weight & 15))
            else:
                low = cast(cast(weight * 16, INT8), INT32) >> 4
                self._add(sums[2 * j], values, k.let("high", IN_ORDER(weight >> 4)))
                self._add(sums[2 * j + 1], values, k.let("low", IN_ORDER(low)))

    def _add(self, sums: Sequence[Var], values: Sequence[Expr], weight: Expr) -> None:
        """The products of a channel's weight with each pixel."""
        for acc, value in zip(sums, values, strict=True):
            self.k.assign(acc, acc + value * weight)
