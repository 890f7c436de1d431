"""attention: keys and values of the rows that count, and of no others.

A core's registers hold what rows of q share: some elements of a key or of sums, for up
to two rows. Time grows with the rows that count, not with those that there are.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from pybuild.dtype import Array
from pybuild.ir.graph import Graph, Node
from pybuild.ir.loop import (
    FLOAT32,
    INT32,
    Expr,
    Var,
    cast,
    i32,
    load,
    maximum,
    minimum,
    offset,
)
from pybuild.kernels.base.builder import Builder, told
from pybuild.kernels.base.candidate import Candidate, Packed
from pybuild.kernels.base.operands import offer, short, whole_operands
from pybuild.kernels.math.exponential import EXP
from pybuild.targets.target import Target

_WIDE = 8  # elements at a time


def attention(node: Node, graph: Graph, target: Target) -> list[Candidate]:
    """The candidate for attention."""
    return [_Code(node, graph).written()]


def _part(length: int) -> int:
    """The most elements at a time that divide a length."""
    return max(n for n in range(1, _WIDE + 1) if length % n == 0)


class _Code:
    """The kernel being written; q's rows go in pairs where they are even."""

    def __init__(self, node: Node, graph: Graph) -> None:
        self.node, self.graph = node, graph
        q, values = graph.tensor(node.inputs[0]), graph.tensor(node.inputs[2])
        self.rows, self.depth, self.wide = *q.shape[-2:], values.shape[-1]
        self.window, self.outer = values.shape[-2], math.prod(q.shape[:-2])
        self.across = bool(node.attrs.get("across"))
        self.pair = 2 - self.rows % 2
        self.parts = _part(self.depth), _part(self.wide)
        doc = told(
            "y = softmax(scale * q @ k.T) @ v in float32 over the rows of k and v from "
            "the first to the last that count",
            f"{self.pair} rows of q at a time, {self.parts[0]} elements of a key and "
            f"{self.parts[1]} sums of values at a time; scores are in scratch",
        )
        keys = graph.tensor(node.inputs[1])
        self.kinds = FLOAT32, keys.dtype, values.dtype
        kinds = "_".join(short(kind) for kind in self.kinds)
        shape = f"{self.pair}x{self.parts[0]}x{self.parts[1]}"
        self.k = Builder(f"attention_{kinds}_{shape}{'_across' * self.across}", doc)

    def written(self) -> Candidate:
        k, operands = self.k, whole_operands(self.node, self.graph)
        numbers = operands.numbers
        y = k.row("y", 0, FLOAT32, writable=True)
        q, keys, values = (
            k.row(name, number, kind)
            for name, number, kind in zip("qkv", numbers[:3], self.kinds, strict=True)
        )
        live = k.row("live", numbers[3], INT32)
        scale = k.let("scale", load(k.row("factor", operands.after, FLOAT32)))
        scores = k.row("scores", operands.after + 1, FLOAT32, writable=True)
        window, depth = k.arg("window", self.window), k.arg("depth", self.depth)
        wide, rows = k.arg("wide", self.wide), k.arg("rows", self.rows)
        first = k.let("first", maximum(minimum(load(live), window), 0))
        after = k.let("after", maximum(minimum(load(live, 1), window), first))
        count = k.let("count", after - first)
        with k.loop("g", k.arg("outer", self.outer)) as g:
            begin = first if self.across else first * depth
            near = k.let("near", offset(keys, g * window * depth + begin))
            far = k.let("far", offset(values, (g * window + first) * wide))
            with k.loop("r", rows, 0, self.pair) as r:
                row = g * rows + r
                asked = k.let("asked", offset(q, row * depth))
                self._scores((asked, near, scores), (count, depth, window))
                totals = self._powers(scores, (count, window), scale)
                to = k.let("to", offset(y, row * wide))
                self._sums((scores, far, to), (count, wide, window), totals)
        tables = (Packed("scale", self._scale(), order="one number"),)
        made = offer(k, operands, tables=tables, cost=self._cost())
        return replace(made, scratch=4 * self.pair * self.window)

    @staticmethod
    def _real(pointer: Var, place: Expr) -> Expr:
        value = load(pointer, place)
        return value if value.type is FLOAT32 else cast(i32(value), FLOAT32)

    def _scale(self) -> Array:
        return np.asarray([self.node.attrs["scale"]], np.float32)

    def _cost(self) -> int:
        each = 2.6 * (self.depth + self.wide) + 45
        return int(self.outer * self.rows * self.window * each)

    def _each(self, base: Expr, pitch: Expr) -> list[Expr]:
        """A pointer for each row of q."""
        return [base if i == 0 else offset(base, pitch) for i in range(self.pair)]

    def _scores(self, at: tuple[Expr, Expr, Expr], sizes: Sequence[Expr]) -> None:
        """Products of rows of q and of k, in the order of their elements."""
        k, (asked, near, scores), (count, depth, window) = self.k, at, sizes
        part = self.parts[0]
        to = self._each(scores, window)
        with k.loop("d", depth, 0, part) as d:
            xs = [
                [k.let("q", load(row, d + i)) for i in range(part)]
                for row in self._each(asked, depth)
            ]
            key = k.let("key", offset(near, d * window if self.across else d))
            with k.loop("j", count) as j:
                places = [i * window if self.across else i32(i) for i in range(part)]
                found = [k.let("k", self._real(key, place)) for place in places]
                for row, elements in zip(to, xs, strict=True):
                    total = self._product(elements, found, row, (j, d))
                    k.store(row, j, total)
                k.assign(key, offset(key, 1 if self.across else depth))

    def _product(
        self, x: Sequence[Var], y: Sequence[Var], row: Expr, at: tuple[Expr, Expr]
    ) -> Expr:
        total: Expr | None = None
        if self.depth > self.parts[0]:  # what earlier elements gave
            total = self._before(row, *at)
        for a, b in zip(x, y, strict=True):
            total = a * b if total is None else total + a * b
        assert total is not None
        return total

    def _before(self, row: Expr, j: Expr, d: Expr) -> Expr:
        before = self.k.let("before", 0.0, FLOAT32)
        with self.k.when(d > 0):
            self.k.assign(before, load(row, j))
        return before

    def _powers(self, scores: Expr, sizes: tuple[Expr, Expr], scale: Expr) -> list[Var]:
        """exp of how far scores are below the greatest, and their sums."""
        k, (count, window) = self.k, sizes
        totals = []
        for row in self._each(scores, window):
            most = k.let("most", load(row) * scale)
            with k.loop("j", count) as j:
                value = k.let("score", load(row, j) * scale)
                k.store(row, j, value)
                k.assign(most, maximum(most, value))
            total = k.let("total", 0.0, FLOAT32)
            with k.loop("j", count) as j:
                power = k.let("power", EXP(load(row, j) - most))
                k.store(row, j, power)
                k.assign(total, total + power)
            totals.append(total)
        return totals

    def _sums(
        self, at: tuple[Expr, Expr, Expr], sizes: Sequence[Expr], totals: Sequence[Var]
    ) -> None:
        """Sums of values, each times its share."""
        k, (scores, far, to), (count, wide, window) = self.k, at, sizes
        part = self.parts[1]
        powers, outs = self._each(scores, window), self._each(to, wide)
        with k.loop("e", wide, 0, part) as e:
            sums = [[k.let("sum", 0.0, FLOAT32) for _ in range(part)] for _ in powers]
            value = k.let("value", offset(far, e))
            with k.loop("j", count) as j:
                found = [k.let("v", self._real(value, i32(i))) for i in range(part)]
                for row, each in zip(powers, sums, strict=True):
                    power = k.let("p", load(row, j))
                    for total, v in zip(each, found, strict=True):
                        k.assign(total, total + power * v)
                k.assign(value, offset(value, wide))
            for out, each, total in zip(outs, sums, totals, strict=True):
                for i, one in enumerate(each):
                    k.store(out, e + i, one / total)
