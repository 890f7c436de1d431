"""Whole numbers as sums of unknowns, each with its range, and what is known of them.

An index of a kernel is such a sum: 16 * row + channel, with row from 0 to 7. Sums keep
what unknowns have in common, which ranges alone would lose.
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Iterator, Mapping
from dataclasses import field

from pybuild.records import dataclass

Number = int | float  # float: an infinity
Range = tuple[Number, Number]
EVERYTHING: Range = (-math.inf, math.inf)
NOTHING: Range = (math.inf, -math.inf)
# sums that are gone on with where one is bounded by facts
_MOST_STEPS = 24
# of sums of more unknowns only the range is kept: those are data, not indices
MOST_TERMS = 8


@dataclass(frozen=True, eq=False)
class Unknown:
    """A number that differs from call to call, or from turn to turn."""

    least: Number
    most: Number


@dataclass(frozen=True)
class Linear:
    """constant + the sum of factor * unknown"""

    constant: int = 0
    terms: Mapping[Unknown, int] = field(default_factory=dict)

    def plus(self, other: Linear, times: int = 1) -> Linear:
        """self + times * other"""
        terms = dict(self.terms)
        for unknown, factor in other.terms.items():
            total = terms.get(unknown, 0) + factor * times
            if total:
                terms[unknown] = total
            else:
                terms.pop(unknown, None)
        return Linear(self.constant + other.constant * times, terms)

    def times(self, factor: int) -> Linear:
        return Linear().plus(self, factor)

    @property
    def known(self) -> int | None:
        """The number, where there is nothing unknown."""
        return None if self.terms else self.constant


def unknown(least: Number, most: Number) -> Linear:
    """A new number in this range, of which nothing else is known."""
    if least == most and isinstance(least, int):
        return Linear(least)
    return Linear(0, {Unknown(least, most): 1})


@dataclass(frozen=True)
class Steps:
    """Numbers from `least` on, `step` apart, to `most`; step 0: one, or not known."""

    least: Number
    most: Number
    step: int = 1

    def number(self) -> Linear:
        """A new number of these, an unknown even where there is only one."""
        if self.step > 1 and isinstance(self.least, int) and isinstance(self.most, int):
            count = (self.most - self.least) // self.step
            return Linear(self.least, {Unknown(0, count): self.step})
        return Linear(0, {Unknown(self.least, self.most): 1})

    def hull(self, other: Steps) -> Steps:
        """All of both, and what is between in the same steps."""
        if self.least > self.most or other.least > other.most:
            return self if other.least > other.most else other
        ends = min(self.least, other.least), max(self.most, other.most)
        if not (isinstance(self.least, int) and isinstance(other.least, int)):
            return Steps(*ends)
        return Steps(*ends, math.gcd(self.step, other.step, self.least - other.least))


class Facts:
    """The facts that hold at one place of a kernel: sums that are never negative there.

    by       the sums that have an unknown
    implied  where the first is never negative the second is not
    never    no input leads here
    """

    def __init__(self) -> None:
        self.by: dict[Unknown, tuple[Linear, ...]] = {}
        self.implied: tuple[tuple[Linear, Linear], ...] = ()
        self.never = False

    def inside(self, *more: Linear) -> Facts:
        """A copy of the facts, for a block in which more facts hold."""
        found = Facts()
        found.by, found.implied, found.never = dict(self.by), self.implied, self.never
        found.add(*more)
        while more and found._follow():
            pass
        return found

    def _follow(self) -> bool:
        """Adds the facts that known facts imply; True if there were any."""
        left = []
        for condition, fact in self.implied:
            if self._search(condition.times(-1), 0) <= 0:
                self.add(fact)
            else:
                left.append((condition, fact))
        is_new = len(left) < len(self.implied)
        self.implied = tuple(left)
        return is_new

    def add_implied(self, *pairs: tuple[Linear, Linear]) -> None:
        """Adds an implication: from here on the second fact holds if the first does."""
        self.implied += pairs

    def add(self, *more: Linear) -> None:
        """Adds facts that hold from here on."""
        for one in more:
            self.never |= _plain_most(one) < 0
            if _plain_most(one.times(-1)) <= 0:
                continue  # the ranges say so, too
            for unknown in one.terms:
                self.by[unknown] = (*self.by.get(unknown, ()), one)

    def range(self, value: Linear, within: Range = NOTHING) -> Range:
        """The range of a sum: never narrower than the truth.

        within  it need not be known better than this
        """
        if self.never:
            return NOTHING
        return (
            -self._search(value.times(-1), -within[0]),
            self._search(value, within[1]),
        )

    def _search(self, value: Linear, enough: Number) -> Number:
        """The most that a sum can be: the least bound found by subtracting facts, times
        some number. The most promising remainder is tried first.

        No fact makes a sum smaller. What leaves least is gone on with first.
        """
        best = _plain_most(value)
        order = itertools.count()
        waiting = [(best, next(order), 1, value)]
        for _ in range(_MOST_STEPS):
            if best <= enough or not waiting:
                break
            *_, scale, here = heapq.heappop(waiting)
            if len(here.terms) > MOST_TERMS:
                continue
            for times, tried in self._tried(here):
                most, by = _plain_most(tried), scale * times
                best = min(best, _floor(most, by))
                heapq.heappush(waiting, (most / by, next(order), by, tried))
        return best

    def steps(self, value: Linear) -> Steps:
        """The range of a sum, and the distance between its possible values."""
        least, most = self.range(value)
        step = math.gcd(*value.terms.values())
        if least == most:
            return Steps(least, most, 0)
        if not (isinstance(least, int) and isinstance(most, int)):
            return Steps(least, most)
        least += (value.constant - least) % step
        return Steps(least, most - (most - least) % step, step)

    def _tried(self, value: Linear) -> Iterator[tuple[int, Linear]]:
        """n and n * value + m * fact, of which an unknown is gone; n, m > 0."""
        for unknown, factor in value.terms.items():
            for fact in self.by.get(unknown, ()):
                there = fact.terms[unknown]
                if there * factor < 0:
                    common = math.gcd(there, factor)
                    times = abs(there) // common
                    yield times, value.times(times).plus(fact, abs(factor) // common)


def _floor(total: Number, times: int) -> Number:
    return total // times if isinstance(total, int) else total


def _plain_most(value: Linear) -> Number:
    """The greatest value by the ranges of the unknowns alone."""
    total: Number = value.constant
    for unknown, factor in value.terms.items():
        total += factor * (unknown.most if factor > 0 else unknown.least)
    return total
