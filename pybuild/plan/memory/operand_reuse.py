"""Addresses that steps have in common: a block lies where one of an earlier step did,
if it finds room there, so that both steps are handed the same operands, which the
tables then have once. No arena grows for it.

Knows blocks and the ways in which steps meet them; no tables.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace

from pybuild.ir.graph import Graph
from pybuild.kernels.base.candidate import RowAccess
from pybuild.plan.buffers.offsets import BlockOffset, round_up
from pybuild.plan.buffers.sharing import Block, Views
from pybuild.plan.memory.live_ranges import Piece, alive_in
from pybuild.plan.memory.row_offsets import Taken, taken_by
from pybuild.plan.schedule.stages import Arrangement
from pybuild.records import dataclass

# the blocks that a step is handed and that could move; how it meets them, and others
_Handed = tuple[tuple[str, ...], tuple[object, ...]]


def made_alike(
    graph: Graph,
    views: Views,
    found: Arrangement,
    block_offsets: Mapping[str, BlockOffset],
    pieces: Mapping[str, Sequence[Piece]],
    align: int,
) -> dict[str, BlockOffset]:
    """Return offsets that need no more bytes and give most steps the same operands.

    pieces  of each block; of others than these all is alive from first to last
    """
    handed = [*_handed(graph, views, found, block_offsets)]
    each = {
        name: [whole(block_offset.block)]
        for name, block_offset in block_offsets.items()
    }
    least, best = (
        len({_met(names, how, block_offsets) for names, how in handed}),
        block_offsets,
    )
    for used_first in (False, True):
        layout = Settled(block_offsets, {**each, **pieces}, align, used_first)
        if not layout.settle(handed):
            continue
        made = {
            n: replace(block_offset, at=layout.at[n])
            for n, block_offset in block_offsets.items()
        }
        count = len({_met(names, how, made) for names, how in handed})
        if count < least:
            least, best = count, made
    return dict(best)


def _met(
    names: Sequence[str],
    how: Sequence[object],
    block_offsets: Mapping[str, BlockOffset],
) -> tuple[object, ...]:
    """The key that distinguishes the operands of one step from those of another."""
    return (*(block_offsets[name].at for name in names), *how)


def whole(block: Block) -> Piece:
    """Return the piece that is in use from the block's first stage to its last; bit 0
    is the time before the run."""
    return Piece(0, block.bytes, (1 << (block.last + 2)) - (1 << (block.first + 1)))


def _handed(
    graph: Graph,
    views: Views,
    found: Arrangement,
    block_offsets: Mapping[str, BlockOffset],
) -> Iterator[_Handed]:
    bound = {views.of(name).root for name in (*graph.inputs, *graph.outputs)}

    def met(access: RowAccess, images: int) -> tuple[str, object]:
        view = views.of(access.tensor)
        ring = found.rings.get(view.root)
        how: tuple[object, ...] = (view.at,)
        if images > 1 or ring or not access.is_single:
            rows = replace(access, tensor="")
            how = (view.at, rows, ring and (ring.rows, ring.pitch, ring.at))
        block = found.block_of(views, access.tensor)
        if view.root in bound or block is None or block_offsets[block].block.first < 0:
            return "", (view.root, how)
        return block, how

    for (_, candidate), scratch in zip(found.steps, found.scratch, strict=True):
        accesses = (*candidate.outputs, *candidate.inputs)
        pairs = [met(access, candidate.images) for access in accesses]
        names = [name for name, _ in pairs if name]
        bytes_of = (packed.role for packed in candidate.constants if packed.is_bound)
        how = (*(how for _, how in pairs), *bytes_of, bool(scratch))
        yield (*names, *filter(None, [scratch])), how


@dataclass(frozen=True)
class Settled:
    """The offsets of blocks that have their place: `at`, by their names.

    used_first  a block tries addresses of others before that where it was
    """

    block_offsets: Mapping[str, BlockOffset]
    pieces: Mapping[str, Sequence[Piece]]
    align: int
    used_first: bool
    at: dict[str, int] = field(default_factory=dict)
    beside: dict[tuple[str, str], Taken] = field(default_factory=dict)

    @functools.cached_property
    def bytes(self) -> int:
        return max(
            block_offset.at + block_offset.block.bytes
            for block_offset in self.block_offsets.values()
        )

    @functools.cached_property
    def alive(self) -> Mapping[str, int]:
        return {name: alive_in(pieces) for name, pieces in self.pieces.items()}

    def settle(self, handed: Sequence[_Handed]) -> bool:
        """Return True if all blocks found room; blocks that no step names stay where
        they were.

        Source  greedy: each step as the first step before that it can be like
        """
        moving = {name for names, _ in handed for name in names}
        self.at.update(
            {n: s.at for n, s in self.block_offsets.items() if n not in moving}
        )
        seen: dict[tuple[object, ...], list[tuple[int, ...]]] = {}
        for names, how in handed:
            known = seen.setdefault(how, [])
            chosen = next((a for a in known if self._has_room(names, a)), None)
            if chosen is None:
                chosen = self._around(names)
                if chosen is None:
                    return False
                known.append(chosen)
            self.at.update(zip(names, chosen, strict=True))
        return True

    def _has_room(self, names: Sequence[str], places: Sequence[int]) -> bool:
        """True if these blocks are there, or could be, all at once."""
        if any(self.at.get(n, at) != at for n, at in zip(names, places, strict=True)):
            return False
        mine: dict[str, int] = {}
        for name, at in zip(names, places, strict=True):
            if mine.get(name, at) != at:
                return False
            if name not in self.at and not self._is_free(name, at, mine):
                return False
            mine[name] = at
        return True

    def _around(self, names: Sequence[str]) -> tuple[int, ...] | None:
        """Return where these blocks are, were or can be, or None if one of them finds
        no room."""
        mine: dict[str, int] = {}
        for name in names:
            at = self.at.get(name, mine.get(name))
            if at is None:
                ways = self._ways(name, mine)
                at = next((a for a in ways if self._is_free(name, a, mine)), None)
            if at is None:
                return None
            mine[name] = at
        return tuple(mine[name] for name in names)

    def _ways(self, name: str, mine: Mapping[str, int]) -> list[int]:
        """The offsets that a block may try."""
        taken = {**self.at, **mine}
        ends = {at + self.block_offsets[n].block.bytes for n, at in taken.items()}
        was = [self.block_offsets[name].at]
        first = [*taken.values(), *was] if self.used_first else was
        return [*first, 0, *sorted(round_up(end, self.align) for end in ends)]

    def _is_free(self, name: str, at: int, mine: Mapping[str, int]) -> bool:
        """Beside all that have their place, and those of the same step."""
        if at + self.block_offsets[name].block.bytes > self.bytes:
            return False
        return not any(
            low < at - place < high
            for others in (self.at, mine)
            for other, place in others.items()
            if self.alive[other] & self.alive[name]
            for low, high in self._taken(other, name)
        )

    def _taken(self, other: str, name: str) -> Taken:
        """The offsets at which a block cannot begin, relative to the other block."""
        if (other, name) not in self.beside:
            made = taken_by(self.pieces[other], self.pieces[name])
            self.beside[other, name] = made
        return self.beside[other, name]
