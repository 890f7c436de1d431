"""Arena offsets for blocks with lifetimes: gaps are filled, largest first.

Several orders are tried until the lower bound (the most bytes alive at once) is
reached; small problems are then searched further. Knows blocks only.
"""

from __future__ import annotations

import random
from bisect import insort
from collections.abc import Callable, Sequence

from pybuild.plan.buffers.sharing import Block
from pybuild.records import dataclass

# work limits, in visits of (block, step) or of (block, overlapping block)
_MOST_VISITS = 1_000_000
_SEARCH_VISITS = 400_000


@dataclass(frozen=True)
class BlockOffset:
    """The place of a block: its region, and the offset in it."""

    region: int
    at: int
    block: Block

    def meets(self, other: BlockOffset) -> bool:
        """True if they have a byte in common."""
        ends = self.at + self.block.bytes, other.at + other.block.bytes
        return self.region == other.region and self.at < ends[1] and other.at < ends[0]


@dataclass(frozen=True)
class Layout:
    """The byte offset of each block, in the order of the blocks, and the size of the
    arena."""

    offsets: tuple[int, ...]
    bytes: int
    lower_bound: int


def round_up(value: int, align: int) -> int:
    return -(-value // align) * align


def alive(blocks: Sequence[Block], align: int) -> list[tuple[int, int]]:
    """Return (step, bytes alive) for each step at which the sum may change."""
    change: dict[int, int] = {}
    for block in blocks:
        size = round_up(block.bytes, align)
        change[block.first] = change.get(block.first, 0) + size
        change[block.last + 1] = change.get(block.last + 1, 0) - size
    total, sums = 0, []
    for step in sorted(change):
        total += change[step]
        sums.append((step, total))
    return sums


def place(blocks: Sequence[Block], align: int) -> Layout:
    """The best layout found.

    Source  gap-filling greedy by size, as Pisarchyk and Lee, 2020
    """
    bound = max((total for _, total in alive(blocks, align)), default=0)
    visits = sum(b.last - b.first + 1 for b in blocks)
    best = _by_time(blocks, align, bound)
    if best.bytes == bound or visits > _MOST_VISITS:
        return best
    neighbours = _neighbours(blocks)
    cost = max(1, sum(map(len, neighbours)) + len(blocks))
    if cost > _MOST_VISITS:
        return best
    keys: tuple[Callable[[Block], tuple[int, ...]], ...] = (
        lambda b: (-b.bytes, b.first),
        lambda b: (-b.bytes * (b.last - b.first + 1), b.first),
        lambda b: (b.first - b.last, -b.bytes),
        lambda b: (b.first, -b.bytes),
        lambda b: (-b.last, -b.bytes),
    )
    ranked = []
    for key in keys:
        order = sorted(range(len(blocks)), key=lambda i: (*key(blocks[i]), i))
        layout = _fill(blocks, order, neighbours, align, bound)
        ranked.append((layout.bytes, order))
        best = min(best, layout, key=lambda x: x.bytes)
        if best.bytes == bound:
            return best
    order = min(ranked)[1]
    return _search(blocks, order, neighbours, align, (best, _SEARCH_VISITS // cost))


def _neighbours(blocks: Sequence[Block]) -> list[list[int]]:
    """For each block, the other blocks that are alive at the same time."""
    order = sorted(range(len(blocks)), key=lambda i: blocks[i].first)
    active: list[int] = []
    found: list[list[int]] = [[] for _ in blocks]
    for i in order:
        active = [j for j in active if blocks[j].last >= blocks[i].first]
        for j in active:
            found[i].append(j)
            found[j].append(i)
        active.append(i)
    return found


def _fill(
    blocks: Sequence[Block],
    order: Sequence[int],
    neighbours: list[list[int]],
    align: int,
    bound: int,
) -> Layout:
    """Place each block in turn at the lowest gap among the neighbours already
    placed."""
    offsets = [-1] * len(blocks)
    top = 0
    for i in order:
        size = round_up(blocks[i].bytes, align)
        taken = sorted(
            (offsets[j], offsets[j] + blocks[j].bytes)
            for j in neighbours[i]
            if offsets[j] >= 0
        )
        at = 0
        for start, end in taken:
            if at + size <= start:
                break
            at = max(at, round_up(end, align))
        offsets[i] = at
        top = max(top, at + size)
    return Layout(tuple(offsets), top, bound)


def _by_time(blocks: Sequence[Block], align: int, bound: int) -> Layout:
    """One pass over time with a list of free gaps, best fit: for any size."""
    offsets = [0] * len(blocks)
    gaps: list[tuple[int, int]] = [(0, 1 << 62)]
    ends: list[tuple[int, int]] = []
    top = 0
    for i in sorted(range(len(blocks)), key=lambda i: (blocks[i].first, i)):
        while ends and ends[0][0] < blocks[i].first:
            done = ends.pop(0)[1]
            size = round_up(blocks[done].bytes, align)
            _release(gaps, offsets[done], offsets[done] + size)
        size = round_up(blocks[i].bytes, align)
        fitting = [g for g in gaps if g[1] - g[0] >= size]
        start, end = min(fitting, key=lambda g: (g[1] - g[0], g[0]))
        gaps.remove((start, end))
        if start + size < end:
            insort(gaps, (start + size, end))
        offsets[i] = start
        insort(ends, (blocks[i].last, i))
        top = max(top, start + size)
    return Layout(tuple(offsets), top, bound)


def _release(gaps: list[tuple[int, int]], start: int, end: int) -> None:
    for gap in [g for g in gaps if g[1] == start or g[0] == end]:
        gaps.remove(gap)
        start, end = min(start, gap[0]), max(end, gap[1])
    insort(gaps, (start, end))


def _search(
    blocks: Sequence[Block],
    order: list[int],
    neighbours: list[list[int]],
    align: int,
    budget: tuple[Layout, int],
) -> Layout:
    """Swap blocks in the order of placing and keep a swap that is no worse; seeded, so
    repeatable."""
    best, turns = budget
    chance = random.Random(0)
    current = _fill(blocks, order, neighbours, align, best.lower_bound)
    for _ in range(turns if len(blocks) > 2 else 0):
        if best.bytes == best.lower_bound:
            break
        a, b = chance.sample(range(len(order)), 2)
        trial = list(order)
        trial.insert(b, trial.pop(a))
        layout = _fill(blocks, trial, neighbours, align, best.lower_bound)
        if layout.bytes <= current.bytes:
            order, current = trial, layout
        if layout.bytes < best.bytes:
            best = layout
    return best
