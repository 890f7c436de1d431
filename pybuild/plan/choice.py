"""Which of the plans that a graph could have: the smallest at a fair price, the fastest
that fits, or all that no other beats. Knows plans by their bytes only.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from pybuild.graph import Graph
from pybuild.plan.memory import alive
from pybuild.plan.regions import BLOCK_ALIGN, Limits
from pybuild.plan.stages import Arrangement, Search

if TYPE_CHECKING:
    from pybuild.plan.plan import Plan

# times the instructions of the fastest plan that saving bytes may cost; where no row
# has as many pixels as are narrow, kernels by rows have little to share
_MOST_COST, _MOST_COST_NARROW = 1.05, 1.10
_NARROW = 8
# what trying orders may take, in steps times bands
_ORDERS_WORK = 200_000


def chosen_rows(
    search: Search,
    whole: Arrangement,
    ram_limit: Limits,
    made: Callable[[Arrangement, Limits], Plan],
) -> Plan:
    """The plan that needs the fewest bytes at a fair price; with a limit, the fastest
    that keeps it.

    whole   the stages of one step, which write results over what they are made of
    Errors  of `made`, where no plan keeps the limit
    """
    limit = ram_limit.get(0) if isinstance(ram_limit, Mapping) else ram_limit
    if limit is None:
        cost = _fair_cost(search.graph)
        fair = ordered(search, cost).least(cost)
        return made(min(whole, fair, key=least_bytes), ram_limit)
    if least_bytes(whole) <= limit:
        plan = made(whole, None)
        if plan.arena_bytes <= limit:
            return plan
    search = ordered(search, float("inf"))
    room = min(limit, search.most)
    while (found := search.fastest(room)) is not None:
        plan = made(found[1], None)
        if plan.arena_bytes <= limit:
            return plan
        room -= max(plan.arena_bytes - limit, 4)
    return made(min(whole, search.least(float("inf")), key=least_bytes), ram_limit)


def ordered(search: Search, most_cost: float) -> Search:
    """With the nodes in the order whose stages need the fewest bytes, of those that
    can be tried; where none gains, as they are."""
    best, least = search, least_bytes(search.least(most_cost))
    work = _ORDERS_WORK
    for other in search.others:
        work -= search.cuts.work
        if work < 0:
            break
        found = least_bytes(other.least(most_cost))
        if found < least:
            best, least = other, found
    return best


def least_bytes(found: Arrangement) -> int:
    """Bytes alive at once, at least."""
    sums = alive(found.storage.blocks, BLOCK_ALIGN)
    return max((total for _, total in sums), default=0)


def _fair_cost(graph: Graph) -> float:
    shapes = (graph.tensor(name).shape for n in graph.nodes for name in n.outputs)
    narrow = all(len(shape) != 4 or shape[2] < _NARROW for shape in shapes)
    return _MOST_COST_NARROW if narrow else _MOST_COST


def ram_curve(
    search: Search, made: Callable[[Search, Arrangement], Plan]
) -> list[tuple[int, float]]:
    """(bytes of arena, instructions as estimated) of plans that no other beats in both,
    the smallest first."""
    search = ordered(search, float("inf"))
    points: list[tuple[int, float]] = []
    room = search.most
    while (found := search.fastest(room)) is not None:
        cost, stages = found
        plan = made(search, stages)
        while points and points[-1][0] >= plan.arena_bytes and points[-1][1] >= cost:
            points.pop()
        if not points or plan.arena_bytes < points[-1][0]:
            points.append((plan.arena_bytes, cost))
        room = min(room, plan.lower_bound) - 4
    return points[::-1]
