"""The cheapest way through a row of places, by steps from each to a later one: places
are nodes that a stage may end before, steps are stages. Knows no stage."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[Any]  # int64 or float64

NEVER = float("inf")


def by_end(steps: Sequence[Sequence[float]], missing: float) -> Numbers:
    """Numbers of steps in rows of equal ends, those that begin first in front.

    Shapes  steps: of each place but the last what steps of 1, 2, ... places have that
            begin there; returns [places, longest]: place j's step of n is
            [j, longest - n], or `missing`
    """
    longest = max(map(len, steps), default=0)
    found = np.full((len(steps) + 1, longest), missing, np.array(missing).dtype)
    for begin, row in enumerate(steps):
        sizes = np.arange(1, len(row) + 1)
        found[begin + sizes, longest - sizes] = row
    return found


def shortest(costs: Numbers) -> tuple[float, list[int]]:
    """The cost of the cheapest steps from the first place to the last, and where they
    end, from 0 on; (infinite, []): there are none. Of equal ones the longest.

    Shapes  costs [places, longest], as of `by_end`
    """
    count, longest = len(costs) - 1, costs.shape[1]
    spent = np.full(longest + count + 1, NEVER)  # of place j at longest + j
    spent[longest] = 0.0
    came = [0]
    for end in range(1, count + 1):
        ways = spent[end : end + longest] + costs[end]
        best = int(ways.argmin())
        spent[longest + end] = ways[best]
        came.append(end - longest + best)
    return float(spent[longest + count]), _ends(float(spent[-1]), came)


def shortest_asked(
    count: int,
    ways: Callable[[int], Iterable[tuple[float, int]]],
    exact: Callable[[int, int], float],
) -> tuple[float, list[int]]:
    """As `shortest`, of steps whose costs take long to find.

    ways   of a place: what steps that end there cost at least, and where they begin
    exact  what a step costs, by its begin and its end; asked of those that could be
           the cheapest
    """
    costs, came = [0.0], [0]
    for end in range(1, count + 1):
        best = NEVER, 0
        for least, first in sorted((costs[i] + cost, i) for cost, i in ways(end)):
            if least > best[0] or least == NEVER:
                break
            best = min(best, (costs[first] + exact(first, end), first))
        costs.append(best[0])
        came.append(best[1])
    return costs[count], _ends(costs[count], came)


def _ends(cost: float, came: Sequence[int]) -> list[int]:
    if cost == NEVER:
        return []
    ends = [len(came) - 1]
    while ends[-1]:
        ends.append(came[ends[-1]])
    return ends[::-1]
