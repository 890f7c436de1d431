"""Boards as boards/ describes them: the chip's facts and the board's own.

Reads two short TOML files; knows no compiler and no simulator's command line.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from pathlib import Path

from pybuild.errors import BuildError, fitting
from pybuild.files.names import is_plain
from pybuild.files.shape import shown
from pybuild.install import boards
from pybuild.records import dataclass
from pybuild.targets.boxes import nearest_board
from pybuild.targets.chip import Chip, read_chip
from pybuild.targets.core import Core
from pybuild.targets.facts import Memory, Reader
from pybuild.targets.machine import read_machine

UARTS = ("cmsdk", "stm32", "pl011", "nrf51", "ns16550", "sifive")
# whose boards are simulated on their core only, or not at all
OTHER_UARTS = ("stm32v2", "esp32", "avr", "semihosting")


@dataclass(frozen=True)
class Board:
    """A chip, its memories, a console, and the QEMU machine that is it.

    folder   of board.toml and board.c
    machine  QEMU's -M; system: arm, riscv32 or xtensa; "": no machine is this board,
             which is simulated on its core alone, with its memories, if on any
    memories  besides `ram`, by name: closely coupled, or outside the chip
    hz       the clock that start-up leaves
    second   a further core that sees the same memory; chip: how it is started
    facts    of the chip
    flash_command  puts the ELF file {} into its flash; "": none is known
    vectors  where the core finds its vector table, if not where flash begins
    console  C file of the functions of crt/port.h that only the board knows
    """

    name: str
    title: str
    folder: Path
    core: Core
    hz: int
    flash: Memory
    ram: Memory
    uart: str
    uart_base: int
    system: str
    machine: str
    facts: Chip
    console: Path
    arguments: tuple[str, ...] = ()
    second: Core | None = None
    chip: str = ""
    flash_command: str = ""
    memories: Mapping[str, Memory] = field(default_factory=dict)
    vectors: int | None = None


def board_names() -> tuple[str, ...]:
    """The boards that come with pybuild, by name."""
    return tuple(sorted(path.parent.name for path in boards().glob("*/board.toml")))


def load_board(name: str) -> Board:
    """A board that comes with pybuild, or one of the user's: a folder.

    Errors  BuildError with every fault of its files
    """
    folder = boards() / name
    if name not in board_names():
        folder = Path(name)
        if not (folder / "board.toml").is_file():
            hint = f"a folder with a board.toml, or {_nearest(name)}"
            raise BuildError("--on", f"there is no board '{name}'", hint)
    reader = Reader()
    board = _read(folder, reader)
    if reader.problems or board is None:
        raise BuildError.of(reader.problems)
    return board


def _nearest(name: str) -> str:
    """A hint: the board that is meant, or like the one that is named; else some."""
    near = nearest_board(name)
    if not near:
        return fitting(name, board_names())
    board = _read(boards() / near, Reader())
    assert board is not None, near
    return f"the nearest of `crt boards`: {near} ({board.title})"


def _read(folder: Path, reader: Reader) -> Board | None:
    """The two files of a board; every fault becomes a problem. None: one is not
    there or cannot be read."""
    own_file = folder / "board.toml"
    own = reader.toml(own_file)
    if reader.problems:
        return None
    soc = reader.text(own, "soc", own_file)
    soc_file = _soc_file(folder, soc, reader) if soc else None
    if soc_file is None:
        return None
    console = reader.table(own, "console", own_file)
    system, machine, arguments = read_machine(own, own_file, reader)
    known = UARTS if machine or "qemu" in own else (*UARTS, *OTHER_UARTS)
    uart = reader.one_of(console, "uart", own_file, known)
    console_file = folder / "board.c"
    if not console_file.is_file():
        reader.wrong(own_file, "there is no board.c beside it")
    chip = read_chip(soc_file, reader)
    has_base = uart != "semihosting"
    return Board(
        name=folder.resolve().name,
        title=chip.title,
        folder=folder,
        core=chip.core,
        hz=chip.start_hz,
        flash=reader.memory(own, "flash", own_file) if "flash" in own else chip.flash,
        ram=chip.ram,
        uart=uart,
        uart_base=reader.number(console, "base", own_file) if has_base else 0,
        system=system,
        machine=machine,
        facts=chip,
        console=console_file,
        arguments=arguments,
        second=chip.second,
        chip=chip.starter,
        flash_command=reader.text_or(own, "program", own_file),
        memories=chip.memories,
        vectors=chip.vectors,
    )


def _soc_file(folder: Path, name: str, reader: Reader) -> Path | None:
    """The chip's file: beside the board's folder, or one of pybuild's."""
    if not is_plain(name):
        reader.wrong(folder / "board.toml", f"'soc' is {shown(name)}, no name")
        return None
    places = [folder.resolve().parent, boards()]
    for place in places:
        file = place / "soc" / f"{name}.toml"
        if file.is_file():
            return file
    what = f"there is no soc/{name}.toml beside this folder or in pybuild's boards"
    reader.wrong(folder / "board.toml", what)
    return None
