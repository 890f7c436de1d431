"""The curves of math/curves16.py, eight int16 at a time (Cortex-M55)."""

from __future__ import annotations

import functools

from pybuild.ir.loop import Expr, Intrin, Var
from pybuild.kernels.base.vector_eights import (
    ABOVE8,
    ALL8,
    AT_ZERO8,
    BELOW8,
    BY_SIGN8,
    FOURFOLD8,
    FOURTH8,
    HELD8,
    HIGH8,
    HIGH_ALL8,
    MIDDLE8,
    MINUS8,
    NEAR8,
    PLUS8,
    TIMES_WHERE8,
)
from pybuild.kernels.base.vector_packs import MORE8
from pybuild.kernels.base.vectors import HALVES
from pybuild.ops.fixed_point.curves16 import (
    EIGHTH,
    FIRST,
    ONE,
    ONE_Q2,
    POWERS,
    SLOPE,
    THIRD,
)

_A, _X, _N, _MADE = (Var(n, HALVES) for n in ("a", "x", "n", "made"))


def _exp(bits: int) -> Intrin:
    """Of n below 0 with so many bits before the point."""
    near, square, third = (Var(n, HALVES) for n in ("near", "square", "third"))
    fourth = FOURTH8(HIGH8(square, square))
    lets: list[tuple[Var, Expr]] = [
        (near, NEAR8(_N, bits)),
        (square, HIGH8(near, near)),
        (third, HIGH_ALL8(PLUS8(fourth, HIGH8(square, near)), THIRD)),
    ]
    rest = MIDDLE8(third, square)
    made: Expr = MORE8(HIGH_ALL8(PLUS8(near, rest), EIGHTH), EIGHTH)
    bit = 13 - bits
    for index, power in enumerate(POWERS[: min(bits + 2, 6)]):
        made = TIMES_WHERE8(made, _N, 1 << (bit + index), power)
    if bits > 4:  # of what is left all is 0
        made = ABOVE8(made, _N, -(1 << (19 - bits)))
    doc = f"exp(n) of n < 0 that has {bits} bits before the point; in Q0.15."
    return Intrin(f"crt_exp8_{bits}", (_N,), made, tuple(lets), doc=doc)


def _reciprocal() -> Intrin:
    half = Var("half", HALVES)
    lets: list[tuple[Var, Expr]] = [(half, MIDDLE8(_A, ALL8(ONE)))]
    made: Expr = MORE8(HIGH_ALL8(half, SLOPE), FIRST)
    for index in range(3):
        x = Var(f"x{index}", HALVES)
        lets.append((x, made))
        made = FOURFOLD8(x, HIGH8(x, MINUS8(ALL8(ONE_Q2), HIGH8(half, x))))
    doc = "2 / (1 + a) of a in Q0.15; in Q2.13."
    return Intrin("crt_reciprocal8", (_A,), made, tuple(lets), doc=doc)


_RECIPROCAL = _reciprocal()
_HALF_OF = Var("half", HALVES)
LOGISTIC8 = Intrin(
    "crt_logistic8",
    (_X,),
    AT_ZERO8(BY_SIGN8(_X, _MADE, MINUS8(ALL8(ONE), _MADE)), _X, 1 << 14),
    (
        (_HALF_OF, _RECIPROCAL(_exp(3)(BELOW8(_X)))),
        (_MADE, PLUS8(_HALF_OF, _HALF_OF)),
    ),
    doc="logistic(x) of x in Q3.12; in Q0.15.",
)


@functools.cache
def tanh8(bits: int) -> Intrin:
    """tanh of numbers with so many bits before the point, from 0 to 6."""
    once, twice = Var("once", HALVES), Var("twice", HALVES)
    return Intrin(
        f"crt_tanh8_{bits}",
        (_X,),
        AT_ZERO8(BY_SIGN8(_X, _MADE, MINUS8(ALL8(0), _MADE)), _X, 0),
        (
            (once, MORE8(_RECIPROCAL(_exp(bits + 1)(BELOW8(_X))), -ONE_Q2)),
            (twice, HELD8(once, once)),
            (_MADE, HELD8(twice, twice)),
        ),
        doc=f"tanh(x) of x with {bits} bits before the point; in Q0.15.",
    )
