"""Makes the plan: kernels chosen, nodes ordered, every byte of the arena assigned."""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

from pybuild.ir.graph import Graph, Node
from pybuild.kernels.base.candidate import TASK_WAIT, Candidate, RowAccess
from pybuild.options.regions import RegionSpec
from pybuild.passes.sums import apart
from pybuild.plan.buffers.compressed import Unpack, as_parameters, find_packed, task
from pybuild.plan.buffers.offsets import BlockOffset
from pybuild.plan.buffers.parameter_slots import find_slots, slot_blocks
from pybuild.plan.buffers.preassigned import given_storage
from pybuild.plan.buffers.sharing import Block, Views, find_views, lifetimes, scratch_of
from pybuild.plan.buffers.state_in_place import overlays, written_in_place
from pybuild.plan.choice import Ways, chosen_rows, least_bytes
from pybuild.plan.less_scratch import with_less_scratch
from pybuild.plan.memory.persistent import kept_memory
from pybuild.plan.memory.tensor_offsets import ARENA, Place, by_tensor, place_tensors
from pybuild.plan.plan import Plan, Step, estimate
from pybuild.plan.regions.block_offsets import Given, find_block_offsets, laid_once
from pybuild.plan.regions.regions import (
    BLOCK_ALIGN,
    Region,
    Wishes,
    overwritten,
)
from pybuild.plan.regions.weight_cache import find_hot, keep_placed
from pybuild.plan.row_input import pushed_plan
from pybuild.plan.schedule.device_waits import Span, Touch, waits
from pybuild.plan.schedule.lock_step import Work
from pybuild.plan.schedule.order import order_nodes
from pybuild.plan.schedule.saved import Saved
from pybuild.plan.schedule.stages import (
    COUNTERS,
    Arrangement,
    Search,
    Stage,
    in_bands,
    without_spare,
)
from pybuild.plan.stage_kernels import exchanged
from pybuild.select.choose import Weighed, estimated, with_constants

# fraction of all bytes by which each stage's scratch may grow to save code
_SHARE = 32

Choose = Callable[[Node, Graph], list[Candidate]]
# a plan, its stages, and the function that made the plan from them
Origin = tuple[Plan, Arrangement, Callable[[Arrangement], Plan]]


