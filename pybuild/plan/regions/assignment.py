"""Assigns blocks to regions: those with most traffic to the fastest. Less traffic in
slow memory takes precedence over more in fast memory. Greedy by bytes moved per byte of
RAM, then single moves and swaps as long as they improve the result.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field

from pybuild.options.regions import SPEEDS, RegionSpec
from pybuild.plan.buffers.offsets import Layout, alive, place, round_up
from pybuild.plan.buffers.sharing import Block
from pybuild.records import dataclass

# work limits: the most blocks for which regions are laid out again and reordered
_MOST_BLOCKS, _SHUFFLES, _PASSES = 200, 40, 4

Key = tuple[int, ...]


@dataclass(frozen=True)
class Spread:
    """The blocks of each region with their layout; `unplaced` has the blocks that fit
    nowhere."""

    members: tuple[tuple[Block, ...], ...]
    layouts: tuple[Layout, ...]
    unplaced: tuple[Block, ...]


@dataclass
class _Shelf:
    """A region and the offset of each block that was put into it."""

    spec: RegionSpec
    align: int
    at: dict[Block, int] = field(default_factory=dict)

    def put(self, block: Block) -> bool:
        """Put a block at a free offset, or lay out the whole region again to make it
        fit; return True if it fits."""
        at = self._gap(block, self.at)
        if at is None:
            return self._again(block)
        self.at[block] = at
        return True

    def _gap(self, block: Block, taken: Mapping[Block, int]) -> int | None:
        size = round_up(block.bytes, self.align)
        spans = sorted(
            (at, at + round_up(other.bytes, self.align))
            for other, at in taken.items()
            if other.first <= block.last and block.first <= other.last
        )
        at = 0
        for start, end in spans:
            if at + size <= start:
                break
            at = max(at, end)
        return at if at + size <= self.spec.bytes else None

    def _again(self, block: Block) -> bool:
        members = [*self.at, block]
        if len(members) > _MOST_BLOCKS or self._most(members) > self.spec.bytes:
            return False
        keys: tuple[Callable[[Block], tuple[int, ...]], ...] = (
            lambda b: (-b.bytes, b.first),
            lambda b: (b.first, -b.bytes),
            lambda b: (b.first - b.last, -b.bytes),
        )
        for key in keys:
            made: dict[Block, int] = {}
            for member in sorted(members, key=lambda b: (*key(b), b.name)):
                at = self._gap(member, made)
                if at is None:
                    break
                made[member] = at
            else:
                self.at = made
                return True
        return False

    def _most(self, members: Sequence[Block]) -> int:
        return max((total for _, total in alive(members, self.align)), default=0)


@dataclass
class _Try:
    """An attempt: the regions, the fastest first, and the blocks that are in none."""

    shelves: list[_Shelf]
    moved: Mapping[str, int]
    hot: frozenset[str]
    left: list[Block] = field(default_factory=list)

    def fill(self, blocks: Sequence[Block], order: Sequence[int]) -> None:
        for block in blocks:
            if not any(
                self.allows(self.shelves[i], block) and self.shelves[i].put(block)
                for i in order
            ):
                self.left.append(block)

    def allows(self, shelf: _Shelf, block: Block) -> bool:
        return block.name not in self.hot or shelf.spec.weights

    @property
    def unplaced(self) -> list[Block]:
        """The blocks that still need a place; constants may stay in flash."""
        return [block for block in self.left if block.name not in self.hot]

    def key(self) -> Key:
        """Return the bytes moved by region speed, the slowest first, to compare
        attempts: less is better."""
        sums = [0] * len(SPEEDS)
        for shelf in self.shelves:
            sums[shelf.spec.rank] += sum(self.moved[b.name] for b in shelf.at)
        sums[1] += sum(self.moved[b.name] for b in self.left)  # flash is not fast
        return tuple(reversed(sums))

    def better(self) -> bool:
        """Move and swap blocks to faster regions once; return True if that gained
        something."""
        gained = False
        for block, source in self._ranked():
            for target in self.shelves:
                if source is not None and target.spec.rank >= source.spec.rank:
                    break
                if self.allows(target, block) and self._exchange(block, source, target):
                    gained = True
                    break
        return gained

    def _ranked(self) -> Iterator[tuple[Block, _Shelf | None]]:
        where: list[tuple[Block, _Shelf | None]] = [(b, None) for b in self.left]
        where += [(b, shelf) for shelf in self.shelves for b in shelf.at]
        yield from sorted(where, key=lambda pair: (-self.moved[pair[0].name],
                                                   pair[0].name))  # fmt: skip

    def _exchange(self, block: Block, source: _Shelf | None, target: _Shelf) -> bool:
        """Move a block to `target`: into a gap, or in exchange for blocks with less
        traffic."""
        if (source is None and block not in self.left) or (
            source is not None and block not in source.at
        ):
            return False  # another exchange has moved it
        before = self._state()
        key = self.key()
        others = sorted(
            (b for b in target.at if self.moved[b.name] < self.moved[block.name]),
            key=lambda b: (self.moved[b.name], b.name),
        )
        several = (others[:count] for count in range(2, len(others) + 1))
        for out in ([], *([other] for other in others), *several):
            if self._swapped(block, source, out, target) and self.key() < key:
                return True
            self._restore(before)
        return False

    def _swapped(
        self, block: Block, source: _Shelf | None, out: list[Block], target: _Shelf
    ) -> bool:
        if source is None:
            self.left.remove(block)
        else:
            del source.at[block]
        for other in out:
            del target.at[other]
        return target.put(block) and all(self._moved(b, source) for b in out)

    def _moved(self, block: Block, target: _Shelf | None) -> bool:
        """Move a displaced block to `target`; a constant may go to flash instead."""
        if target is not None and self.allows(target, block) and target.put(block):
            return True
        if block.name not in self.hot:
            return False
        self.left.append(block)
        return True

    def _state(self) -> tuple[list[dict[Block, int]], list[Block]]:
        return [dict(shelf.at) for shelf in self.shelves], list(self.left)

    def _restore(self, state: tuple[list[dict[Block, int]], list[Block]]) -> None:
        for shelf, at in zip(self.shelves, state[0], strict=True):
            shelf.at = dict(at)
        self.left = list(state[1])


def spread(
    blocks: Sequence[Block],
    specs: Sequence[RegionSpec],
    moved: Mapping[str, int],
    hot: frozenset[str],
    align: int,
) -> Spread:
    """Distribute blocks over regions so that no region exceeds its limit.

    moved  bytes read and written in a run, by the block's name
    hot    constants, which may stay in flash
    """
    tries = _tries(blocks, specs, moved, hot, align)
    best = next(tries)
    for other in tries:
        if not best.unplaced:
            break
        best = min(best, other, key=lambda t: sum(b.bytes for b in t.unplaced))
    if len(blocks) <= _MOST_BLOCKS and not best.unplaced:
        for _ in range(_PASSES):
            if not best.better():
                break
    shelves = {shelf.spec.name: shelf for shelf in best.shelves}
    members, layouts = [], []
    for spec in specs:
        mine = tuple(b for b in blocks if b in shelves[spec.name].at)
        members.append(mine)
        layouts.append(_layout(mine, shelves[spec.name], align))
    return Spread(tuple(members), tuple(layouts), tuple(best.unplaced))


def _layout(blocks: Sequence[Block], shelf: _Shelf, align: int) -> Layout:
    """Return the tightest layout found, or the shelf's own if that is tighter."""
    found = place(blocks, align)
    ends = (shelf.at[b] + round_up(b.bytes, align) for b in blocks)
    top = max(ends, default=0)
    if found.bytes <= top:
        return found
    return Layout(tuple(shelf.at[b] for b in blocks), top, found.lower_bound)


