"""logistic and tanh of int16 by LiteRT's rule (ops/int16/act16.py): the size of a step
is looked up on half a curve, and its sign is given back. See `_kernel`.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from pybuild.ir.graph import Graph, Node
from pybuild.ir.loop import (
    INT16,
    INT32,
    Expr,
    cast,
    const,
    i32,
    load,
    minimum,
    offset,
    wide,
)
from pybuild.kernels.base.between import HELD14, HELD16, HELD17, TWO_POINTS
from pybuild.kernels.base.builder import Builder, told
from pybuild.kernels.base.candidate import Candidate, Packed
from pybuild.kernels.base.operands import Operands, elementwise_operands, offer
from pybuild.ops.int16.act16 import CurveParameters, curve_parameters, sigmoid_points
from pybuild.records import dataclass
from pybuild.targets.target import Target

POINTS = 256
_TURN = 4  # elements, where instructions of pairs make them


@dataclass(frozen=True)
class Curve:
    """A layer: its name, its integers, and elements of a call."""

    op: str
    made: CurveParameters
    operands: Operands
    count: int

    @property
    def far(self) -> bool:
        """Whether a step may lie behind the last but one point."""
        reach = (self.made.multiplier << 15) + (1 << self.made.shift)
        return reach >> self.made.shift >= (POINTS - 1) << self.made.bits

    @property
    def is_logistic(self) -> bool:
        return self.op == "logistic"

    @property
    def most(self) -> int:
        """The greatest step with a place in the table."""
        return (POINTS << self.made.bits) - 1

    @property
    def down(self) -> int:
        """Bits from what is between two points to the result."""
        return self.made.bits + self.is_logistic

    @property
    def key(self) -> str:
        """What distinguishes the code of two layers."""
        shifted = "_shifted" if self.made.shift else ""
        return f"{self.op}_s16{shifted}{'_far' * self.far}"

    def builder(self, kind: str, order: str) -> Builder:
        what = f"y = {self.op}(x), int16, between points of a table"
        return Builder(f"{self.key}{kind}", told(what, order))

    def offer(self, k: Builder, cost: int) -> Candidate:
        cost *= self.count * self.operands.images * self.operands.bands
        return offer(k, self.operands, tables=(_points(),), in_place=(0,), cost=cost)


def curve_of(node: Node, graph: Graph) -> Curve:
    operands = elementwise_operands(node, graph)
    count = graph.tensor(node.output).size // (operands.images * operands.bands)
    return Curve(node.op, curve_parameters(node, graph), operands, count)


def _points() -> Packed:
    """The last one twice: what is held there lies before a point, too."""
    made = np.append(sigmoid_points(), sigmoid_points()[-1]) - (1 << 15)
    order = f"logistic at {POINTS} points from 0 on, less 2^15; the last again"
    return Packed("points", made.astype(np.int16), order=order)


def curve(node: Node, graph: Graph, target: Target) -> list[Candidate]:
    """The candidates for logistic and tanh of int16, on any core and with DSP."""
    one = curve_of(node, graph)
    found = [_kernel(one, "", _between)]
    if "dsp" in target.features:
        found.append(_kernel(one, "_dsp", _pair))
    return found


_Between = Callable[[Builder, Curve, Expr, Expr], Expr]


def _kernel(one: Curve, kind: str, between: _Between) -> Candidate:
    """With DSP some in a turn, then the rest. Of t, which LiteRT makes of a size, less
    2^15 in each point of the table:

        logistic  2^14 + sign * ((t + 2^9) >> 10), from the last point on below 2^14
        tanh      sign * ((t + 2^7) >> 8)

    LiteRT's unit less below zero rounds to the same.
    """
    dsp = kind != ""
    turn = _TURN if dsp and one.count >= _TURN else 1
    rest = one.count % turn > 0
    order = "element by element" if turn == 1 else f"{turn} elements in a turn"
    name = f"{kind}{turn if turn > 1 else ''}{'_rest' * rest}"
    k = one.builder(name, f"{order}, from the first to the last")
    step = steps(k, one)
    points = k.row("points", one.operands.after, INT16)
    to, source = k.row("y", 0, INT16, writable=True), k.row("x", 1, INT16)

    def of(x: Expr) -> Expr:
        d = k.let("d", step(i32(x)))
        minus = k.let("minus", d >> 31)
        size: Expr = (d ^ minus) - minus
        if one.far:
            held = HELD17 if one.is_logistic else HELD16
            size = held(size) if dsp else minimum(size, one.most)
        value = between(k, one, points, k.let("size", size)) >> one.down
        if one.far and one.is_logistic:
            value = HELD14(value) if dsp else minimum(value, (1 << 14) - 1)
        signed = (k.let("value", value) ^ minus) - minus
        return cast(signed + (1 << 14) if one.is_logistic else signed, INT16)

    size = k.arg("count", one.count)
    end = size - size % turn if rest else size
    if turn > 1:
        y, x = k.let("to", to), k.let("from", source)
        with k.loop("i", end, 0, turn):
            for at in range(turn):
                k.store(y, at, of(load(x, at)))
            k.assign(y, offset(y, turn))
            k.assign(x, offset(x, turn))
    if rest or turn == 1:
        with k.loop("i", size, k.let("end", end) if rest else 0) as i:
            k.store(to, i, of(load(source, i)))
    return one.offer(k, 16 if dsp else 20)


def steps(k: Builder, one: Curve) -> Callable[[Expr], Expr]:
    """x * multiplier / 2^shift, ties up: less than 2^31 for all that it may be."""
    multiplier = k.arg("multiplier", one.made.multiplier)
    if not one.made.shift:
        return lambda x: x * multiplier
    half = k.arg("half", 1 << (one.made.shift - 1))
    shift = k.arg("shift", one.made.shift)
    return lambda x: (x * multiplier + half) >> shift


def _place(k: Builder, one: Curve, size: Expr) -> tuple[Expr, Expr]:
    """The point below, and how far behind it."""
    bits = one.made.bits
    return k.let("at", size >> bits), k.let("part", size & ((1 << bits) - 1))


def _between(k: Builder, one: Curve, points: Expr, size: Expr) -> Expr:
    at, part = _place(k, one, size)
    first = k.let("first", i32(load(points, at)))
    rise = i32(load(points, at + 1)) - first
    scaled = first * (1 << one.made.bits) + part * rise
    return scaled + (1 << (one.down - 1))


def _pair(k: Builder, one: Curve, points: Expr, size: Expr) -> Expr:
    """Two points as a word, and their shares as another."""
    at, part = _place(k, one, size)
    shares = part * 65535 + (1 << one.made.bits)
    return TWO_POINTS(wide(points, at), shares, const(1 << (one.down - 1), INT32))
