"""Boards as boards/ describes them: the chip's facts and the board's own.

Reads two short TOML files; knows no compiler and no simulator's command line.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pybuild.errors import BuildError, Problem, fitting
from pybuild.install import boards
from pybuild.targets.core import CORES, Core

UARTS = ("cmsdk", "stm32", "pl011", "nrf51", "ns16550", "sifive")
SYSTEMS = ("arm", "riscv32")
CHIPS = ("sse200",)  # whose second core boards/common knows how to start


@dataclass(frozen=True)
class Memory:
    """Units  bytes."""

    origin: int
    size: int


@dataclass(frozen=True)
class Board:
    """A chip, its memories, a console, and the QEMU machine that is it.

    folder   of board.toml and board.c
    memories  besides `ram`, by name: closely coupled, or outside the chip
    machine  QEMU's -M; system: arm or riscv32
    second   a further core that sees the same memory; chip: how it is started
    flash_command  puts the ELF file {} into its flash; "": none is known
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
    arguments: tuple[str, ...] = ()
    second: Core | None = None
    chip: str = ""
    flash_command: str = ""
    memories: Mapping[str, Memory] = field(default_factory=dict)


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
            hint = f"a folder with a board.toml, or {fitting(name, board_names())}"
            raise BuildError("--on", f"there is no board '{name}'", hint)
    reader = _Reader(folder)
    board = reader.board()
    if reader.problems or board is None:
        raise BuildError.of(reader.problems)
    return board


_SIZE = re.compile(r"(\d+)([KM]?)")
_SCALE = {"": 1, "K": 1024, "M": 1024**2}


class _Reader:
    """The two files of a board; every fault becomes a problem."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.problems: list[Problem] = []

    def board(self) -> Board | None:
        own_file = self.folder / "board.toml"
        own = self._toml(own_file)
        soc = self._text(own, "soc", own_file)
        soc_file = self._soc(soc) if soc else None
        if soc_file is None:
            return None
        chip = self._toml(soc_file)
        console = self._table(own, "console", own_file)
        qemu = self._table(own, "qemu", own_file)
        if not (self.folder / "board.c").is_file():
            self._wrong(own_file, "there is no board.c beside it")
        cpu = self._one_of(chip, "cpu", soc_file, tuple(CORES))
        second, second_chip = self._second(chip, soc_file)
        return Board(
            name=self.folder.resolve().name,
            title=self._text(chip, "title", soc_file),
            folder=self.folder,
            core=CORES.get(cpu, CORES["cortex-m0"]),
            hz=self._number(chip, "hz", soc_file),
            flash=self._memory(chip, "flash", soc_file),
            ram=self._memory(chip, "ram", soc_file),
            uart=self._one_of(console, "uart", own_file, UARTS),
            uart_base=self._number(console, "base", own_file),
            system=self._one_of(qemu, "system", own_file, SYSTEMS),
            machine=self._text(qemu, "machine", own_file),
            arguments=tuple(map(str, qemu.get("arguments", []))),
            second=second,
            chip=second_chip,
            flash_command=str(own.get("program", "")),
            memories=self._memories(chip, soc_file),
        )

    def _memories(self, chip: dict[str, Any], file: Path) -> dict[str, Memory]:
        """The tables [memory.NAME], where there are some."""
        given = chip.get("memory", {})
        if not isinstance(given, dict):
            self._wrong(file, "'memory' must hold tables, as [memory.dtcm]")
            return {}
        for name in given:
            if not re.fullmatch("[a-z][a-z0-9_]*", name) or name in ("flash", "ram"):
                self._wrong(file, f"'memory.{name}' cannot be the name of a memory")
        return {name: self._memory(given, name, file) for name in sorted(given)}

    def _second(self, chip: dict[str, Any], file: Path) -> tuple[Core | None, str]:
        """Most chips have none."""
        if "second" not in chip:
            return None, ""
        table = self._table(chip, "second", file)
        cpu = self._one_of(table, "cpu", file, tuple(CORES))
        return CORES.get(cpu), self._one_of(table, "chip", file, CHIPS)

    def _soc(self, name: str) -> Path | None:
        """The chip's file: beside the board's folder, or one of pybuild's."""
        places = [self.folder.resolve().parent, boards()]
        for place in places:
            file = place / "soc" / f"{name}.toml"
            if file.is_file():
                return file
        what = f"there is no soc/{name}.toml beside this folder or in pybuild's boards"
        self._wrong(self.folder / "board.toml", what)
        return None

    def _toml(self, file: Path) -> dict[str, Any]:
        try:
            return tomllib.loads(file.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            self._wrong(file, f"cannot be read: {error}")
            return {}

    def _wrong(self, file: Path, what: str, hint: str = "") -> None:
        self.problems.append(Problem(str(file), what, hint))

    def _text(self, table: dict[str, Any], key: str, file: Path) -> str:
        value = table.get(key)
        if not isinstance(value, str) or not value:
            self._wrong(file, f"'{key}' must be a text")
            return ""
        return value

    def _one_of(
        self, table: dict[str, Any], key: str, file: Path, known: tuple[str, ...]
    ) -> str:
        value = table.get(key)
        if value not in known:
            hint = f"one of {', '.join(known)}"
            self._wrong(file, f"'{key}' is {value!r}", hint)
        return str(value)

    def _number(self, table: dict[str, Any], key: str, file: Path) -> int:
        value = table.get(key)
        if not isinstance(value, int) or isinstance(value, bool) or value < 0:
            self._wrong(file, f"'{key}' must be a number")
            return 0
        return value

    def _table(self, table: dict[str, Any], key: str, file: Path) -> dict[str, Any]:
        value = table.get(key)
        if not isinstance(value, dict):
            self._wrong(file, f"'{key}' must be a table")
            return {}
        return value

    def _memory(self, chip: dict[str, Any], key: str, file: Path) -> Memory:
        table = self._table(chip, key, file)
        found = _SIZE.fullmatch(str(table.get("size", "")))
        if found is None:
            self._wrong(file, f"'{key}.size' must be a text like \"64K\"")
        size = int(found[1]) * _SCALE[found[2]] if found else 0
        return Memory(self._number(table, "origin", file), size)
