"""sin, cos and tan as Loop IR: quarter turns, then series of what is left.

    sin(100): 100 = 64 quarters - 0.53; 64 & 3 = 0, so it is sin of what is left

Which numbers are small enough for which way: `NEAR`, `MIDDLE`. Any float32 is reduced
by the bits of 2 / pi that its exponent asks for (Payne and Hanek).
"""

from __future__ import annotations

import functools
import math

import numpy as np

from pybuild.dtype import Array, DType
from pybuild.ir.loop import (
    FLOAT32,
    INT32,
    UINT32,
    UINT64,
    Expr,
    Intrin,
    Var,
    cast,
    const,
    equal,
    load,
    maximum,
    minimum,
    select,
)
from pybuild.kernels.base.builder import Builder
from pybuild.kernels.math.floats import Lets, Real, made, parts, polynomial, real

ANGLES = ("cos", "sin", "tan")
# |x| up to which what is left is right to its last bits; and to 2^-32
NEAR, MIDDLE = 2048.0, 98304.0
# 2 / pi, of which the first word begins with 14 zeros
_ZEROS, _WORDS = 14, 7
_FIRST = 138  # the exponent of NEAR, biased: the least whose bits are in the table


def _two_over_pi(bits: int) -> int:
    """floor(2 / pi * 2^bits), pi by Machin's formula in integers."""
    more = bits + 32

    def inverse_tangent(n: int) -> int:
        term = total = (1 << more) // n
        for k in range(1, more):
            term //= n * n
            total += (-term if k % 2 else term) // (2 * k + 1)
        return total

    pi = 4 * (4 * inverse_tangent(5) - inverse_tangent(239))
    return (2 << (more + bits)) // pi


@functools.cache
def quarters_table() -> Array:
    """The bits of 2 / pi in words, the highest first."""
    whole = _two_over_pi(32 * _WORDS - _ZEROS)
    words = [(whole >> (32 * k)) & 0xFFFFFFFF for k in range(_WORDS - 1, -1, -1)]
    return np.asarray(words, np.uint32)


def _parts(bits: int) -> list[float]:
    """Return pi / 2 as a sum whose first three terms have few bits."""
    digits = 120
    return parts((1 << 2 * digits) // _two_over_pi(digits), digits, bits, 4)


def reduced(r: Real, x: Expr, near: bool) -> tuple[Lets, Expr, Expr]:
    """Return the reduced angle of x, and the number of quarter turns subtracted, as
    bits.

    near  of |x| below NEAR; else of float32 below MIDDLE, of float64 below 2^30
    """
    single = r.dtype is FLOAT32
    bits = (13 if near else 8) if single else 20
    moved, turns = r.var("moved"), r.var("turns")
    rest: Expr = x
    for part in _parts(bits):
        rest = rest - turns * r.number(part)
    lets: Lets = [
        (moved, x * r.number(2 / math.pi) + r.rounding),
        (turns, moved - r.rounding),
    ]
    return lets, rest, r.as_bits(moved)


@functools.cache
def of_rest(dtype: DType, name: str) -> Intrin:
    """Return the function of the reduced angle and the number of quarters."""
    r = real(dtype)
    s, square, sine, cosine = (r.var(n) for n in ("x", "square", "sine", "cosine"))
    n = Var("n", r.bits)
    one, zero = const(1, r.bits), const(0, r.bits)
    count = r.sine_terms
    odd = [(-1) ** k / math.factorial(2 * k + 1) for k in range(1, count + 1)]
    even = [(-1) ** k / math.factorial(2 * k) for k in range(count + 1)]
    lets: Lets = [
        (square, s * s),
        (sine, s + s * square * polynomial(r, square, odd)),
        (cosine, polynomial(r, square, even)),
    ]
    if name == "tan":
        value = select(equal(n & one, zero), sine / cosine, 0.0 - cosine / sine)
    else:
        quarter = Var("quarter", r.bits)
        lets.append((quarter, n + const(1 if name == "cos" else 0, r.bits)))
        plain = select(equal(quarter & one, zero), sine, cosine)
        value = select(equal(quarter & const(2, r.bits), zero), plain, 0.0 - plain)
    return made(r, f"{name}_rest", lets, value, (n,))


@functools.cache
def angle(dtype: DType, name: str) -> Intrin:
    """Return the function of |x| up to MIDDLE, for float64 up to 2^30; NaN beyond."""
    r = real(dtype)
    x = r.var("x")
    lets, rest, quarters = reduced(r, x, False)
    return made(r, name, lets, of_rest(dtype, name)(rest, quarters))


def far(k: Builder, x: Expr, table: Expr, left: Var, quarters: Var) -> None:
    """Assigns what is left of any float32 of NEAR or more, and its quarters.

    x = m * 2^e: of 2 / pi the 96 bits from the weight 2^(1 - e) on are taken: what is
    above makes a multiple of four quarters. Of m times them the upper 64 bits are kept,
    two of them quarters.
    """
    bits = k.let("bits", real(FLOAT32).as_bits(x))
    exponent = cast((bits >> _word(23)) & _word(255), INT32)
    start = k.let("start", maximum(exponent - _FIRST, 0))
    word = k.let("word", minimum(start >> 5, _WORDS - 4))
    shift = k.let("shift", cast(start & 31, UINT64))
    m = k.let("m", cast((bits & _word(0x7FFFFF)) | _word(0x800000), UINT64))
    product: Expr = const(0, UINT64)
    for n in range(3):
        pair = _wide(load(table, word + n)) << _long(32) | _wide(
            load(table, word + n + 1)
        )
        part = k.let(f"part{n}", ((pair << shift) >> _long(32)) * m)
        moved = (part << _long(32), part, part >> _long(32))[n]
        product = product + moved if n else moved
    whole = k.let("whole", product)
    up = k.let("up", (whole + _long(1 << 61)) >> _long(62))
    rest = k.let("rest", whole - (up << _long(62)))
    below = k.let("below", equal(rest >> _long(63), _long(1)))
    size = k.let("size", select(below, _long(0) - rest, rest))
    # 32 bits each: a conversion of 64 would be a function of a library
    high = cast(cast(size >> _long(32), UINT32), FLOAT32)
    low = cast(cast(size, UINT32), FLOAT32) * real(FLOAT32).number(2.0**-32)
    angle_ = k.let("angle", (high + low) * real(FLOAT32).number(math.pi * 2.0**-31))
    angle_ = k.let("facing", select(below, 0.0 - angle_, angle_))
    turned = cast(up, UINT32)
    k.assign(left, select(x < 0.0, 0.0 - angle_, angle_))
    k.assign(quarters, select(x < 0.0, _word(0) - turned, turned))
    # of infinity, and of what is not a number
    with k.when(exponent >= 255):
        k.assign(left, x - x)


def value(k: Builder, name: str, x: Expr, table: Expr | None) -> Expr:
    """The function of a float32.

    table  `quarters_table`; None: |x| is at most NEAR
    """
    x = k.let("x", x)
    lets, rest, quarters = reduced(real(FLOAT32), x, True)
    for var, found in lets:
        k.let(var.name, found)
    left, taken = k.let("left", rest), k.let("quarters", quarters)
    if table is not None:
        near = select(x < NEAR, x > -NEAR, x > x)
        with k.when(equal(select(near, const(1), const(0)), 0)):
            far(k, x, table, left, taken)
    return of_rest(FLOAT32, name)(left, taken)


def _word(value: int) -> Expr:
    return const(value, UINT32)


def _long(value: int) -> Expr:
    return const(value, UINT64)


def _wide(value: Expr) -> Expr:
    return cast(value, UINT64)
