"""The map of a plan's memory for readers of the C: what lies where, and for how
long."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field

from pybuild.emit.tables.comments import few
from pybuild.emit.tables.tables import MemoryRow
from pybuild.ir.graph import Graph
from pybuild.kernels.base.candidate import RowAccess
from pybuild.plan.buffers.sharing import find_views
from pybuild.plan.plan import Plan
from pybuild.plan.schedule.stages import COUNTER_BYTES
from pybuild.records import dataclass


@dataclass
class _Piece:
    """A tensor, or scratch at one place; made, read: by which steps."""

    region: int
    at: int
    bytes: int
    names: list[str] = field(default_factory=list)
    made: list[int] = field(default_factory=list)
    read: list[int] = field(default_factory=list)


def memory_map(plan: Plan) -> tuple[MemoryRow, ...]:
    """The memory map, in the order of regions and offsets."""
    pieces = [*_tensors(plan), *_scratch(plan), *_others(plan)]
    named = [
        (
            piece.region,
            MemoryRow(
                plan.regions[piece.region].name,
                piece.at,
                piece.bytes,
                live,
                few(piece.names),
            ),
        )
        for live, piece in pieces
        if piece.region >= 0
    ]
    named.sort(key=lambda n: (n[0], n[1].at, _first(n[1]), n[1].bytes))
    return tuple(row for _, row in named)


def _first(row: MemoryRow) -> int:
    """The step with which it begins to be live; -1: before all."""
    step = row.live.split("..")[0]
    return int(step) if step.isdigit() else -1


def _tensors(plan: Plan) -> Iterator[tuple[str, _Piece]]:
    """Views of one tensor are one piece."""
    graph, views, found = plan.graph, find_views(plan.graph), dict[str, _Piece]()
    for number, step in enumerate(plan.steps):
        candidate = step.candidate
        met = [(access, True) for access in candidate.outputs]
        met += [(access, False) for access in candidate.inputs]
        met += [
            (RowAccess(packed.place, 1, packed.array.nbytes), False)
            for packed in candidate.constants
            if packed.place
        ]
        for access, makes in met:
            name = access.tensor
            place = plan.places.get(name)
            if place is None:
                continue
            root = views.of(name).root if name in graph.tensors else name
            size = _bytes(plan, access)
            piece = found.setdefault(root, _Piece(place.region, place.home, size))
            if place.home < piece.at:
                piece.at = place.home
            piece.bytes = max(piece.bytes, size)
            piece.names.append(graph.shown(name) + _ring(plan, name))
            (piece.made if makes else piece.read).append(number)
    for root, piece in found.items():
        ends = {n for n in graph.outputs if views.of(n).root == root}
        yield _live(piece, root, bool(ends), graph), piece


def _bytes(plan: Plan, access: RowAccess) -> int:
    ring = plan.rings.get(access.tensor)
    if ring is not None:
        return (ring.rows - 1) * ring.pitch + access.row_bytes
    tensor = plan.graph.tensors.get(access.tensor)
    return access.rows * access.row_bytes if tensor is None else tensor.bytes


def _ring(plan: Plan, name: str) -> str:
    ring = plan.rings.get(name)
    return "" if ring is None else f", a ring of {ring.rows}"


def _live(piece: _Piece, root: str, is_output: bool, graph: Graph) -> str:
    if root in graph.state:
        return "always"
    steps = [*piece.made, *piece.read]
    first = str(min(steps)) if piece.made and min(steps) in piece.made else "start"
    return f"{first}..{'end' if is_output else max(steps)}"


def _scratch(plan: Plan) -> Iterator[tuple[str, _Piece]]:
    for number, step in enumerate(plan.steps):
        if step.scratch_at >= 0 and step.candidate.scratch:
            what = [f"scratch of {plan.graph.called(step.node)}"]
            where = (step.scratch_region, step.scratch_at)
            yield f"{number}..{number}", _Piece(*where, step.candidate.scratch, what)


def _others(plan: Plan) -> Iterator[tuple[str, _Piece]]:
    """The pieces for counters of steps, state, and parameters of devices."""
    linked = [stage for stage in plan.stages if stage.links]
    if linked:
        size = COUNTER_BYTES * max(stage.end - stage.first for stage in linked)
        what = ["how many bands each step in lock step has computed"]
        live = f"{linked[0].first}..{linked[-1].end - 1}"
        yield live, _Piece(0, plan.counters, size, what)
    for name, where in plan.slot_offsets.items():
        size = next(s.tensor.bytes for s in plan.slots.values() if s.name == name)
        what = [f"parameter {plan.graph.shown(name)}"]
        yield "always", _Piece(where.region, where.at, size, what)
