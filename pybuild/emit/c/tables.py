"""Prints the step tables of a model as C99, each with what its numbers are."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from itertools import pairwise

from pybuild.emit.kernels.c import block_comment, comment_text, fold
from pybuild.emit.tables.comments import few
from pybuild.emit.tables.tables import Rows, StepRow, Tables


def table(head: str, rows: Iterable[str]) -> list[str]:
    """A static array of so many rows; C99 wants one."""
    body = list(rows)
    return [f"static const {head} = {{", *(body or ["    0"]), "};", ""]


def lists(tables: Tables) -> list[str]:
    """Arguments, constants, operands, steps, stages and links."""
    name = tables.name
    lines = ["/* What kernels find in a[]: the first index, whose it is, its names. */"]
    lines += table(f"int32_t {name}_args[]", _args(tables))
    lines += ["/* Constants that kernels find in p[], and their indices. */"]
    lines += table(
        f"void *const {name}_constants[]",
        _numbered([f"    {s or 'NULL'}," for s in tables.constant_list]),
    )
    lines += ["/* pad_row, row_bytes, count, ring, window, stride, pad; their index */"]
    rows = _columns([_rows(row) for row in tables.rows])
    lines += table(f"struct crt_rows {name}_rows[]", _numbered(rows))
    lines += ["/* at (its offset), buffer, rows (an index); what it is to a step */"]
    lines += table(f"struct crt_operand {name}_operands[]", _operands(tables))
    lines += ["/* kernel, args, constants, operands,"]
    lines += [
        " * images, calls for each; how many of its operands are outputs, inputs,"
    ]
    lines += [" * constants, scratch */"]
    lines += table(
        f"struct crt_step {name}_steps[]",
        (line for i, s in enumerate(tables.steps) for line in _step(s, i, name)),
    )
    if tables.links:
        lines += ["/* reader, maker, stride, ahead, rows, made, asker */"]
        lines += table(
            f"struct crt_link {name}_links[]",
            _columns([list(map(str, link)) for link in tables.links]),
        )
    if tables.plain_stages:
        return lines
    lines += _drawings(tables)
    lines += ["/* first step, steps, device, first link */"]
    return lines + table(
        f"struct crt_stage {name}_stages[]",
        _columns([list(map(str, (s.first, s.count, s.device, s.link)))
                  for s in tables.stages]),
    )  # fmt: skip


def _columns(rows: Sequence[Sequence[str]]) -> list[str]:
    """Structs, a line each, numbers under numbers."""
    wide = [max(map(len, column)) for column in zip(*rows, strict=True)]
    texts = (
        ", ".join(f"{cell:>{n}}" for cell, n in zip(row, wide, strict=True))
        for row in rows
    )
    return [f"    {{{text}}}," for text in texts]


def _aside(lines: Sequence[str], comments: Sequence[str]) -> list[str]:
    """Lines with comments behind them; above them where there is no room."""
    wide = max(map(len, lines), default=0)
    found = []
    for line, text in zip(lines, comments, strict=True):
        told = f"{line:<{wide}} /* {comment_text(text)} */"
        if len(told) > 80:
            told = f"{line} /* {comment_text(text)} */"
        above = block_comment(text, 4)
        found += [told] if len(told) <= 80 else [*above, line]
    return found


def _numbered(lines: Sequence[str]) -> list[str]:
    """The lines, each with its index."""
    return _aside(lines, [str(index) for index in range(len(lines))])


def _args(tables: Tables) -> list[str]:
    """The numbers, a line at each index where a step's begin."""
    owners: dict[int, list[StepRow]] = {}
    for step in tables.steps:
        if step.names:
            owners.setdefault(step.args, []).append(step)
    starts = sorted({0, *owners, len(tables.args)})
    lines = []
    for start, stop in pairwise(starts):
        mine = owners.get(start, [])
        if mine:
            text = f"{start}: {few(s.layer for s in mine)}: {', '.join(mine[0].names)}"
            lines += block_comment(text, 4)
        numbers = ", ".join(map(str, tables.args[start:stop]))
        lines += _filled(f"{_no_least(numbers)},")
    return lines


def _filled(line: str) -> list[str]:
    """Numbers, as many in a line as there is room for."""
    return textwrap.wrap(line, 80, initial_indent="    ", subsequent_indent="    ")


def _operands(tables: Tables) -> list[str]:
    """A line each; before the first of a step, which one it is."""
    owners: dict[int, list[str]] = {}
    for number, step in enumerate(tables.steps):
        if sum(step.counts) and step.kernel:
            owners.setdefault(step.operands, []).append(f"{number} {step.layer}")
    rows = _columns([[str(o.at), str(o.buffer), str(o.rows)] for o in tables.operands])
    lines = []
    for index, (row, operand) in enumerate(zip(rows, tables.operands, strict=True)):
        if index in owners:
            text = f"{index}: step {few(owners[index])}"
            lines += block_comment(text, 4)
        lines += _aside([row], [operand.comment])
    return lines


def _drawings(tables: Tables) -> list[str]:
    """Stages in lock step, as a reader would draw them."""
    text = [
        f"stage {i}, steps {s.first} to {s.first + s.count - 1} in lock step; "
        f"the numbers on arrows are rows in a ring:\n{s.comment}"
        for i, s in enumerate(tables.stages)
        if s.comment
    ]
    return block_comment("\n".join(text)) if text else []


def _no_least(line: str) -> str:
    return line.replace("-2147483648", "INT32_MIN")


def _rows(r: Rows) -> list[str]:
    numbers = (r.row_bytes, r.count, r.ring, r.window, r.stride, r.pad)
    return [r.pad_row or "NULL", *map(str, numbers)]


def _step(s: StepRow, index: int, name: str) -> list[str]:
    comment = block_comment(f"{index} {s.layer}: {s.comment}", 4)
    lists = f"&{name}_args[{s.args}], &{name}_constants[{s.constants}],"
    counts = ", ".join(map(str, (s.images, s.bands, *s.counts)))
    where = fold(f"     {lists} &{name}_operands[{s.operands}],")
    return [*comment, f"    {{{s.kernel or 'NULL'},", *where, f"     {counts}}},"]
