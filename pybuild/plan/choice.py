"""Chooses a plan: the smallest within an allowed cost, the fastest that fits, or the
Pareto front. Knows plans by their bytes only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from pybuild.errors import LimitError
from pybuild.ir.graph import Graph
from pybuild.kernels.base.candidate import Candidate
from pybuild.plan.buffers.offsets import alive
from pybuild.plan.buffers.sharing import find_views
from pybuild.plan.memory.live_ranges import in_pieces
from pybuild.plan.memory.row_cuts import RowCuts
from pybuild.plan.plan import Plan, spent_inputs
from pybuild.plan.regions.regions import BLOCK_ALIGN
from pybuild.plan.schedule.stages import Arrangement, Search, arranged
from pybuild.records import dataclass

# instructions that saving bytes may cost, relative to the fastest plan; the second for
# graphs whose rows are all narrow, where kernels by rows have little to share
_MOST_COST, _MOST_COST_NARROW = 1.05, 1.10
# the same where RAM goes first
MOST_COST_RAM = 2.0
# tolerance on that price: estimates of kernels by rows are rather too high
_SURE = 1.05
# plans above this multiple of the fewest bytes may use kernels that save bytes at a
# price
_MUCH = 1.1
# a higher price must leave at most this fraction of the bytes, and save at least these
_WORTH, _SPARED = 0.9, 1024
# instructions, relative to whole tensors by the cost model, that any saving may cost;
# how many such plans are made
FAIR, _TRIED = 1.06, 5
# the same for a saving that is_worth() accepts
DEAR = _MOST_COST_NARROW
HARDLY = 1.01  # times the bytes of the smallest plan, for a faster one
_NARROW = 8
# work limit for trying orders, in steps times bands
_ORDERS_WORK = 200_000
# larger graphs get fewer tries of stages; the factor in bytes from one try to the next
_MOST_NODES, _STEP = 100, 0.95
_ANY = float("inf")
# larger graphs are not counted row by row; work limit for others, in steps times bands
_MOST_FINE, _FINE_WORK = 70, 500_000


@dataclass(frozen=True)
class Ways:
    """The search spaces from which the plan of a graph is chosen.

    search  all kernels
    usual   without the kernels that save bytes at a higher price
    priced  `usual`, with costs from the cost model that chooses kernels
    whole   one step per stage: tensors are whole, and results overwrite their operands
    little  optimise for code size: never pay more instructions for less RAM
    coarse  `priced`, but with the cheaper kernels of several rows a call; None: no such
    """

    search: Search
    usual: Search
    priced: Search
    whole: Arrangement
    little: bool = False
    coarse: Search | None = None


Made = Callable[[Arrangement], Plan]


def chosen_rows(
    ways: Ways,
    limit: int | None,
    made: Made,
    unlimited: Callable[[], Plan] | None = None,
    thrifty: bool = False,
    times: Callable[[Plan], float] = lambda _: 1.0,
) -> Plan:
    """Return the plan with the fewest bytes at an acceptable price; with a limit, the
    fastest plan that keeps to it, or the smallest of all if none does.

    limit    bytes of arena
    unlimited  makes the plan without a limit
    times    a plan's instructions, as a multiple of those for whole tensors
    thrifty  allow twice the instructions to save RAM
    """
    search, whole = ways.search, ways.whole
    if limit is None:
        plan = _fair(ways, made, times)
        if thrifty:
            return _thrifty(ordered(search, MOST_COST_RAM), plan, made)
        return plan
    if least_bytes(whole) <= limit:
        plan = made(whole)
        if plan.arena_bytes <= limit:
            return plan
    searches = filter(None, (search, ways.coarse))
    tried = [*filter(None, (_fastest_within(one, limit, made) for one in searches))]
    tried += _plans(unlimited) if unlimited else []
    fits = [plan for plan in tried if plan.arena_bytes <= limit]
    if fits:
        return min(fits, key=times)
    search = ordered(search, _ANY)
    first = made(min(whole, search.least(_ANY), key=least_bytes))
    plan = _smallest(search, _ANY, first, made)
    tried += [plan, *_finer(search, _ANY, plan, made)]
    return min(tried, key=lambda one: one.arena_bytes)


def _plans(made: Callable[[], Plan]) -> list[Plan]:
    """Return the plan, or none if it does not fit the user's regions."""
    try:
        return [made()]
    except LimitError:
        return []


def _fastest_within(search: Search, limit: int, made: Made) -> Plan | None:
    """Return the plan with the fastest stages that fit the limit, or None."""
    search = ordered(search, _ANY)
    start = search.most if len(search.nodes) <= _MOST_NODES else limit
    for _, found in _smaller(search, start, _STEP):
        if _most_alive(search, found) <= limit:
            plan = made(found)
            if plan.arena_bytes <= limit:
                return plan
    return None


