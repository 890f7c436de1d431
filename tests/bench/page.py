"""Writes docs/benchmarks.md, the pages behind it and README's figures: ./dev bench.
What has not changed is taken from tests/figures/figures.json; --cold measures all.
--only NAME measures the tables of one module, such as any_layer, shows them and keeps
their figures for the next run of all, which writes the pages. Needs the models of
$CRT_MODELS or ../shared/models and both interpreters.
"""

from __future__ import annotations

import argparse
import functools
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict

from tests.bench import front
from tests.bench.costs import Table, model
from tests.bench.pages import CLOCKED, COUNTED, PAGES, Measure
from tests.conftest import models_folder
from tests.figures.keys import machine_key, sources
from tests.figures.store import FILE, Facts, Store, store, use
from tests.figures.tools import commit
from tests.graphs.real_models import FILES

TABLES = tuple(measure for page in PAGES for measure in page.tables)


def of_module(name: str) -> list[Measure]:
    """The tables of tests/.../NAME.py, or the one that a function NAME measures."""
    return [
        one
        for one in TABLES
        if name in (one.__module__.rpartition(".")[2], one.__name__)
    ]


def what(measure: Measure) -> str:
    return f"{measure.__module__}: table {measure.__name__}"


def key(measure: Measure) -> str:
    """Of a table: its sources, and of seconds the machine."""
    return (machine_key if measure in CLOCKED else sources)(measure.__module__)


def facts(measure: Measure) -> Facts:
    return asdict(measure())


def tables(wanted: Sequence[Measure]) -> Iterator[tuple[Measure, Table]]:
    """Each table, measured or from the store: what needs one processor each at once,
    seconds at the end, when nothing else runs."""
    alone = [m for m in wanted if m not in CLOCKED | COUNTED]
    left = [m for m in alone if not store().has(what(m), key(m))]
    running = {one: store().pool().submit(facts, one) for one in left}
    for measure in sorted(wanted, key=lambda one: (one in CLOCKED, one in running)):
        ran = running.get(measure)
        measured = ran.result if ran is not None else functools.partial(facts, measure)
        found = store().measured(what(measure), key(measure), measured)
        yield measure, Table(**found)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", metavar="MODULE|FUNCTION")
    parser.add_argument("--cold", action="store_true", help="measure all anew")
    asked = parser.parse_args()
    wanted = of_module(asked.only) if asked.only else list(TABLES)
    if not wanted:
        parser.error(f"--only {asked.only}: no table is measured by that")
    absent = [name for name in FILES if not model(name).is_file()]
    if absent and not asked.only:
        print(f"{models_folder()} lacks {', '.join(absent)}", file=sys.stderr)
        return 2
    start, of = time.monotonic(), commit()
    use(Store(FILE, asked.cold))
    made: dict[Measure, Table] = {}
    for measure, table in tables(wanted):
        made[measure] = table
        store().save(whole=False)
        print(table.markdown(), flush=True)
    if not asked.only:
        store().save(whole=True)
        for page in PAGES:
            page.path.write_text(page.text(of, [made[one] for one in page.tables]))
        front.write(of)
    took = time.monotonic() - start
    print(f"{store().new} figures measured in {took:.0f} s", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
