"""The offset of every tensor's first byte, once all blocks have their offsets."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from pybuild.ir.graph import Graph
from pybuild.plan.buffers.offsets import BlockOffset
from pybuild.plan.buffers.sharing import Views
from pybuild.plan.schedule.lock_step import Ring
from pybuild.plan.schedule.stages import Arrangement
from pybuild.records import dataclass

ARENA = ""  # the buffer of what is in no input and no output


@dataclass(frozen=True)
class Place:
    """The place of a tensor's first byte.

    buffer  ARENA, or the name of the input or output whose memory it shares
    at      bytes from the start of that buffer
    home    bytes from the start of the arena (also if the buffer has a home there)
    region  the number of the home's region; -1: it has no home
    """

    buffer: str
    at: int
    home: int
    region: int = 0


def by_tensor(graph: Graph, views: Views, found: Arrangement) -> dict[str, Ring]:
    """Map every name of a tensor to its ring, views included."""
    rings = found.rings
    roots = {name: views.of(name).root for name in graph.tensors}
    return {**rings, **{n: rings[r] for n, r in roots.items() if r in rings}}


def place_tensors(
    graph: Graph,
    views: Views,
    found: Arrangement,
    block_offsets: Mapping[str, BlockOffset],
    pushed: Collection[str],
) -> dict[str, Place]:
    """Return the place of each tensor, by name.

    block_offsets   the offset of each block, by block name
    pushed  inputs without a buffer
    """
    storage = found.storage
    named: dict[str, str] = {}
    for name in (*graph.outputs, *graph.inputs):
        if name not in pushed:
            named[views.of(name).root] = name
    places = {}
    for name in graph.tensors:
        view = views.of(name)
        if name in graph.constants:
            continue
        if view.root not in storage.block_of:
            if view.root in named:
                places[name] = Place(named[view.root], view.at, view.at, -1)
            continue
        block_offset = block_offsets[storage.block_of[view.root]]
        home = block_offset.at + view.at
        buffer = named.get(view.root, ARENA)
        at = home if buffer == ARENA else view.at
        places[name] = Place(buffer, at, home, block_offset.region)
    whole = dict(places)
    for name, ring in by_tensor(graph, views, found).items():
        base = whole.get(ring.home)
        if base is None:
            block_offset = block_offsets[ring.home]
            base = Place(ARENA, block_offset.at, block_offset.at, block_offset.region)
        places[name] = replace(base, at=base.at + ring.at, home=base.home + ring.at)
    return places
