"""Memory regions: one arena for each device, or the regions that the user defines.
Knows blocks and device numbers, not what a device is. Devices share no memory.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace

from pybuild.errors import LimitError, Problem
from pybuild.ir.graph import Graph
from pybuild.options.regions import OPTION, RegionSpec
from pybuild.plan.buffers.offsets import BlockOffset, Layout, alive, place, round_up
from pybuild.plan.buffers.sharing import Block, Storage, Views
from pybuild.plan.memory.live_ranges import Piece, most_alive
from pybuild.plan.memory.row_offsets import interlaced
from pybuild.plan.regions.assignment import spread
from pybuild.records import dataclass

BLOCK_ALIGN = 4
ARENA_NAME = "arena"

# the most blocks that a message names; they usually hold most of the bytes
NAMED = 6

Limits = int | Mapping[int, int] | None


@dataclass(frozen=True)
class Region:
    """A piece of memory of a device.

    name   used for its macro and its member of struct NAME_memory
    peak   the blocks that are alive at the peak, largest first
    spec   the user's definition; None: the region is as large as the device needs
    moved  bytes read and written there in a run
    holds  the names of the blocks in it
    Units  bytes
    """

    device: int
    bytes: int
    lower_bound: int
    peak: tuple[Block, ...]
    name: str = ARENA_NAME
    spec: RegionSpec | None = None
    moved: int = 0
    holds: tuple[str, ...] = ()


@dataclass(frozen=True)
class Wishes:
    """Constraints on the region of each block.

    specs   the user's regions; a device without any gets one as large as it needs
    moved   bytes read and written in a run, by block name
    hot     constants that may stay in flash
    source  the graph's source, for messages; shown: maps block names to names for
            people
    leading  the block whose region is to be the first of its device
    align   alignment of every block; 8 if some have elements of 8 bytes
    pieces  the pieces of every block; empty: blocks are alive as wholes
    """

    specs: tuple[RegionSpec, ...] = ()
    moved: Counter[str] = field(default_factory=Counter)
    hot: frozenset[str] = frozenset()
    source: str = ""
    shown: Callable[[str], str] = str
    leading: str = ""
    align: int = BLOCK_ALIGN
    pieces: Mapping[str, Sequence[Piece]] = field(default_factory=dict)


def region_name(device: int) -> str:
    """Return the name of a device's region if the user defined none."""
    return f"device_{device}" if device else ARENA_NAME


def place_regions(
    blocks: Sequence[Block], devices: Mapping[str, int], wishes: Wishes | None = None
) -> tuple[tuple[Region, ...], dict[str, BlockOffset]]:
    """Return the regions, the CPU's first and unused ones last, and the place of each
    block.

    devices  the device of each block, by name; a block without an entry is the CPU's
    Errors   LimitError naming what does not fit
    """
    wishes = wishes or Wishes()
    of = {block.name: devices.get(block.name, 0) for block in blocks}
    found: list[tuple[Region, Sequence[Block], Layout]] = []
    for device in sorted({0, *of.values(), *(s.device for s in wishes.specs)}):
        mine = [block for block in blocks if of[block.name] == device]
        specs = [spec for spec in wishes.specs if spec.device == device]
        if specs:
            found += _spread(mine, specs, wishes)
        else:
            layout = _layout(mine, wishes)
            found.append((_region(device, mine, layout, wishes), mine, layout))
    kept = [
        i == 0 or r.bytes > 0 or r.spec is None for i, (r, _, _) in enumerate(found)
    ]
    used = [one for one, there in zip(found, kept, strict=True) if there]
    unused = [one for one, there in zip(found, kept, strict=True) if not there]
    block_offsets = {}
    for index, (_, members, layout) in enumerate(used):
        for block, at in zip(members, layout.offsets, strict=True):
            block_offsets[block.name] = BlockOffset(index, at, block)
    return (
        tuple(region for region, _, _ in (*used, *unused)),
        {
            block.name: block_offsets[block.name]
            for block in blocks
            if block.name in block_offsets
        },
    )


def _layout(blocks: Sequence[Block], wishes: Wishes) -> Layout:
    if not wishes.pieces:
        return place(blocks, wishes.align)
    return interlaced([wishes.pieces[block.name] for block in blocks], wishes.align)


def _region(
    device: int,
    blocks: Sequence[Block],
    layout: Layout,
    wishes: Wishes,
    spec: RegionSpec | None = None,
) -> Region:
    return Region(
        device,
        round_up(layout.bytes, wishes.align),
        layout.lower_bound,
        _peak(blocks, wishes),
        spec.name if spec else region_name(device),
        spec,
        sum(wishes.moved[block.name] for block in blocks),
        tuple(block.name for block in blocks),
    )


def _spread(
    blocks: Sequence[Block], specs: Sequence[RegionSpec], wishes: Wishes
) -> list[tuple[Region, Sequence[Block], Layout]]:
    """Return one device's regions with their blocks, that of `leading` first. Raises
    LimitError if some block fits nowhere."""
    made = spread(blocks, specs, wishes.moved, wishes.hot, wishes.align)
    if made.unplaced:
        raise _too_large(made.unplaced, blocks, specs, wishes)
    found: list[tuple[Region, Sequence[Block], Layout]] = []
    for spec, members, layout in zip(specs, made.members, made.layouts, strict=True):
        region = _region(spec.device, members, layout, wishes, spec)
        found.append((region, members, layout))
    used = [i for i, one in enumerate(found) if one[0].bytes] or [0]
    led = [i for i in used if wishes.leading in found[i][0].holds]
    first = (led or used)[0]
    return [found[first], *found[:first], *found[first + 1 :]]


