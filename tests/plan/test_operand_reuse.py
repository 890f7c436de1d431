"""Blocks that move to where those of other steps were: never onto what is alive."""

from __future__ import annotations

import random

from pybuild.plan.buffers.offsets import BlockOffset, place
from pybuild.plan.buffers.sharing import Block
from pybuild.plan.memory.operand_reuse import Settled, whole


def chain(
    chance: random.Random,
) -> tuple[dict[str, BlockOffset], list[tuple[str, ...]]]:
    """Steps that read what one before has made, with scratch; placed."""
    count, sizes = chance.randrange(3, 9), [4 * chance.randrange(1, 9) for _ in "12345"]
    made = {f"y{i}": (chance.choice(sizes), i, i + 1) for i in range(count)}
    made |= {f"s{i}": (chance.choice(sizes), i, i) for i in range(1, count)}
    steps = [("y0",)]
    for i in range(1, count):
        read = chance.choice([name for name in ("y0", f"y{i - 1}") if name in made])
        size, first, last = made[read]
        made[read] = size, first, max(last, i)
        steps.append((f"y{i}", read, f"s{i}"))
    blocks = [Block(name, *rest) for name, rest in made.items()]
    offsets = place(blocks, 4).offsets
    block_offsets = zip(blocks, offsets, strict=True)
    return {block.name: BlockOffset(0, at, block) for block, at in block_offsets}, steps


def test_no_block_moves_onto_what_is_alive() -> None:
    moved = settled = 0
    for seed in range(200):
        block_offsets, steps = chain(random.Random(seed))
        pieces = {
            name: [whole(block_offset.block)]
            for name, block_offset in block_offsets.items()
        }
        for used_first in (False, True):
            layout = Settled(block_offsets, pieces, 4, used_first)
            if not layout.settle([(names, (len(names),)) for names in steps]):
                continue
            settled += 1
            moved += any(
                layout.at[name] != block_offset.at
                for name, block_offset in block_offsets.items()
            )
            ends = max(
                block_offset.at + block_offset.block.bytes
                for block_offset in block_offsets.values()
            )
            there = [
                BlockOffset(0, layout.at[name], s.block)
                for name, s in block_offsets.items()
            ]
            for i, a in enumerate(there):
                assert a.at % 4 == 0 and a.at + a.block.bytes <= ends
                for b in there[:i]:
                    apart = a.block.last < b.block.first or b.block.last < a.block.first
                    assert apart or not a.meets(b), seed
    assert settled > 200 and moved > 100
