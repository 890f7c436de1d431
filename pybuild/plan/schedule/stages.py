"""The stages of a plan: which steps advance together, and which memory they need.

Knows blocks and rings, no addresses.
"""

from __future__ import annotations

import functools
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace

from pybuild.ir.graph import Graph, Node
from pybuild.kernels.base.candidate import Candidate
from pybuild.ops.base.signatures import WHEN_SET
from pybuild.plan.buffers.sharing import Block, Storage, Views, groups, staged
from pybuild.plan.buffers.state_in_place import old_reads
from pybuild.plan.schedule.lock_step import PUSH, Link, Lockstep, Ring, Work, join
from pybuild.plan.schedule.order import orders
from pybuild.plan.schedule.partition import Cut, Cuts, expand
from pybuild.plan.schedule.saved import Saved
from pybuild.records import dataclass

COUNTERS = "(counters)"
COUNTER_BYTES = 2
_MOST_ORDERS = 60  # of nodes that are tried
_HARDLY = 1.03  # times the instructions of the cheapest kernel of rows

Nodes = Sequence[tuple[Node, Sequence[Candidate]]]


@dataclass(frozen=True)
class Stage:
    """The steps from `first` to before `end`; links: what each waits for, () for a
    single step."""

    first: int
    end: int
    links: tuple[Link, ...] = ()


@dataclass(frozen=True)
class Room:
    """The room for exchanging a step's kernel: bytes of scratch; whole: it sees whole
    tensors, so the order of its row accesses does not matter."""

    scratch: int
    whole: bool


@dataclass(frozen=True)
class Arrangement:
    """Steps with their kernels, divided into stages.

    rings    the rings of tensors that are not held whole, by their root
    scratch  the scratch block of each step; "": it needs none
    rooms    the room of each step, if bytes were counted row by row; else the stage's
             applies
    """

    steps: tuple[Work, ...]
    stages: tuple[Stage, ...]
    storage: Storage
    rings: Mapping[str, Ring] = field(default_factory=dict)
    scratch: tuple[str, ...] = ()
    rooms: tuple[Room, ...] = ()

    def block_of(self, views: Views, tensor: str) -> str | None:
        """Return the block that holds a tensor, or its ring; None if it has no
        block."""
        root = views.of(tensor).root
        if root not in self.rings:
            return self.storage.block_of.get(root)
        home = self.rings[root].home
        return self.storage.block_of.get(home, home)


@dataclass(frozen=True)
class Search:
    """Everything from which the stages of a graph are chosen.

    lazy   inputs and outputs that get no memory
    spent  inputs whose rows may be overwritten while later rows are still to be read
    known  facts about stages of this graph, valid for any request
    kept   a cache of arrangements by what kernels need; alive: a cache of peaks by the
           id of a storage, which is kept too so that its id stays unique
    """

    graph: Graph
    nodes: Nodes
    views: Views
    keep_inputs: bool
    lazy: Collection[str]
    spent: Collection[str] = ()
    known: Saved = field(default_factory=Saved, repr=False, compare=False)
    kept: dict[tuple[object, ...], Arrangement] = field(
        default_factory=dict, repr=False, compare=False
    )
    alive: dict[tuple[object, ...], tuple[Storage, int]] = field(
        default_factory=dict, repr=False, compare=False
    )

    @functools.cached_property
    def cuts(self) -> Cuts:
        chosen = [(node, options[0]) for node, options in self.nodes]
        fixed = frozenset(self.views.of(name).root for name in self.lazy)
        held = groups(self.graph, chosen, self.views, self.keep_inputs)
        mine = [group for group in held if group.name not in fixed]
        nodes = [node for node, _ in self.nodes]
        apart = old_reads(self.graph, self.views, nodes)
        return Cuts(self.nodes, self.views, mine, fixed, self.known, apart)

    @functools.cached_property
    def most(self) -> int:
        """An upper bound of the bytes that any stages need."""
        scratch = max((c.scratch for _, o in self.nodes for c in o), default=0)
        whole = sum(g.bytes + 4 for g in self.cuts.groups.values())
        # with few bytes, rings may take more than whole tensors: both are considered
        rows = max((size for sizes in self.cuts.bases for size in sizes), default=0)
        return max(whole, rows) + scratch

    @functools.cached_property
    def others(self) -> tuple[Search, ...]:
        """The search spaces of the same nodes in other orders."""
        first = range(len(self.nodes))
        chained = all(i - 1 in self.needs[i] for i in first[1:])
        if chained or self.graph.state:
            return ()
        return tuple(
            replace(self, nodes=[self.nodes[i] for i in order])
            for order in orders(self.needs, _MOST_ORDERS)
            if order != tuple(first)
        )

    @functools.cached_property
    def needs(self) -> list[frozenset[int]]:
        """For each node: the nodes that must come before it."""
        makers = {name: node for node in self.graph.nodes for name in node.outputs}
        at = {n: i for i, (node, _) in enumerate(self.nodes) for n in node.outputs}

        def before(names: Iterable[str]) -> Iterator[int]:
            for name in names:
                if name in at:
                    yield at[name]
                elif name in makers:  # moves no bytes
                    yield from before(makers[name].inputs)

        feeds = [i for i, (node, _) in enumerate(self.nodes) if _is_before_all(node)]
        return [
            frozenset(range(i) if i in feeds else (*feeds, *before(node.inputs)))
            for i, (node, _) in enumerate(self.nodes)
        ]

    def least(self, most_cost: float) -> Arrangement:
        """Return the arrangement with the fewest bytes at an allowed cost.

        most_cost  instructions, as a multiple of those of the fastest stages
        """
        fastest = self.cuts.best(self.most)[0]
        return arranged(self, self.cuts.least(fastest * most_cost, self.most)[1])


