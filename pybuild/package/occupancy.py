"""The contents of a plan's memory at each time: rows of the report, for a drawing of
bytes against time. Values only; the plan has decided them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pybuild.ir.graph import Graph
from pybuild.plan.buffers.sharing import find_views, scratch_of
from pybuild.plan.memory.live_ranges import Piece, clocks
from pybuild.plan.plan import Plan
from pybuild.plan.regions.block_offsets import Occupied
from pybuild.plan.schedule.stages import COUNTERS
from pybuild.records import dataclass

Spans = tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class StageTimes:
    """Steps `first` to before `end` of `steps`, at times `start` to before `stop`.

    order  which step computes, and for how many bands in turn; (): one, all the time
    """

    first: int
    end: int
    start: int
    stop: int
    order: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True)
class PieceTimes:
    """Bytes `at` to before `end` of a block, and from when to before when each time."""

    at: int
    end: int
    times: Spans


@dataclass(frozen=True)
class BlockTimes:
    """A block of a region, and the tensors that are in it, one after the other or as
    views of each other.

    kind   "tensor", "ring", "scratch", "state", "counters", or "weights": constants and
           parameters that have a place in RAM
    pieces of it that are alive at different times
    Units  bytes
    """

    region: int
    at: int
    bytes: int
    kind: str
    name: str
    tensors: tuple[str, ...]
    pieces: tuple[PieceTimes, ...]


@dataclass(frozen=True)
class RegionTimes:
    """A region, and the most bytes of it that are alive at one time."""

    name: str
    device: int
    bytes: int
    most_alive: int


@dataclass(frozen=True)
class Occupancy:
    """Memory from step to step. Time 0 is before the run; a stage in lock step has a
    time for each band, `times` is the one after the run.
    """

    times: int
    steps: tuple[str, ...]
    stages: tuple[StageTimes, ...]
    regions: tuple[RegionTimes, ...]
    blocks: tuple[BlockTimes, ...]


def occupancy(plan: Plan) -> Occupancy | None:
    """None: of a plan that nobody made by make_plan."""
    occupied = plan.occupied
    if occupied is None:
        return None
    stages = tuple(_stages(occupied))
    after = stages[-1].stop if stages else 1
    graph = plan.graph
    blocks = tuple(_blocks(plan, occupied, after))
    return Occupancy(
        times=after,
        steps=tuple(graph.called(node) for node, _ in occupied.found.steps),
        stages=stages,
        regions=tuple(
            RegionTimes(r.name, r.device, r.bytes, _most(blocks, i))
            for i, r in enumerate(plan.regions)
        ),
        blocks=tuple(sorted(blocks, key=lambda b: (b.region, b.at, -b.bytes, b.name))),
    )


def _stages(occupied: Occupied) -> Iterator[StageTimes]:
    """The time steps of a stage; one if its blocks are alive as wholes."""
    first = 0
    for number, clock in enumerate(clocks(occupied.found)):
        end = first + len(clock.works)
        if not occupied.pieces:
            yield StageTimes(first, end, number + 1, number + 2)
        elif clock.times is None or len(clock.works) == 1:
            yield StageTimes(first, end, clock.start, clock.end)
        else:
            order = sorted(
                (int(time), first + step)
                for step, times in enumerate(clock.times)
                for time in times
            )
            turns = tuple(_turns([step for _, step in order]))
            yield StageTimes(first, end, clock.start, clock.end, turns)
        first = end


def _turns(order: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Each step, and how often it is there in turn."""
    begun = 0
    for at, step in enumerate(order):
        if at + 1 == len(order) or order[at + 1] != step:
            yield step, at + 1 - begun
            begun = at + 1


def _blocks(plan: Plan, occupied: Occupied, after: int) -> Iterator[BlockTimes]:
    graph, within = plan.graph, _tensors(plan, occupied)
    scratch = {scratch_of(node) for node, _ in occupied.found.steps}
    rings = {ring.home for ring in occupied.found.rings.values()}
    weights = {unpack.place for unpack in plan.unpacks}
    weights |= {slot.home for slot in plan.slots.values()}
    for name, block_offset in occupied.block_offsets.items():
        if block_offset.region < 0 or not block_offset.block.bytes:
            continue
        kind = _kind(name, graph, scratch, rings, weights)
        pieces = occupied.pieces.get(name)
        made: tuple[PieceTimes, ...]
        if pieces is None:
            alive = (
                max(block_offset.block.first + 1, 0),
                min(block_offset.block.last + 1, after) + 1,
            )
            made = (PieceTimes(0, block_offset.block.bytes, (alive,)),)
        else:
            made = tuple(PieceTimes(p.at, p.end, _spans(p)) for p in pieces if p.when)
        region, at, size = (
            block_offset.region,
            block_offset.at,
            block_offset.block.bytes,
        )
        held = tuple(within.get(name, ()))
        yield BlockTimes(region, at, size, kind, graph.shown(name), held, made)


def _tensors(plan: Plan, occupied: Occupied) -> dict[str, list[str]]:
    """By block, in the order in which they are computed."""
    found: dict[str, list[str]] = {}
    views, graph = find_views(plan.graph), plan.graph
    for name in graph.tensors:
        block = occupied.found.block_of(views, name)
        if block is not None and name not in graph.constants:
            found.setdefault(block, []).append(graph.shown(name))
    return found


def _kind(
    name: str, graph: Graph, scratch: set[str], rings: set[str], weights: set[str]
) -> str:
    if name == COUNTERS:
        return "counters"
    if name in scratch:
        return "scratch"
    if name in graph.state:
        return "state"
    if name in weights:
        return "weights"
    return "ring" if name in rings else "tensor"


def _spans(piece: Piece) -> Spans:
    """The times of a bit mask, as from and to before."""
    found, when, now = [], piece.when, 0
    while when:
        skip = (when & -when).bit_length() - 1
        when >>= skip
        now += skip
        count = (~when & (when + 1)).bit_length() - 1
        found.append((now, now + count))
        when >>= count
        now += count
    return tuple(found)


def _most(blocks: Sequence[BlockTimes], region: int) -> int:
    """Bytes alive at the time when most are."""
    changes: dict[int, int] = {}
    for block in blocks:
        if block.region != region:
            continue
        for piece in block.pieces:
            for start, stop in piece.times:
                changes[start] = changes.get(start, 0) + piece.end - piece.at
                changes[stop] = changes.get(stop, 0) - (piece.end - piece.at)
    most = now = 0
    for _, change in sorted(changes.items()):
        now += change
        most = max(most, now)
    return most
