"""softmax of int16 along the last axis on vectors: four elements at a time, whose
points are gathered. The rule is that of portable/softmax16.py.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from pybuild.ir.graph import Graph, Node
from pybuild.ir.loop import INT16, INT32, Expr, cast, const, i32, load, offset
from pybuild.kernels.base.between import BETWEEN4, BITS4, GATHER_POINTS4
from pybuild.kernels.base.builder import Builder, told
from pybuild.kernels.base.candidate import Candidate
from pybuild.kernels.base.extremes import MAX8, MIN4, MOST8
from pybuild.kernels.base.operands import offer, whole_operands
from pybuild.kernels.base.vector_packs import FOURTH, RIGHT4
from pybuild.kernels.base.vector_rounds import LANE
from pybuild.kernels.base.vectors import (
    ADD4,
    ALL4,
    LINE4,
    MAX4,
    PLUS4,
    halves_at,
    words_at,
)
from pybuild.kernels.epilogues.one_rule import OneRule, one_rule
from pybuild.kernels.math.reciprocal import SPARE_BITS
from pybuild.kernels.portable.softmax import ORDER, Line, lines, most_of
from pybuild.kernels.portable.softmax16 import STEPS, Share, shares16, tables16
from pybuild.ops.int16.softmax16 import softmax16_parameters

LANES, MANY = 4, 8


def softmax(node: Node, graph: Graph) -> list[Candidate]:
    """None along another axis, of fewer than four elements, or of scales too far from
    those of the table."""
    y, axis = graph.tensor(node.output), int(node.attrs["axis"])
    made, depth = softmax16_parameters(node, graph), y.shape[axis]
    rule = one_rule("double", made.multiplier, made.shift, STEPS)
    if math.prod(y.shape[axis + 1 :]) > 1 or depth < LANES or rule is None:
        return []
    operands = whole_operands(node, graph)
    kernel = _Kernel(depth, rule)
    k = kernel.k
    kernel.power, kernel.share = shares16(k, made, const(operands.after), dsp=False)
    kernel.points = k.row("points", operands.after, INT16)
    kernel.four = kernel.bind()
    lines(k, node, graph, operands, kernel.line)
    tables, cost = tables16(made), 12 * y.size
    return [offer(k, operands, tables=tables, in_place=(0,), cost=cost)]


class _Kernel:
    """The kernel being written."""

    power: Callable[[Expr], Expr]
    share: Callable[[Expr, Expr], Share]
    points: Expr
    four: Callable[[Expr, Expr], Expr]

    def __init__(self, depth: int, rule: OneRule) -> None:
        self.depth, self.rule = depth, rule
        words = "softmax, int16 by integers: exp and 1/sum from tables"
        parts = (
            "softmax_s16_mve",
            rule.rule or "none",
            "up" if rule.left else "",
            "" if depth >= MANY else "few",
            "past" if depth % MANY and depth > MANY else "",
            "rest" if depth % LANES else "",
        )
        name = "_".join(part for part in parts if part)
        self.k = Builder(name, told(words, f"{ORDER}; four elements in a turn"))

    def bind(self) -> Callable[[Expr, Expr], Expr]:
        """exp of four elements, less the greatest times the unit."""
        k, scaled = self.k, self.rule.bind(self.k, "four_")
        unit = k.arg("unit", 1 << self.rule.left) if self.rule.left else const(1)
        self.unit = unit
        units = k.let("units", ALL4(unit)) if self.rule.left else None
        zeros = k.let("zeros", ALL4(const(0)))

        def four(x: Expr, less: Expr) -> Expr:
            below = ADD4(x, less) if units is None else LINE4(x, units, less)
            v = k.let("v", MAX4(ADD4(scaled(below), const(STEPS)), zeros))
            at = k.let("at", RIGHT4(v, const(7)))
            first, second = (
                GATHER_POINTS4(offset(self.points, behind), at) for behind in (0, 1)
            )
            between = BETWEEN4(first, second, BITS4(v, const(127)), const(128))
            return RIGHT4(ADD4(between, const(64)), const(7))

        return four

    def _most(self, line: Line) -> Expr:
        k = self.k
        if self.depth < MANY:
            return most_of(k, line, INT16)
        eight = k.let("eight", halves_at(line.x))
        if self.depth > MANY:
            with k.loop("c", line.depth - (MANY - 1), MANY, MANY) as c:
                k.assign(eight, MAX8(eight, halves_at(line.x, c)))
            if self.depth % MANY:
                last = halves_at(line.x, line.depth - MANY)
                k.assign(eight, MAX8(eight, last))
        return k.let("most", MOST8(eight))

    def line(self, line: Line) -> None:
        k, most = self.k, self._most(line)
        less = k.let("less", (0 - most) * self.unit)
        end = line.depth
        if self.depth % LANES:
            end = k.let("end", line.depth - line.depth % LANES)
        sums = k.let("sums", ALL4(const(0)))
        with k.loop("c", end, 0, LANES) as c:
            exps = k.let("exps", self.four(words_at(line.x, c), less))
            k.store(line.y, c, exps)
            k.assign(sums, PLUS4(sums, exps))
        lanes = [lane(sums) for lane in (*LANE, FOURTH)]
        total = k.let("total", lanes[0] + lanes[1] + (lanes[2] + lanes[3]), INT32)
        if self.depth % LANES:
            with k.loop("c", line.depth, end) as c:
                value = k.let("exp", self.power(i32(load(line.x, c)) - most))
                k.store(line.y, c, cast(value, INT16))
                k.assign(total, total + value)
        self._shares(line, end, self.share(total, k.let("spare", SPARE_BITS(total))))

    def _shares(self, line: Line, end: Expr, share: Share) -> None:
        k = self.k
        ratios, top = k.let("ratios", ALL4(share.ratio)), k.let("top", ALL4(32767))
        with k.loop("c", end, 0, LANES) as c:
            scaled = LINE4(words_at(line.y, c), ratios, share.half)
            k.store(line.y, c, MIN4(RIGHT4(scaled, share.bits), top))
        if self.depth % LANES:
            with k.loop("c", line.depth, end) as c:
                k.store(line.y, c, share.of(i32(load(line.y, c)), dsp=False))
