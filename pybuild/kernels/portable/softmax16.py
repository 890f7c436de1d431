"""softmax of int16: by the integer steps of int16/softmax16.py, on one line."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from pybuild.ir.loop import (
    INT16,
    Expr,
    cast,
    const,
    i32,
    load,
    maximum,
    minimum,
    wide,
)
from pybuild.kernels.base.between import HELD16, TWO_POINTS
from pybuild.kernels.base.builder import Builder
from pybuild.kernels.base.candidate import Packed
from pybuild.kernels.base.extremes import MAX_HALVES
from pybuild.kernels.base.intrin import MULHI_ADD_ROUND, SATURATE16, low_half
from pybuild.kernels.epilogues.requantise import DOUBLE, Requant, requant
from pybuild.kernels.math.curves16 import BETWEEN
from pybuild.ops.int16.softmax16 import Softmax16Parameters
from pybuild.records import dataclass

STEPS = 65535  # from the first point of a table to the last


def tables16(made: Softmax16Parameters) -> tuple[Packed, ...]:
    return (
        Packed("exponentials", np.asarray(made.exps, np.int16), order="exp at points"),
        Packed("reciprocals", np.asarray(made.ratios, np.int16), order="1/x at points"),
    )


@dataclass(frozen=True)
class _Steps:
    """v = (a product's high half, rounded, + `start`) >> right, from 0 on. It is that
    of a difference, which is 0 or less: both roundings of LiteRT's rule.
    """

    unit: int
    multiplier: int
    start: int
    right: int

    def bind(self, k: Builder) -> Callable[[Expr], Expr]:
        unit, start = k.arg("unit", self.unit), k.arg("start", self.start)
        multiplier = k.arg("multiplier", self.multiplier)
        right = k.arg("right", self.right) if self.right else None

        def v(below: Expr) -> Expr:
            high = MULHI_ADD_ROUND(below * unit, multiplier, start)
            return HELD16(high if right is None else high >> right)

        return v


def _steps(rule: Requant) -> _Steps | None:
    """None of scales that are too far from those of the table."""
    left, right = rule.left[0] if rule.left else 0, rule.shifts[0]
    if left > 13 or right > 14:
        return None
    start = (STEPS << right) + max((1 << right >> 1) - 1, 0)
    return _Steps(2 << left, rule.multipliers[0], start, right)


@dataclass(frozen=True)
class Share:
    """(exp * ratio + half) >> bits, at most 32767"""

    ratio: Expr
    half: Expr
    bits: Expr

    def of(self, exp: Expr, dsp: bool) -> Expr:
        whole = (exp * self.ratio + self.half) >> self.bits
        return cast(SATURATE16(whole) if dsp else minimum(whole, 32767), INT16)


def shares16(
    k: Builder, made: Softmax16Parameters, pointer: Expr, dsp: bool
) -> tuple[Callable[[Expr], Expr], Callable[[Expr, Expr], Share]]:
    """exp of a value less the greatest; the shares of a total, given its spare bits."""
    exps = k.row("exponentials", pointer, INT16)
    ratios = k.row("reciprocals", pointer + 1, INT16)
    rule = requant("double", made.multiplier, made.shift, (0, 0), 0)
    steps = _steps(rule) if dsp else None
    step = steps.bind(k) if steps is not None else _twice_rounded(k, rule)

    def between(points: Expr, v: Expr) -> Expr:
        at = k.let("at", v >> const(7))
        if dsp:
            shares = (v & 127) * 65535 + 128
            return TWO_POINTS(wide(points, at), shares, const(64)) >> 7
        first, last = i32(load(points, at)), i32(load(points, at + 1))
        return BETWEEN(first, last, v)

    def power(below: Expr) -> Expr:
        return between(exps, k.let("v", step(below)))

    def share(total: Expr, spare: Expr) -> Share:
        position = ((total << spare) + (1 << 13)) >> const(14)
        v = k.let("v", minimum(position - (1 << 16), STEPS))
        ratio = k.let("ratio", between(ratios, v))
        # the greatest power alone has 15 bits, so that 14 are left at least; a product
        # of two numbers of 15 bits and half of 2^30 are an int32
        bits = k.let("bits", const(30) - spare)
        half = k.let("half", const(1) << (bits - 1))
        return Share(ratio, half, bits)

    return power, share


def _twice_rounded(k: Builder, rule: Requant) -> Callable[[Expr], Expr]:
    lift = const(1) << k.arg("left", rule.left[0] if rule.left else 0)
    multiplier = k.arg("multiplier", rule.multipliers[0])
    shift = k.arg("shift", rule.shifts[0])
    # 10 is more than enough: what is below it is one value
    return lambda below: (
        maximum(DOUBLE(below * lift, multiplier, shift), -STEPS) + STEPS
    )


def most_by_words(k: Builder, x: Expr, depth: Expr, odd: bool) -> Expr:
    """The greatest of two or more int16 side by side, two in a word."""
    both = k.let("both", wide(x, 0))
    with k.loop("c", depth - 1, 2, 2) as c:
        k.assign(both, MAX_HALVES(both, wide(x, c)))
    if odd:
        k.assign(both, MAX_HALVES(both, wide(x, depth - 2)))
    return k.let("most", maximum(low_half(both), both >> 16))
