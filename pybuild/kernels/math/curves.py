"""Curves of real numbers as Loop IR: angles, hyperbolic functions, erf.

Built on floats.py; erf is a Chebyshev fit made for this file.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable

import numpy as np

from pybuild.dtype import DType
from pybuild.ir.loop import FLOAT32, Expr, Intrin, Var, cast, equal, select
from pybuild.kernels.math.floats import (
    Lets,
    Real,
    ceil,
    exp,
    floor,
    log,
    made,
    nearest,
    nearest_even,
    polynomial,
    real,
    sqrt,
)


def _sine(dtype: DType, name: str, quarters: int) -> Intrin:
    """By quarter turns; for |x| up to some thousands."""
    r = real(dtype)
    x, held, turns, s, square = (
        r.var(n) for n in ("x", "held", "turns", "s", "square")
    )
    sine, cosine = r.var("sine"), r.var("cosine")
    n = Var("n", r.whole)
    most = 2.0**30 if dtype is FLOAT32 else 2.0**50
    parts = r.parts(math.pi / 2, 4)
    near = r.number(2 / math.pi)
    left: Expr = held
    for part in parts:
        left = left - turns * r.number(part)
    size = select(x < 0.0, 0.0 - x, x)
    count = r.sine_terms
    odd = [(-1) ** k / math.factorial(2 * k + 1) for k in range(1, count + 1)]
    even = [(-1) ** k / math.factorial(2 * k) for k in range(count + 1)]
    lets: Lets = [
        (held, select(size < most, x, 0.0)),
        (n, nearest(r, held * near)),
        (turns, cast(n, dtype)),
        (s, left),
        (square, s * s),
        (sine, s + s * square * polynomial(r, square, odd)),
        (cosine, polynomial(r, square, even)),
    ]
    if name == "tan":
        flipped = equal(n & r.integer(1), r.integer(0))
        value = select(flipped, sine / cosine, 0.0 - cosine / sine)
    else:
        quarter = (n + r.integer(quarters)) & r.integer(3)
        swapped = equal(quarter & r.integer(1), r.integer(0))
        plain = select(swapped, sine, cosine)
        value = select(quarter < r.integer(2), plain, 0.0 - plain)
    return made(r, name, lets, select(size < r.infinity, value, r.nan))


@functools.cache
def sin(dtype: DType) -> Intrin:
    return _sine(dtype, "sin", 0)


@functools.cache
def cos(dtype: DType) -> Intrin:
    return _sine(dtype, "cos", 1)


@functools.cache
def tan(dtype: DType) -> Intrin:
    return _sine(dtype, "tan", 0)


@functools.cache
def atan(dtype: DType) -> Intrin:
    """Of |x| > 1 by 1 / x, then by pi / 6, so that the series is of at most 0.27."""
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
    r = real(dtype)
    x, size, square = (r.var(n) for n in ("x", "size", "square"))
    far = r.var("far")
    # 2^2n (2^2n - 1) B2n / (2n)!
    series = [1, -1 / 3, 2 / 15, -17 / 315, 62 / 2835, -1382 / 155925]
    series += [21844 / 6081075, -929569 / 638512875]
    edge = 0.125 if dtype is not FLOAT32 else 0.25
    lets: Lets = [
        (size, select(x < 0.0, 0.0 - x, x)),
        (square, x * x),
        (far, r.number(1.0) - r.number(2.0) / (exp(dtype)(size + size) + 1.0)),
    ]
    close = x * polynomial(r, square, series)
    signed = select(x < 0.0, 0.0 - far, far)
    return made(r, "tanh", lets, select(size < edge, close, signed))


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


def _log1p(r: Real, y: Var) -> Expr:
    """log(1 + y), y > -1; `w` is 1 + y rounded (Kahan)."""
    w = r.var("w")
    return select(equal(w, 1.0), y, log(r.dtype)(w) * y / (w - 1.0))


@functools.cache
def asinh(dtype: DType) -> Intrin:
    """log1p(|x| + x^2 / (1 + sqrt(1 + x^2)))"""
    r = real(dtype)
    x, size, square, y, w = (r.var(n) for n in ("x", "size", "square", "y", "w"))
    lets: Lets = [
        (size, select(x < 0.0, 0.0 - x, x)),
        (square, x * x),
        (y, size + square / (sqrt(dtype)(square + 1.0) + 1.0)),
        (w, y + 1.0),
    ]
    value = r.var("value")
    lets.append((value, _log1p(r, y)))
    return made(r, "asinh", lets, select(x < 0.0, 0.0 - value, value))


@functools.cache
def acosh(dtype: DType) -> Intrin:
    """log1p((x - 1) + sqrt((x - 1) * (x + 1)))"""
    r = real(dtype)
    x, y, w = (r.var(n) for n in ("x", "y", "w"))
    lets: Lets = [
        (y, (x - 1.0) + sqrt(dtype)((x - 1.0) * (x + 1.0))),
        (w, y + 1.0),
    ]
    return made(r, "acosh", lets, _log1p(r, y))


@functools.cache
def atanh(dtype: DType) -> Intrin:
    """log1p(2x / (1 - x)) / 2"""
    r = real(dtype)
    x, y, w = (r.var(n) for n in ("x", "y", "w"))
    lets: Lets = [(y, (x + x) / (r.number(1.0) - x)), (w, y + 1.0)]
    return made(r, "atanh", lets, _log1p(r, y) * 0.5)


@functools.cache
def _erf_fit(terms: int) -> tuple[float, ...]:
    """erfc(x) * exp(x^2) over t = 2 / (2 + x) in (0, 1], as powers of 2t - 1."""
    from numpy.polynomial import chebyshev

    def scaled(u: float) -> float:
        x = 2 / max((u + 1) / 2, 1e-9) - 2
        if x < 2:
            return math.erfc(x) * math.exp(x * x)
        rest = 0.0  # of Laplace's continued fraction
        for k in range(200, 0, -1):
            rest = k / 2 / (x + rest)
        return 1 / ((x + rest) * math.sqrt(math.pi))

    fit = chebyshev.chebinterpolate(np.vectorize(scaled), terms)
    return tuple(float(c) for c in fit)


@functools.cache
def erf(dtype: DType) -> Intrin:
    """1 - exp(-x^2) * fit, by Clenshaw's recurrence; near 0 by series."""
    r = real(dtype)
    x, size, square, u = (r.var(n) for n in ("x", "size", "square", "u"))
    fit = _erf_fit(r.erf_terms)
    lets: Lets = [
        (size, select(x < 0.0, 0.0 - x, x)),
        (square, x * x),
        (u, r.number(4.0) / (size + 2.0) - 1.0),
    ]
    before: Expr = r.number(0.0)
    now: Expr = r.number(fit[-1])
    for k in range(len(fit) - 2, 0, -1):
        var = r.var(f"b{k}")
        lets.append((var, u * 2.0 * now - before + r.number(fit[k])))
        before, now = now, var
    far = r.var("far")
    tail = (u * now - before + r.number(fit[0])) * exp(dtype)(0.0 - square)
    lets.append((far, r.number(1.0) - tail))
    scale = 2 / math.sqrt(math.pi)
    count = 8 if dtype is FLOAT32 else 14
    series = [
        scale * (-1) ** k / (math.factorial(k) * (2 * k + 1)) for k in range(count)
    ]
    near = x * polynomial(r, square, series)
    signed = select(x < 0.0, 0.0 - far, far)
    return made(r, "erf", lets, select(size < 0.75, near, signed))


UNARY: dict[str, Callable[[DType], Intrin]] = {
    "acos": acos, "acosh": acosh, "asin": asin, "asinh": asinh, "atan": atan,
    "atanh": atanh, "ceil": ceil, "cos": cos, "cosh": cosh, "erf": erf, "exp": exp,
    "floor": floor, "log": log, "round": nearest_even, "sin": sin, "sinh": sinh,
    "sqrt": sqrt, "tan": tan, "tanh": tanh,
}  # fmt: skip
