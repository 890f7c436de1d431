"""Figures that were measured, kept from run to run in tests/figures/figures.json: each
under its key, the hash of what was run. A table is a figure, too, by the hash of its
sources: while they are the same nothing is built; else programs are, and those are run
whose bytes have changed. The file lies in the repository: a clone has all figures, and
the difference of a commit shows which of them it has changed. Knows no table.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from tests.conftest import ROOT

FILE = ROOT / "tests" / "figures" / "figures.json"
EACH = 60  # seconds after which what was measured is in the file
Facts = dict[str, Any]  # as JSON has them


@dataclass(frozen=True)
class Ready:
    """What is built, and what it takes to measure it.

    key    of what will run
    facts  read off the build; they are found again with each build
    """

    key: str
    facts: Facts
    measure: Callable[[], Facts]


@dataclass(frozen=True)
class Figure:
    """What was measured of what has the key.

    within  groups of figures that were asked for to find it
    """

    key: str
    value: Facts
    within: tuple[str, ...] = ()


class Store:
    """Takes figures that are known, has others measured, and keeps both.

    path  of the file; None: they are kept for this run alone
    cold  figures of other runs are not taken
    new   how many were measured, not taken
    """

    def __init__(self, path: Path | None = None, cold: bool = False) -> None:
        self.path, self.new = path, 0
        self._figures: dict[str, Figure] = {}
        self._asked: set[str] = set()
        self._open: list[set[str]] = []  # groups asked for by what is being measured
        self._facts: dict[str, Facts] = {}
        self._pool: ProcessPoolExecutor | None = None
        self._saved = time.monotonic()
        if path is not None and path.is_file() and not cold:
            self._read(path)

    def _read(self, path: Path) -> None:
        try:
            kept = json.loads(path.read_text())
            self._figures = {what: _figure(one) for what, one in kept.items()}
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            said = f"{path} is broken ({error!r}): all is measured anew"
            print(said, file=sys.stderr)

    def measured(self, what: str, key: str, measure: Callable[[], Facts]) -> Facts:
        """The figure `what`, "GROUP: NAME", of what has this key."""
        found = self._figures.get(what)
        if found is None or found.key != key:
            self._open.append(set())
            value = json.loads(json.dumps(measure()))  # as the file will have it
            within = self._open.pop()
            found = Figure(key, value, tuple(sorted(within)))
            self.new += 1
        self._keep(what, found)
        for group in found.within:
            self._asked |= {w for w in self._figures if _group(w) == group}
        return found.value

    def all(
        self, prepare: Callable[..., Ready], ways: Mapping[str, tuple[Any, ...]]
    ) -> dict[str, Facts]:
        """Facts and values of each of the ways, whose arguments `prepare` takes: all
        are built, and those that are not known are measured, on all processors."""
        left = [what for what in ways if what not in self._facts]
        given = [(prepare, ways[what], self._key(what)) for what in left]
        for what, (key, facts, value) in zip(left, self._each(given), strict=True):
            self._facts[what] = facts
            self.new += value is not None
            known = self._figures[what] if value is None else Figure(key, value)
            self._keep(what, known)
            if time.monotonic() > self._saved + EACH:
                self.save(whole=False)
        return {what: self._facts[what] | self._taken(what) for what in ways}

    def _each(
        self, given: list[tuple[Any, ...]]
    ) -> Iterable[tuple[str, Facts, Facts | None]]:
        if self.path is None or len(given) < 2:
            return map(_prepared, given)
        return self.pool().map(_prepared, given)

    def pool(self) -> ProcessPoolExecutor:
        if self._pool is None:
            context = get_context("spawn")
            self._pool = ProcessPoolExecutor(os.cpu_count(), mp_context=context)
        return self._pool

    def has(self, what: str, key: str) -> bool:
        """Whether a figure is there, and of this key."""
        return self._key(what) == key

    def _key(self, what: str) -> str:
        return self._figures[what].key if what in self._figures else ""

    def _taken(self, what: str) -> Facts:
        self._keep(what, self._figures[what])
        return self._figures[what].value

    def _keep(self, what: str, figure: Figure) -> None:
        self._figures[what] = figure
        self._asked.add(what)
        for groups in self._open:
            groups.add(_group(what))

    def save(self, whole: bool) -> None:
        """whole: what nobody has asked for goes."""
        if whole:
            self._figures = {w: self._figures[w] for w in sorted(self._asked)}
        self._saved = time.monotonic()
        if self.path is not None:
            # a line a figure, so that the difference of two commits can be read
            lines = (
                f"{json.dumps(what)}: {json.dumps(asdict(one), sort_keys=True)}"
                for what, one in sorted(self._figures.items())
            )
            self.path.write_text("{\n" + ",\n".join(lines) + "\n}\n")


def _group(what: str) -> str:
    return what.partition(": ")[0]


def _figure(kept: Any) -> Figure:
    one = Figure(kept["key"], kept["value"], tuple(kept["within"]))
    if not isinstance(one.key, str) or not isinstance(one.value, dict):
        raise TypeError(kept)
    return one


def _prepared(given: tuple[Any, ...]) -> tuple[str, Facts, Facts | None]:
    """Key and facts of a build, and the value where the key is not the one before."""
    prepare, arguments, before = given
    ready = prepare(*arguments)
    return ready.key, ready.facts, None if ready.key == before else ready.measure()


_store = Store()


def store() -> Store:
    """The one of this run; outside of `./dev bench` it keeps nothing."""
    return _store


def use(chosen: Store) -> None:
    """Sets the one of this run."""
    global _store
    _store = chosen
