"""The plan: kernels chosen, nodes ordered, every byte of the arena assigned."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from pybuild.errors import LimitError
from pybuild.graph import Graph, Node
from pybuild.kernels.candidate import Candidate
from pybuild.plan.compress import Unpack, as_parameters, blocks, find_packed, task
from pybuild.plan.given import given_storage
from pybuild.plan.memory import Layout, alive, place, round_up
from pybuild.plan.order import order_nodes
from pybuild.plan.slots import Key, Slot, find_slots
from pybuild.plan.storage import Block, Storage, Views, find_views, lifetimes

ARENA_ALIGN = 16
BLOCK_ALIGN = 4

Choose = Callable[[Node, Graph], list[Candidate]]


@dataclass(frozen=True)
class Place:
    """Where a tensor's first byte is.

    buffer  "arena", or the name of the input or output whose memory it is in
    at      bytes from the start of that buffer
    home    bytes from the start of the arena (of the buffer's own home, too)
    """

    buffer: str
    at: int
    home: int


@dataclass(frozen=True)
class Step:
    """One kernel's work in the plan; scratch_at: arena offset, -1 for none."""

    node: Node
    candidate: Candidate
    scratch_at: int = -1


@dataclass(frozen=True)
class Plan:
    """Everything that code generation needs to know about memory.

    consumed  inputs whose home is used for something else during a run
    slots     parameters as an instance binds them, by what tells them apart
    lazy      inputs without memory: they are where the user binds them
    unpacks   constants that are packed in flash
    copied    nodes that only move bytes, which a view could not replace
    """

    graph: Graph
    steps: tuple[Step, ...]
    places: Mapping[str, Place]
    arena_bytes: int
    lower_bound: int
    consumed: frozenset[str]
    peak: tuple[Block, ...]
    slots: Mapping[Key, Slot] = field(default_factory=dict)
    lazy: frozenset[str] = frozenset()
    unpacks: tuple[Unpack, ...] = ()

    @property
    def copied(self) -> tuple[Node, ...]:
        moves = ("reshape", "slice", "concat", "copy", "transpose", "pad")
        return tuple(s.node for s in self.steps if s.node.op in moves)


def make_plan(
    graph: Graph,
    candidates: Choose,
    keep_inputs: bool = False,
    ram_limit: int | None = None,
    lazy: Collection[str] = (),
    compress: str = "none",
) -> Plan:
    """Chooses kernels and places every tensor; storage that the graph gives is kept to.

    lazy    inputs that get no memory until the user binds them
    compress  none | lz4 | lz4-layer, see plan/compress.py
    Units   ram_limit in bytes of arena
    Errors  LimitError naming the tensors alive at the peak
    """
    if not graph.storage:
        graph = replace(graph, nodes=order_nodes(graph))
    views = find_views(graph)
    chosen = [
        (node, _best(candidates(node, graph)))
        for node in graph.nodes
        if node.output not in views.dropped
    ]
    unpacks: list[Unpack] = []
    if compress == "lz4-layer":
        chosen, unpacks = find_packed(chosen)
    elif compress == "lz4":
        chosen = as_parameters(chosen)
    held = given_storage if graph.storage else lifetimes
    storage = held(graph, chosen, views, keep_inputs, lazy)
    storage = replace(storage, blocks=(*storage.blocks, *blocks(unpacks)))
    layout = place(storage.blocks, BLOCK_ALIGN)
    peak = _peak(storage.blocks)
    if ram_limit is not None and layout.bytes > ram_limit:
        raise _too_large(graph, layout, peak, ram_limit)
    at = {b.name: o for b, o in zip(storage.blocks, layout.offsets, strict=True)}
    steps = []
    for index, (node, candidate) in enumerate(chosen):
        steps += [Step(*task(u)) for u in unpacks if u.step == index]
        steps.append(Step(node, candidate, at.get(f"{node.output} (scratch)", -1)))
    unpacked = {u.place: Place("arena", at[u.place], at[u.place]) for u in unpacks}
    return Plan(
        graph=graph,
        steps=tuple(steps),
        places=_places(graph, views, storage, at) | unpacked,
        arena_bytes=round_up(layout.bytes, BLOCK_ALIGN),
        lower_bound=layout.lower_bound,
        consumed=_consumed(graph, storage, views, layout),
        peak=peak,
        slots=find_slots(graph, chosen),
        lazy=frozenset(lazy),
        unpacks=tuple(unpacks),
    )


def _best(offers: Sequence[Candidate]) -> Candidate:
    return min(offers, key=lambda c: c.cost)


def _peak(blocks: tuple[Block, ...]) -> tuple[Block, ...]:
    """The blocks alive when most bytes are, largest first."""
    sums = alive(blocks, BLOCK_ALIGN)
    if not sums:
        return ()
    step = max(sums, key=lambda pair: pair[1])[0]
    found = [b for b in blocks if b.first <= step <= b.last]
    return tuple(sorted(found, key=lambda b: (-b.bytes, b.name)))


def _too_large(
    graph: Graph, layout: Layout, peak: tuple[Block, ...], limit: int
) -> LimitError:
    names = ", ".join(f"'{b.name}' {b.bytes}" for b in peak)
    what = f"the arena needs {layout.bytes} bytes of RAM, the limit is {limit};"
    what += f" alive at the peak: {names} bytes"
    return LimitError(graph.source, what, "a smaller input, or fewer channels there")


def _places(
    graph: Graph, views: Views, storage: Storage, at: Mapping[str, int]
) -> dict[str, Place]:
    named: dict[str, str] = {}
    for name in (*graph.outputs, *graph.inputs):
        named[views.of(name).root] = name
    places = {}
    for name in graph.tensors:
        view = views.of(name)
        if name in graph.constants:
            continue
        if view.root not in storage.block_of:
            if view.root in graph.inputs:
                places[name] = Place(view.root, view.at, view.at)
            continue
        home = at[storage.block_of[view.root]] + view.at
        buffer = named.get(view.root, "arena")
        places[name] = Place(buffer, home if buffer == "arena" else view.at, home)
    return places


def _consumed(
    graph: Graph, storage: Storage, views: Views, layout: Layout
) -> frozenset[str]:
    """Inputs whose bytes some other group, or a result in place, overwrites."""
    spans = [
        (o, o + b.bytes, b) for b, o in zip(storage.blocks, layout.offsets, strict=True)
    ]
    found = set()
    for name in graph.inputs:
        owner = storage.block_of.get(views.of(name).root)
        if owner is None:
            continue
        groups = [r for r, o in storage.block_of.items() if o == owner]
        mine = next(s for s in spans if s[2].name == owner)
        others = (s for s in spans if s[2] is not mine[2])
        overlap = any(s[0] < mine[1] and mine[0] < s[1] for s in others)
        if overlap or len(groups) > 1:
            found.add(name)
    return frozenset(found)
