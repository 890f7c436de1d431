"""Arena offsets: no two live blocks overlap, the bound is reached or reported."""

from __future__ import annotations

import random
import time

from hypothesis import given, settings
from hypothesis import strategies as st

from pybuild.plan.buffers.offsets import Layout, place, round_up
from pybuild.plan.buffers.sharing import Block

ALIGN = 4


def overlapping(blocks: list[Block], layout: Layout) -> list[tuple[str, str]]:
    """Pairs alive at one time and placed on the same bytes."""
    spans = [
        (b.first, b.last, o, o + b.bytes, b.name)
        for b, o in zip(blocks, layout.offsets, strict=True)
    ]
    return [
        (x[4], y[4])
        for i, x in enumerate(spans)
        for y in spans[:i]
        if x[0] <= y[1] and y[0] <= x[1] and x[2] < y[3] and y[2] < x[3]
    ]


def chain(sizes: list[int]) -> list[Block]:
    return [Block(f"t{i}", size, i, i + 1) for i, size in enumerate(sizes)]


def test_a_chain_reaches_its_bound() -> None:
    layout = place(chain([100, 300, 50, 400, 8]), ALIGN)
    assert layout.bytes == layout.lower_bound == 452


def test_a_residual_reaches_its_bound() -> None:
    blocks = [
        Block("in", 64, -1, 0),
        Block("skip", 128, 0, 3),
        Block("a", 256, 1, 2),
        Block("b", 128, 2, 3),
        Block("out", 128, 3, 4),
    ]
    layout = place(blocks, ALIGN)
    assert layout.bytes == layout.lower_bound == 512
    assert overlapping(blocks, layout) == []


def test_search_beats_every_greedy_order() -> None:
    """Fragmentation that size order alone does not avoid."""
    chance = random.Random(1)
    missed = 0
    for _ in range(40):
        blocks = []
        for i in range(9):
            first = chance.randrange(8)
            last = first + chance.randrange(1, 4)
            blocks.append(Block(f"t{i}", 4 * chance.randrange(1, 30), first, last))
        layout = place(blocks, ALIGN)
        assert overlapping(blocks, layout) == []
        missed += layout.bytes != layout.lower_bound
    assert missed <= 2


@settings(max_examples=60)
@given(
    st.lists(
        st.tuples(st.integers(1, 999), st.integers(-1, 12), st.integers(0, 6)),
        min_size=1,
        max_size=25,
    )
)
def test_random_blocks_never_overlap(rows: list[tuple[int, int, int]]) -> None:
    blocks = [
        Block(f"t{i}", size, first, first + length)
        for i, (size, first, length) in enumerate(rows)
    ]
    layout = place(blocks, ALIGN)
    assert overlapping(blocks, layout) == []
    assert all(offset % ALIGN == 0 for offset in layout.offsets)
    pairs = zip(blocks, layout.offsets, strict=True)
    top = max(at + round_up(block.bytes, ALIGN) for block, at in pairs)
    assert top == layout.bytes >= layout.lower_bound


def test_ten_thousand_blocks_in_seconds() -> None:
    chance = random.Random(2)
    blocks = [
        Block(f"t{i}", chance.randrange(1, 5000), i, i + 1 + (40 if i % 7 == 0 else 0))
        for i in range(10_000)
    ]
    start = time.process_time()
    layout = place(blocks, ALIGN)
    assert time.process_time() - start < 8
    assert layout.bytes <= 1.15 * layout.lower_bound
