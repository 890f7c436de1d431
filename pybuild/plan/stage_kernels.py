"""Chooses the kernels of given stages: the best by the cost model among those that need
no more memory. If only code size counts, kernels may also use memory that other stages
need anyway. Knows no addresses.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby

from pybuild.ir.graph import Node
from pybuild.kernels.base.candidate import Candidate
from pybuild.plan.buffers.offsets import alive
from pybuild.plan.buffers.sharing import Block, scratch_of
from pybuild.plan.regions.regions import BLOCK_ALIGN
from pybuild.plan.schedule.lock_step import Work
from pybuild.plan.schedule.partition import expand
from pybuild.plan.schedule.stages import Arrangement
from pybuild.select.choose import Weighed


def exchanged(
    found: Arrangement,
    offers: Sequence[tuple[Node, Sequence[Candidate]]],
    weighed: Weighed,
    most: int = 0,
    more: int = 0,
) -> Arrangement:
    """Return the same stages with the best kernels that fit in as many bytes.

    most  the peak of bytes alive up to which a stage's scratch may grow
    more  bytes by which a stage's scratch may grow in any case, if it has any
    """
    known = {node.output: candidates for node, candidates in offers}
    layers = [*_layers(found, most, more)]
    fits = {
        works[0][0].output: [
            _fits(candidate, works, room, alone)
            for candidate in known[works[0][0].output]
        ]
        for works, room, alone in layers
        if works[0][0].output in known
    }
    best = weighed.best(fits)
    steps: list[Work] = []
    for works, _, _ in layers:
        node = works[0][0]
        number = best.get(node.output)
        steps += works if number is None else expand(node, known[node.output][number])
    blocks = _blocks(found, steps)
    scratch = tuple(
        blocks[k].name if candidate.scratch else ""
        for k, stage in enumerate(_stages(found))
        for _, candidate in steps[stage.start : stage.stop]
    )
    made = {block.name: block for block in (*found.storage.blocks, *blocks.values())}
    storage = replace(found.storage, blocks=tuple(made.values()))
    return replace(found, steps=tuple(steps), scratch=scratch, storage=storage)


def _stages(found: Arrangement) -> list[range]:
    stages = [range(s.first, s.end) for s in found.stages]
    return stages or [range(i, i + 1) for i in range(len(found.steps))]


def _blocks(found: Arrangement, steps: Sequence[Work]) -> dict[int, Block]:
    """Return the scratch block of each stage that needs one, large enough for these
    steps."""
    held = {block.name: block for block in found.storage.blocks}
    blocks: dict[int, Block] = {}
    for k, stage in enumerate(_stages(found)):
        size = max(steps[i][1].scratch for i in stage)
        known = next((found.scratch[i] for i in stage if found.scratch[i]), "")
        if known:
            size = max(size, held[known].bytes)
            blocks[k] = replace(held[known], bytes=size)
        elif size:
            blocks[k] = Block(scratch_of(steps[stage.start][0]), size, k, k)
    return blocks


def _layers(
    found: Arrangement, most: int, more: int
) -> Iterator[tuple[list[Work], int, bool]]:
    """Yield the steps of each layer, the scratch available, and whether it sees whole
    tensors."""
    sums = deque([(0, 0), *alive(found.storage.blocks, BLOCK_ALIGN)])
    for k, places in enumerate(_stages(found)):
        stage = found.steps[places.start : places.stop]
        if found.rooms:
            for _, each in groupby(places, key=lambda i: found.steps[i][0].output):
                steps = [*each]
                room = min(found.rooms[i].scratch for i in steps)
                whole = all(found.rooms[i].whole for i in steps)
                yield [found.steps[i] for i in steps], room, whole
            continue
        while len(sums) > 1 and sums[1][0] <= k:
            sums.popleft()
        now = sums[0][1]
        room = max(candidate.scratch for _, candidate in stage)
        room += max(0, most - now, more * (room > 0))
        for _, works in groupby(stage, key=lambda work: work[0].output):
            yield [*works], room, len(places) == 1


def _fits(candidate: Candidate, works: Sequence[Work], room: int, alone: bool) -> bool:
    """Return True if a candidate can replace the current kernel of a layer."""
    if candidate.spare and not works[0][1].spare:
        return False
    made = expand(works[0][0], candidate)
    if len(made) != len(works) or any(c.scratch > room for _, c in made):
        return False
    return all(
        _alike(one, now, alone) for (_, one), (_, now) in zip(made, works, strict=True)
    )


def _alike(one: Candidate, now: Candidate, alone: bool) -> bool:
    """Return True if both access memory alike; for whole tensors the rows do not
    matter."""
    if one.in_place != now.in_place:
        return False
    rows = (one.images, one.bands, one.outputs, one.inputs)
    return alone or rows == (now.images, now.bands, now.outputs, now.inputs)
