"""logistic and tanh of int16 as Loop IR: the twin of ops/fixed_point/curves16.py.

Where a step of it cannot leave int16 it is not held there, and what is written is less
than what is meant: tests/kernels/recurrent/test_curves.py has all 65,536 numbers.
"""

from __future__ import annotations

import functools

from pybuild.ir.loop import INT32, Expr, Intrin, Var, const, minimum, select
from pybuild.ops.fixed_point.curves16 import (
    EIGHTH,
    FIRST,
    ONE,
    ONE_Q2,
    POWERS,
    SLOPE,
    THIRD,
)

_A, _B, _X, _N, _V = (Var(n, INT32) for n in ("a", "b", "x", "n", "v"))
_SQUARE, _HALF, _MADE = (Var(n, INT32) for n in ("square", "half", "made"))

# gemmlowp SaturatingRoundingDoublingHighMul of int16; nothing here saturates
HIGH16 = Intrin(
    "crt_high16",
    (_A, _B),
    (_A * _B + (1 << 14)) >> const(15),
    doc="The product of two numbers in Q0.15, rounded.",
)
BETWEEN = Intrin(
    "crt_between",
    (_A, _B, _V),
    _A + (((_B - _A) * (_V & 127) + 64) >> const(7)),
    doc="Between point a of a curve and the next, b, which is 128 steps away.",
)


def _exp(bits: int) -> Intrin:
    """Of n below 0 with so many bits before the point."""
    near = Var("near", INT32)
    lets: list[tuple[Var, Expr]] = [
        (near, (_N * (1 << bits) & 0x1FFF) - (1 << 12)),
        (_SQUARE, HIGH16(near, near)),
    ]
    # of these none is below 0: ties are rounded up
    fourth = (HIGH16(_SQUARE, _SQUARE) + 2) >> const(2)
    third = HIGH16(fourth + HIGH16(_SQUARE, near), const(THIRD))
    rest = (third + _SQUARE + 1) >> const(1)
    made: Expr = HIGH16(near + rest, const(EIGHTH)) + EIGHTH
    # a further quarter, half, ...: bits of -1 - n
    bit = 13 - bits
    for index, power in enumerate(POWERS[: min(bits + 2, 6)]):
        found = Var(f"power{index}", INT32)
        lets.append((found, made))
        is_less = (_N & (1 << (bit + index))) < 1
        made = select(is_less, HIGH16(found, const(power)), found)
    if bits > 4:  # of what is left all is 0
        made = select(const(-(1 << (19 - bits))) > _N, const(0), made)
    doc = f"exp(n) of n < 0 that has {bits} bits before the point; in Q0.15."
    return Intrin(f"crt_exp16_{bits}", (_N,), made, tuple(lets), doc=doc)


def _reciprocal() -> Intrin:
    lets: list[tuple[Var, Expr]] = [(_HALF, (_A + (ONE + 1)) >> const(1))]
    made: Expr = HIGH16(_HALF, const(SLOPE)) + FIRST
    for index in range(3):
        x = Var(f"x{index}", INT32)
        lets.append((x, made))
        made = x + HIGH16(x, const(ONE_Q2) - HIGH16(_HALF, x)) * 4
    doc = "2 / (1 + a) of a in Q0.15; in Q2.13."
    return Intrin("crt_reciprocal16", (_A,), made, tuple(lets), doc=doc)


_RECIPROCAL16 = _reciprocal()


def _below(x: Expr) -> Expr:
    return minimum(x, const(0) - x)


LOGISTIC16 = Intrin(
    "crt_logistic16",
    (_X,),
    select(_X < 0, const(ONE) - _MADE, select(_X < 1, const(1 << 14), _MADE)),
    ((_MADE, _RECIPROCAL16(_exp(3)(_below(_X))) * 2),),
    doc="logistic(x) of x in Q3.12; in Q0.15.",
)


@functools.cache
def tanh16(bits: int) -> Intrin:
    """tanh of numbers with so many bits before the point, from 0 to 6."""
    made = (_RECIPROCAL16(_exp(bits + 1)(_below(_X))) - ONE_Q2) * 4
    made = minimum(made, const(ONE)) if bits > 2 else made
    return Intrin(
        f"crt_tanh16_{bits}",
        (_X,),
        select(_X < 0, const(0) - _MADE, select(_X < 1, const(0), _MADE)),
        ((_MADE, made),),
        doc=f"tanh(x) of x with {bits} bits before the point; in Q0.15.",
    )
