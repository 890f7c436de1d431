"""Ranges of sums and of operations hold what counting finds."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from hypothesis import given, settings
from hypothesis import strategies as some

from pybuild.bounds.arithmetic import compare, numeric
from pybuild.bounds.linear import Facts, Linear, Steps, Unknown, unknown
from pybuild.dtype import DType
from pybuild.ir.loop import FOLDED

FEW = some.integers(-3, 3)
ENDS = some.tuples(some.integers(-5, 5), some.integers(0, 4))
OPS = ("+", "-", "*", "/", "%", "&", "|", "^", "<<", ">>", "min", "max")


@settings(max_examples=300)
@given(
    some.lists(ENDS, min_size=1, max_size=3),
    some.lists(some.lists(FEW, min_size=4, max_size=4), max_size=3),
    some.lists(FEW, min_size=4, max_size=4),
)
def test_facts_never_make_a_range_too_narrow(
    ends: list[tuple[int, int]], facts: list[list[int]], value: list[int]
) -> None:
    unknowns = [Unknown(low, low + more) for low, more in ends]
    made = Facts()
    made.add(*(_sum(unknowns, row) for row in facts))
    least, most = made.range(_sum(unknowns, value))
    for point in itertools.product(
        *(range(int(u.least), int(u.most) + 1) for u in unknowns)
    ):
        if all(_at(row, point) >= 0 for row in facts):
            assert least <= _at(value, point) <= most


def _sum(unknowns: list[Unknown], row: list[int]) -> Linear:
    terms = {u: n for u, n in zip(unknowns, row[1:], strict=False) if n}
    return Linear(row[0], terms)


def _at(row: list[int], point: tuple[int, ...]) -> int:
    return row[0] + sum(n * x for n, x in zip(row[1:], point, strict=False))


@settings(max_examples=600)
@given(some.sampled_from(OPS), ENDS, ENDS)
def test_operations_hold_each_result(
    op: str, first: tuple[int, int], second: tuple[int, int]
) -> None:
    """Of two ranges, and of a range and a number."""
    for right in (second, (second[0], 0)):
        facts = Facts()
        a, b = _range(first), _range(right)
        made = numeric(op, a, b, DType.INT32, facts)
        assert isinstance(made, Linear)
        steps = facts.steps(made)
        for x, y in itertools.product(_all(first), _all(right)):
            if not (op in ("/", "%") and y <= 0) and not (op in ("<<", ">>") and y < 0):
                assert _holds(steps, FOLDED[op](x, y))


def _range(ends: tuple[int, int]) -> Linear:
    return unknown(ends[0], ends[0] + ends[1])


def _all(ends: tuple[int, int]) -> Iterator[int]:
    yield from range(ends[0], ends[0] + ends[1] + 1)


def _holds(steps: Steps, value: int) -> bool:
    if not steps.least <= value <= steps.most:
        return False
    if isinstance(steps.least, int) and steps.step:
        return (value - steps.least) % steps.step == 0
    return True


@settings(max_examples=200)
@given(some.sampled_from(("<", "<=", "==", "!=")), ENDS, ENDS)
def test_conditions_are_what_holds_where_they_hold(
    op: str, first: tuple[int, int], second: tuple[int, int]
) -> None:
    a, b = _range(first), _range(second)
    truth = compare(op, a, b, Facts())
    for holds, sums in ((True, truth.holds), (False, truth.fails)):
        facts = Facts().inside(*sums)
        (low, high), (least, most) = facts.range(a), facts.range(b)
        for x, y in itertools.product(_all(first), _all(second)):
            if bool(FOLDED[op](x, y)) is holds:
                assert low <= x <= high
                assert least <= y <= most


def test_what_a_division_says_of_its_parts() -> None:
    """8 * (x / 8) + x % 8 is x, and the rest is below 8."""
    facts, x = Facts(), unknown(0, 100)
    whole = numeric("/", x, Linear(8), DType.INT32, facts)
    rest = numeric("%", x, Linear(8), DType.INT32, facts)
    assert isinstance(whole, Linear)
    assert isinstance(rest, Linear)
    assert facts.range(whole) == (0, 12)
    assert facts.range(rest) == (0, 7)
    assert facts.range(whole.times(8)) == (0, 96)


def test_steps_of_two_numbers_meet() -> None:
    assert Steps(0, 0, 0).hull(Steps(4, 4, 0)) == Steps(0, 4, 4)
    assert Steps(0, 4, 4).hull(Steps(2, 2, 0)) == Steps(0, 4, 2)
    assert Steps(0, 6, 3).number().terms.popitem()[1] == 3  # type: ignore[attr-defined]