def _tries(
    blocks: Sequence[Block],
    specs: Sequence[RegionSpec],
    moved: Mapping[str, int],
    hot: frozenset[str],
    align: int,
) -> Iterator[_Try]:
    """Yield attempts that sort blocks by bytes moved; where that leaves some blocks
    unplaced, also attempts by size and by chance."""
    fast_first = sorted(specs, key=lambda s: s.rank)  # stable: then as given
    regions = range(len(fast_first))
    small_first = sorted(regions, key=lambda i: fast_first[i].bytes)
    dense = sorted(blocks, key=lambda b: (-moved[b.name] / b.bytes, b.first, b.name))
    large = sorted(blocks, key=lambda b: (b.name in hot, -b.bytes, b.first, b.name))

    def tried(order: Sequence[Block], places: Sequence[int]) -> _Try:
        made = _Try([_Shelf(spec, align) for spec in fast_first], moved, hot)
        made.fill(order, places)
        return made

    yield tried(dense, regions)
    yield tried(large, small_first)
    yield tried(large, small_first[::-1])
    yield tried(large, regions)
    chance = random.Random(0)
    for _ in range(_SHUFFLES if len(blocks) <= _MOST_BLOCKS else 0):
        order = sorted(large, key=lambda b: (b.name in hot, chance.random()))
        yield tried(order, chance.sample(small_first, len(small_first)))