def without_spare(search: Search) -> Search:
    """Return the search space without kernels that save bytes at a price; the same
    object if there are none."""
    if not any(c.spare for _, offers in search.nodes for c in offers):
        return search
    usual = [(n, [c for c in offers if not c.spare]) for n, offers in search.nodes]
    return replace(search, nodes=usual)


def in_bands(offers: Sequence[Candidate]) -> list[Candidate]:
    """Return the kernels of whole tensors, and those kernels by rows with the fewest
    calls among the ones that cost hardly more than the cheapest."""
    by_rows = [c for c in offers if c.bands > 1]
    least = min((c.cost for c in by_rows), default=0)
    bands = max((c.bands for c in by_rows if c.cost <= _HARDLY * least), default=1)
    return [c for c in offers if c.bands in (1, bands)]


def _is_before_all(node: Node) -> bool:
    """Return True if the node provides an input: its rows, or its converted form."""
    return node.op == PUSH or bool(node.attrs.get(WHEN_SET))


def arranged(search: Search, found: Sequence[Cut]) -> Arrangement:
    """Return the arrangement of chosen stages. Kernels that need the same memory at the
    same times share one cached arrangement."""
    chosen = [[*_chosen(search, cut)] for cut in found]
    memory = search.known.memory
    key = (*search.lazy, *(tuple(memory(*one) for one in each) for each in chosen))
    if key not in search.kept:
        search.kept[key] = _arranged(search, found, chosen)
    steps = [work for each in chosen for one in each for work in expand(*one)]
    return replace(search.kept[key], steps=tuple(steps))


def _chosen(search: Search, cut: Cut) -> Iterator[Work]:
    nodes = search.nodes[cut.first : cut.first + len(cut.candidates)]
    for (node, _), candidate in zip(nodes, cut.candidates, strict=True):
        yield node, candidate


def _arranged(
    search: Search, found: Sequence[Cut], chosen: Sequence[Sequence[Work]]
) -> Arrangement:
    views, cuts = search.views, search.cuts
    steps: list[Work] = []
    stages: list[Stage] = []
    joined: list[Lockstep | None] = []
    for cut, each in zip(found, chosen, strict=True):
        first = len(steps)
        end = cut.first + len(cut.candidates)
        steps += [work for one in each for work in expand(*one)]
        together = None
        if len(steps) - first > 1:
            together = join(steps[first:], views, cuts.held(cut.first, end))
        joined.append(together)
        stages.append(Stage(first, len(steps), together.links if together else ()))
    rings = {r: ring for j in joined if j for r, ring in j.rings.items()}
    storage = staged(
        search.graph, steps, [range(s.first, s.end) for s in stages], views,
        search.keep_inputs, (*search.lazy, *rings),
    )  # fmt: skip
    scratch, names = _scratch(steps, stages)
    blocks = [
        Block(home, size, k, k)
        for k, together in enumerate(joined)
        if together
        for home, size in together.blocks.items()
    ]
    blocks += [*scratch, *_counters(stages)]
    return Arrangement(
        tuple(steps),
        tuple(stages),
        Storage((*storage.blocks, *blocks), storage.block_of),
        rings,
        names,
    )


def _scratch(
    steps: Sequence[Work], stages: Sequence[Stage]
) -> tuple[list[Block], tuple[str, ...]]:
    """Return one scratch block for each stage: its steps use it in turn."""
    blocks = []
    names: list[str] = []
    for number, stage in enumerate(stages):
        each = [c.scratch for _, c in steps[stage.first : stage.end]]
        name = f"{steps[stage.first][0].output} (scratch)"
        if max(each):
            blocks.append(Block(name, max(each), number, number))
        names += [name if size else "" for size in each]
    return blocks, tuple(names)


def _counters(stages: Sequence[Stage]) -> list[Block]:
    used = [k for k, s in enumerate(stages) if s.links]
    if not used:
        return []
    most = max(stages[k].end - stages[k].first for k in used)
    return [Block(COUNTERS, COUNTER_BYTES * most, used[0], used[-1])]
