"""The contents of a linked firmware: symbols, sizes of groups, code, loaded bytes.

Reads ELF files by pyelftools; knows no model and no simulator.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from pybuild.errors import BuildError
from pybuild.records import dataclass

_THUMB = 1


@dataclass(frozen=True)
class Symbol:
    """An address with its size in bytes; `code`: a function."""

    name: str
    address: int
    size: int
    code: bool


@dataclass(frozen=True)
class Segment:
    """Bytes as the device finds them, and where."""

    address: int
    data: bytes


@dataclass(frozen=True)
class Elf:
    """symbols with the Thumb bit taken off; sections: name -> (address, bytes)."""

    entry: int
    symbols: tuple[Symbol, ...]
    sections: Mapping[str, tuple[int, int]]
    segments: tuple[Segment, ...]

    @cached_property
    def by_name(self) -> dict[str, Symbol]:
        return {symbol.name: symbol for symbol in self.symbols}

    def address(self, name: str) -> int:
        return self.by_name[name].address

    def image(self, start: int) -> bytes:
        """The bytes in flash from `start` on, with zeros in the gaps."""
        low = min((s.address for s in self.segments), default=start)
        high = max((s.address + len(s.data) for s in self.segments), default=start)
        image = bytearray(high - low)
        for segment in self.segments:
            at = segment.address - low
            image[at : at + len(segment.data)] = segment.data
        return bytes(image[start - low :])

    def size(self, section: str) -> int:
        return self.sections.get(section, (0, 0))[1]


def read_elf(path: Path) -> Elf:
    """Reads a linked firmware.

    Errors  BuildError where pyelftools is missing.
    """
    try:
        from elftools.elf.elffile import ELFFile
    except ImportError:
        hint = "pip install pyelftools"
        raise BuildError("--on", "the package pyelftools is missing", hint) from None
    with path.open("rb") as file:
        elf = ELFFile(file)
        thumb = _THUMB if elf["e_machine"] == "EM_ARM" else 0
        table: Any = elf.get_section_by_name(".symtab")
        symbols = tuple(
            Symbol(
                symbol.name,
                symbol["st_value"] & ~(thumb if _is_code(symbol) else 0),
                symbol["st_size"],
                _is_code(symbol),
            )
            for symbol in table.iter_symbols()
            if symbol.name
        )
        sections = {s.name: (s["sh_addr"], s["sh_size"]) for s in elf.iter_sections()}
        segments = tuple(
            Segment(s["p_paddr"], s.data())
            for s in elf.iter_segments()
            if s["p_type"] == "PT_LOAD" and s["p_filesz"]
        )
        return Elf(elf["e_entry"], symbols, sections, segments)


def _is_code(symbol: Any) -> bool:
    return bool(symbol["st_info"]["type"] == "STT_FUNC")
