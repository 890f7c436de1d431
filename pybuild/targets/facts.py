"""Values of the TOML files that describe chips and boards: each fault is a problem."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

from pybuild.errors import Problem
from pybuild.files.parse import Unreadable, parse_toml
from pybuild.files.read import WRITTEN, read_text
from pybuild.files.shape import shown
from pybuild.records import dataclass

_OWN = ("flash", "ram", "vectors")  # names of memories that every board may have
_SIZE = re.compile(r"([0-9]{1,12})([KM]?)")
_SCALE = {"": 1, "K": 1024, "M": 1024**2}
# how some numbers are written
_WRITTEN = {"hz": "of Hertz, such as 12_500_000"}


@dataclass(frozen=True)
class Memory:
    """Units  bytes."""

    origin: int
    size: int


class Reader:
    """Reads values; what is wrong with one is kept, and another stands for it."""

    def __init__(self) -> None:
        self.problems: list[Problem] = []

    def toml(self, file: Path) -> dict[str, Any]:
        try:
            return parse_toml(read_text(file, WRITTEN))
        except OSError as error:
            self.wrong(file, f"cannot be read: {error.strerror}")
        except UnicodeDecodeError:
            self.wrong(file, "is not text in UTF-8")
        except Unreadable as error:
            self.wrong(file, f"cannot be read: {error.what}")
        return {}

    def wrong(self, file: Path, what: str, hint: str = "") -> None:
        self.problems.append(Problem(str(file), what, hint))

    def text(self, table: dict[str, Any], key: str, file: Path) -> str:
        value = table.get(key)
        if not isinstance(value, str) or not value:
            self.wrong(file, f"'{key}' must be a text")
            return ""
        return value

    def one_of(
        self, table: dict[str, Any], key: str, file: Path, known: tuple[str, ...]
    ) -> str:
        value = table.get(key)
        if value not in known:
            hint = f"one of {', '.join(known)}"
            self.wrong(file, f"'{key}' is {shown(value)}", hint)
        return str(value)

    def number(self, table: dict[str, Any], key: str, file: Path) -> int:
        value = table.get(key)
        if not isinstance(value, int) or isinstance(value, bool) or value < 0:
            self.wrong(file, f"'{key}' must be a whole number", _WRITTEN.get(key, ""))
            return 0
        return value

    def real(self, table: dict[str, Any], key: str, file: Path) -> float:
        value = table.get(key)
        known = isinstance(value, int | float) and not isinstance(value, bool)
        if value is None or not known or not 0 <= value < math.inf:
            self.wrong(file, f"'{key}' must be a number")
            return 0.0
        return float(value)

    def text_or(self, table: dict[str, Any], key: str, file: Path) -> str:
        """ "": it is not there"""
        return self.text(table, key, file) if key in table else ""

    def flag(self, table: dict[str, Any], key: str, file: Path) -> bool:
        """False: it is not there"""
        value = table.get(key, False)
        if not isinstance(value, bool):
            self.wrong(file, f"'{key}' must be true or false")
        return value is True

    def texts(self, table: dict[str, Any], key: str, file: Path) -> tuple[str, ...]:
        """(): it is not there"""
        value = table.get(key, [])
        if not isinstance(value, list) or not all(isinstance(t, str) for t in value):
            self.wrong(file, f"'{key}' must be a list of texts")
            return ()
        return tuple(value)

    def table(self, table: dict[str, Any], key: str, file: Path) -> dict[str, Any]:
        value = table.get(key)
        if not isinstance(value, dict):
            self.wrong(file, f"'{key}' must be a table")
            return {}
        return value

    def memory(self, chip: dict[str, Any], key: str, file: Path) -> Memory:
        table = self.table(chip, key, file)
        found = _SIZE.fullmatch(str(table.get("size", "")))
        if found is None:
            self.wrong(file, f"'{key}.size' must be a text like \"64K\"")
        size = int(found[1]) * _SCALE[found[2]] if found else 0
        return Memory(self.number(table, "origin", file), size)

    def memories(self, chip: dict[str, Any], file: Path) -> dict[str, Memory]:
        """The tables [memory.NAME], where there are some."""
        given = chip.get("memory", {})
        if not isinstance(given, dict):
            self.wrong(file, "'memory' must hold tables, as [memory.dtcm]")
            return {}
        for name in given:
            if not re.fullmatch("[a-z][a-z0-9_]*", name) or name in _OWN:
                self.wrong(file, f"'memory.{name}' cannot be the name of a memory")
        return {name: self.memory(given, name, file) for name in sorted(given)}
