"""The cheapest steps are those that trying all finds, and of equal ones the longest."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from pybuild.plan.schedule.shortest_path import (
    NEVER,
    by_end,
    shortest,
    shortest_asked,
)

Rows = list[list[float]]


def drawn(seed: int) -> Rows:
    """Of each place what steps from there cost; some are not there."""
    r = np.random.default_rng(seed)
    count, longest = int(r.integers(1, 9)), int(r.integers(1, 5))
    rows = []
    for begin in range(count):
        size = int(r.integers(1, min(longest, count - begin) + 1))
        row = r.integers(0, 6, size).astype(np.float64)
        row[r.random(size) < 0.3] = NEVER
        rows.append(row.tolist())
    return rows


def all_ways(rows: Rows, begin: int = 0) -> Iterator[tuple[float, list[int]]]:
    if begin == len(rows):
        yield 0.0, [begin]
        return
    for size, cost in enumerate(rows[begin], 1):
        for rest, ends in all_ways(rows, begin + size):
            yield cost + rest, [begin, *ends]


@pytest.mark.parametrize("seed", range(200))
def test_all_ways(seed: int) -> None:
    rows = drawn(seed)
    # of equal ones each end, from the last on, has the earliest begin
    known = ((cost, ends[::-1]) for cost, ends in all_ways(rows) if cost < NEVER)
    cost, ends = min(known, default=(NEVER, []))
    assert shortest(by_end(rows, NEVER)) == (cost, ends[::-1])

    def ways(end: int) -> Iterator[tuple[float, int]]:
        for begin in range(end):
            if end - begin <= len(rows[begin]):
                yield rows[begin][end - begin - 1] / 2, begin

    def exact(begin: int, end: int) -> float:
        return rows[begin][end - begin - 1]

    assert shortest_asked(len(rows), ways, exact) == (cost, ends[::-1])


def test_rows_of_equal_ends() -> None:
    found = by_end([[1, 2], [3], [4]], 0)
    assert found.tolist() == [[0, 0], [0, 1], [2, 3], [0, 4]]
    assert found.dtype == np.int64


def test_no_place_but_the_first() -> None:
    assert shortest(by_end([], NEVER)) == (0.0, [0])
