"""Finds the line of a key in a TOML file, which the standard library's reader does not
give."""

from __future__ import annotations

import re

_KEY = r"(?:[A-Za-z0-9_-]+|\"[^\"]*\"|'[^']*')"
_DOTTED = rf"{_KEY}(?:\s*\.\s*{_KEY})*"
_TABLE = re.compile(rf"\s*\[\s*({_DOTTED})\s*\]")
_VALUE = re.compile(rf"\s*({_DOTTED})\s*=")

Path = tuple[str, ...]


def key_lines(text: str) -> dict[Path, int]:
    """The line, from 1, of each key by its path from the top: a.b of [a] b = 1."""
    found: dict[Path, int] = {}
    table: Path = ()
    for number, line in enumerate(text.splitlines(), 1):
        if head := _TABLE.match(line):
            table = _parts(head[1])
            for end in range(1, len(table) + 1):
                found.setdefault(table[:end], number)
        elif value := _VALUE.match(line):
            found.setdefault((*table, *_parts(value[1])), number)
    return found


def line_of(lines: dict[Path, int], path: Path) -> int:
    """The line of the key, or of the nearest table that holds it; 1 if there is
    none."""
    while path and path not in lines:
        path = path[:-1]
    return lines.get(path, 1)


def _parts(dotted: str) -> Path:
    return tuple(part.strip("\"'") for part in re.findall(_KEY, dotted))
