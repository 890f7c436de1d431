"""Tables for people as values: made once, printed on a terminal or as HTML."""

from __future__ import annotations

import html
from collections.abc import Sequence
from itertools import groupby

from pybuild.records import dataclass
from pybuild.text.escaped import escaped, escaped_lines

# kinds of columns: numbers, which are never broken; names, which may be cut in the
# middle; text, which may go on in the next line
NUMBER, NAME, TEXT = "number", "name", "text"
# of a name that is cut
LEAST = 8

Column = tuple[str, str]  # heading, kind


@dataclass(frozen=True)
class Grid:
    """A title, columns, and rows of as many texts."""

    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[str, ...], ...]


# what is shown, from top to bottom: tables and lines
Page = tuple[Grid | str, ...]


def grid(title: str, columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> Grid:
    """A table of texts that may come from a stranger's file."""
    heads = tuple((escaped(heading), kind) for heading, kind in columns)
    return Grid(escaped(title), heads, tuple(tuple(map(escaped, r)) for r in rows))


def shortened(text: str, width: int, share: float = 0.5) -> str:
    """The text, or if it is too long its beginning, a share of the width, and its
    end."""
    if len(text) <= width:
        return text
    head = int((width - 1) * share)
    return f"{text[:head]}…{text[len(text) - (width - 1 - head) :]}"


def fitted(found: Grid, room: int, gap: int) -> tuple[Grid, tuple[int, ...]]:
    """A table no wider than the room if that can be, and the widths of its columns.

    Texts give room first, down to their longest word; then names, cut in the middle as
    long as the rows stay different, else told in several lines.

    gap  between two columns
    """
    cells = [
        [column[0], *(row[i] for row in found.rows)]
        for i, column in enumerate(found.columns)
    ]
    widths = [max(map(len, column)) for column in cells]
    over = sum(widths) + gap * (len(widths) - 1) - room
    for kind, least in ((TEXT, _longest_word), (NAME, _least_name)):
        for at in _by_width(found.columns, kind, widths):
            taken = min(max(over, 0), max(widths[at] - least(cells[at]), 0))
            widths[at] -= taken
            over -= taken
    rows = [list(row) for row in found.rows]
    for at, (_, kind) in enumerate(found.columns):
        if kind == NAME:
            for row, text in zip(rows, _cut(cells[at][1:], widths[at]), strict=True):
                row[at] = text
    return grid(found.title, found.columns, rows), tuple(widths)


def _by_width(columns: Sequence[Column], kind: str, widths: Sequence[int]) -> list[int]:
    mine = [i for i, column in enumerate(columns) if column[1] == kind]
    return sorted(mine, key=lambda i: -widths[i])


def _longest_word(cells: Sequence[str]) -> int:
    return max((len(word) for cell in cells for word in cell.split()), default=1)


def _least_name(cells: Sequence[str]) -> int:
    return max(LEAST, len(cells[0]))


def _cut(names: Sequence[str], width: int) -> list[str]:
    """Shortens a text at its middle: names mostly differ at the end or half way."""
    for share in (0.5, 0.75, 0.25, 0.9, 0.1):
        made = [shortened(name, width, share) for name in names]
        if len(set(made)) == len(set(names)):
            return made
    return list(names)


# ---- HTML -----------------------------------------------------------------------

# colours are the page's own, light or dark
_CELL = "padding:1px 8px;border:0;text-align:"
_HEAD = ";border-bottom:1px solid currentColor"


def as_html(page: Page) -> str:
    """Tables and lines for a notebook: no script, no style sheet, no colour."""
    parts = []
    for is_line, found in groupby(page, lambda one: isinstance(one, str)):
        if is_line:
            text = html.escape(escaped_lines("\n".join(map(str, found))))
            parts.append(f'<pre style="white-space:pre-wrap">{text}</pre>')
        else:
            parts += [_table(one) for one in found if isinstance(one, Grid)]
    return f"<div>{''.join(parts)}</div>"


def _table(found: Grid) -> str:
    sides = ["right" if kind == NUMBER else "left" for _, kind in found.columns]
    rows = [_row("th", [heading for heading, _ in found.columns], sides, _HEAD)]
    rows += [_row("td", row, sides, "") for row in found.rows]
    title = f"<caption>{html.escape(found.title)}</caption>" if found.title else ""
    return f'<table style="border-collapse:collapse">{title}{"".join(rows)}</table>'


def _row(tag: str, cells: Sequence[str], sides: Sequence[str], style: str) -> str:
    made = (
        f'<{tag} style="{_CELL}{side}{style}">{html.escape(cell)}</{tag}>'
        for cell, side in zip(cells, sides, strict=True)
    )
    return f"<tr>{''.join(made)}</tr>"
