"""Finds offsets of blocks, whole or row by row, in as few bytes as possible."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from pybuild.ir.graph import Graph
from pybuild.options.regions import RegionSpec
from pybuild.plan.buffers.offsets import BlockOffset
from pybuild.plan.buffers.parameter_slots import Key, Slot
from pybuild.plan.buffers.sharing import Block, Views, scratch_of
from pybuild.plan.memory.live_ranges import Piece, in_pieces
from pybuild.plan.memory.operand_reuse import made_alike
from pybuild.plan.regions.regions import Region, Wishes, place_regions
from pybuild.plan.regions.traffic import moved_in
from pybuild.plan.schedule.stages import Arrangement
from pybuild.records import dataclass

T = TypeVar("T")


@dataclass(frozen=True)
class Given:
    """The user's requests about memory, as passed to make_plan.

    by_rows  whether memory of rows may be reused as soon as they have been read
    little   whether to minimise the size of tables
    """

    lazy: tuple[str, ...]
    specs: tuple[RegionSpec, ...]
    pushed: frozenset[str]
    spent: frozenset[str]
    by_rows: bool
    little: bool = False


def laid_once(lay: Callable[[Arrangement, Given], T]) -> Callable[..., T]:
    """Return `lay` with a cache: it does not lay out the same stages twice."""
    kept: dict[tuple[object, ...], tuple[Arrangement, T]] = {}

    def laid(found: Arrangement, given: Given) -> T:
        chosen = tuple((node.output, id(kernel)) for node, kernel in found.steps)
        key = (repr(given), found.stages, found.storage.blocks, chosen)
        if key not in kept:  # with its kernels, so that no others have their ids
            kept[key] = found, lay(found, given)
        return kept[key][1]

    return laid


@dataclass(frozen=True)
class Occupied:
    """Blocks with their offsets and live ranges.

    found   the stages before steps that unpack constants were inserted
    pieces  the pieces of each block; empty if blocks are alive as wholes, for their
            stages
    """

    found: Arrangement
    block_offsets: Mapping[str, BlockOffset]
    pieces: Mapping[str, Sequence[Piece]]


def find_block_offsets(
    graph: Graph,
    views: Views,
    found: Arrangement,
    beside: Sequence[Block],
    slots: Mapping[Key, Slot],
    wishes: Wishes,
    given: Given,
) -> tuple[Occupied, tuple[Region, ...]]:
    """Find the offsets of blocks: as wholes, or row by row if that takes fewer
    bytes."""
    devices = _devices(graph, slots.values())
    wishes = replace(wishes, moved=moved_in(found, views, slots))
    regions, block_offsets = place_regions(
        (*found.storage.blocks, *beside), devices, wishes
    )
    finer = None
    if given.by_rows:
        finer = in_pieces(graph, views, found, beside, given.spent)
    if finer is not None:
        blocks = (*finer.found.storage.blocks, *beside)
        moved = moved_in(finer.found, views, slots)
        finely = replace(wishes, moved=moved, pieces=finer.of)
        less = place_regions(blocks, devices, finely)
        if less[0][0].bytes < regions[0].bytes:
            found, wishes, (regions, block_offsets) = finer.found, finely, less
    if given.little and len(regions) == 1 and block_offsets and not graph.storage:
        block_offsets = made_alike(
            graph, views, found, block_offsets, wishes.pieces, wishes.align
        )
    return Occupied(found, block_offsets, wishes.pieces), regions


def _devices(graph: Graph, slots: Iterable[Slot]) -> dict[str, int]:
    """Map each block to the device that uses it."""
    scratch = {scratch_of(node): node.device for node in graph.nodes}
    homes = {slot.home: slot.device for slot in slots}
    return {**graph.locations(), **scratch, **homes}