def make_plan(
    graph: Graph,
    candidates: Choose,
    keep_inputs: bool = False,
    limit: int | None = None,
    lazy: Collection[str] = (),
    compress: str = "none",
    rows: bool = False,
    specs: Sequence[RegionSpec] = (),
    pushed: Collection[str] = (),
    weighed: Weighed | None = None,
    spent: Collection[str] = (),
    optimise: str = "balanced",
    known: Saved | None = None,
    unlimited: Callable[[], Plan] | None = None,
) -> Plan:
    """Choose kernels and place every tensor; keep storage that the graph prescribes.

    lazy    inputs and outputs that get no memory until the user binds them
    compress  none | lz4 | lz4-layer, see plan/buffers/compressed.py
    rows    whether steps may advance in lock step, with rings of rows between them
    pushed  inputs that arrive in rows; rings are then used whatever `rows` says
    specs   the user's regions; a device without any gets one as large as it needs
    weighed  the cost model's prices of all candidates; None: memory alone decides
    spent   inputs whose rows may be overwritten while later rows are still to be read
    optimise  "size": small tables and code; "ram": a small arena (needs `weighed`)
    known   stage facts from other plans; unlimited: makes the plan without a limit
            and with held inputs
    limit   bytes of the CPU's arena; a plan that exceeds it has the fewest bytes
    Errors  LimitError if the regions are too small
    """
    graph = _arranged(graph, candidates, bool(pushed))
    views = find_views(graph)
    nodes = [node for node in graph.nodes if node.output not in views.dropped]
    options = [(node, candidates(node, graph)) for node in nodes]
    little, thrifty = optimise == "size", optimise == "ram"
    small = any(candidate.small for _, offers in options for candidate in offers)

    origins: list[Origin] = []

    @laid_once
    def lay(one: Arrangement, given: Given) -> Plan:
        return _placed(graph, views, *_unpacked(one, compress, specs), given)

    def made(found: Arrangement) -> Plan:
        fine = bool(rows or pushed or spent) and not (graph.storage or specs)
        given = Given(tuple(lazy), tuple(specs), frozenset(pushed),
                      frozenset(spent), fine and not graph.is_placed,
                      little)  # fmt: skip
        laid = partial(lay, given=given)
        if weighed is None:
            return laid(found)
        more = least_bytes(found) // _SHARE if little and limit is None else 0
        plan = laid(exchanged(found, options, weighed, 0, more))
        if not (graph.storage or specs or (limit is None and not (little and small))):
            # room up to the limit, or that other stages need anyway, serves kernels
            most = plan.arena_bytes if limit is None else limit
            less = laid(exchanged(found, options, weighed, most, more))
            plan = less if less.arena_bytes <= most else plan
        origins.append((plan, found, laid))
        return plan

    lighter = partial(_lighter, origins, options, weighed if little else None)
    if pushed:
        assert unlimited is not None, "it is compared with that of inputs that are held"
        search = Search(graph, options, views, keep_inputs, lazy, (), known or Saved())
        cost = partial(estimate, kernels=weighed.options if weighed else {})
        return lighter(pushed_plan(search, pushed, made, limit, unlimited, cost))

    whole = partial(_whole, graph, views, keep_inputs, lazy)
    found = whole([(node, _best(offers)) for node, offers in options])
    if thrifty:
        found = whole(with_less_scratch(found, options))
    if rows and not graph.storage and not graph.is_placed and compress != "lz4-layer":
        known = known or Saved()
        search = Search(graph, options, views, keep_inputs, lazy, spent, known)
        ways = _ways(search, found, weighed, little)
        times = _times(found, options, weighed)
        return lighter(chosen_rows(ways, limit, made, unlimited, thrifty, times))
    return made(found)


def _arranged(graph: Graph, candidates: Choose, pushed: bool) -> Graph:
    """Return the graph with its nodes in execution order. States are updated in place
    where possible, but not if rows are pushed: all layers may then have to be in one
    stage."""
    if not graph.storage:
        graph = replace(graph, nodes=order_nodes(graph))

    def allowed(node: Node, output: str) -> Collection[int]:
        return overlays(node, output, candidates(node, graph))

    return graph if pushed else written_in_place(graph, allowed)


def _whole(
    graph: Graph,
    views: Views,
    keep_inputs: bool,
    lazy: Collection[str],
    chosen: Sequence[Work],
) -> Arrangement:
    """Return an arrangement in which each step is a stage of its own."""
    held = given_storage if graph.storage else lifetimes
    storage = held(graph, chosen, views, keep_inputs, lazy)
    names = tuple(scratch_of(n) if c.scratch else "" for n, c in chosen)
    return Arrangement(tuple(chosen), (), storage, scratch=names)


def _lighter(
    origins: Sequence[Origin],
    options: Sequence[tuple[Node, Sequence[Candidate]]],
    weighed: Weighed | None,
    plan: Plan,
) -> Plan:
    """Return the plan, with the same stages and no more arena, whose kernels and
    constants take the least flash. Tables are packed for this, so only one plan is
    tried. Without `weighed` the plan is returned unchanged, and so is one that is not
    of `origins`."""
    mine = next((one for one in origins if one[0] is plan), None)
    if weighed is None or mine is None:
        return plan
    _, found, laid = mine
    offers = {node.output: candidates for node, candidates in options}
    known = {n: each for n, each in weighed.options.items() if n in offers}
    every = Weighed(with_constants(known, offers), weighed.optimise)

    def flash(one: Plan) -> int:
        return every.bytes((step.node, step.candidate) for step in one.steps)

    most = plan.arena_bytes
    tried = [
        laid(exchanged(found, options, replace(every, optimise=how), most))
        for how in (weighed.optimise, "balanced")
    ]
    return min([plan, *(p for p in tried if p.arena_bytes <= most)], key=flash)


