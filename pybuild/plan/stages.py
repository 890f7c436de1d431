"""The stages of a plan: which steps advance together, and which memory they need.

Knows blocks and rings, no addresses.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from pybuild.graph import Graph, Node
from pybuild.kernels.candidate import Candidate
from pybuild.plan.cuts import Cut, Cuts, expand
from pybuild.plan.lockstep import Link, Lockstep, Ring, Work, join
from pybuild.plan.storage import Block, Storage, Views, groups, staged

COUNTERS = "(counters)"
COUNTER_BYTES = 2

Nodes = Sequence[tuple[Node, Sequence[Candidate]]]


@dataclass(frozen=True)
class Stage:
    """Steps `first` to before `end`; links: what each waits for, () if it is alone."""

    first: int
    end: int
    links: tuple[Link, ...] = ()


@dataclass(frozen=True)
class Arrangement:
    """Steps with their kernels, in stages.

    rings    where rows are, of tensors that are not held whole, by their root
    scratch  of each step: the block that its working memory is in; ""
    """

    steps: tuple[Work, ...]
    stages: tuple[Stage, ...]
    storage: Storage
    rings: Mapping[str, Ring] = field(default_factory=dict)
    scratch: tuple[str, ...] = ()


def arrange(
    graph: Graph,
    nodes: Nodes,
    views: Views,
    keep_inputs: bool,
    lazy: Collection[str],
    most_cost: float,
) -> Arrangement:
    """The stages that need the fewest bytes.

    most_cost  instructions, as a multiple of those of the fastest stages
    """
    chosen = [(node, options[0]) for node, options in nodes]
    fixed = frozenset(views.of(name).root for name in lazy)
    held = [g for g in groups(graph, chosen, views, keep_inputs) if g.name not in fixed]
    cuts = Cuts(graph, nodes, views, held, fixed)
    most = sum(g.bytes + 4 for g in held) + max(
        (c.scratch for _, options in nodes for c in options), default=0
    )
    fastest = cuts.best(most)[0]
    _, found = cuts.least(fastest * most_cost, most)
    return arranged(graph, nodes, cuts, found, views, keep_inputs, lazy)


def arranged(
    graph: Graph,
    nodes: Nodes,
    cuts: Cuts,
    found: Sequence[Cut],
    views: Views,
    keep_inputs: bool,
    lazy: Collection[str],
) -> Arrangement:
    """The blocks of chosen stages."""
    steps: list[Work] = []
    stages: list[Stage] = []
    joined: list[Lockstep | None] = []
    for cut in found:
        first = len(steps)
        end = cut.first + len(cut.candidates)
        for (node, _), candidate in zip(
            nodes[cut.first : end], cut.candidates, strict=True
        ):
            steps += expand(node, candidate)
        together = None
        if len(steps) - first > 1:
            together = join(steps[first:], views, cuts.held(cut.first, end))
        joined.append(together)
        stages.append(Stage(first, len(steps), together.links if together else ()))
    rings = {r: ring for j in joined if j for r, ring in j.rings.items()}
    storage = staged(
        graph, steps, [range(s.first, s.end) for s in stages], views, keep_inputs,
        (*lazy, *rings),
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
    """One piece for each stage: its steps use it in turn."""
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
