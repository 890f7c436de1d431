"""Reuses operands between steps: a block is moved to the offset that an earlier step's
block had, if there is room, so that both steps have the same operands and the tables
store them once. The arena never grows for it. Knows blocks and how steps access them;
no tables.
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

# the movable blocks that a step accesses; how it accesses them, and all other operands
_Handed = tuple[tuple[str, ...], tuple[object, ...]]


def made_alike(
    graph: Graph,
    views: Views,
    found: Arrangement,
    block_offsets: Mapping[str, BlockOffset],
    pieces: Mapping[str, Sequence[Piece]],
    align: int,
) -> dict[str, BlockOffset]:
    """Return offsets that need no more bytes and give as many steps as possible the
    same operands.

    pieces  the pieces of blocks; blocks not named here are alive as wholes
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
    """Return a key that is equal for steps with equal operands."""
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
    """Blocks with a final offset: `at`, by block name.

    used_first  whether a block tries the offsets of settled blocks before its own old
                one
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
        """Settle all blocks; return True if all found room. Blocks that no step names
        stay where they were.

        Source  greedy: each step takes the operands of the first earlier step that it
                can match
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
        """Return True if the named blocks are at these offsets, or can all be moved
        there."""
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
        """Return settled, old or free offsets for these blocks, or None if one finds no
        room."""
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
        """Return the offsets to try for a block, in order."""
        taken = {**self.at, **mine}
        ends = {at + self.block_offsets[n].block.bytes for n, at in taken.items()}
        was = [self.block_offsets[name].at]
        first = [*taken.values(), *was] if self.used_first else was
        return [*first, 0, *sorted(round_up(end, self.align) for end in ends)]

    def _is_free(self, name: str, at: int, mine: Mapping[str, int]) -> bool:
        """Return True if the block at this offset meets no settled block, and none of
        its step."""
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
        """Return the ranges, relative to `other`, in which the block cannot begin."""
        if (other, name) not in self.beside:
            made = taken_by(self.pieces[other], self.pieces[name])
            self.beside[other, name] = made
        return self.beside[other, name]