def _ways(
    search: Search, whole: Arrangement, weighed: Weighed | None, little: bool
) -> Ways:
    """Return three search spaces: all kernels; without those that save bytes at a
    price; the latter re-costed with the cost model, if there is one."""
    least, search = search, without_spare(search)
    priced: list[tuple[Node, list[Candidate]]] = []
    for node, offers in least.nodes:
        prices = weighed.options.get(node.output, ()) if weighed else ()
        costs = [option.instructions for option in prices] or [c.cost for c in offers]
        pairs = zip(offers, costs, strict=True)
        made = [replace(c, cost=cost) for c, cost in pairs if not c.spare]
        priced.append((node, made))
    bands = [(node, in_bands(offers)) for node, offers in priced]
    coarse = None if bands == priced else replace(search, nodes=bands)
    every = replace(search, nodes=priced)
    return Ways(least, search, every, whole, little, coarse)


def _times(
    whole: Arrangement,
    options: Sequence[tuple[Node, Sequence[Candidate]]],
    weighed: Weighed | None,
) -> Callable[[Plan], float]:
    """Return a function: the estimated instructions of a plan, as a multiple of those
    for whole tensors."""
    if weighed is None:
        return lambda plan: 1.0

    @functools.cache
    def base() -> int:
        steps = exchanged(whole, options, weighed).steps
        return sum(estimated(steps, weighed.options)) or 1

    return lambda plan: estimate(plan, weighed.options) / base()


def placed(search: Search, found: Arrangement) -> Plan:
    """Return the plan of given stages, without limits or regions."""
    lazy, spent = tuple(search.lazy), frozenset(search.spent)
    given = Given(lazy, (), frozenset(), spent, True)
    return _placed(search.graph, search.views, found, (), given)


def _unpacked(
    found: Arrangement, compress: str, specs: Iterable[RegionSpec]
) -> tuple[Arrangement, list[Unpack]]:
    """Turn constants into parameters, or give them a place in RAM, as options ask."""
    steps, unpacks = list(found.steps), list[Unpack]()
    if compress == "lz4":
        steps = as_parameters(steps)
    elif compress == "lz4-layer":
        steps, unpacks = find_packed(steps)
    elif any(spec.weights for spec in specs):
        steps, unpacks = find_hot(steps)
    return replace(found, steps=tuple(steps)), unpacks


def _placed(
    graph: Graph,
    views: Views,
    found: Arrangement,
    unpacks: Sequence[Unpack],
    given: Given,
) -> Plan:
    """Assign an offset to every block and return the finished plan."""
    slots = find_slots(graph, found.steps)
    homes = slot_blocks(slots.values(), len(found.steps))
    stages = found.stages or tuple(Stage(i, i + 1) for i in range(len(found.steps)))
    when = [k for k, stage in enumerate(stages) for _ in range(stage.first, stage.end)]
    copies = (Block(u.place, u.size, when[u.step], when[u.step]) for u in unpacks)
    wishes = Wishes(
        given.specs,
        hot=frozenset(unpack.place for unpack in unpacks if unpack.plain),
        source=graph.source,
        shown=graph.shown,
        leading=COUNTERS,
        align=max((BLOCK_ALIGN, *(t.dtype.bytes for t in graph.tensors.values()))),
    )
    beside = (*copies, *homes.values())
    occupied, regions = find_block_offsets(
        graph, views, found, beside, slots, wishes, given
    )
    found, block_offsets = occupied.found, occupied.block_offsets
    chosen, unpacks = keep_placed(found.steps, unpacks, block_offsets)
    found = replace(found, steps=tuple(chosen))
    places = place_tensors(graph, views, found, block_offsets, given.pushed)
    for unpack in unpacks:
        block_offset = block_offsets[unpack.place]
        places[unpack.place] = Place(
            ARENA, block_offset.at, block_offset.at, block_offset.region
        )
    steps, stages = _steps(found, stages, unpacks, block_offsets)
    if not found.stages:
        steps = with_waits(graph, steps, places, regions)
        stages = tuple(Stage(i, i + 1) for i in range(len(steps)))
    return Plan(
        graph=apart(graph),
        steps=tuple(steps),
        places=places,
        regions=regions,
        consumed=overwritten(graph, found.storage, views, block_offsets),
        slots=slots,
        slot_offsets={name: block_offsets[block.name] for name, block in homes.items()},
        lazy=frozenset(given.lazy),
        pushed=given.pushed,
        unpacks=tuple(unpacks),
        stages=stages,
        rings=by_tensor(graph, views, found),
        counters=block_offsets[COUNTERS].at if COUNTERS in block_offsets else 0,
        owners=found.storage.block_of,
        kept=kept_memory(graph, block_offsets),
        occupied=occupied,
    )


