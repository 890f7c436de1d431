"""Curves of real numbers as Loop IR: hyperbolic functions, activations.

Built on floats.py. Angles: angles.py; erf and GELU: erf.py.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable

from pybuild.dtype import DType
from pybuild.ir.loop import FLOAT32, Expr, Intrin, Var, equal, select
from pybuild.kernels.math.erf import erf, gelu
from pybuild.kernels.math.exponential import LOGISTIC, TANH
from pybuild.kernels.math.floats import (
    Lets,
    Real,
    ceil,
    exp,
    floor,
    log,
    made,
    nearest_even,
    polynomial,
    real,
    sqrt,
    usual_log,
)


@functools.cache
def atan(dtype: DType) -> Intrin:
    """Return the arc tangent. For |x| > 1 it uses 1 / x, then shifts by pi / 6, so that
    the series' argument is at most 0.27."""
    r = real(dtype)
    x, size, small, s, square, found, all_ = (
        r.var(n) for n in ("x", "size", "small", "s", "square", "found", "all")
    )
    root = math.sqrt(3)
    edge = math.tan(math.pi / 12)
    series = [(-1) ** k / (2 * k + 1) for k in range(1, r.atan_terms)]
    moved = (small * r.number(root) - 1.0) / (small + r.number(root))
    lets: Lets = [
        (size, select(x < 0.0, 0.0 - x, x)),
        (small, select(size > 1.0, r.number(1.0) / size, size)),
        (s, select(small > edge, moved, small)),
        (square, s * s),
        (found, s + s * square * polynomial(r, square, series)),
        (all_, select(small > edge, found + r.number(math.pi / 6), found)),
    ]
    whole = select(size > 1.0, r.number(math.pi / 2) - all_, all_)
    return made(r, "atan", lets, select(x < 0.0, 0.0 - whole, whole))


@functools.cache
def asin(dtype: DType) -> Intrin:
    """atan(x / sqrt(1 - x^2)), which is pi / 2 at 1."""
    r = real(dtype)
    x = r.var("x")
    root = sqrt(dtype)((r.number(1.0) - x) * (x + 1.0))
    ends = select(x > 0.0, r.number(math.pi / 2), r.number(-math.pi / 2))
    side = r.var("side")
    lets: Lets = [(side, root)]
    value = select(equal(side, 0.0), ends, atan(dtype)(x / side))
    return made(r, "asin", lets, value)


@functools.cache
def acos(dtype: DType) -> Intrin:
    """2 * atan(sqrt((1 - x) / (1 + x)))"""
    r = real(dtype)
    x = r.var("x")
    half = atan(dtype)(sqrt(dtype)((r.number(1.0) - x) / (x + 1.0)))
    value = select(equal(x, -1.0), r.number(math.pi), half * 2.0)
    return made(r, "acos", [], value)


@functools.cache
def tanh(dtype: DType) -> Intrin:
    """x * (1 - x^2 / 3 + ...) near 0, else by exp."""
    if dtype is FLOAT32:
        return TANH
    r = real(dtype)
    x, size, square = (r.var(n) for n in ("x", "size", "square"))
    far = r.var("far")
    # 2^2n (2^2n - 1) B2n / (2n)!
    series = [1, -1 / 3, 2 / 15, -17 / 315, 62 / 2835, -1382 / 155925]
    series += [21844 / 6081075, -929569 / 638512875]
    lets: Lets = [
        (size, select(x < 0.0, 0.0 - x, x)),
        (square, x * x),
        (far, r.number(1.0) - r.number(2.0) / (exp(dtype)(size + size) + 1.0)),
    ]
    close = x * polynomial(r, square, series)
    signed = select(x < 0.0, 0.0 - far, far)
    return made(r, "tanh", lets, select(size < 0.125, close, signed))


