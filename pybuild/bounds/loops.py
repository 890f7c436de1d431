"""Loops: how often they turn, and what a name holds in the n-th turn."""

from __future__ import annotations

import math
from collections.abc import Mapping

from pybuild.bounds.arithmetic import one_of
from pybuild.bounds.linear import Facts, Linear, Number, Range, Steps, Unknown, unknown
from pybuild.bounds.values import Address, Value
from pybuild.records import dataclass


@dataclass(frozen=True)
class Turns:
    """The iterations of one loop.

    value, turn  of its variable, and of the turn's number from 0, in any turn
    count, most  turns; the greatest number of a turn
    facts, after what is known in the loop, and behind it
    """

    value: Linear
    turn: Linear
    count: Linear
    most: Number
    facts: tuple[Linear, ...]
    after: tuple[Linear, ...]


def turns_of(start: Linear, stop: Linear, step: int, facts: Facts) -> Turns | None:
    """The iterations of a loop; None if it never iterates."""
    span = stop.plus(start, -1)
    least, most = facts.range(span)
    if most <= 0:
        return None
    last = most if math.isinf(most) else (most - 1) // step
    turn = unknown(0, last)
    value = start.plus(turn, step)
    below = span.plus(Linear(-1)).plus(turn, -step)
    if span.known is not None:
        return Turns(value, turn, Linear(int(last) + 1), last, (), ())
    few = -(-max(least, 0) // step) if not math.isinf(least) else 0
    count = unknown(few, last + 1)
    rounded = (
        Linear().plus(count, step).plus(span, -1),
        span.plus(Linear(step - 1)).plus(count, -step),
    )
    inside = (below, count.plus(turn, -1).plus(Linear(-1)), *rounded)
    return Turns(value, turn, count, last, inside, rounded if least > -step else ())


@dataclass(frozen=True)
class Move:
    """The change of a value by iterations of a loop.

    by     what each adds, the same or within a range; None: it is `other` afterwards
    """

    before: Value
    by: int | Range | None
    other: Value = None

    def at(self, turn: Linear, most: Number, facts: Facts) -> Value:
        """The value after so many iterations, at most `most`."""
        if self.by is None:
            return one_of(self.before, self.other, facts, facts)
        if isinstance(self.by, int):
            more = turn.times(self.by)
        else:
            ends = [0 if not x or not most else x * most for x in self.by]
            more = unknown(min(0, ends[0]), max(0, ends[1]))
        return _plus(self.before, more)

    def is_open(self, facts: Facts) -> bool:
        """True if it is a number that is not a sum, and that can be without end."""
        if self.by is not None or not isinstance(self.other, Linear):
            return False
        return any(map(math.isinf, facts.range(self.other)))


def towards(span: Steps, reached: Steps, ends: Range) -> Steps:
    """An end that moved goes at once as far as it ever can, if that is known."""
    low, high = reached.least, reached.most
    if low < span.least and not math.isinf(ends[0]):
        low = min(low, ends[0])
    if high > span.most and not math.isinf(ends[1]):
        high = max(high, ends[1])
    return Steps(low, high, reached.step)


def moved(
    before: Value, begun: Mapping[str, Value], name: str, after: Value, facts: Facts
) -> Move:
    """The change of a value by one iteration that began with any value, `begun`."""
    if isinstance(before, Address) and isinstance(after, Address):
        return _moved_address(before, begun, name, after, facts)
    if not isinstance(after, Linear):
        return Move(before, None, after)
    by = _change(_sum(begun[name]), after, begun, facts)
    if by is not None:
        return Move(before, by)
    return Move(before, None, facts.steps(after).number())


def _moved_address(
    before: Address, begun: Mapping[str, Value], name: str, after: Address, facts: Facts
) -> Move:
    own = begun[name]
    assert isinstance(own, Address)
    pairs = list(zip(own.places, after.places, strict=False))
    if len(own.places) == len(after.places) and all(a is b for (a, _), (b, _) in pairs):
        moves = {_change(a, b, begun, facts) for (_, a), (_, b) in pairs}
        if len(moves) == 1:
            by = moves.pop()
            if by is not None:
                return Move(before, by)
    places = tuple((m, unknown(*facts.range(at))) for m, at in after.places)
    return Move(before, None, Address(places))


def _change(
    own: Linear, after: Linear, begun: Mapping[str, Value], facts: Facts
) -> int | Range | None:
    """The amount that an iteration adds; None: the value is not a sum of the old value
    and something."""
    change = after.plus(own, -1)
    if any(_begins(unknown, begun) for unknown in change.terms):
        return None
    if change.known is not None:
        return change.known
    by = facts.range(change)
    return None if all(map(math.isinf, by)) else by


def _begins(unknown: Unknown, begun: Mapping[str, Value]) -> bool:
    """True if it is what a name of the turn began with."""
    return any(unknown in one.terms for value in begun.values() for one in _sums(value))


def _sums(value: Value) -> list[Linear]:
    if isinstance(value, Address):
        return [at for _, at in value.places]
    return [value] if isinstance(value, Linear) else []


def _sum(value: Value) -> Linear:
    return value if isinstance(value, Linear) else Linear()


def _plus(value: Value, more: Linear) -> Value:
    if isinstance(value, Address | Linear):
        return value.plus(more)
    return value
