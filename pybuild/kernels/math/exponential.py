"""exp, logistic and tanh of float32 as Loop IR: no library, no branch.

A few units in the last place off, and the same bits in both printers; NaN stays NaN.
The coefficients are least-maximum-error fits made for this file.
"""

from __future__ import annotations

import math

import numpy as np

from pybuild.ir.loop import (
    FLOAT32,
    INT32,
    UINT32,
    Bitcast,
    Const,
    Expr,
    Intrin,
    Var,
    cast,
    const,
    select,
)

_X = Var("x", FLOAT32)


def _number(value: float) -> Const:
    """Return a float32 literal that both printers spell exactly."""
    return const(float(np.float32(value)), FLOAT32)


def _polynomial(x: Expr, coefficients: tuple[float, ...]) -> Expr:
    """c0 + x * (c1 + x * (c2 + ...))"""
    total: Expr = _number(coefficients[-1])
    for coefficient in reversed(coefficients[:-1]):
        total = total * x + _number(coefficient)
    return total


# exp(x) = 2^n * exp(r), |r| <= ln(2) / 2; ln(2) in two parts, the first exact
_LN2_HIGH = 0.693359375
_LN2_LOW = math.log(2) - _LN2_HIGH
# below: 0, where 2^n is hardly a normal number; above: infinity
_LEAST, _MOST = -87.0, 88.72283935546875
# exp(r) = 1 + r + r^2 * q(r), to 3e-9
_EXP = (0.49999994, 0.1666652, 0.041668393, 0.008368781, 0.0013814467)
# n + 1.5 * 2^23 has n in its last bits: no conversion, so that any x will do
_ROUNDING = 1.5 * 2.0**23
_ENDLESS = Bitcast(const(0x7F800000), FLOAT32)

_MOVED, _TURNS, _R = (Var(n, FLOAT32) for n in ("moved", "turns", "r"))
_POWER = Var("power", UINT32)
_VALUE = _R * _R * _polynomial(_R, _EXP) + _R + _number(1.0)
# half of it, as 2^128 is not a number
_SHIFTED = (_POWER + const(126, UINT32)) << const(23, UINT32)
_HALF = Bitcast(cast(_SHIFTED, INT32), FLOAT32)
EXP = Intrin(
    "crt_exp",
    (_X,),
    select(
        _X < _LEAST,
        _number(0.0),
        select(_X > _MOST, _ENDLESS, _VALUE * _HALF * _number(2.0)),
    ),
    (
        (_MOVED, _X * _number(math.log2(math.e)) + _number(_ROUNDING)),
        (_TURNS, _MOVED - _number(_ROUNDING)),
        (_POWER, cast(Bitcast(_MOVED, INT32), UINT32)),
        (_R, _X - _TURNS * _number(_LN2_HIGH) - _TURNS * _number(_LN2_LOW)),
    ),
    doc="exp(x) = 2^n * exp(r), exp(r) by a polynomial; 0 below -87.",
)

LOGISTIC = Intrin(
    "crt_logistic",
    (_X,),
    _number(1.0) / (_number(1.0) + EXP(_number(0.0) - _X)),
    doc="1 / (1 + exp(-x)).",
)

# tanh(x) = x + x^3 * q(x^2) below a half, to 2e-8; 1 - 2 / (exp(2x) + 1) above
_TANH = (-0.3333315, 0.13325988, -0.05305295, 0.017256992)
_SIZE, _SQUARE, _FAR, _CLOSE = (
    Var(n, FLOAT32) for n in ("size", "square", "far", "close")
)
TANH = Intrin(
    "crt_tanh",
    (_X,),
    select(
        _SIZE < 0.5,
        _CLOSE,
        select(_X < 0.0, _number(0.0) - _FAR, _FAR),
    ),
    (
        (_SIZE, select(_X < 0.0, _number(0.0) - _X, _X)),
        (_SQUARE, _X * _X),
        (_CLOSE, _X + _X * _SQUARE * _polynomial(_SQUARE, _TANH)),
        (_FAR, _number(1.0) - _number(2.0) / (EXP(_SIZE + _SIZE) + _number(1.0))),
    ),
    doc="tanh(x): a polynomial for |x| below a half, else by exp(2 * |x|).",
)
