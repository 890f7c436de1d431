"""Puts braces around the body of each `if`, `else`, `for` and `while` of printed C, so
that those who print functions write them as short as they read (MISRA C:2012, 15.6).
"""

from __future__ import annotations

import re
from collections.abc import Sequence

_HEAD = re.compile(r"( *)(?:else if|if|for|while) \(|( *)else$")
_COMMENT = re.compile(r"\s*/\*.*?\*/\s*$")


def braced(lines: Sequence[str]) -> list[str]:
    """The lines with bodies of one statement in braces.

    Errors  ValueError where a statement does not end
    """
    text = [piece for line in lines for piece in line.split("\n")]
    found: list[str] = []
    at = 0
    while at < len(text):
        at = _statement(text, at, found)
    return found


def _statement(text: Sequence[str], at: int, found: list[str]) -> int:
    """Appends what begins at this line; returns where the next one does."""
    head = _HEAD.match(text[at])
    if head is None:
        found.append(text[at])
        return at + 1
    pad = head[1] if head[1] is not None else head[2]
    end = at if head[1] is None else _closed(text, at)
    last = _code(text[end])
    found += text[at:end]
    if last.endswith(("{", ";")):
        found.append(text[end])
        return end + 1
    if found and head[2] is not None and found[-1] == f"{pad}}}":
        found[-1] += f" {last.lstrip()} {{"
    else:
        found.append(f"{last} {{{text[end][len(last) :]}")
    after = _body(text, end + 1, found)
    found.append(f"{pad}}}")
    return after


def _body(text: Sequence[str], at: int, found: list[str]) -> int:
    """One statement, which may be a head and its own body."""
    if _HEAD.match(text[at]):
        at = _statement(text, at, found)
        while not found[-1].endswith("}"):
            at = _statement(text, at, found)
        return at
    while True:
        found.append(text[at])
        at += 1
        if _code(found[-1]).endswith(";"):
            return at


def _closed(text: Sequence[str], at: int) -> int:
    """The line in which the brackets of this one's head are closed."""
    depth = 0
    for number in range(at, len(text)):
        depth += text[number].count("(") - text[number].count(")")
        if depth == 0:
            return number
    raise ValueError(text[at])


def _code(line: str) -> str:
    """The line without the comment at its end."""
    return _COMMENT.sub("", line)
