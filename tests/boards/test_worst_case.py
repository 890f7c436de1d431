"""No input takes more instructions than the bound, which is near to what is counted."""

from __future__ import annotations

import re
import shutil
import subprocess

import numpy as np
import pytest

import pybuild
from pybuild.boards.bench import bench_on_board
from pybuild.boards.device import pack_inputs, program_of
from pybuild.boards.firmware.branches import steps
from pybuild.boards.firmware.longest import Code, at_most
from pybuild.boards.firmware.stack import code_pieces, data_marks
from pybuild.boards.simulators.count import count_plan
from pybuild.dtype import Array
from pybuild.library import Library
from tests.boards.devices import DIGITS, device, library

# board, compiler or "obj", and how far the bound may be above: digits is so small that
# a padded layer's edges are a third of it
ON = [
    ("mps2-an386", "gcc", 1.01),
    ("mps2-an386", "obj", 1.02),
    ("microbit", "gcc", 1.04),
    ("riscv32-virt", "obj", 1.04),
]


def extremes(made: Library) -> list[dict[str, Array]]:
    """Inputs at the ends of their type, alternating, and random ones."""
    graph, random = made.plan.graph, np.random.default_rng(24)
    tensors = [graph.tensor(name) for name in graph.inputs]
    kinds = [
        lambda t: np.full(t.shape, t.dtype.low),
        lambda t: np.full(t.shape, t.dtype.high),
        lambda t: np.full(t.shape, t.zero_point),
        lambda t: np.resize([t.dtype.low, t.dtype.high], t.shape),
        lambda t: random.integers(t.dtype.low, t.dtype.high, t.shape, endpoint=True),
    ]
    return [{t.name: kind(t).astype(t.dtype.numpy) for t in tensors} for kind in kinds]


@pytest.mark.parametrize(("name", "chain", "above"), ON)
def test_no_input_takes_more(name: str, chain: str, above: float) -> None:
    on = device(name, "gcc", "unicorn")
    emit = "obj" if chain == "obj" else "c"
    made = pybuild.load(DIGITS).build(target=on.core.name, emit=emit)
    bench = bench_on_board(on, made)
    assert bench.worst is not None and not bench.worst.open
    most = bench.worst.instructions
    assert most is not None and bench.instructions <= most
    assert most <= above * bench.instructions
    firmware = program_of(on, made).firmware
    plan = count_plan(firmware, len(made.plan.steps))
    for inputs in extremes(made):
        given = {"crt.in": pack_inputs(made.plan, [inputs, inputs])}
        counts = on.simulator.run(firmware, given, plan).counts
        assert counts is not None and counts.total <= most


def test_what_stands_in_an_it_block_may_do_nothing() -> None:
    """ite eq; bxeq lr; movne r0, r1; bx lr"""
    code = b"".join(
        word.to_bytes(2, "little") for word in (0xBF0C, 0x4770, 0x4608, 0x4770)
    )
    assert [step.falls for step in steps("arm", code, 0)] == [True, True, True, False]


def test_loops_are_as_counted_and_tests_are_taken_the_longer_way() -> None:
    """1 leads to a loop of 2 to 5, in which 3 is another loop; 4 is 7 or nothing."""
    sizes = {1: 10, 2: 1, 3: 4, 4: 2, 5: 3, 6: 5, 7: 100}
    after = {1: (2,), 2: (3, 4), 3: (3, 4), 4: (5, 7), 5: (2, 6), 6: (), 7: (5,)}
    runs = {1: 2, 2: 20, 3: 60, 4: 20, 5: 20, 6: 2, 7: 0}
    once = 2 * (10 + 5)
    turns = 20 * (1 + 2 + 100 + 3)
    assert at_most(Code(1, sizes, after), runs) == once + turns + 60 * 4


def test_a_loop_with_two_entries() -> None:
    """0 may go to 1 or to 2, which go to each other, and 2 to 3."""
    sizes = {0: 1, 1: 10, 2: 100, 3: 1000}
    after = {0: (1, 2), 1: (2,), 2: (1, 3), 3: ()}
    runs = {0: 1, 1: 5, 2: 6}
    assert at_most(Code(0, sizes, after), runs) == 1 + 1000 + 5 * 10 + 6 * 100


def test_what_is_behind_a_jump_is_no_way_into_a_loop() -> None:
    """0 leads to 1 and 2, which go to each other; 9 fills up to 2: nothing is there."""
    sizes = {0: 1, 1: 10, 2: 100, 3: 1000, 9: 1}
    after = {0: (1,), 1: (2, 3), 2: (1,), 3: (), 9: (2,)}
    runs = {0: 1, 1: 6, 2: 5, 3: 1, 9: 0}
    assert at_most(Code(0, sizes, after), runs) == 1 + 1000 + 6 * 110


OBJDUMPS = {
    "mps2-an386": "arm-none-eabi-objdump",
    "mps3-an547": "arm-none-eabi-objdump",
    "riscv32-virt": "riscv64-unknown-elf-objdump",
}
_LINE = re.compile(r"^\s*([0-9a-f]+):\s+[0-9a-f ]+\t([a-z][\w.]*)\s*(.*)$")
_FLOW = re.compile(
    r"(b(eq|ne|cs|cc|mi|pl|vs|vc|hi|ls|ge|lt|gt|le)"
    r"|b(eqz|nez|lez|gez|ltz|gtz|gtu|leu|ltu|geu)"
    r"|b|cbn?z|le|letp|wls|wlstp\.\w+|j)(\.[nw])?$"
)


@pytest.mark.parametrize("name", OBJDUMPS)
def test_branches_are_those_of_objdump(name: str) -> None:
    tool = OBJDUMPS[name]
    if shutil.which(tool) is None:
        pytest.skip(f"no {tool}")
    on = device(name, "gcc")
    firmware = program_of(on, library(DIGITS, on)).firmware
    said = subprocess.run([tool, "-d", firmware.path], capture_output=True, text=True)
    expected = {}
    for line in said.stdout.splitlines():
        found = _LINE.match(line)
        if found and _FLOW.match(found[2]):
            target = re.search(r"(?:^|[ ,])(?:0x)?([0-9a-f]+) <", found[3])
            expected[int(found[1], 16)] = int(target[1], 16) if target else None
    elf, seen = firmware.elf, {}
    for symbol in elf.symbols:
        if symbol.code and symbol.size:
            for at, piece in code_pieces(elf, symbol, data_marks(elf)):
                for step in steps(firmware.core.arch, piece, at):
                    seen[step.at] = step
    both = set(expected) & set(seen)
    assert len(both) > 100
    for at in both:
        assert seen[at].targets == (expected[at],), hex(at)
    jumps = {at for at, step in seen.items() if step.targets}
    assert jumps <= set(expected), [hex(at) for at in jumps - set(expected)]
