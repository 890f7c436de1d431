"""One arena for each device: no memory is shared between devices.

Knows blocks and devices; what a device is, it does not know.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pybuild.errors import LimitError, Problem
from pybuild.graph import Graph
from pybuild.plan.memory import alive, place, round_up
from pybuild.plan.storage import Block

BLOCK_ALIGN = 4

Limits = int | Mapping[int, int] | None


@dataclass(frozen=True)
class Region:
    """The arena of a device.

    peak   the blocks alive when most bytes are, largest first
    Units  bytes
    """

    device: int
    bytes: int
    lower_bound: int
    peak: tuple[Block, ...]


@dataclass(frozen=True)
class Spot:
    """Where a block is: its region, and bytes from the start of it."""

    region: int
    at: int
    block: Block

    def meets(self, other: Spot) -> bool:
        """Whether they have a byte in common."""
        ends = self.at + self.block.bytes, other.at + other.block.bytes
        return self.region == other.region and self.at < ends[1] and other.at < ends[0]


def place_regions(
    blocks: Sequence[Block], devices: Mapping[str, int]
) -> tuple[tuple[Region, ...], dict[str, Spot]]:
    """The arenas, the CPU's first, and the spot of each block.

    devices  by the block's name; others are the CPU's
    """
    of = {block.name: devices.get(block.name, 0) for block in blocks}
    regions: list[Region] = []
    spots = {}
    for device in sorted({0, *of.values()}):
        mine = [block for block in blocks if of[block.name] == device]
        layout = place(mine, BLOCK_ALIGN)
        for block, at in zip(mine, layout.offsets, strict=True):
            spots[block.name] = Spot(len(regions), at, block)
        size = round_up(layout.bytes, BLOCK_ALIGN)
        regions.append(Region(device, size, layout.lower_bound, _peak(mine)))
    return tuple(regions), {block.name: spots[block.name] for block in blocks}


def _peak(blocks: Sequence[Block]) -> tuple[Block, ...]:
    sums = alive(blocks, BLOCK_ALIGN)
    if not sums:
        return ()
    step = max(sums, key=lambda pair: pair[1])[0]
    found = [b for b in blocks if b.first <= step <= b.last]
    return tuple(sorted(found, key=lambda b: (-b.bytes, b.name)))


def check_limits(graph: Graph, regions: Sequence[Region], limits: Limits) -> None:
    """Errors  LimitError naming the tensors alive at the peak of each arena too large

    limits  bytes by device; a number is the CPU's
    """
    most = limits if isinstance(limits, Mapping) else {0: limits}
    found = []
    for region in regions:
        limit = most.get(region.device)
        if limit is None or region.bytes <= limit:
            continue
        names = ", ".join(f"'{b.name}' {b.bytes}" for b in region.peak)
        where = f" on device {region.device}" if region.device else ""
        what = f"the arena{where} needs {region.bytes} bytes of RAM, the limit is "
        what += f"{limit}; alive at the peak: {names} bytes"
        hint = "a smaller input, or fewer channels there"
        found.append(Problem(graph.source, what, hint))
    if found:
        raise LimitError.of(found)
