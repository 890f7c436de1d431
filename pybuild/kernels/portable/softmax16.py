"""softmax of int16: by the integer steps of int16/softmax16.py, on one line."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from pybuild.ir.loop import (
    INT16,
    INT64,
    Expr,
    cast,
    const,
    i32,
    i64,
    load,
    maximum,
    minimum,
)
from pybuild.kernels.base.builder import Builder
from pybuild.kernels.base.candidate import Packed
from pybuild.kernels.epilogues.requantise import DOUBLE, requant
from pybuild.kernels.math.curves16 import BETWEEN
from pybuild.ops.int16.softmax16 import Softmax16Parameters


def tables16(made: Softmax16Parameters) -> tuple[Packed, ...]:
    return (
        Packed("exponentials", np.asarray(made.exps, np.int16), order="exp at points"),
        Packed("reciprocals", np.asarray(made.ratios, np.int16), order="1/x at points"),
    )


def shares16(
    k: Builder, made: Softmax16Parameters, pointer: Expr
) -> tuple[Callable[[Expr], Expr], Callable[[Expr, Expr], Callable[[Expr], Expr]]]:
    """exp of a value less the greatest; a share of a total, given its spare bits."""
    exps = k.row("exponentials", pointer, INT16)
    ratios = k.row("reciprocals", pointer + 1, INT16)
    rule = requant("double", made.multiplier, made.shift, (0, 0), 0)
    lift = const(1) << k.arg("left", rule.left[0] if rule.left else 0)
    multiplier = k.arg("multiplier", rule.multipliers[0])
    shift = k.arg("shift", rule.shifts[0])

    def between(points: Expr, v: Expr) -> Expr:
        at = k.let("at", v >> const(7))
        first, last = i32(load(points, at)), i32(load(points, at + 1))
        return BETWEEN(first, last, v)

    def power(below: Expr) -> Expr:
        # 10 is more than enough: what is below it is one value
        held = maximum(DOUBLE(below * lift, multiplier, shift), -65535)
        return between(exps, k.let("v", held + 65535))

    def share(total: Expr, spare: Expr) -> Callable[[Expr], Expr]:
        position = ((total << spare) + (1 << 13)) >> const(14)
        v = k.let("v", minimum(position - (1 << 16), 65535))
        ratio = k.let("ratio", between(ratios, v))
        bits = k.let("bits", i64(const(30) - spare))
        half = k.let("half", const(1, INT64) << (bits - 1))

        def of(exp: Expr) -> Expr:
            whole = i32((i64(exp) * i64(ratio) + half) >> bits)
            return cast(minimum(whole, 32767), INT16)

        return of

    return power, share
