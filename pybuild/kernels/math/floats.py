"""Functions of real numbers as Loop IR, in float32 and float64: no library, no branch.

A few units in the last place off where the result is not tiny, and the same bits in
both printers. Series are Taylor's after range reduction. More of them are in curves.py.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence

import numpy as np

from pybuild.dtype import DType
from pybuild.ir.loop import (
    FLOAT32,
    INT32,
    INT64,
    UINT32,
    UINT64,
    Bitcast,
    Const,
    Expr,
    Intrin,
    Var,
    cast,
    const,
    equal,
    select,
)

Lets = list[tuple[Var, Expr]]


class Real:
    """The differences between float32 and float64.

    short  name in C; whole, bits: integers of its width; fraction: bits of the format;
    terms: of each series
    """

    def __init__(self, dtype: DType) -> None:
        single = dtype is FLOAT32
        self.dtype, self.whole = dtype, INT32 if single else INT64
        self.bits = UINT32 if single else UINT64
        self.short = "f32" if single else "f64"
        self.fraction, self.bias = (23, 127) if single else (52, 1023)
        self.exp_terms, self.log_terms = (8, 6) if single else (14, 13)
        self.sine_terms, self.atan_terms = (5, 7) if single else (9, 15)
        # ln(2) and pi / 2: the first part has few bits, so that n times it is exact
        self.first_bits = 8 if single else 20

    def number(self, value: float) -> Const:
        kept = float(np.float32(value)) if self.dtype is FLOAT32 else value
        return const(kept, self.dtype)

    def integer(self, value: int) -> Const:
        return const(value, self.whole)

    @property
    def rounding(self) -> Const:
        """The constant that rounds a number when it is added: the last bits then hold
        whole numbers. There is no conversion, so NaN and infinity do no harm."""
        return self.number(1.5 * 2.0**self.fraction)

    def rounded(self, moved: Expr) -> Expr:
        """Return the rounded integer of a number to which `rounding` was added."""
        start = (self.bias + self.fraction << 1 | 1) << (self.fraction - 1)
        return cast(self.as_bits(moved) - const(start, self.bits), self.whole)

    def as_bits(self, x: Expr) -> Expr:
        return cast(Bitcast(x, self.whole), self.bits)

    def from_bits(self, bits: Expr) -> Expr:
        return Bitcast(cast(bits, self.whole), self.dtype)

    def var(self, name: str) -> Var:
        return Var(name, self.dtype)

    @property
    def infinity(self) -> Expr:
        bits = ((1 << (self.dtype.bytes * 8 - 1 - self.fraction)) - 1) << self.fraction
        return Bitcast(self.integer(bits), self.dtype)

    @property
    def nan(self) -> Expr:
        exponent = (1 << (self.dtype.bytes * 8 - 1 - self.fraction)) - 1
        bits = (exponent << self.fraction) | (1 << (self.fraction - 1))
        return Bitcast(self.integer(bits), self.dtype)


@functools.cache
def real(dtype: DType) -> Real:
    return Real(dtype)


def parts(value: int, digits: int, bits: int, count: int) -> list[float]:
    """Return value / 2^digits as a sum whose first terms have few bits, so that their
    products with integers are exact."""
    found = []
    for _ in range(count - 1):
        drop = value.bit_length() - bits
        found.append(math.ldexp((value >> drop) << drop, -digits))
        value -= (value >> drop) << drop
    return [*found, math.ldexp(value, -digits)]


_DIGITS = 120


@functools.cache
def _log_2() -> int:
    """ln(2) * 2^120, as 2 * atanh(1 / 3)"""
    terms = (2 << _DIGITS) // 3
    total = 0
    for k in range(_DIGITS):
        total += terms // (2 * k + 1)
        terms //= 9
    return total


def log_2(r: Real) -> list[float]:
    """Return ln(2) in two parts, the first of few bits."""
    return parts(_log_2(), _DIGITS, r.first_bits, 2)


def polynomial(r: Real, x: Expr, coefficients: Sequence[float]) -> Expr:
    """c0 + x * (c1 + x * (c2 + ...))"""
    total: Expr = r.number(coefficients[-1])
    for coefficient in reversed(coefficients[:-1]):
        total = total * x + r.number(coefficient)
    return total


def made(
    r: Real, name: str, lets: Lets, result: Expr, more: tuple[Var, ...] = ()
) -> Intrin:
    names, given = f"crt_{name}_{r.short}", (r.var("x"), *more)
    doc = f"{name}({', '.join(p.name for p in given)}) in {r.dtype.value}."
    return Intrin(names, given, result, tuple(lets), doc=doc)


@functools.cache
def exp(dtype: DType) -> Intrin:
    """2^n * exp(s), |s| <= ln(2) / 2; 2^n as two factors, so that it may be tiny."""
    r = real(dtype)
    x, moved, turns, s = (r.var(n) for n in ("x", "moved", "turns", "s"))
    n, half = Var("n", r.whole), Var("half", r.whole)
    first, second = log_2(r)
    series = [1 / math.factorial(k) for k in range(r.exp_terms)]

    def power(count: Expr) -> Expr:
        exponent = cast(count, r.bits) + const(r.bias, r.bits)
        return r.from_bits(exponent << const(r.fraction, r.bits))

    lets: Lets = [
        (moved, x * r.number(math.log2(math.e)) + r.rounding),
        (turns, moved - r.rounding),
        (n, r.rounded(moved)),
        (s, x - turns * r.number(first) - turns * r.number(second)),
        (half, n >> r.integer(1)),
    ]
    value = polynomial(r, s, series) * power(half) * power(n - half)
    least, most = (-103.97284, 88.722839) if dtype is FLOAT32 else (
        -745.1332191019412, 709.782712893384)  # fmt: skip
    ended = select(x > most, r.infinity, value)
    return made(r, "exp", lets, select(x < least, 0.0, ended))


def _log_of(r: Real, usual: Var, less: Var | None = None) -> tuple[Lets, Expr]:
    """n * ln(2) + 2 * atanh((m - 1) / (m + 1)), x = 2^n * m, m about 1; of n so many
    less."""
    m, s, square, turns = (r.var(n) for n in ("m", "s", "square", "turns"))
    bits, n = Var("bits", r.whole), Var("n", r.whole)
    # of sqrt(1/2): what is below counts to the next lower power of two
    root = int(np.asarray(math.sqrt(0.5), r.dtype.numpy).view(r.whole.numpy))
    first, second = log_2(r)
    series = [1 / (2 * k + 1) for k in range(1, r.log_terms)]
    lets: Lets = [
        # of any number, those below 0 too: no overflow
        (bits, cast(r.as_bits(usual) - const(root, r.bits), r.whole)),
        (n, bits >> r.integer(r.fraction)),
        (m, Bitcast(bits - n * (1 << r.fraction) + root, r.dtype)),
        (s, (m - 1.0) / (m + 1.0)),
        (square, s * s),
        (turns, cast(n if less is None else n - less, r.dtype)),
    ]
    tail = s * square * polynomial(r, square, series) * 2.0 + turns * r.number(second)
    return lets, tail + s * 2.0 + turns * r.number(first)


@functools.cache
def log(dtype: DType) -> Intrin:
    r = real(dtype)
    x, usual, tiny = r.var("x"), r.var("usual"), Var("tiny", r.whole)
    least = 2.0 ** (1 - r.bias)
    lift = 2.0 ** (r.fraction + 1)
    more, value = _log_of(r, usual, tiny)
    lets: Lets = [
        (tiny, select(x < least, r.integer(r.fraction + 1), r.integer(0))),
        # what has no logarithm is looked at below
        (usual, select(x < least, select(x > 0.0, x * r.number(lift), 1.0), x)),
        *more,
    ]
    ended = select(x < r.infinity, value, x)
    ended = select(x > 0.0, ended, select(equal(x, 0.0), 0.0 - r.infinity, r.nan))
    return made(r, "log", lets, select(equal(x, x), ended, x))


@functools.cache
def usual_log(dtype: DType) -> Intrin:
    """The logarithm of numbers from 1; for infinity and NaN the result is undefined."""
    r = real(dtype)
    lets, value = _log_of(r, r.var("x"))
    return made(r, "usual_log", lets, value)


@functools.cache
def sqrt(dtype: DType) -> Intrin:
    """Newton's steps from a guess by halving the exponent."""
    r = real(dtype)
    x, scaled = r.var("x"), r.var("scaled")
    tiny = 2.0 ** (2 - r.bias)
    lift, drop = 2.0 ** (2 * (r.fraction // 2 + 1)), 2.0 ** -(r.fraction // 2 + 1)
    lets: Lets = [(scaled, select(x < tiny, x * r.number(lift), x))]
    middle = r.integer((r.bias << r.fraction) >> 1)
    guess: Expr = Bitcast((Bitcast(scaled, r.whole) >> 1) + middle, dtype)
    for step in range(4 if dtype is FLOAT32 else 5):
        var = r.var(f"root{step}")
        lets.append((var, guess))
        guess = (var + scaled / var) * 0.5
    last = r.var("last")
    lets.append((last, guess))
    value = select(x < tiny, last * r.number(drop), last)
    ended = select(x < r.infinity, value, x)
    ended = select(x > 0.0, ended, select(equal(x, 0.0), x, r.nan))
    return made(r, "sqrt", lets, select(equal(x, x), ended, x))


def _integral(r: Real, x: Expr) -> Expr:
    """Return whether a number has no fraction: it is large, infinite or NaN."""
    limit = 2.0**r.fraction
    return select((x < limit), -limit < x, x < -limit)


@functools.cache
def truncate(dtype: DType) -> Intrin:
    """Round toward zero."""
    r = real(dtype)
    x = r.var("x")
    inside = _integral(r, x)
    whole = cast(cast(select(inside, x, 0.0), r.whole), dtype)
    return made(r, "truncate", [], select(inside, whole, x))


def _stepped(dtype: DType, name: str, up: bool) -> Intrin:
    r = real(dtype)
    x, whole = r.var("x"), r.var("whole")
    lets: Lets = [(whole, truncate(dtype)(x))]
    if up:
        value = select(whole < x, whole + 1.0, whole)
    else:
        value = select(x < whole, whole - 1.0, whole)
    return made(r, name, lets, value)


@functools.cache
def floor(dtype: DType) -> Intrin:
    return _stepped(dtype, "floor", False)


@functools.cache
def ceil(dtype: DType) -> Intrin:
    return _stepped(dtype, "ceil", True)


@functools.cache
def nearest_even(dtype: DType) -> Intrin:
    """Rounds to the nearest integer, ties to even: adding 2^fraction drops the rest."""
    r = real(dtype)
    x, far = r.var("x"), r.var("far")
    limit = 2.0**r.fraction
    inside = select(x < limit, -limit < x, x < -limit)
    lets = [(far, select(x < 0.0, r.number(-limit), r.number(limit)))]
    rounded = (select(inside, x, 0.0) + far) - far
    return made(r, "round", lets, select(inside, rounded, x))


@functools.cache
def power(dtype: DType) -> Intrin:
    """exp(y * log|x|); the sign of x for odd y, no number for broken ones."""
    r = real(dtype)
    x, y, size, plain = (r.var(n) for n in ("x", "y", "size", "plain"))
    whole, odd = r.var("whole"), r.var("odd")
    usual = exp(dtype)(y * log(dtype)(size))
    minus = Bitcast(x, r.whole) < r.integer(0)
    lets: Lets = [
        (size, select(x < 0.0, 0.0 - x, x)),
        (plain, select(equal(size, 1.0), 1.0, usual)),
        (whole, truncate(dtype)(y)),
        (odd, y - truncate(dtype)(y * 0.5) * 2.0),
    ]
    # of infinity, which counts as even, `odd` is not a number
    inside = select(x < 0.0, size < r.infinity, x > 0.0)
    rest = select(equal(whole, y), plain, select(inside, r.nan, plain))
    below = select(equal(odd * odd, 1.0), 0.0 - plain, rest)
    value = select(equal(y, y), select(minus, below, plain), y)
    value = select(equal(x, x), value, x)
    value = select(equal(y, 0.0), 1.0, select(equal(x, 1.0), 1.0, value))
    return made(r, "power", lets, value, (y,))
