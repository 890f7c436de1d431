"""Chooses kernels with less scratch for steps on whole tensors. Knows blocks, no
addresses.
"""

from __future__ import annotations

from collections.abc import Sequence

from pybuild.ir.graph import Node
from pybuild.kernels.base.candidate import Candidate
from pybuild.plan.buffers.offsets import alive, round_up
from pybuild.plan.choice import MOST_COST_RAM
from pybuild.plan.regions.regions import BLOCK_ALIGN
from pybuild.plan.schedule.lock_step import Work
from pybuild.plan.schedule.stages import Arrangement


def with_less_scratch(
    found: Arrangement, offers: Sequence[tuple[Node, Sequence[Candidate]]]
) -> list[Work]:
    """Return the steps with the kernels that minimise the peak of bytes alive, at up to
    twice the instructions. Each is the fastest kernel whose scratch stays below that
    peak."""
    sums = alive(found.storage.blocks, BLOCK_ALIGN)
    rest, able = [], []
    for step, ((_, now), (_, known)) in enumerate(
        zip(found.steps, offers, strict=True)
    ):
        total = max((s for s in sums if s[0] <= step), default=(0, 0))[1]
        rest.append(total - round_up(now.scratch, BLOCK_ALIGN))
        same = [c for c in known if c.finish is None and c.in_place == now.in_place]
        able.append(sorted(same, key=lambda c: (c.cost, c.scratch)))
    most = MOST_COST_RAM * sum(candidate.cost for _, candidate in found.steps)
    levels = {
        held + round_up(c.scratch, BLOCK_ALIGN)
        for held, kernels in zip(rest, able, strict=True)
        for c in kernels
    }
    for level in sorted(levels):
        fits = [
            [c for c in kernels if held + c.scratch <= level]
            for held, kernels in zip(rest, able, strict=True)
        ]
        if all(fits) and sum(kernels[0].cost for kernels in fits) <= most:
            return [
                (node, f[0]) for (node, _), f in zip(found.steps, fits, strict=True)
            ]
    return [*found.steps]
