"""Results as tables for people; knows only the values that verbs hand over."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Literal

from pybuild.files.say import say
from pybuild.package.curve import layers_told
from pybuild.package.grid import NAME, NUMBER, TEXT, Grid, Page, fitted, grid

if TYPE_CHECKING:
    from pybuild.package.curve import Point
    from pybuild.verify.bench import BenchResult
    from pybuild.verify.check import CheckResult
    from pybuild.verify.classes import Classes
    from pybuild.verify.layers import DebugResult

MOST_CLASSES = 20  # in a table of all that is taken for all
REFERENCE = "reference"  # as in verify/classes.py, which is loaded when needed
GAP = 3  # between two columns
USUAL = 80  # columns of a terminal that does not know

# of columns whose sides are said instead of their kinds
_KINDS = {"left": TEXT, "right": NUMBER}


def width() -> int | None:
    """Columns; None: it goes to a file or pipe, where nothing has to be cut."""
    given = os.environ.get("COLUMNS", "")
    if given.isdecimal() and int(given):
        return int(given)
    if not sys.stdout.isatty():
        return None
    try:
        return os.get_terminal_size(sys.stdout.fileno()).columns or USUAL
    except (OSError, ValueError):
        return USUAL


def table(
    title: str, columns: Sequence[tuple[str, str]], rows: Sequence[Sequence[str]]
) -> None:
    """Prints rows under (heading, kind) columns."""
    kinds = [(heading, _KINDS.get(kind, kind)) for heading, kind in columns]
    show((grid(title, kinds, rows),))


def fits(
    columns: Sequence[tuple[str, str]], rows: Sequence[Sequence[str]], room: int
) -> bool:
    """True if a table has room without a broken word."""
    kinds = [(heading, _KINDS.get(kind, kind)) for heading, kind in columns]
    _, widths = fitted(grid("", kinds, rows), room, GAP)
    return sum(widths) + GAP * (len(widths) - 1) <= room


def show(page: Page) -> None:
    """Prints tables as wide as there is room, and lines."""
    for one in page:
        if isinstance(one, Grid):
            _print(one)
        else:
            say(one)


def _print(found: Grid) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table

    room = width()
    natural = sum(max(map(len, column)) + GAP for column in _columns(found))
    found, widths = fitted(found, natural if room is None else room, GAP)
    made = Table(box=box.SIMPLE, show_edge=False, padding=(0, 2, 0, 0), pad_edge=False)
    for (heading, kind), wide in zip(found.columns, widths, strict=True):
        side: Literal["left", "right"] = "right" if kind == NUMBER else "left"
        made.add_column(heading, justify=side, width=wide, overflow="fold")
    for row in found.rows:
        made.add_row(*row)

    class Pipe(Console):
        def on_broken_pipe(self) -> None:
            """Rich would end the process, with a code that means something else."""
            raise BrokenPipeError

    console = Pipe(width=sum(widths) + GAP * len(widths), highlight=False,
                      markup=False, emoji=False)  # fmt: skip
    if found.title:
        console.print(found.title, style="bold", soft_wrap=True)
    console.print(made)


def _columns(found: Grid) -> list[list[str]]:
    heads = [heading for heading, _ in found.columns]
    return [list(column) for column in zip(heads, *found.rows, strict=True)]


def show_curve(points: Sequence[Point], bound: int) -> None:
    columns = [("arena", NUMBER), ("RAM", NUMBER), ("instructions", NUMBER)]
    columns += [("layers", TEXT), ("option", NAME)]
    rows = [
        (
            f"{p.limit:,}",
            f"{p.ram:,}",
            f"{p.instructions:.3f}",
            layers_told(p),
            f"--ram-limit {p.limit}",
        )
        for p in points
    ]
    title = "RAM (arena and instance) against instructions, of the fastest plan's"
    table(title, columns, rows)
    over = min(p.ram for p in points) / bound
    say(f"no plan by rows has less RAM than {bound:,} bytes; ", end="")
    say(f"the smallest is {over:.2f} times")


def show_check(result: CheckResult, called: Callable[[str], str] = str) -> None:
    """called: how layers are named for people"""
    columns = [("back end", TEXT), ("mismatches", NUMBER)]
    columns += [("max |diff|", NUMBER), ("first bad layer", NAME)]
    rows = [
        (name, f"{t.mismatches:,}", f"{t.max_abs:g}", called(t.first_layer or "-"))
        for name, t in result.backends.items()
    ]
    table(f"{result.model} against {result.reference}", columns, rows)
    scope = f"{result.tensors} tensors" if result.per_layer else "outputs"
    say(f"{result.samples} samples, {scope}; {result.tolerance}")
    if result.wide is not None:
        say(f"and a wide one: {result.wide}")
    if result.classes is not None:
        show_classes(result.classes)
    for note in result.notes:
        say(f"note: {note}")
    say("equal" if result.ok else "NOT equal")


def show_classes(classes: Classes) -> None:
    """Accuracy, and a table of what is taken for what, once for all that say it."""
    for who, said in classes.said.items():
        if classes.labels is not None:
            right, samples = classes.right(who), len(classes.labels)
            say(f"{who}: {right} of {samples} right ({right / samples:.1%})", end="")
            say(end="\n" if who == REFERENCE or REFERENCE not in classes.said else ", ")
        if who != REFERENCE and REFERENCE in classes.said:
            say(f"{classes.changed(who)} of {len(said)} of another class than ", end="")
            say("the reference says")
    if classes.labels is None:
        return
    same: dict[tuple[int, ...], list[str]] = {}
    for who, said in classes.said.items():
        same.setdefault(said, []).append(who)
    for names in same.values():
        _show_confusion(classes, names)


def _show_confusion(classes: Classes, names: Sequence[str]) -> None:
    cells = classes.confusion(names[0])
    title = f"Label (row) and what {', '.join(names)} said (column)"
    if classes.count <= MOST_CLASSES:
        columns = [("", TEXT), *((str(n), NUMBER) for n in range(classes.count))]
        rows = [
            (str(label), *("." if not cell else f"{cell:,}" for cell in row))
            for label, row in enumerate(cells)
        ]
        table(title, columns, rows)
        return
    every = range(classes.count)
    wrong = [
        (-cells[a][b], a, b) for a in every for b in every if a != b and cells[a][b]
    ]
    columns = [("label", NUMBER), ("said", NUMBER), ("samples", NUMBER)]
    worst = sorted(wrong)[:MOST_CLASSES]
    table(f"Confused most by {', '.join(names)}", columns,
          [(str(a), str(b), f"{-count:,}") for count, a, b in worst])  # fmt: skip


def show_debug(result: DebugResult, long: bool = False) -> None:
    heads = ("min", "max", "mean", "zeros", "saturated")
    columns = [("layer", NAME), ("operator", TEXT)]
    columns += [(head, NUMBER) for head in heads]
    if result.reference:
        columns += [("mismatches", NUMBER), ("max |diff|", NUMBER)]
    rows = []
    for x in result.layers:
        row = [x.layer if long else x.short, x.op]
        row += [f"{x.min:g}", f"{x.max:g}", f"{x.mean:.4g}"]
        row += [f"{x.zeros:,}", f"{x.saturated:,}"]
        if result.reference and x.against is None:
            row += ["-", "-"]
        elif x.against is not None:
            row += [f"{x.against.mismatches:,}", f"{x.against.max_abs:g}"]
        rows.append(row)
    table(f"{result.model}, back end {result.backend}", columns, rows)
    say("values as the type holds them: of integers q, not real = scale * (q - zero)")
    say("zeros     how many values are 0; of integers q = 0, which need not be real 0")
    say("saturated at an end of an integer type; of floats, not finite")
    if result.reference:
        say(f"against {result.reference}; {result.tolerance}")
        short = {} if long else {x.layer: x.short for x in result.layers}
        first = short.get(result.first_layer or "", result.first_layer)
        say(f"first layer that differs: {first}" if first else "equal")


def show_bench(result: BenchResult, long: bool = False) -> None:
    columns = [("layer", NAME), ("operator", TEXT)]
    columns += [("MACs", NUMBER), ("microseconds", NUMBER)]
    rows = [
        (x.name if long else x.short, x.op, f"{x.macs:,}", f"{x.seconds * 1e6:,.1f}")
        for x in result.layers
    ]
    table(f"{result.model} on this machine, back end {result.backend}", columns, rows)
    times = result.seconds
    say(f"{result.runs} runs, one thread: median {times.median * 1e6:,.1f} us", end="")
    say(f", min {times.min * 1e6:,.1f}, max {times.max * 1e6:,.1f}")
    if result.against is not None:
        other = result.against
        say(f"{other.name}: median {other.seconds.median * 1e6:,.1f} us", end="")
        say(f", ratio {other.ratio:.2f}")
