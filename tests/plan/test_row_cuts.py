"""Stages whose bytes are counted row by row: as few as any cuts need, and no more than
the count says; many equal layers in place do not drift."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace

import pytest

import pybuild
from pybuild.ir.graph import Graph
from pybuild.plan import make as planner
from pybuild.plan.choice import least_bytes
from pybuild.plan.memory.live_ranges import in_pieces
from pybuild.plan.memory.row_cuts import RowCuts
from pybuild.plan.schedule.partition import Cut
from pybuild.plan.schedule.stages import Search, arranged
from tests.fieldnets.maker import Maker
from tests.graphs.rows import model_of
from tests.plan.test_plan_bytes import check
from tests.plan.test_stages import _Branches, search_of

FREE, WORK = float("inf"), 1_000_000


def spent(seed: int) -> Search:
    search = search_of(_Branches(seed).graph())
    return replace(search, spent=search.graph.inputs)


def alive(search: Search, found: list[Cut]) -> int:
    pieces = in_pieces(
        search.graph, search.views, arranged(search, found), (), search.spent
    )
    assert pieces is not None
    return pieces.most


def every_cutting(search: Search) -> Iterator[list[Cut]]:
    """With the kernels that need the least scratch; layers alone also by rows."""
    known, count = search.cuts, len(search.nodes)
    for marks in itertools.product((False, True), repeat=count - 1):
        ends = [i + 1 for i, mark in enumerate(marks) if mark] + [count]
        ways = []
        for at, end in itertools.pairwise([0, *ends]):
            each = [known.joined] + [known.alone] * (end - at == 1)
            able = [options[at:end] for options in each if all(options[at:end])]
            least = [
                tuple(min(o, key=lambda c: c.scratch) for o in options)
                for options in able
            ]
            ways.append([Cut(at, kernels) for kernels in least])
        yield from map(list, itertools.product(*ways))


@pytest.mark.parametrize("seed", [3, 16, 24, 50, 72])
def test_no_cuts_need_fewer_bytes_row_by_row(seed: int) -> None:
    """Rounded up: counters, and each tensor of another length than four bytes."""
    search = spent(seed)
    least, found = RowCuts(search, WORK).least(FREE, still=False)
    fewest = min(alive(search, cuts) for cuts in every_cutting(search))
    assert fewest <= least + 4 and least <= fewest + 4 * len(search.nodes) + 16
    pieces = in_pieces(search.graph, search.views, found, (), search.spent)
    assert pieces is not None and pieces.most <= least + 4
    assert least <= least_bytes(search.least(FREE))


@pytest.mark.parametrize("seed", [3, 16, 24, 50, 72])
def test_no_cuts_that_fit_are_faster(seed: int) -> None:
    search = spent(seed)
    counted, count = RowCuts(search, WORK), len(search.nodes)
    least, _ = counted.least(FREE, still=False)
    for limit in range(least, search.most + 4, max(4, (search.most - least) // 8)):
        cost, found = counted.best(limit)
        costs = {
            (a, b): counted._cost(a, b, limit)
            for a, b in itertools.combinations(range(count + 1), 2)
            if b - a <= len(search.cuts.bases[a])
        }
        assert cost == fastest(costs, count) < float("inf")
        ends = [cut.first for cut in found] + [count]
        assert cost == sum(costs[cut] for cut in itertools.pairwise(ends))


def fastest(costs: dict[tuple[int, int], float], count: int) -> float:
    """Of every way from 0 to `count`, one by one."""
    ways = [0.0]
    for end in range(1, count + 1):
        ways.append(min(ways[a] + c for (a, b), c in costs.items() if b == end))
    return ways[count]


def test_rows_save_what_whole_tensors_do_not() -> None:
    gains = []
    for seed in (3, 16, 24, 37, 50, 72):
        search = spent(seed)
        least, _ = RowCuts(search, WORK).least(FREE, still=False)
        gains.append(least / least_bytes(search.least(FREE)))
    assert min(gains) < 0.8 and max(gains) <= 1


def equal_layers(count: int) -> pybuild.Model:
    """3x3 over 24 rows of 64 bytes, again and again."""
    m = Maker(1, (24, 16, 4))
    x = m.x
    for _ in range(count):
        x = m.conv(x, 4, 3, act="relu")
    return pybuild.load(m.file(x))


def test_many_equal_layers_in_place_do_not_drift() -> None:
    """One alone lies two rows before what it is made of: 12 would move by 24 rows. Two
    in lock step end where they began."""
    library = equal_layers(12).build(input="consumable")
    bound = library.ram_bound() - library.tables.instance_bytes
    arena = library.plan.arena_bytes
    assert arena <= 1.15 * bound
    check(library)
    limited = equal_layers(12).build(input="consumable", ram_limit=arena)
    assert limited.plan.arena_bytes <= arena


def test_stages_of_a_plan_say_what_they_have_room_for() -> None:
    """Other kernels are chosen where they fit; the arena is no larger."""
    graph: Graph = _Branches(24).graph()
    search = spent(24)
    _, found = RowCuts(search, WORK).least(FREE, still=True)
    assert len(found.rooms) == len(found.steps)
    scratch = [candidate.scratch for _, candidate in found.steps]
    rooms = [room.scratch for room in found.rooms]
    assert all(a <= b for a, b in zip(scratch, rooms, strict=True))
    assert planner.placed(search, found).arena_bytes <= least_bytes(search.least(FREE))
    check(model_of(graph).build(input="consumable"))
