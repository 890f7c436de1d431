"""Large constants of an ELF object, put in behind what LLVM has made of the rest.

LLVM would take 40 times their bytes. The contents of a section may lie anywhere in a
file: they are appended, and section and symbol say where, and of how many bytes.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

import numpy as np

from pybuild.dtype import Array
from pybuild.emit.content import Joined
from pybuild.emit.tables.tables import Constant

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


def large(constants: Collection[Constant]) -> dict[str, Array]:
    """Symbol -> array, of those that are not for LLVM."""
    return {c.symbol: c.array for c in constants if c.array.nbytes >= LEAST}


def with_contents(content: bytes, arrays: Mapping[str, Array]) -> Joined:
    """The object with these in the place of what their symbols are in it.

    content  ELF32, little-endian; a symbol of `arrays` has a section of its own
    """
    made = bytearray(content)
    start, count, names = (
        int.from_bytes(made[where], "little") for where in (_AT, _COUNT, _NAMES)
    )
    first = np.frombuffer(made, _HEADER, 1, start)[0]
    count = count or int(first["bytes"])
    names = int(first["link"]) if names == _MANY else names
    sections = np.frombuffer(made, _HEADER, count, start)
    table = sections[sections["type"] == _SYMBOLS][0]
    size = int(table["bytes"]) // _SYMBOL.itemsize
    symbols = np.frombuffer(made, _SYMBOL, size, int(table["at"]))
    of_sections = _by_name(content, sections, int(sections[names]["at"]))
    of_symbols = _by_name(content, symbols, int(sections[table["link"]]["at"]))
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


def _by_name(content: bytes, rows: np.ndarray, names: int) -> dict[str, int]:
    """Name -> row; names: where in the file they begin."""
    starts = (names + int(row) for row in rows["name"])
    texts = (content[at : content.index(b"\0", at)].decode() for at in starts)
    return {text: row for row, text in enumerate(texts)}
