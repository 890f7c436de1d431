"""logistic and tanh of int16 as Loop IR: the twin of ops/fixed_point/curves16.py."""

from __future__ import annotations

from pybuild.ir.loop import INT32, Expr, Intrin, Var, const, minimum, select
from pybuild.kernels.epilogues.requantise import CLAMP, SHIFT_ROUND
from pybuild.ops.fixed_point.curves16 import (
    EIGHTH,
    FIRST,
    ONE,
    ONE_Q2,
    POWERS,
    SLOPE,
    THIRD,
)

_A, _B, _X, _N, _BITS = (Var(n, INT32) for n in ("a", "b", "x", "n", "bits"))
_PART, _LEFT, _SQUARE = (Var(n, INT32) for n in ("part", "left", "square"))
_REST, _HALF = Var("rest", INT32), Var("half", INT32)
_LOW = -(1 << 15)

# gemmlowp SaturatingRoundingDoublingHighMul of int16; nothing here saturates
HIGH16 = Intrin(
    "crt_high16",
    (_A, _B),
    (_A * _B + (1 << 14)) >> const(15),
    doc="The product of two numbers in Q0.15, rounded.",
)

_V = Var("v", INT32)
BETWEEN = Intrin(
    "crt_between",
    (_A, _B, _V),
    _A + (((_B - _A) * (_V & 127) + 64) >> const(7)),
    doc="Between point a of a curve and the next, b, which is 128 steps away.",
)


def _held(value: Expr) -> Expr:
    return CLAMP(value, _LOW, ONE)


def _exp() -> Intrin:
    quarter = const(1) << (const(13) - _BITS)
    near = Var("near", INT32)
    lets: list[tuple[Var, Expr]] = [
        (_PART, (_N & (quarter - 1)) - quarter),
        (_LEFT, (_PART - _N) >> (const(13) - _BITS)),
        (near, _PART * (const(1) << _BITS) + (1 << 12)),
        (_SQUARE, HIGH16(near, near)),
    ]
    fourth = SHIFT_ROUND(HIGH16(_SQUARE, _SQUARE), 2)
    third = HIGH16(fourth + HIGH16(_SQUARE, near), THIRD)
    lets.append((_REST, SHIFT_ROUND(third + _SQUARE, 1)))
    made: Expr = _held(HIGH16(near + _REST, EIGHTH) + EIGHTH)
    for index, power in enumerate(POWERS):
        found = Var(f"power{index}", INT32)
        lets.append((found, made))
        further = (_LEFT >> const(index)) & 1
        made = select(further < 1, found, HIGH16(found, power))
    last = Var("made", INT32)
    lets.append((last, made))
    least = const(0) - (const(32) << (const(15) - _BITS))
    result = select(least > _N, const(0), select(_N < 0, last, const(ONE)))
    doc = "exp(n) of n <= 0 that has so many bits before the point; in Q0.15."
    return Intrin("crt_exp16", (_N, _BITS), result, tuple(lets), doc=doc)


EXP16 = _exp()


def _reciprocal() -> Intrin:
    lets: list[tuple[Var, Expr]] = [(_HALF, (_A + (ONE + 1)) >> const(1))]
    made: Expr = HIGH16(_HALF, SLOPE) + FIRST
    for index in range(3):
        x = Var(f"x{index}", INT32)
        lets.append((x, made))
        made = x + _held(HIGH16(x, const(ONE_Q2) - HIGH16(_HALF, x)) * 4)
    doc = "2 / (1 + a) of a in Q0.15; in Q2.13."
    return Intrin("crt_reciprocal16", (_A,), made, tuple(lets), doc=doc)


RECIPROCAL16 = _reciprocal()
_MADE = Var("made", INT32)

LOGISTIC16 = Intrin(
    "crt_logistic16",
    (_X,),
    select(_X < 0, const(ONE) - _MADE, select(_X < 1, const(1 << 14), _MADE)),
    ((_MADE, _held(RECIPROCAL16(EXP16(minimum(_X, const(0) - _X), 3)) * 2)),),
    doc="logistic(x) of x in Q3.12; in Q0.15.",
)
TANH16 = Intrin(
    "crt_tanh16",
    (_X, _BITS),
    select(_X < 0, const(0) - _MADE, select(_X < 1, const(0), _MADE)),
    (
        (
            _MADE,
            _held(
                (RECIPROCAL16(EXP16(minimum(_X, const(0) - _X), _BITS + 1)) - ONE_Q2)
                * 4
            ),
        ),
    ),
    doc="tanh(x) of x with so many bits before the point; in Q0.15.",
)
