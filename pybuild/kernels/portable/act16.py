"""Unary functions of int16 that scale values, and the curves of recurrent layers."""

from __future__ import annotations

import numpy as np

from pybuild.ir.graph import Graph, Node
from pybuild.ir.loop import (
    INT32,
    INT64,
    Expr,
    Intrin,
    Var,
    cast,
    const,
    i32,
    i64,
    load,
    maximum,
    minimum,
    select,
)
from pybuild.kernels.base.builder import Builder, told
from pybuild.kernels.base.candidate import Candidate, Packed
from pybuild.kernels.base.operands import elementwise_operands, offer, short
from pybuild.kernels.epilogues.requantise import CLAMP, RULES, requant
from pybuild.ops.int16.act16 import (
    CurveParameters,
    scaled_parameters,
    sigmoid_points,
)

_X, _MULT, _SHIFT = (Var(n, INT32) for n in ("x", "multiplier", "shift"))
_PRODUCT = Var("product", INT64)
STEPS = Intrin(
    "crt_curve_steps",
    (_X, _MULT, _SHIFT),
    i32(
        (_PRODUCT + ((const(1, INT64) << i64(_SHIFT)) >> const(1, INT64)))
        >> i64(_SHIFT)
    ),
    ((_PRODUCT, i64(_X) * i64(_MULT)),),
    doc="x * multiplier / 2^shift, ties up; shift from 0.",
)


def unary16(node: Node, graph: Graph) -> Candidate:
    """y[i] = f(x[i]) for clip, leaky_relu and quantize."""
    x, y = graph.tensor(node.inputs[0]), graph.tensor(node.output)
    operands = elementwise_operands(node, graph)
    made = scaled_parameters(node, graph)
    two = node.op == "leaky_relu"
    sides = [
        requant(made.rounding, m, s, (0, 0), 0)
        for m, s in ((made.above, made.below) if two else (made.above,))
    ]
    lifted = any(side.left for side in sides)
    kind = f"{short(x.dtype)}_{short(y.dtype)}"
    k = Builder(
        f"scaled_{kind}_{made.rounding}"
        + ("_left" if lifted else "") + ("_sides" if two else "")
        + ("_negative" if made.negative else ""),
        told(
            f"y = x scaled{', by another factor below zero' * two}, {x.dtype.value} to "
            f"{y.dtype.value}",
            "element by element, from the first to the last",
            sides[0].words,
        ),
    )  # fmt: skip
    x_zero, y_zero = k.arg("x_zero", made.x_zero), k.arg("y_zero", made.y_zero)
    low, high = k.arg("low", made.low), k.arg("high", made.high)
    rule, bound = RULES[made.rounding], []
    for side in sides:
        lift: Expr = const(1)
        if lifted:
            lift = const(1) << k.arg("left", side.left[0] if side.left else 0)
        bound.append((
            lift, k.arg("multiplier", side.multipliers[0]),
            k.arg("shift", side.shifts[0]),
        ))  # fmt: skip

    def scaled(q: Expr, side: int) -> Expr:
        lift, multiplier, shift = bound[side]
        return rule(q * lift if lifted else q, multiplier, shift)

    to = k.row("y", 0, y.dtype, writable=True)
    source = k.row("x", 1, x.dtype)
    with k.loop("i", k.arg("count", y.size // (operands.images * operands.bands))) as i:
        q = k.let("q", i32(load(source, i)) - x_zero)
        whole = scaled(q, 0)
        if two:
            below = scaled(q, 1)
            below = 0 - below if made.negative else below
            whole = select(q >= 0, whole, below)
        k.store(to, i, cast(CLAMP(whole + y_zero, low, high), y.dtype))
    in_place = (0,) if x.dtype is y.dtype else ()
    return offer(k, operands, in_place=in_place, cost=12 * y.size)


def curve_points() -> Packed:
    """The table that `interpolated` reads."""
    order = "logistic at 256 points from 0 on"
    return Packed("points", sigmoid_points().astype(np.uint16), order=order)


def interpolated(
    k: Builder, points: Expr, d: Expr, made: CurveParameters, inside: bool = False
) -> Expr:
    """The curve's value at so many steps, between two points of the table.

    inside  d is known to be before its last point
    """
    bits, half = made.bits, 1 << 23 if made.bits == 8 else 0
    size = k.let("size", maximum(d, 0 - d))
    cell = k.let("cell", size >> const(bits))
    at = cell if inside else k.let("at", minimum(cell, 254))
    first = k.let("first", i32(load(points, at)))
    rise = i32(load(points, at + 1)) - first
    between = (first << const(bits)) + (size & ((1 << bits) - 1)) * rise
    if not inside:
        between = select(cell < 255, between, const(made.top << bits))
    t = k.let("t", between)
    top = half or 1 << 25
    whole = select(d < 0, top - 1 - t, t - half)
    end = bits if half else bits + 1
    return (whole + (1 << (end - 1))) >> const(end)