@functools.cache
def logistic(dtype: DType) -> Intrin:
    """1 / (1 + exp(-x)), which ends at 0 and 1."""
    if dtype is FLOAT32:
        return LOGISTIC
    r = real(dtype)
    value = r.number(1.0) / (exp(dtype)(r.number(0.0) - r.var("x")) + 1.0)
    return made(r, "logistic", [], value)


@functools.cache
def expm1(dtype: DType) -> Intrin:
    """exp(x) - 1; near 0, where that would lose digits, by its series."""
    r = real(dtype)
    x, square, all_ = r.var("x"), r.var("square"), r.var("all")
    count = 9 if dtype is FLOAT32 else 17
    series = [1 / math.factorial(k) for k in range(2, count)]
    edge = 0.5
    near = x + square * polynomial(r, x, series)
    lets: Lets = [(square, x * x), (all_, exp(dtype)(x) - 1.0)]
    inside = select(x < edge, x > -edge, x > x)
    return made(r, "expm1", lets, select(inside, near, all_))


def _log1p_part(r: Real, y: Expr, s: Var, square: Var) -> tuple[Lets, Expr]:
    """log(1 + y) of y from 0 to 1: 2 * atanh(y / (2 + y)), by its series to a third."""
    count = 9 if r.dtype is FLOAT32 else 18
    series = [2 / (2 * k + 1) for k in range(1, count)]
    lets: Lets = [(s, y / (y + 2.0)), (square, s * s)]
    return lets, s * 2.0 + s * square * polynomial(r, square, series)


@functools.cache
def softplus(dtype: DType) -> Intrin:
    """log(1 + exp(x)) as max(x, 0) + log1p(exp(-|x|))"""
    r = real(dtype)
    x, power, s, square = (r.var(n) for n in ("x", "power", "s", "square"))
    more, value = _log1p_part(r, power, s, square)
    size = select(x < 0.0, x, 0.0 - x)
    lets: Lets = [(power, exp(dtype)(size)), *more]
    return made(r, "softplus", lets, select(x > 0.0, x, 0.0) + value)


@functools.cache
def mish(dtype: DType) -> Intrin:
    """x * tanh(softplus(x)): x * m / (m + 2), m = n * (n + 2), n = exp(x)."""
    r = real(dtype)
    x, power, both = r.var("x"), r.var("power"), r.var("both")
    lets: Lets = [
        # beyond 40 the quotient is 1
        (power, exp(dtype)(select(x > 40.0, r.number(40.0), x))),
        (both, power * (power + 2.0)),
    ]
    return made(r, "mish", lets, x * (both / (both + 2.0)))


@functools.cache
def gelu_tanh(dtype: DType) -> Intrin:
    """x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3))), as x * logistic(..)."""
    r = real(dtype)
    x = r.var("x")
    factor = 2 * math.sqrt(2 / math.pi)
    inner = x * (x * x * r.number(factor * 0.044715) + r.number(factor))
    return made(r, "gelu_tanh", [], x * logistic(dtype)(inner))


def _hyperbolic(dtype: DType, name: str, sign: float) -> Intrin:
    r = real(dtype)
    x, size, power, square = (r.var(n) for n in ("x", "size", "power", "square"))
    start = 1 if sign < 0 else 0
    count = 4 if dtype is FLOAT32 else 8
    series = [1 / math.factorial(2 * k + start) for k in range(count)]
    lets: Lets = [
        (size, select(x < 0.0, 0.0 - x, x)),
        (power, exp(dtype)(size * 0.5)),
    ]
    other = (r.number(0.5) / power) / power
    value = power * 0.5 * power + (other if sign > 0 else 0.0 - other)
    if sign > 0:
        return made(r, name, lets, value)
    lets.append((square, x * x))
    near = x * polynomial(r, square, series)
    signed = select(x < 0.0, 0.0 - value, value)
    return made(r, name, lets, select(size < 0.5, near, signed))


@functools.cache
def sinh(dtype: DType) -> Intrin:
    return _hyperbolic(dtype, "sinh", -1.0)


