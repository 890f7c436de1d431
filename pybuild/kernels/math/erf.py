"""erf and GELU of real numbers as Loop IR, by a fit that was made for this file.

With t = 2 / (2 + x), erfc(x) = t * exp(-x^2) * f(2t - 1) for x from 0; f is smooth from
-1 to 1, and interpolated at Chebyshev's points. Relative errors of the polynomials as
they are computed: 1.1e-7 in float32, 5e-16 in float64.
"""

from __future__ import annotations

import functools
import math

from pybuild.dtype import DType
from pybuild.ir.loop import FLOAT32, Expr, Intrin, Var, select
from pybuild.kernels.math.exponential import EXP
from pybuild.kernels.math.floats import Lets, Real, exp, made, polynomial, real

_SINGLE = (
    0.510791357, 0.343580341, 0.139735726, 0.018221237, -0.0107515693, -0.00324104592,
    0.00152899732, 0.000425197107, -0.000299199669, -3.11484371e-05, 4.20878746e-05,
    -1.97733429e-06,
)  # fmt: skip
_DOUBLE = (
    0.5107913526210115, 0.3435803422069066, 0.13973604627802544, 0.018221115753306545,
    -0.010755330944543402, -0.0032395925298231458, 0.0015453060235237155,
    0.00041864797455347, -0.0003315366672107297, -1.7185277049606434e-05,
    7.223470153006039e-05, -1.7076546276097942e-05, -1.0844830478580393e-05,
    8.066868949358842e-06, -5.732747033044422e-07, -1.8346763716451883e-06,
    1.023671759497573e-06, 1.527560153078624e-08, -3.1904880762943956e-07,
    1.5002373169874064e-07, 3.1237899528464255e-08, -5.1579015426615876e-08,
    8.331398302988539e-09, 6.618547737616718e-09, -2.2124653785049848e-09,
)  # fmt: skip


def _erfc(r: Real, size: Var, square: Var) -> tuple[Lets, Expr]:
    """erfc(size) for size from 0, and what it needs first; square: of size."""
    t, u = r.var("t"), r.var("u")
    lets: Lets = [(t, r.number(2.0) / (size + 2.0)), (u, t + t - 1.0)]
    fit = polynomial(r, u, _SINGLE if r.dtype is FLOAT32 else _DOUBLE)
    short = EXP if r.dtype is FLOAT32 else exp(r.dtype)
    return lets, fit * t * short(0.0 - square)


def _near(r: Real, x: Expr, square: Var) -> Expr:
    """erf(x) by its series, |x| below 0.75."""
    scale, count = 2 / math.sqrt(math.pi), 8 if r.dtype is FLOAT32 else 14
    series = [
        scale * (-1) ** k / (math.factorial(k) * (2 * k + 1)) for k in range(count)
    ]
    return x * polynomial(r, square, series)


@functools.cache
def erf(dtype: DType) -> Intrin:
    """1 - erfc(x); near 0 by its series."""
    r = real(dtype)
    x, size, square, far = (r.var(n) for n in ("x", "size", "square", "far"))
    more, tail = _erfc(r, size, square)
    lets: Lets = [
        (size, select(x < 0.0, 0.0 - x, x)),
        (square, x * x),
        *more,
        (far, r.number(1.0) - tail),
    ]
    signed = select(x < 0.0, 0.0 - far, far)
    return made(r, "erf", lets, select(size < 0.75, _near(r, x, square), signed))


@functools.cache
def gelu(dtype: DType) -> Intrin:
    """x times the share of a normal distribution below x, erfc(-x / sqrt(2)) / 2"""
    r = real(dtype)
    x, size, square, part = (r.var(n) for n in ("x", "size", "square", "part"))
    more, tail = _erfc(r, size, square)
    half = r.var("half")
    lets: Lets = [
        (part, x * r.number(math.sqrt(0.5))),
        (size, select(x < 0.0, 0.0 - part, part)),
        (square, part * part),
        *more,
        (half, tail * 0.5),
    ]
    far = select(x < 0.0, half, r.number(1.0) - half)
    share = select(size < 0.75, _near(r, part, square) * 0.5 + 0.5, far)
    return made(r, "gelu", lets, x * share)