def _too_large(
    unplaced: Sequence[Block],
    blocks: Sequence[Block],
    specs: Sequence[RegionSpec],
    wishes: Wishes,
) -> LimitError:
    """Return the error that names unplaced blocks and the blocks alive beside them."""
    sizes = ", ".join(f"'{s.name}' {s.bytes}" for s in specs)
    kept = [b for b in blocks if b.name not in wishes.hot]
    needed = place(kept, wishes.align).bytes
    problems = []
    for block in sorted(unplaced, key=lambda b: (-b.bytes, b.name))[:3]:
        beside = sorted(
            (b for b in blocks if b.first <= block.last and block.first <= b.last),
            key=lambda b: (-b.bytes, b.name),
        )
        others = [b for b in beside if b is not block and b.name not in wishes.hot]
        name, names = wishes.shown(block.name), largest(others, wishes.shown)
        what = f"'{name}', {block.bytes} bytes, fits in none of the regions "
        what += f"{sizes} bytes; alive beside it: {names or 'nothing'}"
        what += f" bytes. In one piece the arena needs {needed}"
        hint = f"a larger region, or {OPTION} with a slow one for what is left over"
        problems.append(Problem(wishes.source, what, hint))
    error = LimitError.of(problems)
    assert isinstance(error, LimitError)
    return error


def _peak(blocks: Sequence[Block], wishes: Wishes) -> tuple[Block, ...]:
    """Return the blocks alive at the peak; of blocks in pieces, only the live bytes
    count."""
    if wishes.pieces:
        sizes = most_alive([wishes.pieces[block.name] for block in blocks])
        pairs = zip(blocks, sizes, strict=True)
        found = [replace(block, bytes=size) for block, size in pairs if size]
        return tuple(sorted(found, key=lambda b: (-b.bytes, b.name)))
    sums = alive(blocks, wishes.align)
    if not sums:
        return ()
    step = max(sums, key=lambda pair: pair[1])[0]
    found = [b for b in blocks if b.first <= step <= b.last]
    return tuple(sorted(found, key=lambda b: (-b.bytes, b.name)))


def largest(
    blocks: Sequence[Block], shown: Callable[[str], str], total: int | None = None
) -> str:
    """Return a text with the names and sizes of the first blocks, and the total size of
    all others.

    total   bytes of the arena: what it has beside the blocks is named too
    """
    most = NAMED + 1 if len(blocks) == NAMED + 1 else NAMED
    names = [f"'{shown(b.name)}' {b.bytes}" for b in blocks[:most]]
    rest = [b.bytes for b in blocks[most:]]
    names += [f"{len(rest)} smaller {sum(rest)}"] if rest else []
    unused = (total or 0) - sum(block.bytes for block in blocks)
    names += [f"unused at that time {unused}"] if unused > 0 else []
    return ", ".join(names)


def check_limits(
    graph: Graph,
    regions: Sequence[Region],
    limits: Limits,
    advice: Callable[[Sequence[Block]], str],
    builds: bool = True,
) -> None:
    """Check the arenas against the user's limits.

    Errors  LimitError naming the tensors alive at the peak of each arena too large

    limits  bytes of all regions, by device; a plain number limits the CPU's
    advice  returns a hint, given the blocks alive at the peak
    builds  whether a limit of as many bytes as the CPU's arena has would be kept
    """
    most = limits if isinstance(limits, Mapping) else {0: limits}
    found, least = [], None
    for device in sorted({region.device for region in regions}):
        mine = [region for region in regions if region.device == device]
        needed = sum(region.bytes for region in mine)
        limit = most.get(device)
        if limit is None or needed <= limit:
            continue
        peak = [b for r in mine for b in r.peak]
        names = largest(peak, graph.shown, needed)
        where = f" on device {device}" if device else ""
        what = f"the smallest arena found{where} has {needed} bytes, "
        what += f"the limit is {limit}; alive at the peak: {names} bytes"
        hint = advice(peak)
        if builds and not device:
            least, hint = needed, f"--ram-limit {needed}, {hint}"
        found.append(Problem(graph.source, what, hint))
    if found:
        error = LimitError.of(found)
        error.least = least
        raise error


def overwritten(
    graph: Graph,
    storage: Storage,
    views: Views,
    block_offsets: Mapping[str, BlockOffset],
) -> frozenset[str]:
    """Return the inputs whose bytes another group, or a result in place, overwrites."""
    found = set()
    for name in graph.inputs:
        owner = storage.block_of.get(views.of(name).root)
        if owner is None:
            continue
        groups = [r for r, o in storage.block_of.items() if o == owner]
        mine = block_offsets[owner]
        overlap = any(mine.meets(s) for s in block_offsets.values() if s is not mine)
        if overlap or len(groups) > 1:
            found.add(name)
    return frozenset(found)