def _steps(
    found: Arrangement,
    stages: Sequence[Stage],
    unpacks: Sequence[Unpack],
    block_offsets: Mapping[str, BlockOffset],
) -> tuple[Sequence[Step], tuple[Stage, ...]]:
    """Return the steps with their scratch offsets, and the stages. Constants are
    unpacked just before the stage that uses them, each in a stage of its own."""
    steps: list[Step] = []
    made: list[Stage] = []
    for stage in stages:
        for unpack in unpacks:
            if stage.first <= unpack.step < stage.end:
                made.append(Stage(len(steps), len(steps) + 1))
                steps.append(Step(*task(unpack)))
        first = len(steps)
        for index in range(stage.first, stage.end):
            node, candidate = found.steps[index]
            block_offset = block_offsets.get(found.scratch[index])
            where = (block_offset.at, block_offset.region) if block_offset else (-1, 0)
            steps.append(Step(node, candidate, *where))
        made.append(Stage(first, len(steps), stage.links))
    return steps, tuple(made)


def with_waits(
    graph: Graph,
    steps: Sequence[Step],
    places: Mapping[str, Place],
    regions: Sequence[Region],
) -> tuple[Step, ...]:
    """Insert a wait step wherever the CPU must wait for a device."""
    crossings = graph.crossings()
    touches = [_touch(graph, step, places, regions, crossings) for step in steps]
    made: list[Step] = []
    for step, late in zip(steps, waits(touches), strict=True):
        for device in late:
            node = Node("wait", f"for device {device}", (), ())
            made.append(Step(node, Candidate(None, (TASK_WAIT, device), (), ())))
        made.append(step)
    return tuple(made)


def _touch(
    graph: Graph,
    step: Step,
    places: Mapping[str, Place],
    regions: Sequence[Region],
    crossings: Mapping[str, tuple[int, int]],
) -> Touch:
    def spans(accesses: Iterable[RowAccess]) -> Iterator[Span]:
        for access in accesses:
            at = places[access.tensor]
            size = access.row_bytes
            if access.tensor in graph.tensors:  # no unpacked constant
                size = graph.tensor(access.tensor).bytes
            if at.region < 0:
                yield Span(at.buffer, at.at, at.at + size)
            elif regions[at.region].device == 0:
                yield Span(_memory(at.region), at.home, at.home + size)

    candidate = step.candidate
    writes = [*spans(candidate.outputs)]
    if candidate.scratch and step.node.device == 0:
        memory, at = _memory(step.scratch_region), step.scratch_at
        writes.append(Span(memory, at, at + candidate.scratch))
    device = max(crossings.get(step.node.output, (step.node.device,)))
    return Touch(device, tuple(spans(candidate.inputs)), tuple(writes))


def _memory(region: int) -> str:
    """The name of one of the CPU's regions for dependency checks; no tensor has this
    name."""
    return f"{ARENA} {region}"


def _best(offers: Sequence[Candidate]) -> Candidate:
    return min((c for c in offers if c.finish is None), key=lambda c: c.cost)