def _fair(ways: Ways, made: Made, times: Callable[[Plan], float]) -> Plan:
    """Return the plan with the fewest bytes at an acceptable price. Kernels that save
    bytes, and then a higher price, are used only where they save far more bytes than
    other kernels can at any price."""
    tries = _Tries(ways, made, times)
    cost = _fair_cost(ways.search.graph)
    plan, spares = tries.least(cost), ways.usual is not ways.search
    if ways.search.spent and spares:  # an input that is written over spares little
        plan = tries.sparing(cost, plan)
    if not tries.is_large(plan):
        return plan if ways.little else tries.fewer(plan, tries.comes_to(plan))
    if spares:
        plan = tries.sparing(cost, plan)
    if ways.little or not tries.is_large(plan):
        return plan
    plan = tries.fewer(plan, FAIR)
    less = plan
    if cost < _MOST_COST_NARROW:
        less = min(plan, tries.least(_MOST_COST_NARROW), key=lambda p: p.arena_bytes)
        if spares:
            less = tries.sparing(_MOST_COST_NARROW, less)
    less = tries.fewer(less, _MOST_COST_NARROW)
    return less if is_worth(less.arena_bytes, plan.arena_bytes) else plan


def is_worth(fewer: float, bytes_: float) -> bool:
    """True if so many fewer bytes may cost up to DEAR times the instructions."""
    return fewer <= min(_WORTH * bytes_, bytes_ - _SPARED)


@dataclass(frozen=True)
class _Tries:
    """Makes the candidate plans among which _fair chooses."""

    ways: Ways
    made: Made
    times: Callable[[Plan], float]

    def least(self, cost: float) -> Plan:
        """Return the plan with the fewest bytes, without kernels that save bytes at a
        price. Kernels are chosen after stages and may cost more than the stages
        assumed. If that exceeds the allowed cost, stages are searched again with the
        cost model; if these exceed it too, tensors stay whole."""
        tried = self._stages(self.ways.usual, cost)
        if tried[0][0] > cost:
            tried += self._stages(self.ways.priced, cost)
        if self.ways.coarse is not None:
            tried += self._stages(self.ways.coarse, cost)
        tried = [one for one in tried if one[0] <= cost * _SURE]
        if not tried:
            return self.made(self.ways.whole)
        return _fastest(tried)

    def comes_to(self, plan: Plan) -> float:
        """Return the plan's instructions, as a multiple of those of whole tensors."""
        return self.times(plan)

    def sparing(self, cost: float, plan: Plan) -> Plan:
        """Return `plan`, or a smaller one with kernels that save bytes at a price."""
        found = (one for _, one in self._stages(self.ways.search, cost))
        # for whole tensors, too, such kernels take more instructions
        most = min(cost * _SURE, _MOST_COST_NARROW)
        able = (one for one in found if self.times(one) <= most)
        return min([plan, *able], key=lambda one: one.arena_bytes)

    def fewer(self, plan: Plan, cost: float) -> Plan:
        """Return the smallest plan whose kernels cost at most `cost`: `plan`, or one of
        a few made with fewer bytes alive."""
        if len(self.ways.priced.nodes) > _MOST_FINE:
            return plan
        search, best, tried = ordered(self.ways.priced, cost), plan, 0
        first = search.cuts.best(search.most)[0]
        for price, found in _smaller(search, search.most, _STEP):
            if tried == _TRIED or price > cost * _SURE * first:
                break
            if _most_alive(search, found) < best.arena_bytes:
                tried += 1
                one = self.made(found)
                if one.arena_bytes < best.arena_bytes and self.times(one) <= cost:
                    best = one
        return best

    def is_large(self, plan: Plan) -> bool:
        """Return True if a plan by rows has far fewer bytes, at any price."""
        search = ordered(self.ways.search, _ANY)
        found = search.least(_ANY)
        if plan.arena_bytes <= _MUCH * _most_alive(search, found):
            return False
        return plan.arena_bytes > _MUCH * self.made(found).arena_bytes

    def _stages(self, search: Search, cost: float) -> list[tuple[float, Plan]]:
        """Return plans of the fewest bytes, each with its relative instructions."""
        found = ordered(search, cost)
        least = min(self.ways.whole, found.least(cost), key=least_bytes)
        plan = self.made(least)
        if search.spent:
            plan = _smallest(found, cost, plan, self.made)
        plans = [plan, *_finer(found, cost, plan, self.made)]
        return [(self.comes_to(one), one) for one in plans]


def _finer(search: Search, most_cost: float, plan: Plan, made: Made) -> list[Plan]:
    """Return the plan with the fewest bytes as counted row by row, if it is smaller;
    results may lie anywhere, or stay within the memory of their operands.
    """
    if len(search.nodes) > _MOST_FINE:
        return []
    cuts, best = RowCuts(search, _FINE_WORK), plan
    for still in (False, True):
        least, found = cuts.least(most_cost, still)
        if found.steps and least < best.arena_bytes:
            best = min(best, made(found), key=lambda one: one.arena_bytes)
    return [best] if best is not plan else []


def _fastest(tried: Sequence[tuple[float, Plan]]) -> Plan:
    """Return the fastest plan of those that are hardly larger than the smallest."""
    most = min(plan.arena_bytes for _, plan in tried) * HARDLY
    able = [one for one in tried if one[1].arena_bytes <= most]
    return min(able, key=lambda one: one[0])[1]


