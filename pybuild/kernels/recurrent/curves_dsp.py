"""The curves of math/curves16.py where one instruction rounds the high half of a
product of words (SMMLAR): one factor is shifted, so that the point is in its place.
"""

from __future__ import annotations

import functools

from pybuild.ir.loop import (
    INT32,
    UINT32,
    Expr,
    Intrin,
    Operand,
    Var,
    cast,
    const,
    i32,
    maximum,
    minimum,
    select,
)
from pybuild.kernels.base.intrin import MULHI_ADD_ROUND
from pybuild.ops.fixed_point.curves16 import (
    EIGHTH,
    FIRST,
    ONE,
    ONE_Q2,
    POWERS,
    SLOPE,
    THIRD,
)

_A, _X, _N, _MADE = (Var(n, INT32) for n in ("a", "x", "n", "made"))
_UP = 17  # bits by which one factor of a product in Q0.15 is shifted


def _high(a: Expr, b: Expr, more: Operand = 0) -> Expr:
    return MULHI_ADD_ROUND(a, b, more)


def _times(a: Expr, factor: int, more: Expr | None = None) -> Expr:
    """a * factor / 2^15, rounded; where a word has no room for the factor it has 2^32
    less, and a is added."""
    if factor < 1 << 14:
        return _high(a, const(factor << _UP), const(0) if more is None else more)
    return _high(a, const((factor << _UP) - (1 << 32)), a if more is None else a + more)


def _exp(bits: int) -> Intrin:
    """Of n below 0 with so many bits before the point."""
    top, near, up, square, fourth, third = (
        Var(n, INT32) for n in ("top", "near", "up", "square", "fourth", "third")
    )
    lets: list[tuple[Var, Expr]] = [
        (top, i32(cast(_N ^ (1 << (12 - bits)), UINT32) << const(19 + bits, UINT32))),
        (near, top >> const(19)),
        (up, top >> const(19 - _UP)),
        (square, _high(up, near)),
        (fourth, _high(square * (1 << _UP), square, 2) >> const(2)),
        (third, _times(_high(up, square, fourth), THIRD, square)),
    ]
    made = _times(near + ((third + 1) >> const(1)), EIGHTH, const(EIGHTH))
    bit = 13 - bits
    for index, power in enumerate(POWERS[: min(bits + 2, 6)]):
        found = Var(f"power{index}", INT32)
        lets.append((found, made))
        is_less = (_N & (1 << (bit + index))) < 1
        made = select(is_less, _times(found, power), found)
    if bits > 4:  # of what is left all is 0
        made = select(const(-(1 << (19 - bits))) > _N, const(0), made)
    doc = f"exp(n) of n < 0 that has {bits} bits before the point; in Q0.15."
    return Intrin(f"crt_exp_words_{bits}", (_N,), made, tuple(lets), doc=doc)


def _reciprocal(sign: int) -> Intrin:
    """sign  -1: all numbers are negative, as -2 in Q2.30 has a word and 2 has none"""
    half = Var("half", INT32)
    lets: list[tuple[Var, Expr]] = [(half, (_A + (ONE + 1)) >> const(1))]
    if sign < 0:
        lets.append((Var("below", INT32), const(0) - half))
        half = lets[-1][0]
    made: Expr = _high(half, const(sign * SLOPE * (1 << _UP)), FIRST) * (1 << _UP)
    made = made if sign > 0 else const(0) - made
    for index in range(3):
        x = Var(f"x{index}", INT32)
        lets.append((x, made))
        right, four = _high(half, x), 1 << (_UP + 2)
        if sign > 0:
            made = x + _high(x, const(ONE_Q2) - right) * four
        else:
            made = x - _high(x, right - ONE_Q2) * four
    doc = f"{2 * sign} / (1 + a) of a in Q0.15; in Q2.30."
    name = "crt_reciprocal_words" + "_below" * (sign < 0)
    return Intrin(name, (_A,), made, tuple(lets), doc=doc)


def _below(x: Expr) -> Expr:
    return minimum(x, const(0) - x)


# exp(-8) is above 0, so that 1 / (1 + exp) is below 1
LOGISTIC_WORDS = Intrin(
    "crt_logistic_words",
    (_X,),
    select(_X < 0, const(ONE) - _MADE, select(_X < 1, const(1 << 14), _MADE)),
    ((_MADE, _reciprocal(1)(_exp(3)(_below(_X))) >> const(_UP - 1)),),
    doc="logistic(x) of x in Q3.12; in Q0.15.",
)


@functools.cache
def tanh_words(bits: int) -> Intrin:
    """tanh of numbers with so many bits before the point, from 0 to 6."""
    made = (_reciprocal(-1)(_exp(bits + 1)(_below(_X))) >> const(_UP - 2)) + ONE_Q2 * 4
    made = maximum(made, const(-ONE)) if bits > 2 else made
    return Intrin(
        f"crt_tanh_words_{bits}",
        (_X,),
        select(_X < 0, _MADE, select(_X < 1, const(0), 0 - _MADE)),
        ((_MADE, made),),
        doc=f"tanh(x) of x with {bits} bits before the point; in Q0.15.",
    )
