"""Blocks that an instance keeps from run to run."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import field

from pybuild.dtype import Array
from pybuild.ir.graph import Graph
from pybuild.plan.buffers.offsets import BlockOffset
from pybuild.records import dataclass


@dataclass(frozen=True)
class Kept:
    """A block that keeps its contents from run to run.

    initial  its contents after a reset; None: zeros
    """

    name: str
    region: int
    at: int
    bytes: int
    initial: Array | None = field(default=None, compare=False, repr=False)


def kept_memory(
    graph: Graph, block_offsets: Mapping[str, BlockOffset]
) -> tuple[Kept, ...]:
    """Return the state of a graph: each tensor has a block of its own."""
    found = []
    for name, state in graph.state.items():
        block_offset = block_offsets[name]
        initial = state.initial if state.initial.tobytes().strip(b"\0") else None
        size = graph.tensor(name).bytes
        found.append(Kept(name, block_offset.region, block_offset.at, size, initial))
    return tuple(found)


def id_of(graph: Graph, kept: Sequence[Kept]) -> int:
    """Return an id that identifies a saved state's model, weights and plan."""
    code = zlib.crc32(graph.dump().encode())
    for name in sorted(graph.constants.keys() - graph.parameters.keys()):
        code = zlib.crc32(graph.constants[name].tobytes(), code)
    places = [(k.name, k.region, k.at, k.bytes) for k in kept]
    return zlib.crc32(repr(places).encode(), code)
