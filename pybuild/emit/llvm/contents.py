"""Large constants of an ELF object, put in behind what LLVM has made of the rest.

LLVM would take 40 times their bytes. The contents of a section may lie anywhere in a
file: they are appended, and section and symbol say where, and of how many bytes.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TypeAlias

import numpy as np

from pybuild.dtype import Array
from pybuild.emit.content import Joined
from pybuild.emit.tables.tables import Constant
from pybuild.records import dataclass

LEAST = 1 << 12  # bytes of a constant that is put in
SECTION = ".rodata.weights."  # before the symbol

_SYMBOLS = 2  # the type of the section of symbols
# of an ELF32 header: where the sections' headers are, how many, whose are the names
_AT, _COUNT, _NAMES = slice(32, 36), slice(48, 50), slice(50, 52)
_MANY = 0xFFFF  # sections, of which the first one says what the header cannot
_HEADER = np.dtype([
    ("name", "<u4"), ("type", "<u4"), ("flags", "<u4"), ("address", "<u4"),
    ("at", "<u4"), ("bytes", "<u4"), ("link", "<u4"), ("info", "<u4"),
    ("align", "<u4"), ("each", "<u4"),
])  # fmt: skip
_SYMBOL = np.dtype([("name", "<u4"), ("value", "<u4"), ("bytes", "<u4"), ("in", "<u4")])
Rows: TypeAlias = np.ndarray
Row: TypeAlias = np.void


def large(constants: Collection[Constant]) -> dict[str, Array]:
    """Symbol -> array, of those that are not for LLVM."""
    return {c.symbol: c.array for c in constants if c.array.nbytes >= LEAST}


@dataclass(frozen=True)
class Sections:
    """Of an ELF32 object, little-endian: rows of its tables, which may be written where
    the file may; names of both begin in the file at `strings`, of symbols.
    """

    content: bytes | bytearray
    table: Rows
    names: tuple[str, ...]
    symbols: Rows
    strings: int

    def symbol_name(self, symbol: Row) -> str:
        return _text(self.content, self.strings + int(symbol["name"]))


def sections_of(content: bytes | bytearray) -> Sections:
    """The sections of an object that has one table of symbols."""
    start, count, names = (
        int.from_bytes(content[where], "little") for where in (_AT, _COUNT, _NAMES)
    )
    first = np.frombuffer(content, _HEADER, 1, start)[0]
    count = count or int(first["bytes"])
    names = int(first["link"]) if names == _MANY else names
    table = np.frombuffer(content, _HEADER, count, start)
    own = table[table["type"] == _SYMBOLS][0]
    size = int(own["bytes"]) // _SYMBOL.itemsize
    symbols = np.frombuffer(content, _SYMBOL, size, int(own["at"]))
    begin = int(table[names]["at"])
    texts = tuple(_text(content, begin + int(row)) for row in table["name"])
    return Sections(content, table, texts, symbols, int(table[own["link"]]["at"]))


def with_contents(content: bytes, arrays: Mapping[str, Array]) -> Joined:
    """The object with these in the place of what their symbols are in it.

    content  ELF32, little-endian; a symbol of `arrays` has a section of its own
    """
    made = bytearray(content)
    found = sections_of(made)
    sections, symbols = found.table, found.symbols
    of_sections = {name: row for row, name in enumerate(found.names)}
    of_symbols = {found.symbol_name(one): row for row, one in enumerate(symbols)}
    parts: list[bytes | memoryview] = []
    end = len(made)
    for symbol, array in arrays.items():
        if symbol not in of_symbols:  # which nothing reads
            continue
        section = sections[of_sections[SECTION + symbol]]
        padding = bytes(-end % int(section["align"]))
        section["at"], section["bytes"] = end + len(padding), array.nbytes
        symbols["bytes"][of_symbols[symbol]] = array.nbytes
        parts += [padding, np.ascontiguousarray(array).reshape(-1).view(np.uint8).data]
        end += len(padding) + array.nbytes
    return Joined((bytes(made), *parts))


def _text(content: bytes | bytearray, at: int) -> str:
    return content[at : content.index(b"\0", at)].decode()
