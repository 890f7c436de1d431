"""The printed C of random graphs in lock step under sanitizers: every ring, buffer and
scratch lies alone between bytes that must stay as they were, and what memory held
before a run decides no bit of the result."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pybuild.errors import BuildError
from pybuild.ir.graph import Graph
from pybuild.plan.buffers import offsets as memory
from pybuild.plan.buffers.offsets import Layout
from pybuild.plan.buffers.sharing import Block
from pybuild.plan.plan import Plan
from pybuild.plan.regions import regions
from tests.emit.test_generated_c import sanitized
from tests.graphs.rows import model_of, row_graphs
from tests.plan.test_rows import quick

GUARD = 16
_PLACE = memory.place

MAIN = """
#include "rows.h"
#include <stdio.h>
#include <string.h>
static uint8_t arena[ROWS_ARENA_BYTES] __attribute__((aligned(16)));
static const uint32_t guards[][2] = {%s};
int main(void)
{
    const struct rows_memory memory = ROWS_MEMORY(arena);
    static const uint8_t poison[] = {0x5A, 0xA5};
    struct rows m;
    unsigned turn, i;
    uint32_t at;
    int bad = 0;

    for (turn = 0; turn < 2; turn++) {
        memset(arena, poison[turn], sizeof arena);
        bad |= rows_init(&m, &memory);
        bad |= rows_selftest(&m);
        for (i = 0; i < sizeof guards / sizeof guards[0]; i++)
            for (at = guards[i][0]; at < guards[i][1]; at++)
                bad |= arena[at] != poison[turn];
    }
    printf("%%d\\n", bad);
    return 0;
}
"""


class Apart:
    """Places every block by itself, for ever, with guards on both sides."""

    def __init__(self) -> None:
        self.made: list[tuple[Sequence[Block], Layout]] = []

    def __call__(self, blocks: Sequence[Block], align: int) -> Layout:
        wide = [
            replace(b, bytes=memory.round_up(b.bytes, GUARD) + 2 * GUARD, first=0)
            for b in blocks
        ]
        layout = _PLACE([replace(b, last=0) for b in wide], max(align, GUARD))
        layout = replace(layout, offsets=tuple(at + GUARD for at in layout.offsets))
        self.made.append((blocks, layout))
        return layout

    def guards(self, plan: Plan) -> list[tuple[int, int]]:
        """The bytes of the arena that no block of the plan has."""
        there = {s.scratch_at for s in plan.steps if s.scratch_at >= 0}
        there |= {p.home - plan.rings[n].at for n, p in plan.places.items()
                  if n in plan.rings and p.region >= 0}  # fmt: skip
        (region,) = plan.regions
        blocks, layout = next(
            (blocks, layout)
            for blocks, layout in reversed(self.made)
            if memory.round_up(layout.bytes, GUARD) == plan.arena_bytes
            and there <= set(layout.offsets)
            and tuple(block.name for block in blocks) == region.holds
        )
        found, at = [], 0
        pairs = zip(layout.offsets, (b.bytes for b in blocks), strict=True)
        for start, size in sorted(pairs):
            found.append((at, start))
            at = start + size
        return [*found, (at, plan.arena_bytes)]


def never(pieces: Sequence[object], align: int) -> Layout:
    """Pieces would lie over each other: no layout that is taken."""
    return Layout((0,) * len(pieces), 1 << 40, 0)


def must_be_intact(graph: Graph, **options: Any) -> bool:
    """Whether the graph can be built so."""
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory() as place:
        apart = Apart()
        patch.setattr(regions, "place", apart)
        patch.setattr(regions, "interlaced", never)
        folder = Path(place)
        try:
            made = model_of(graph).build(folder, name="rows", **options)
        except BuildError as error:
            assert "is not read row by row" in str(error)
            return False
        around = apart.guards(made.plan)
        assert all(end - start >= GUARD for start, end in around)
        text = ", ".join(f"{{{a}u, {b}u}}" for a, b in around)
        (folder / "example" / "main.c").write_text(MAIN % text)
        assert sanitized(folder) == "0\n"
    return True


@given(row_graphs())
@quick(2)
def test_nothing_is_written_beside_rings(graph: Graph) -> None:
    must_be_intact(graph, plan="rows")


@pytest.mark.sweep
@given(row_graphs(), st.sampled_from(["rows", "whole", "push"]))
@quick(40)
def test_nothing_is_written_beside_anything(graph: Graph, how: str) -> None:
    if how == "push":
        must_be_intact(graph, push=graph.inputs)
    else:
        must_be_intact(graph, plan=how)
