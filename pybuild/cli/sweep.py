"""`crt sweep crt.toml`: many builds; progress, and the best of them as a table."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pybuild
from pybuild.cli.options import values
from pybuild.cli.output import tables
from pybuild.cli.output.progress import working
from pybuild.errors import INVALID, LIMIT, UsageError
from pybuild.files.say import say
from pybuild.options.many import SweepOptions
from pybuild.options.option import of_words
from pybuild.package.grid import NAME, NUMBER, TEXT
from pybuild.progress import Progress
from pybuild.project.read import FILE, OUTSIDE, SWEEP, find_project, read_project

if TYPE_CHECKING:
    from pybuild.sweeps.sweep import Swept

OK = 0
_MOST = 20  # rows that are shown
_PAUSE = 60.0  # seconds between two lines of progress

Outcome = tuple[int, dict[str, Any]]


def sweep(args: argparse.Namespace) -> Outcome:
    """Exit 2 where a row could not be built, 3 where all of these exceed a limit."""
    path = find_project(args.file)
    if path is None:
        raise UsageError("crt sweep", "FILE is missing", f"{FILE} with [sweeps.NAME]")
    outside = hasattr(args, OUTSIDE)
    said = read_project(path, outside).common.by_verb.get(SWEEP, {})
    raw = {word: value.raw for word, value in said.items()}
    own = values(argparse.Namespace(**{**raw, **vars(args)}), of_words(SweepOptions))
    if own.wrong:
        raise UsageError.of(own.wrong)
    workers = own.workers if own.scheduler is None else None
    if own.scheduler is not None and hasattr(args, "workers"):
        raise UsageError("--workers", "are processes here; --scheduler has its own")
    with working(f"sweeping {path.name}") as shown, _told(shown) as progress:
        found = pybuild.sweep(
            path,
            own.out,
            workers=workers,
            scheduler=own.scheduler,
            outside=outside,
            progress=progress,
        )
    if not args.json:
        _show(found)
    return _code(found), _facts(found)


def _facts(found: Swept) -> dict[str, Any]:
    counts = {"rows": len(found.rows), "built": found.built}
    counts["failed"] = len(found.failed)
    paths = {"table": str(found.table), "page": str(found.page)}
    return {**counts, **paths, "front": [dict(row) for row in found.front()]}


def _code(found: Swept) -> int:
    if not found.failed:
        return OK
    limits = all(row["limit"] for row in found.failed)
    return LIMIT if limits else INVALID


@contextmanager
def _told(shown: Progress) -> Iterator[Progress]:
    """Shows progress: a bar on a terminal, elsewhere a line a minute."""
    begin = last = time.monotonic()
    first: int | None = None

    def progress(done: int, of: int) -> None:
        nonlocal last, first
        shown(done, of)
        first = done if first is None else first
        now = time.monotonic()
        if sys.stderr.isatty() or now - last < _PAUSE or done == first:
            return
        last = now
        left = (of - done) * (now - begin) / (done - first)
        text = f"{done:,} of {of:,} builds, about {_duration(left)} left"
        say(text, error=True)

    yield progress


def _duration(seconds: float) -> str:
    """90 s, 12 min, 3.5 h."""
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


# ---- what is printed ----------------------------------------------------------


def _show(found: Swept) -> None:
    from pybuild.chips.pace import WHAT, shown

    best = sorted(found.front(), key=lambda row: (row["model"], row["ram"]))
    columns = [("model", NAME), ("target", TEXT), ("options", TEXT)]
    columns += [("RAM", NUMBER), ("flash", NUMBER)]
    columns += [("instructions", NUMBER), ("cycles", NUMBER), ("accuracy", NUMBER)]
    rows = [
        [row["model"], row["target"], _options(row), f"{row['ram']:,}",
         f"{row['flash']:,}", f"{row['instructions']:,}",
         "-" if row["cycles"] is None else shown(row["target"], row["cycles"]),
         "-" if row["accuracy"] is None else f"{row['accuracy']:.1%}"]
        for row in best
    ]  # fmt: skip
    if rows:
        counted = [row["board"] for row in best if row["board"]]
        said = "counted on boards" if counted else "flash and instructions by estimate"
        said = "partly counted on boards" if 0 < len(counted) < len(rows) else said
        say("target of each row, as it says")
        if any(row["cycles"] for row in best):
            say(f"cycles {WHAT}")
        title = f"Pareto-optimal in RAM without stack, flash and instructions; {said}"
        tables.table(title, columns, rows[:_MOST])
    if len(rows) > _MOST:
        say(f"{len(rows) - _MOST:,} more are in the page")
    there = len(found.rows) - found.built
    kept = f", {there:,} were there" if there else ""
    say(f"builds {len(found.rows):,}: {found.built:,} made now{kept}", end="")
    say(f"; {len(found.failed):,} failed" if found.failed else "")
    for row in found.failed[:_MOST]:
        problem = row["problems"][0]
        say(f"failed {row['model']} {_options(row)}: {problem['what']}")
    if len(found.failed) > _MOST:
        say(f"{len(found.failed) - _MOST:,} more failed, as the table says")
    whole, own = found.seconds
    if found.built and whole >= own:
        rate = 60 * found.built / whole
        say(f"speed  {rate:,.0f} builds in a minute of a processor, ", end="")
        say(f"{1 - own / whole:.1%} of it not building")
    say(f"wrote {found.table}\nwrote {found.page}")


def _options(row: Any) -> str:
    given = {word: v for word, v in row["options"].items() if v not in (None, [], {})}
    return " ".join(f"{word}={_plain(value)}" for word, value in given.items())


def _plain(value: Any) -> str:
    if isinstance(value, list):
        return ",".join(map(str, value))
    if isinstance(value, dict):
        return ",".join(f"{name}={each}" for name, each in value.items())
    return str(value)
