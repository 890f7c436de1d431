"""Chips' facts: each file names its datasheet and what it was compared with; memories
of simulated boards beside those of QEMU's machines."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from pybuild.errors import BuildError
from pybuild.targets.board import Board, board_names, load_board
from pybuild.targets.chip import Chip, read_chip
from pybuild.targets.facts import Memory, Reader
from tests.boards.board_table import chips
from tests.toolchains import require

CHIPS = {chip.name: chip for chip in chips()}
MACHINES = tuple(name for name in board_names() if load_board(name).machine)


@pytest.mark.parametrize("chip", CHIPS.values(), ids=list(CHIPS))
def test_each_file_names_its_sources(chip: Chip) -> None:
    """The datasheet, and public texts with what each of them confirms."""
    assert chip.source and {"cpu", "hz", "flash", "ram", "fpu", "dsp"} <= {*chip.stated}
    assert chip.compared and all(chip.compared.values())
    assert all(len(text) > 10 for text in chip.compared)
    assert {"cpu", "flash", "ram"}.isdisjoint(chip.unverified)


def test_what_is_not_compared_is_few_and_named() -> None:
    """Each fact that joins this list, or leaves it, is seen here."""
    assert {
        name: chip.unverified for name, chip in CHIPS.items() if chip.unverified
    } == {
        "apollo4p": ("hz", "start_hz"),
        "ensemble_e7": ("memory.dtcm", "memory.itcm"),
        "gd32vf103cb": ("start_hz",),
        "ra8d1": ("start_hz", "fpu", "memory.dtcm", "memory.itcm"),
        "stm32f746ng": ("start_hz", "memory.itcm"),
        "stm32h743zi": ("start_hz", "memory.itcm"),
        "stm32h747xi": ("start_hz", "memory.dtcm", "memory.itcm"),
        "stm32l4r5zi": ("start_hz",),
        "stm32u585ai": ("memory.sram4",),
        "virt_rv32": ("hz",),
        "virt_rv32v": ("hz",),
    }


def test_energy_has_a_source() -> None:
    for chip in CHIPS.values():
        assert bool(chip.charge) == ("energy" in chip.stated)
        assert "energy" not in chip.unverified


SOC = """\
title = "Maker X1: Cortex-M4"
cpu = "cortex-m4"
hz = 1
wait_states = 3
flash = { origin = 0, size = "4M" }
ram = { origin = 0, size = "4M" }
fpu = "single"
dsp = true
energy = { microamperes_per_mhz = 10, volts = 1 }
memory = { tcm = { origin = 0, size = "1K" } }

[compared]
"""


def _chip(folder: Path, table: str) -> tuple[Chip, list[str]]:
    reader = Reader()
    (folder / "x1.toml").write_text(SOC + table)
    chip = read_chip(folder / "x1.toml", reader)
    return chip, [str(problem) for problem in reader.problems]


def test_what_follows_from_the_core(tmp_path: Path) -> None:
    """An M4 has its DSP, and may have an FPU; without a known core nothing follows."""
    chip, problems = _chip(tmp_path, '"a header" = ["cpu", "ram"]\n')
    assert not problems and chip.wait_states == 3
    rest = ("hz", "wait_states", "flash", "fpu", "energy", "memory.tcm")
    assert chip.unverified == rest
    chip, problems = _chip(tmp_path, '"a header" = ["ram"]\n')
    assert not problems and "dsp" in chip.unverified
    every = (
        '["cpu", "hz", "wait_states", "flash", "ram", "fpu", "energy", "memory.tcm"]'
    )
    assert _chip(tmp_path, f'"a sheet" = {every}\n')[0].unverified == ()


def test_a_fact_that_the_file_has_not(tmp_path: Path) -> None:
    _, problems = _chip(tmp_path, '"a header" = ["cores"]\n')
    assert [p.split(": ", 1)[1] for p in problems] == [
        "'compared' names 'cores', which is not here"
    ]
    (tmp_path / "soc").mkdir()
    (tmp_path / "soc" / "x1.toml").write_text(SOC + '"a" = ["rom"]\n')
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "board.toml").write_text(
        'soc = "x1"\nconsole = { uart = "semihosting" }\n'
    )
    (tmp_path / "b" / "board.c").write_text("")
    with pytest.raises(BuildError, match="'compared' names 'rom'"):
        load_board(str(tmp_path / "b"))


_REGION = re.compile(
    r"^ +([0-9a-f]{16})-([0-9a-f]{16}) \(prio \d+, (.*)\): (\S+)", re.M
)


def _mapped(board: Board) -> list[tuple[int, int]]:
    """First address and size of what the first core of QEMU's machine has as memory."""
    words = [require(f"qemu-system-{board.system}"), "-M", board.machine]
    words += ["-S", "-display", "none", "-serial", "null", "-monitor", "stdio"]
    bios = ["-bios", "none"] if board.system == "riscv32" else []
    told = subprocess.run(
        [*words, *bios], input="info mtree -f\nquit\n", capture_output=True, text=True,
        timeout=60,
    )  # fmt: skip
    views = told.stdout.split("FlatView #")
    names = ('AS "cpu-memory-0"', 'AS "memory"')
    view = next(v for name in names for v in views if name in v)
    return [
        (int(first, 16), int(last, 16) + 1 - int(first, 16))
        for first, last, kind, name in _REGION.findall(view)
        # behind a controller of TrustZone memory is such, too
        if kind in ("ram", "rom", "romd") or name == "tz-mpc-upstream"
    ]


def _is_in(memory: Memory, regions: list[tuple[int, int]]) -> bool:
    end = memory.origin + memory.size
    return any(at <= memory.origin and end <= at + size for at, size in regions)


@pytest.mark.parametrize("name", MACHINES)
def test_memories_are_those_of_qemu_s_machine(name: str) -> None:
    board = load_board(name)
    regions = _mapped(board)
    for memory in (board.flash, board.ram, *board.memories.values()):
        assert _is_in(memory, regions), hex(memory.origin)
    if name in ("microbit", "stm32vldiscovery", "mps3-an547", "sifive-e"):
        assert (board.ram.origin, board.ram.size) in regions  # and not a byte more
    if name in ("microbit", "stm32vldiscovery", "netduinoplus2", "mps2-an385"):
        assert (board.flash.origin, board.flash.size) in regions
