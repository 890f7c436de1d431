"""logistic and tanh of int16 on vectors: four elements at a time, whose points are
gathered. The rule is that of portable/curve16.py.
"""

from __future__ import annotations

from pybuild.ir.loop import INT16, Expr, const, offset
from pybuild.kernels.base.between import (
    BETWEEN4,
    BITS4,
    GATHER_POINTS4,
    SIGNED4,
    SIZE4,
)
from pybuild.kernels.base.builder import Builder
from pybuild.kernels.base.candidate import Candidate
from pybuild.kernels.base.vector_packs import RIGHT4
from pybuild.kernels.base.vectors import ADD4, ALL4, LINE4, TIMES4, words_at
from pybuild.kernels.portable.curve16 import Curve

LANES = 4
TURN = 8  # elements, where a row has so many


def curve(one: Curve) -> Candidate:
    """The last vector reaches back. It is read first: x and y may be one."""
    turn = TURN if one.count % TURN == 0 else LANES
    rest = one.count % LANES > 0
    order = f"{turn} elements in a turn{'; the last vector reaches back' * rest}"
    k = one.builder(f"_mve{turn}{'_rest' * rest}", order)
    values = _Values(k, one)
    to, source = k.row("y", 0, INT16, writable=True), k.row("x", 1, INT16)
    size = k.arg("count", one.count)
    end, last, back = size, None, size
    if rest:
        end, back = size - size % LANES, k.let("back", size - LANES)
        last = k.let("last_four", values.of(words_at(source, back)))
    y, x = k.let("to", to), k.let("from", source)
    with k.loop("i", end, 0, turn):
        for at in range(0, turn, LANES):
            k.store(y, at, values.of(words_at(x, at)))
        k.assign(y, offset(y, turn))
        k.assign(x, offset(x, turn))
    if last is not None:
        k.store(to, back, last)
    return one.offer(k, 4)


class _Values:
    """What is bound before the loop."""

    def __init__(self, k: Builder, one: Curve) -> None:
        self.k, self.one, made = k, one, one.made
        self.points = k.row("points", one.operands.after, INT16)
        multiplier = k.arg("multiplier", made.multiplier)
        self.multiplier = k.let("factor", ALL4(multiplier))
        if made.shift:
            self.half = k.arg("half", 1 << (made.shift - 1))
            self.shift = k.arg("shift", made.shift)

    def of(self, x: Expr) -> Expr:
        """The results of four elements."""
        k, one, bits = self.k, self.one, self.one.made.bits
        steps = TIMES4(x, self.multiplier)
        if one.made.shift:
            steps = RIGHT4(LINE4(x, self.multiplier, self.half), self.shift)
        d = k.let("d", steps)
        size = k.let("size", SIZE4(d, const(one.most)))
        at = k.let("at", RIGHT4(size, const(bits)))
        first, second = (
            GATHER_POINTS4(offset(self.points, behind), at) for behind in (0, 1)
        )
        part = BITS4(size, const((1 << bits) - 1))
        between = BETWEEN4(first, second, part, const(1 << bits))
        rounded = ADD4(between, const(1 << (one.down - 1)))
        value = RIGHT4(rounded, const(one.down))
        if not one.is_logistic:
            return SIGNED4(value, d)
        held = SIZE4(value, const((1 << 14) - 1)) if one.far else value
        return ADD4(SIGNED4(held, d), const(1 << 14))
