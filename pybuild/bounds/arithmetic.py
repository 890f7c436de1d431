"""Operations of the loop IR on numbers that are known in part.

Signed sums do not overflow here: that is proven by each layer's ranges, and watched by
UBSan in the tests. Unsigned ones that may wrap are anything.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from pybuild.bounds.linear import MOST_TERMS, Facts, Linear, Number, unknown
from pybuild.bounds.values import Address, Memory, Truth, Value
from pybuild.dtype import DType
from pybuild.ir.loop import FOLDED

_TYPES = {dtype: (dtype.low, dtype.high) for dtype in DType if not dtype.is_float}


def any_of(dtype: DType) -> Value:
    """A value of this type of which nothing is known."""
    if dtype is DType.BOOL:
        return Truth()
    return None if dtype.is_float else unknown(*_TYPES[dtype])


def certain(truth: bool) -> Truth:
    """A condition that is known."""
    never = (Linear(-1),)
    return Truth((), never) if truth else Truth(never, ())


def numeric(op: str, a: Linear, b: Linear, dtype: DType, facts: Facts) -> Value:
    """a op b; `facts` get what is known of the result."""
    if b.known is not None and not _is_defined(op, b.known):
        return any_of(dtype)
    if a.known is not None and b.known is not None:
        exact = FOLDED[op](a.known, b.known)
        if _TYPES[dtype][0] <= exact <= _TYPES[dtype][1]:
            return Linear(exact)
        return any_of(dtype)
    made = _MADE[op](a, b, facts)
    if made is None:
        return any_of(dtype)
    if len(made.terms) > MOST_TERMS:
        return unknown(*facts.range(made))
    if dtype.is_unsigned and op in ("+", "-", "*", "<<"):
        return fitting(made, dtype, facts)
    return made


def _is_defined(op: str, by: int) -> bool:
    return by > 0 if op in ("/", "%") else by >= 0 or op not in ("<<", ">>")


def fitting(value: Linear, dtype: DType, facts: Facts) -> Value:
    """The number itself if it fits the type, else any of the type."""
    least, most = facts.range(value)
    low, high = _TYPES[dtype]
    return value if low <= least and most <= high else any_of(dtype)


def one_of(a: Value, b: Value, where_a: Facts, where_b: Facts) -> Value:
    """The value that is one or the other, each with the facts at its place."""
    if a is b:
        return a
    if isinstance(a, Linear) and isinstance(b, Linear):
        return either(a, b, where_a, where_b)
    if isinstance(a, Address) and isinstance(b, Address):
        return _either_place(a, b, where_a, where_b)
    return Truth() if isinstance(a, Truth) and isinstance(b, Truth) else None


def _either_place(a: Address, b: Address, where_a: Facts, where_b: Facts) -> Address:
    """Places of one memory become one."""
    found = dict(_as_known(a, where_a))
    for memory, at in _as_known(b, where_b):
        there = found.get(memory)
        found[memory] = at if there is None else either(there, at, where_a, where_b)
    return Address(tuple(found.items()))


def _as_known(address: Address, facts: Facts) -> list[tuple[Memory, Linear]]:
    """With what is known at one place only; the sums stay where that is nothing."""
    if facts.never:
        return []
    ends = [facts.range(at) for _, at in address.places]
    return [
        (memory, at if Facts().range(at) == end else unknown(*end))
        for (memory, at), end in zip(address.places, ends, strict=True)
    ]


def either(a: Linear, b: Linear, where_a: Facts, where_b: Facts) -> Linear:
    """A number that is one of the two, each as it is known at its place."""
    if a.plus(b, -1).known == 0:
        return a
    both = where_a.steps(a).hull(where_b.steps(b))
    return both.number() if both.step else unknown(both.least, both.most)


def compare(op: str, a: Linear, b: Linear, facts: Facts) -> Truth:
    """The facts that hold if a op b is true, and if it is false."""
    below = b.plus(a, -1).plus(Linear(-1))  # b - a - 1
    above = a.plus(b, -1).plus(Linear(-1))
    least, most = below.plus(Linear(1)), above.plus(Linear(1))  # b - a, a - b
    if op == "<":
        return Truth((below,), (most,))
    if op == "<=":
        return Truth((least,), (above,))
    differ: tuple[Linear, ...] = ()
    low, high = facts.range(most)
    if low >= 0:
        differ = (above,)
    elif high <= 0:
        differ = (below,)
    equal = Truth((least, most), differ)
    return equal if op == "==" else Truth(equal.fails, equal.holds)


def _product(a: Linear, b: Linear, facts: Facts) -> Linear | None:
    if b.known is not None:
        return a.times(b.known)
    if a.known is not None:
        return b.times(a.known)
    ends = [_times(x, y) for x in facts.range(a) for y in facts.range(b)]
    return unknown(min(ends), max(ends))


def _times(x: Number, y: Number) -> Number:
    return 0 if x == 0 or y == 0 else x * y


def _quotient(a: Linear, b: Linear, facts: Facts) -> Linear | None:
    """Truncated."""
    by = b.known
    if by is None or by <= 0:
        return None
    least, most = facts.range(a)
    found = unknown(_part(least, by), _part(most, by))
    rest = a.plus(found, -by)
    facts.add(Linear(by - 1).plus(rest, -1))
    if least >= 0:
        facts.add(rest)
    else:
        facts.add(rest.plus(Linear(by - 1)))
        facts.add_implied((found.plus(Linear(-1)), rest))
    return found


def _part(value: Number, by: int) -> Number:
    if not isinstance(value, int):
        return value
    return abs(value) // by * (1 if value >= 0 else -1)


def _rest(a: Linear, b: Linear, facts: Facts) -> Linear | None:
    whole = _quotient(a, b, facts)
    return None if whole is None or b.known is None else a.plus(whole, -b.known)


def _shifted_down(a: Linear, b: Linear, facts: Facts) -> Linear | None:
    """The shifted value, rounded down."""
    if b.known is None:
        least, most = facts.range(a)
        return unknown(min(least, 0, most), max(most, 0, least))
    by = 1 << b.known
    least, most = (x if math.isinf(x) else x // by for x in facts.range(a))
    found = unknown(least, most)
    rest = a.plus(found, -by)
    facts.add(rest, Linear(by - 1).plus(rest, -1))
    return found


def _shifted_up(a: Linear, b: Linear, facts: Facts) -> Linear | None:
    return None if b.known is None else a.times(1 << b.known)


def _masked(a: Linear, b: Linear, facts: Facts) -> Linear | None:
    if b.known is None:
        a, b = b, a
    mask = b.known
    if mask is None or mask < 0:
        return None
    least, most = facts.range(a)
    if mask & (mask + 1):
        return unknown(0, min(mask, most) if least >= 0 else mask)
    if least >= 0 and most <= mask:
        return a
    whole = _shifted_down(a, Linear(mask.bit_length()), facts)
    return None if whole is None else a.plus(whole, -mask - 1)


def _bits(a: Linear, b: Linear, facts: Facts) -> Linear | None:
    """or, exclusive or"""
    ends = facts.range(a), facts.range(b)
    if min(ends[0][0], ends[1][0]) < 0:
        return None
    most = max(ends[0][1], ends[1][1])
    if not isinstance(most, int):
        return None
    return unknown(0, (1 << most.bit_length()) - 1)


def _least(a: Linear, b: Linear, facts: Facts) -> Linear | None:
    first, second = facts.range(a), facts.range(b)
    if first[1] <= second[0]:
        return a
    if second[1] <= first[0]:
        return b
    found = unknown(min(first[0], second[0]), min(first[1], second[1]))
    more = a.plus(found, -1), b.plus(found, -1)
    facts.add(*more)
    for one, other in (more, more[::-1]):  # it is one where it is not the other
        facts.add_implied((other.plus(Linear(-1)), one.times(-1)))
    return found


def _greatest(a: Linear, b: Linear, facts: Facts) -> Linear | None:
    found = _least(a.times(-1), b.times(-1), facts)
    return None if found is None else found.times(-1)


_MADE: dict[str, Callable[[Linear, Linear, Facts], Linear | None]] = {
    "+": lambda a, b, facts: a.plus(b),
    "-": lambda a, b, facts: a.plus(b, -1),
    "*": _product,
    "/": _quotient,
    "%": _rest,
    ">>": _shifted_down,
    "<<": _shifted_up,
    "&": _masked,
    "|": _bits,
    "^": _bits,
    "min": _least,
    "max": _greatest,
}
