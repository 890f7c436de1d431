"""The cheapest path through a row of places, by steps from each place to a later one: a
place is a node before which a stage may end, a step is a stage. Knows no stages.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[Any]  # int64 or float64

NEVER = float("inf")


def by_end(steps: Sequence[Sequence[float]], missing: float) -> Numbers:
    """Return the numbers of steps as a matrix: a row for each place where steps end,
    the earliest begin first.

    Shapes  steps: for each place but the last, the numbers of its steps of length 1, 2,
            ...; returns [places, longest]: the step of length n to place j is at [j,
            longest - n]; `missing` where there is none
    """
    longest = max(map(len, steps), default=0)
    found = np.full((len(steps) + 1, longest), missing, np.array(missing).dtype)
    for begin, row in enumerate(steps):
        sizes = np.arange(1, len(row) + 1)
        found[begin + sizes, longest - sizes] = row
    return found


def shortest(costs: Numbers) -> tuple[float, list[int]]:
    """Return the cost of the cheapest path from the first place to the last, and the
    places at which its steps end, from 0 on; (infinity, []) if there is no path. Of
    equally cheap steps the longest is taken.

    Shapes  costs [places, longest], arranged as by `by_end`
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
    """Do the same as `shortest` for steps whose exact costs are slow to compute.

    ways   returns, for a place, (lower bound of the cost, begin) of each step that ends
           there
    exact  returns the exact cost of a step, given its begin and end; called only for
           steps that could be the cheapest
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
