"""Which kernels compute the layers of stages that are chosen: those that the model gets
at the best price, of all that need no more memory, or little more where all that
counts is code. Knows no addresses.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby

from pybuild.graph import Node
from pybuild.kernels.candidate import Candidate
from pybuild.kernels.choose import Weighed
from pybuild.plan.cuts import expand
from pybuild.plan.lockstep import Work
from pybuild.plan.stages import Arrangement
from pybuild.plan.storage import Block


def exchanged(
    found: Arrangement,
    offers: Sequence[tuple[Node, Sequence[Candidate]]],
    weighed: Weighed,
    more: int = 0,
) -> Arrangement:
    """The same stages, in as many bytes.

    more  bytes by which working memory that a stage has may grow
    """
    known = {node.output: candidates for node, candidates in offers}
    fits = {
        works[0][0].output: [
            _fits(candidate, works, room + more * (room > 0), alone)
            for candidate in known[works[0][0].output]
        ]
        for works, room, alone in _layers(found)
        if works[0][0].output in known
    }
    best = weighed.best(fits)
    steps: list[Work] = []
    for works, _, _ in _layers(found):
        node = works[0][0]
        number = best.get(node.output)
        steps += works if number is None else expand(node, known[node.output][number])
    scratch = _scratch(found, steps)
    storage = replace(found.storage, blocks=_grown(found, steps, scratch))
    return replace(found, steps=tuple(steps), scratch=scratch, storage=storage)


def _grown(
    found: Arrangement, steps: Sequence[Work], scratch: Sequence[str]
) -> tuple[Block, ...]:
    """All blocks; those of working memory with room for these steps."""
    needed: dict[str, int] = {}
    for name, (_, candidate) in zip(scratch, steps, strict=True):
        needed[name] = max(needed.get(name, 0), candidate.scratch)
    return tuple(
        replace(block, bytes=max(block.bytes, needed.get(block.name, 0)))
        for block in found.storage.blocks
    )


def _layers(found: Arrangement) -> Iterator[tuple[list[Work], int, bool]]:
    """The steps of each layer, the scratch that there is, whether it is a stage."""
    ends = [(s.first, s.end) for s in found.stages]
    for first, end in ends or [(i, i + 1) for i in range(len(found.steps))]:
        stage = found.steps[first:end]
        room = max(candidate.scratch for _, candidate in stage)
        for _, works in groupby(stage, key=lambda work: work[0].output):
            yield [*works], room, end - first == 1


def _fits(candidate: Candidate, works: Sequence[Work], room: int, alone: bool) -> bool:
    """Whether it could take the place of what computes a layer now."""
    made = expand(works[0][0], candidate)
    if len(made) != len(works) or any(c.scratch > room for _, c in made):
        return False
    return all(
        _alike(one, now, alone) for (_, one), (_, now) in zip(made, works, strict=True)
    )


def _alike(one: Candidate, now: Candidate, alone: bool) -> bool:
    """Whether it meets memory in the same way; whole tensors are whole for all."""
    if one.in_place != now.in_place:
        return False
    rows = (one.images, one.bands, one.outputs, one.inputs)
    return alone or rows == (now.images, now.bands, now.outputs, now.inputs)


def _scratch(found: Arrangement, steps: Sequence[Work]) -> tuple[str, ...]:
    """The block of each step, which may have needed none before."""
    stages = [range(s.first, s.end) for s in found.stages]
    names = [""] * len(steps)
    for stage in stages or [range(i, i + 1) for i in range(len(steps))]:
        block = next((found.scratch[i] for i in stage if found.scratch[i]), "")
        for i in stage:
            names[i] = block if steps[i][1].scratch else ""
    return tuple(names)
