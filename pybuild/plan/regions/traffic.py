"""Counts the bytes of each block that a run reads and writes; blocks with most traffic
get fast memory. A row counts once for each call that receives it; scratch and constants
count once for each call. Knows no addresses.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from pybuild.ir.graph import Node
from pybuild.kernels.base.candidate import Candidate, RowAccess
from pybuild.plan.buffers.parameter_slots import Key, Slot, key_of
from pybuild.plan.buffers.sharing import Views
from pybuild.plan.schedule.stages import COUNTERS, Arrangement

Steps = Sequence[tuple[Node, Candidate]]


def moved_in(
    found: Arrangement, views: Views, slots: Mapping[Key, Slot]
) -> Counter[str]:
    """Return the bytes moved in a run, by block name."""

    def block_of(tensor: str) -> str | None:
        return found.block_of(views, tensor)

    moved = traffic(found.steps, found.scratch, block_of, slots)
    moved[COUNTERS] = 4 * sum(candidate.bands for _, candidate in found.steps)
    return moved


def traffic(
    steps: Steps,
    scratch: Sequence[str],
    block_of: Callable[[str], str | None],
    slots: Mapping[Key, Slot],
) -> Counter[str]:
    """Return the number of bytes moved for each block, by its name.

    scratch   the name of each step's scratch block
    block_of  maps a tensor to its block; None: it has no block
    """
    moved: Counter[str] = Counter()
    for (node, candidate), working in zip(steps, scratch, strict=True):
        calls = candidate.images * candidate.bands
        for access in (*candidate.outputs, *candidate.inputs):
            block = block_of(access.tensor)
            if block is not None:
                rows = rows_met(access, candidate.bands) * candidate.images
                moved[block] += rows * access.row_bytes
        if candidate.scratch:
            moved[working] += 2 * candidate.scratch * calls
        for packed in candidate.constants:
            if packed.place:  # written once, before the step
                moved[packed.place] += packed.array.nbytes * (calls + 1)
            elif packed.parameters:
                moved[slots[key_of(packed, node)].home] += packed.array.nbytes * calls
    return moved


def rows_met(access: RowAccess, bands: int) -> int:
    """Return the number of rows that all calls for one image receive, without
    padding."""
    if access.stride == 0:
        return access.window * bands
    total = 0
    for band in range(bands):
        first = band * access.stride - access.pad
        total += max(0, min(first + access.window, access.rows) - max(first, 0))
    return total