@functools.cache
def cosh(dtype: DType) -> Intrin:
    return _hyperbolic(dtype, "cosh", 1.0)


@functools.cache
def log1p(dtype: DType) -> Intrin:
    """Return log(1 + x) as log(w) * x / (w - 1), where w is 1 + x rounded (Kahan)."""
    r = real(dtype)
    x, w = r.var("x"), r.var("w")
    lets: Lets = [(w, x + 1.0)]
    value = log(dtype)(w) * (x / (w - 1.0))
    ended = select(equal(w, r.infinity), w, select(equal(w, 0.0), log(dtype)(w), value))
    return made(r, "log1p", lets, select(equal(w, 1.0), x, ended))


def _area(dtype: DType, x: Var, lets: Lets, y: Expr) -> tuple[Lets, Expr]:
    """Return log(2 * x) for large x, whose square overflows, else log1p(y), y from 0
    on."""
    r = real(dtype)
    large, w, part = 2.0 ** (r.fraction // 2 + 2), r.var("w"), r.var("y")
    grown = r.var("grown")
    lets = [*lets, (part, y), (w, select(x > large, x, part + 1.0))]
    lets.append((grown, usual_log(dtype)(w)))
    small = select(equal(w, 1.0), part, grown * (part / (w - 1.0)))
    ended = select(x < r.infinity, grown + r.number(math.log(2)), x)
    return lets, select(x > large, ended, small)


@functools.cache
def asinh(dtype: DType) -> Intrin:
    """log1p(|x| + x^2 / (1 + sqrt(1 + x^2)))"""
    r = real(dtype)
    x, size, square = (r.var(n) for n in ("x", "size", "square"))
    lets: Lets = [(size, select(x < 0.0, 0.0 - x, x)), (square, x * x)]
    y = size + square / (sqrt(dtype)(square + 1.0) + 1.0)
    lets, value = _area(dtype, size, lets, y)
    found = r.var("value")
    lets.append((found, value))
    return made(r, "asinh", lets, select(x < 0.0, 0.0 - found, found))


@functools.cache
def acosh(dtype: DType) -> Intrin:
    """log1p((x - 1) + sqrt((x - 1) * (x + 1))); NaN below 1."""
    r = real(dtype)
    x = r.var("x")
    y = (x - 1.0) + sqrt(dtype)((x - 1.0) * (x + 1.0))
    lets, value = _area(dtype, x, [], y)
    return made(r, "acosh", lets, select(x < 1.0, r.nan, value))


@functools.cache
def atanh(dtype: DType) -> Intrin:
    """log1p(2|x| / (1 - |x|)) / 2, with the sign of x; infinity at 1."""
    r = real(dtype)
    x, size, y, w = (r.var(n) for n in ("x", "size", "y", "w"))
    half = r.var("half")
    lets: Lets = [
        (size, select(x < 0.0, 0.0 - x, x)),
        (y, (size + size) / (r.number(1.0) - size)),
        (w, y + 1.0),
        (half, usual_log(dtype)(w) * (y / (w - 1.0)) * 0.5),
    ]
    inside = select(equal(w, 1.0), size, half)
    value = select(size < 1.0, inside, select(equal(size, 1.0), r.infinity, r.nan))
    signed = select(x < 0.0, 0.0 - value, value)
    return made(r, "atanh", lets, signed)


UNARY: dict[str, Callable[[DType], Intrin]] = {
    "acos": acos, "acosh": acosh, "asin": asin, "asinh": asinh, "atan": atan,
    "atanh": atanh, "ceil": ceil, "cosh": cosh, "erf": erf, "exp": exp,
    "expm1": expm1, "floor": floor, "gelu": gelu, "gelu_tanh": gelu_tanh, "log": log,
    "log1p": log1p, "mish": mish, "round": nearest_even, "sigmoid": logistic,
    "sinh": sinh, "softplus": softplus, "sqrt": sqrt, "tanh": tanh,
}  # fmt: skip
