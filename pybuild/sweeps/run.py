"""Jobs on workers: processes of this machine, or any executor of concurrent.futures.
Workers may die: what they had in hand is done again.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable
from concurrent.futures import (
    FIRST_COMPLETED,
    BrokenExecutor,
    CancelledError,
    Executor,
    Future,
    ProcessPoolExecutor,
    wait,
)
from typing import Protocol

from pybuild.errors import BuildError, Problem
from pybuild.files.processes import without_main, worker_pool
from pybuild.sweeps.build import Made, build_job
from pybuild.sweeps.job import Job

_TRIES = 3  # of a build whose worker dies
_AHEAD = 2  # jobs in hand for each worker


class Workers(Protocol):
    """count: how many there are, about."""

    @property
    def count(self) -> int: ...

    def submit(self, job: Job) -> Future[Made]: ...

    def renew(self) -> bool:
        """After a loss; True: all that was in hand is lost.

        Errors  BuildError where there are no others to be had
        """

    def close(self, now: bool) -> None:
        """now: without waiting for what is in hand."""


class Processes:
    """Processes of this machine."""

    def __init__(self, count: int) -> None:
        self.count = count
        self._pool = self._fresh()

    def _fresh(self) -> ProcessPoolExecutor:
        return worker_pool(self.count)

    def submit(self, job: Job) -> Future[Made]:
        with without_main():
            return self._pool.submit(build_job, job)

    def renew(self) -> bool:
        self._pool.shutdown(cancel_futures=True)
        self._pool = self._fresh()
        return True

    def close(self, now: bool) -> None:
        running = list((getattr(self._pool, "_processes", None) or {}).values())
        self._pool.shutdown(wait=not now, cancel_futures=True)
        for process in running if now else ():
            process.terminate()


class Given:
    """An executor of the caller's, who closes it."""

    def __init__(self, executor: Executor, count: int) -> None:
        self.count, self._executor = count, executor

    def submit(self, job: Job) -> Future[Made]:
        return self._executor.submit(build_job, job)

    def renew(self) -> bool:
        what = "has lost its workers"
        hint = "what was built is kept: sweep again with another one"
        raise BuildError("executor", what, hint)

    def close(self, now: bool) -> None:
        pass


Done = Callable[[Job, Made], None]


def run(jobs: Iterable[Job], workers: Workers, done: Done) -> None:
    """Calls `done` with each job once, as they end.

    Errors  BuildError where no worker can be had; what has ended is done
    """
    now = True
    try:
        _Run(jobs, workers, done).go()
        now = False
    finally:
        workers.close(now)


class _Run:
    """waiting: not begun; suspects: in hand when a worker died. Of these there is one
    in hand at a time, so that the one that kills is known.
    """

    def __init__(self, jobs: Iterable[Job], workers: Workers, done: Done) -> None:
        self.waiting, self.suspects = deque(jobs), deque[Job]()
        self.workers, self.done = workers, done
        self.flying: dict[Future[Made], Job] = {}
        self.deaths: Counter[str] = Counter()
        self.ended = 0

    def go(self) -> None:
        while self.waiting or self.suspects or self.flying:
            if self._fill():
                ready, _ = wait(self.flying, return_when=FIRST_COMPLETED)
                lost = [job for future in ready if (job := self._end(future))]
            else:
                lost = [self._next()]
            if lost:
                self._again(lost)

    def _next(self) -> Job:
        return (self.suspects or self.waiting).popleft()

    def _fill(self) -> bool:
        """False where the workers turned out to be dead."""
        most = 1 if self.suspects else _AHEAD * self.workers.count
        while len(self.flying) < most and (self.suspects or self.waiting):
            job = (self.suspects or self.waiting)[0]
            try:
                future = self.workers.submit(job)
            except BrokenExecutor:
                return bool(self.flying)  # they tell of themselves
            self._next()
            self.flying[future] = job
        return True

    def _end(self, future: Future[Made]) -> Job | None:
        """The job, if its worker died."""
        job = self.flying.pop(future)
        try:
            found = future.result()
        except (BrokenExecutor, CancelledError):
            return job
        except Exception as error:  # of an executor's own: Dask gave a job up
            found = _died(job, f"{type(error).__name__}: {error}")
        self.ended += 1
        self.done(job, found)
        return None

    def _again(self, lost: list[Job]) -> None:
        if self.workers.renew():
            lost += self.flying.values()
            self.flying.clear()
        self.deaths.update(job.key for job in lost)
        given_up = [job for job in lost if self.deaths[job.key] >= _TRIES]
        if given_up and not self.ended:
            what = "the workers end before they have built anything"
            hint = "is there memory for them? --workers 1"
            raise BuildError("sweep", what, hint)
        for job in given_up:
            self.ended += 1
            self.done(job, _died(job, f"{_TRIES} workers ended"))
        self.suspects.extend(job for job in lost if job not in given_up)


def _died(job: Job, how: str) -> Made:
    what = f"ends the worker that builds it ({how})"
    return Made({}, None, (Problem(job.name, what),), kept=False)