def _thrifty(search: Search, fair: Plan, made: Made) -> Plan:
    """Return the plan with the fewest bytes, or a faster one that is hardly larger; it
    is never larger than the plan at an acceptable price."""
    found = search.least(MOST_COST_RAM)
    plan = min(fair, made(found), key=lambda one: one.arena_bytes)
    plan = _smallest(search, MOST_COST_RAM, plan, made)
    most = min(fair.arena_bytes, int(plan.arena_bytes * HARDLY))
    if most == plan.arena_bytes:
        return plan
    _, cuts = search.cuts.best(int(least_bytes(found) * HARDLY))
    faster = made(arranged(search, cuts)) if cuts else plan
    return next(one for one in (faster, fair, plan) if one.arena_bytes <= most)


def _smallest(search: Search, most_cost: float, best: Plan, made: Made) -> Plan:
    """Return the smallest plan of stages at an allowed cost, counted row by row, or
    `best`."""
    tries: list[tuple[int, int, Arrangement]] = []
    fastest = 0.0
    for cost, found in _smaller(search, search.most, _STEP):
        fastest = fastest or cost
        if cost > fastest * most_cost:
            break
        tries.append((_most_alive(search, found), len(tries), found))
    for least, _, found in sorted(tries, key=lambda one: one[:2]):
        if least >= best.arena_bytes:
            break
        best = min(best, made(found), key=lambda plan: plan.arena_bytes)
    return best


def _smaller(
    search: Search, room: int, step: float
) -> Iterator[tuple[float, Arrangement]]:
    """Yield (instructions, stages): the fastest stages first, then ones with fewer and
    fewer bytes alive at once. Inputs whose rows may be overwritten do not count: other
    blocks may lie there.

    step  the next stages have at most this fraction of the bytes
    """
    lazy = (*search.lazy, *search.spent)
    counted = replace(search, lazy=lazy) if search.spent else search
    room = min(room, search.most)
    while True:
        cost, cuts = counted.cuts.best(room)
        if not cuts:
            return
        yield cost, arranged(search, cuts)
        least = least_bytes(arranged(counted, cuts))
        room = min(room - 4, least - 4, int(room * step))


def _most_alive(search: Search, found: Arrangement) -> int:
    """Return the peak of bytes alive, counted row by row if possible."""
    key = (id(found.storage), *search.spent)
    if key not in search.alive:
        pieces = in_pieces(search.graph, search.views, found, (), search.spent)
        most = pieces.most if pieces else least_bytes(found)
        search.alive[key] = found.storage, most
    return search.alive[key][1]


def ordered(search: Search, most_cost: float) -> Search:
    """Put the nodes in the order whose stages need the fewest bytes, of the orders that
    can be tried; keep the order if none saves bytes."""
    best, least = search, _bytes(search.least(most_cost))
    work = _ORDERS_WORK
    for other in search.others:
        work -= search.cuts.work
        if work < 0:
            break
        found = _bytes(other.least(most_cost))
        if found < least:
            best, least = other, found
    return best


def _bytes(found: Arrangement) -> float:
    """Return the same as least_bytes, or infinity if there are no stages."""
    return least_bytes(found) if found.steps else _ANY


def least_bytes(found: Arrangement) -> int:
    """Return the peak of bytes alive if blocks are alive as wholes."""
    sums = alive(found.storage.blocks, BLOCK_ALIGN)
    return max((total for _, total in sums), default=0)


def _fair_cost(graph: Graph) -> float:
    shapes = (graph.tensor(name).shape for n in graph.nodes for name in n.outputs)
    narrow = all(len(shape) != 4 or shape[2] < _NARROW for shape in shapes)
    return _MOST_COST_NARROW if narrow else _MOST_COST


def search_of(
    plan: Plan, kernels: Mapping[str, list[Candidate]], inputs: str
) -> Search:
    """Return the search space that a plan was chosen from; inputs: "keep", "consumable"
    or "reuse"."""
    graph, views = plan.graph, find_views(plan.graph)
    nodes = [(n, kernels[n.output]) for n in graph.nodes
             if n.output not in views.dropped]  # fmt: skip
    spent = spent_inputs(graph, inputs)
    return Search(graph, nodes, views, inputs == "keep", plan.lazy, spent)


def by_rows(plan: Plan) -> int:
    """Return the number of layers that advance in lock step with others."""
    return sum(s.end - s.first for s in plan.stages if s.end - s.first > 1)


def arena_sizes(
    search: Search, made: Callable[[Search, Arrangement], Plan]
) -> list[int]:
    """Return the bytes of arena from which on other stages are faster, in falling
    order. A limit gives kernels room, so its plan may be another than that of the
    stages alone."""
    search = ordered(search, _ANY)
    sizes: list[int] = []
    for _, stages in _smaller(search, search.most, 1.0):
        size = made(search, stages).arena_bytes
        if not sizes or size < sizes[-1]:
            sizes.append(size)
    return sizes
