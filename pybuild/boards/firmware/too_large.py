"""The message for a program that does not fit its board: how many bytes are missing,
what is large, and what could help.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING

from pybuild.errors import LimitError
from pybuild.plan.advice import less_ram
from pybuild.plan.buffers.sharing import Block
from pybuild.plan.regions.regions import largest
from pybuild.savings import that_fit
from pybuild.targets.board import Board

if TYPE_CHECKING:
    from pybuild.host.build_facts import Library

# of GNU ld and of lld
_OVER = re.compile(r"region [`'](\w+)':? overflowed by (\d+) bytes")


def overflows(text: str) -> dict[str, int]:
    """Region -> bytes that are missing, from the linker's messages."""
    found: dict[str, int] = {}
    for region, bytes_ in _OVER.findall(text):
        found[region] = max(found.get(region, 0), int(bytes_))
    return found


class TooLarge(LimitError):
    """A program that does not fit; over: bytes that are missing, by memory."""

    over: Mapping[str, int] = MappingProxyType({})


def too_large(
    library: Library, board: Board, over: Mapping[str, int], stack: int = 0
) -> TooLarge:
    """Names what is large: tensors alive at the peak, or weights.

    stack  bytes that the whole program needs, as far as they are known
    """
    plan, where = library.plan, library.plan.graph.source
    problems = []
    for region, bytes_ in over.items():
        own = {"FLASH": board.flash, "RAM": board.ram}
        memory = own.get(region) or board.memories[region.lower()]
        what = f"needs {bytes_} bytes more {region} than {board.name}"
        what += f" has, {memory.size};"
        if region != "FLASH":
            mine = (r.peak for r in plan.regions if r.name == region.lower())
            peak = next(mine, plan.peak)
            names = largest(peak, plan.graph.shown)
            what += f" alive at the peak: {names} bytes"
            hint = _less_ram(library, peak)
            if region == "RAM":
                what += _beside(library, memory.size + bytes_, stack)
                hint = _what_fits(library, bytes_) or hint
        else:
            what += f" largest weights: {_heaviest(library)} bytes"
            hint = "fewer or smaller layers, or another board"
        problems.append(LimitError(where, what, hint).problems[0])
    error = TooLarge.of(problems)
    error.over = over
    return error


def _beside(library: Library, needed: int, stack: int) -> str:
    """The RAM that is needed besides the arena, and how small it could be."""
    arena, instance = library.plan.arena_bytes, library.tables.instance_bytes
    least = library.least_arena() if library.options.plan == "rows" else None
    could = "" if least is None else f", of which the smallest plan needs {least}"
    if not stack:
        return f"; the arena has {arena} bytes{could}"
    rest = f"{needed - arena - stack} of data, {instance} of them the instance"
    return f"; the arena has {arena} bytes{could}; beside it {stack} of stack, {rest}"


def _what_fits(library: Library, missing: int) -> str:
    """Options with which it needs so many bytes less, the cheapest first; "": none."""
    room = library.plan.arena_bytes - missing
    least = library.least_arena() if library.options.plan == "rows" else None
    limit = [f"--ram-limit {room}"] if least is not None and least <= room else []
    found = (*limit, *that_fit(library, room))
    return f"it fits with {' or '.join(found)}" if found else ""


def _less_ram(library: Library, peak: Sequence[Block]) -> str:
    plan, chosen = library.plan, library.options
    kernels = (step.candidate for step in plan.steps)
    spent = plan.graph.inputs if chosen.input != "keep" else ()
    return less_ram(plan.graph, peak, kernels, chosen.push, spent)


def _heaviest(library: Library) -> str:
    graph = library.plan.graph
    sizes = sorted(((graph.tensor(n).bytes, n) for n in graph.constants), reverse=True)
    return ", ".join(f"'{graph.shown(name)}' {size}" for size, name in sizes[:3])
