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
_MANY = 0xFFFF  # sections, of which the first one says what the header cannot
_CLASS, _OF_64 = 4, 2  # where a file says of how many bits it is; what it says of 64
Rows: TypeAlias = np.ndarray
Row: TypeAlias = np.void


class _Format:
    """The records of ELF32 or ELF64, little-endian.

    at, count, names  of the file's header: where the sections' headers are, how many,
                      whose are the names
    """

    def __init__(self, word: str, symbol: str, ends: tuple[int, int, int]) -> None:
        size = np.dtype(word).itemsize
        self.at, self.count, self.names = (
            slice(begin, begin + length)
            for begin, length in zip(ends, (size, 2, 2), strict=True)
        )
        names = ["flags", "address", "at", "bytes", "link", "info", "align", "each"]
        short = ("link", "info")
        own = [(name, "<u4" if name in short else word) for name in names]
        self.header = np.dtype([("name", "<u4"), ("type", "<u4"), *own])
        kinds = {"name": "<u4", "info": "u1", "other": "u1", "section": "<u2",
                 "value": word, "bytes": word}  # fmt: skip
        self.symbol = np.dtype([(name, kinds[name]) for name in symbol.split()])
        # of a relocation: the symbol stands above these bits of the second word
        self.word, self.below = word, 8 if size == 4 else 32


_32 = _Format("<u4", "name value bytes info other section", (32, 48, 50))
_64 = _Format("<u8", "name info other section value bytes", (40, 60, 62))


def large(constants: Collection[Constant]) -> dict[str, Array]:
    """Symbol -> array, of those that are not for LLVM."""
    return {c.symbol: c.array for c in constants if c.array.nbytes >= LEAST}


@dataclass(frozen=True)
class Sections:
    """Of an object, little-endian: rows of its tables, which may be written where
    the file may; names of both begin in the file at `strings`, of symbols.
    """

    format: _Format
    content: bytes | bytearray
    table: Rows
    names: tuple[str, ...]
    symbols: Rows
    strings: int

    def symbol_name(self, symbol: Row) -> str:
        return _text(self.content, self.strings + int(symbol["name"]))

    def relocated(self, number: int, words: int) -> list[Row]:
        """The symbols that a section of relocations names; words: of each of them."""
        row, form = self.table[number], self.format
        data = self.content[int(row["at"]) :][: int(row["bytes"])]
        entries = np.frombuffer(data, form.word).reshape(-1, words)
        return [self.symbols[int(one[1]) >> form.below] for one in entries]


def sections_of(content: bytes | bytearray) -> Sections:
    """The sections of an object that has one table of symbols."""
    form = _64 if content[_CLASS] == _OF_64 else _32
    start, count, names = (
        int.from_bytes(content[where], "little")
        for where in (form.at, form.count, form.names)
    )
    first = np.frombuffer(content, form.header, 1, start)[0]
    count = count or int(first["bytes"])
    names = int(first["link"]) if names == _MANY else names
    table = np.frombuffer(content, form.header, count, start)
    own = table[table["type"] == _SYMBOLS][0]
    size = int(own["bytes"]) // form.symbol.itemsize
    symbols = np.frombuffer(content, form.symbol, size, int(own["at"]))
    begin = int(table[names]["at"])
    texts = tuple(_text(content, begin + int(row)) for row in table["name"])
    strings = int(table[own["link"]]["at"])
    return Sections(form, content, table, texts, symbols, strings)


def with_contents(content: bytes, arrays: Mapping[str, Array]) -> Joined:
    """The object with these in the place of what their symbols are in it.

    content  ELF, little-endian; a symbol of `arrays` has a section of its own
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
