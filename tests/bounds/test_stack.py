"""The deepest chain of calls: of frames that are given, of an object before it is
linked, and of the program that it is linked into."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import pytest

import pybuild
from pybuild.boards.bench import bench_on_board
from pybuild.boards.device import open_device
from pybuild.boards.firmware.elf import Elf, Segment, Symbol
from pybuild.boards.firmware.object_stack import object_stack
from pybuild.boards.firmware.stack import stack_chain
from pybuild.bounds.stack import NO_OBJECT, Chain, StackFrame, deepest
from pybuild.errors import BuildError
from tests.objects.models import content
from tests.toolchains import ROOT, require, run

DIGITS = ROOT / "examples" / "digits" / "digits_int8.tflite"
FRAMES = {"run": 8, "few": 40, "many": 16, "last": 32}
CALLS = {"run": ["few", "many"], "few": [], "many": ["last"], "last": []}


def test_the_deepest_chain_is_not_that_of_the_largest_frame() -> None:
    found = deepest(["run"], FRAMES.__getitem__, CALLS.__getitem__)
    frames = tuple(StackFrame(name, FRAMES[name]) for name in ("run", "many", "last"))
    assert found == Chain(56, frames)


def test_recursion_is_an_error() -> None:
    calls = {**CALLS, "last": ["many"]}
    with pytest.raises(BuildError, match="calls itself"):
        deepest(["run"], FRAMES.__getitem__, calls.__getitem__)


@pytest.mark.parametrize("place", ["args", "steps"])
def test_an_integer_is_no_call(place: str, tmp_path: Path) -> None:
    """Of flash at address 0: an argument, or what a step counts, that is the address of
    the board's start. A DenseNet was refused: "calls itself"."""
    step = [0x121, 0, 0, 0, 0, 0]
    other = {"args": [*step, 0x141, 0], "steps": [*step[:5], 0x141, 0, 0]}[place]
    words = {0x100: b"\x98\x47\x70\x47", 0x120: b"\x70\x47", 0x140: b"\x70\x47"}
    tables = b"".join(word.to_bytes(4, "little") for word in other)
    elf = Elf(
        0x100,
        (
            Symbol("main", 0x100, 4, True), Symbol("kernel", 0x120, 2, True),
            Symbol("board_reset", 0x140, 2, True),
            Symbol("net_steps", 0x200, 24, False), Symbol("net_args", 0x218, 8, False),
        ),
        {".runtime": (0x100, 0x20), ".tables": (0x200, len(tables))},
        (*(Segment(at, code) for at, code in words.items()), Segment(0x200, tables)),
    )  # fmt: skip
    (tmp_path / "a.su").write_text("a.c:1:1:board_reset\t400\tstatic\n")
    found = stack_chain(elf, tmp_path, "main", (), "arm")
    assert [frame.name for frame in found.frames] == ["main", "kernel"]


def test_a_tree_of_c_says_that_its_stack_is_not_known() -> None:
    stack = pybuild.build(DIGITS, target="cortex-m4").report.stack
    assert stack.bytes is None and stack.reason == NO_OBJECT


@pytest.mark.parametrize("board", ["mps2-an386", "mps2-an505"])
def test_an_objects_kernels_take_what_they_take_in_a_program(board: str) -> None:
    """Frames of the chain are those of the linked program, which has no deeper one."""
    require("arm-none-eabi-gcc")
    require("qemu-system-arm")
    device = open_device(board, "gcc", "qemu", "", "balanced")
    library = pybuild.build(DIGITS, target=device.core.name, emit="obj")
    stack = library.report.stack
    bench = bench_on_board(device, library)
    assert stack.bytes == sum(frame.bytes for frame in stack.chain) > 0
    assert bench.ram.stack_bound == sum(frame.bytes for frame in bench.chain)
    names = [frame.name for frame in bench.chain]
    assert names[0] == "main" and len(set(names)) == len(names)
    assert bench.chain[names.index(stack.chain[0].name) :] == stack.chain
    assert [asdict(frame) for frame in bench.chain] == bench.to_json()["stack_chain"]


@pytest.mark.parametrize("target", ["cortex-m0", "cortex-m55", "rv32imc"])
def test_what_is_not_in_the_object_is_named(target: str, tmp_path: Path) -> None:
    """As the tools of the core say it."""
    rv32 = target.startswith("rv")
    nm = require("riscv64-unknown-elf-nm" if rv32 else "arm-none-eabi-nm")
    library = pybuild.build(DIGITS, target=target, emit="obj")
    file = tmp_path / "digits.o"
    file.write_bytes(content(library))
    symbols = {line.split()[-1] for line in run([nm, "-u", file]).splitlines()}
    functions = {name for name in symbols if not name.startswith("crt_")}
    assert set(library.report.stack.outside) == functions
    assert object_stack(file.read_bytes(), "riscv" if rv32 else "arm") == (
        library.report.stack
    )
