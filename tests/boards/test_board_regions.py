"""Regions in the memories of a board: the same bits, each array where the board has the
memory of its name, and the linker's word where one is too small."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

import pybuild
from pybuild.boards.bench import bench_on_board
from pybuild.boards.check import check_on_board
from pybuild.boards.device import firmware_of
from pybuild.errors import BuildError, LimitError
from pybuild.targets.board import Memory, load_board
from tests.boards.devices import DIGITS, device

FAST = ("tcm=600:fast+weights", "psram=64K:slow")
BOARDS = {"mps2-an385": "psram", "mps2-an500": "psram", "mps3-an547": "sram"}


@pytest.mark.parametrize("emit", ["c", "obj"])
def test_each_region_lies_in_the_memory_of_its_name(emit: str) -> None:
    board = device("mps2-an386")
    made = pybuild.load(DIGITS).build(regions=FAST, target="cortex-m4", emit=emit)
    assert check_on_board(board, made, DIGITS, count=2).result.ok
    firmware = firmware_of(board, made)
    psram = load_board("mps2-an386").memories["psram"]
    at = firmware.elf.by_name["arena_psram"].address
    assert psram.origin <= at < psram.origin + psram.size
    assert firmware.elf.by_name["arena_tcm"].address < psram.origin
    ram = bench_on_board(board, made).ram
    assert ram.arena == made.plan.arena_bytes
    assert ram.data < 64


@pytest.mark.parametrize(("name", "memory"), BOARDS.items())
def test_the_memories_of_boards_hold_what_is_put_there(name: str, memory: str) -> None:
    board = device(name)
    regions = (f"{memory}=64K",)
    made = pybuild.load(DIGITS).build(regions=regions, target=board.core.target)
    assert check_on_board(board, made, DIGITS, count=1).result.ok


def test_unicorn_has_the_memories_too() -> None:
    board = device("mps2-an386", simulator="unicorn")
    made = pybuild.load(DIGITS).build(regions=FAST, target="cortex-m4")
    assert check_on_board(board, made, DIGITS, count=1).result.ok


def test_a_memory_that_is_too_small() -> None:
    board = device("mps2-an386")
    small = {"psram": Memory(0x21000000, 256)}
    board = dataclasses.replace(
        board, board=dataclasses.replace(board.board, memories=small)
    )
    made = pybuild.load(DIGITS).build(regions=["psram=64K"], target="cortex-m4")
    with pytest.raises(LimitError, match=r"more PSRAM than .* has, 256; alive at"):
        firmware_of(board, made)


def test_names_of_memories(tmp_path: Path) -> None:
    chip = load_board("mps2-an386").folder.parent / "soc" / "an386.toml"
    (tmp_path / "soc").mkdir()
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "board.c").write_text("")
    own = load_board("mps2-an386").folder / "board.toml"
    (tmp_path / "mine" / "board.toml").write_text(own.read_text())
    for added, wrong in (
        ('Tcm = { origin = 0, size = "1K" }', "'memory.Tcm' cannot be the name"),
        ('ram = { origin = 0, size = "1K" }', "'memory.ram' cannot be the name"),
        ('tcm = { origin = 0, size = "1Q" }', "'tcm.size' must be a text"),
    ):
        text = chip.read_text().replace("[memory]\n", f"[memory]\n{added}\n")
        (tmp_path / "soc" / "an386.toml").write_text(text)
        with pytest.raises(BuildError, match=wrong):
            load_board(str(tmp_path / "mine"))
    text = chip.read_text().partition("[memory]")[0] + "memory = 3\n"
    (tmp_path / "soc" / "an386.toml").write_text(text)
    with pytest.raises(BuildError, match="'memory' must hold tables"):
        load_board(str(tmp_path / "mine"))
