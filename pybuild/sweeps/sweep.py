"""pybuild.sweep: a project's sweeps as a table, of builds kept and of new ones."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from pathlib import Path
from typing import Any

from pybuild.errors import BuildError, UsageError, all_known
from pybuild.progress import Progress, silent
from pybuild.project.read import FILE, Project, project_of, read_project
from pybuild.records import dataclass
from pybuild.sweeps.build import Made, spent
from pybuild.sweeps.front import LESS, MORE, front
from pybuild.sweeps.job import Job
from pybuild.sweeps.plan import Row, rows_of
from pybuild.sweeps.run import Given, Processes, Workers, run
from pybuild.sweeps.store import NOTHING, PAGE, TABLE, Store

_MEASURES = (*LESS, *MORE)


@dataclass(frozen=True, repr=False)
class Swept:
    """The results of a sweep.

    folder    with the table, the page and the builds
    rows      as lines of the table: docs/sweep.md
    built     rows that were built now; the others were there
    seconds   of processors: what all took, and of it what the builds took; the workers
              of an executor that was given tell only the second
    """

    folder: Path
    rows: Sequence[Mapping[str, Any]]
    built: int
    seconds: tuple[float, float]

    def __repr__(self) -> str:
        counts = f"{len(self.rows):,} rows, {self.built:,} built now"
        return f"Swept({counts}, {len(self.failed):,} failed)"

    @property
    def table(self) -> Path:
        return self.folder / TABLE

    @property
    def page(self) -> Path:
        return self.folder / PAGE

    @property
    def failed(self) -> list[Mapping[str, Any]]:
        return [row for row in self.rows if row["problems"]]

    def front(self, *measures: str, across: bool = False) -> list[Mapping[str, Any]]:
        """The rows that no other of the same model beats in all of these: ram, flash,
        instructions, cycles, error (less is better), accuracy.

        across  models compete, too: they are for the same
        Errors  BuildError for other measures
        """
        all_known(measures, _MEASURES, "front")
        chosen = measures or ("ram", "flash", "instructions")
        return front(self.rows, chosen, across)


def sweep(
    what: str | os.PathLike[str] | Mapping[str, Any] = FILE,
    out: str | os.PathLike[str] | None = None,
    *,
    workers: int | None = None,
    executor: Executor | None = None,
    scheduler: str | None = None,
    outside: bool = False,
    progress: Progress = silent,
) -> Swept:
    """Builds every combination of values of the [sweeps.NAME] of a project file.

    what       the file, or what it would say as a mapping: docs/sweep.md
    out        a folder; builds that it has are not made again. None: build/sweep beside
               the file
    workers    processes of this machine; None: one for each processor
    executor   of concurrent.futures, instead; its workers see the same files
    scheduler  "tcp://HOST:8786", a Dask cluster instead; its workers are sent the files
    outside    paths of the file may lead out of its folder; those of a mapping may
    progress   called with the rows that are there, and all of them
    Errors     BuildError with everything that is wrong before anything is built; what
               goes wrong in one build is told of its row
    """
    if (workers is not None) + (executor is not None) + (scheduler is not None) > 1:
        raise UsageError("sweep", "takes workers, an executor or a scheduler")
    begin = spent()
    if isinstance(what, Mapping):
        project = project_of(what)
    else:
        project = read_project(Path(what), outside)
    beside = Path(project.where).parent / "build" / "sweep"
    folder = beside if out is None else Path(out)
    rows = rows_of(project)
    store = Store(folder)
    entries = {row.job.key: store.entry(row.job.key) for row in rows}
    todo = [row.job for row in rows if entries[row.job.key] is None]
    seconds, there = 0.0, len(rows) - len(todo)
    progress(there, len(rows))

    def ended(job: Job, made: Made) -> None:
        nonlocal seconds, there
        entries[job.key] = store.keep(job, made)
        seconds, there = seconds + made.seconds, there + 1
        progress(there, len(rows))

    if todo:
        run(_in_order(todo), _workers(workers, executor, scheduler, todo), ended)
    table = [_line(row, entries[row.job.key]) for row in rows]
    store.write(_title(project), table)
    return Swept(folder, table, len(todo), (spent() - begin, seconds))


def _title(project: Project) -> str:
    return f"{Path(project.where).name}: {', '.join(project.sweeps)}"


def _in_order(jobs: Sequence[Job]) -> list[Job]:
    """The jobs sorted by model, so that a worker loads and quantises each model
    once."""
    order: dict[tuple[Any, ...], list[Job]] = {}
    for job in jobs:
        order.setdefault(job.source, []).append(job)
    return [job for same in order.values() for job in same]


def _workers(
    count: int | None, executor: Executor | None, scheduler: str | None,
    jobs: Sequence[Job],
) -> Workers:  # fmt: skip
    if scheduler is not None:
        from pybuild.sweeps.cluster import Cluster

        return Cluster(scheduler, jobs)
    processors = os.cpu_count() or 1
    if executor is not None:
        return Given(executor, processors)
    return Processes(min(count or processors, len(jobs)))


def _line(row: Row, entry: Mapping[str, Any] | None) -> dict[str, Any]:
    """A row of the table: the same keys in each."""
    if entry is None:
        raise BuildError(row.job.name, "was not built")
    facts = {**NOTHING, "warnings": [], **entry["figures"]}
    return {
        "key": row.job.key, "model": row.job.name, "file": Path(row.job.path).name,
        "options": dict(row.axes), **facts,
        "report": entry["report"], "problems": entry["problems"],
        "limit": entry["limit"],
    }  # fmt: skip
