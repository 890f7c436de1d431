"""A Dask cluster as workers of a sweep. They are sent the files of each model once, and
what a dead one had in hand is done again by the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import BrokenExecutor, Future
from importlib import import_module
from typing import Any

from pybuild.errors import BuildError, UsageError
from pybuild.sweeps.build import Made, build_job
from pybuild.sweeps.files import packed
from pybuild.sweeps.job import Job, key_of

_OPTION = "--scheduler"
_SECONDS = 10  # that a scheduler has to answer


class Cluster:
    """Workers of Dask's scheduler at an address.

    Errors  BuildError where Dask is not installed, or nobody answers
    """

    def __init__(self, address: str, jobs: Sequence[Job]) -> None:
        try:
            distributed: Any = import_module("distributed")
        except ImportError:
            hint = "pip install distributed"
            what = "needs dask.distributed, which is not installed"
            raise BuildError(_OPTION, what, hint) from None
        far = [job for job in jobs if "/" in str(job.board.get("on", ""))]
        if far:
            what = f"on: {far[0].board['on']} is a folder, which workers do not have"
            raise BuildError(_OPTION, what, "a board of crt boards, by its name")
        try:
            self._client = distributed.Client(
                address, timeout=_SECONDS, set_as_default=False
            )
        except (OSError, ValueError) as error:
            what = f"nobody answers at {address} ({type(error).__name__})"
            raise UsageError(_OPTION, what, "dask scheduler, and its address") from None
        if not self._client.nthreads():
            self._client.close()
            hint = f"dask worker {address}"
            raise UsageError(_OPTION, f"{address} has no workers", hint)
        self._there: set[Any] = set()  # futures of Dask that have not ended
        self._files: dict[str, Any] = {}

    @property
    def count(self) -> int:
        """The present number of threads: a cluster grows and shrinks."""
        threads: dict[str, int] = self._client.nthreads()
        return max(sum(threads.values()), 1)

    def submit(self, job: Job) -> Future[Made]:
        there = self._client.submit(build_job, job, self._sent(job), pure=False)
        here: Future[Made] = Future()
        self._there.add(there)
        there.add_done_callback(lambda _: self._ended(there, here))
        return here

    def _ended(self, there: Any, here: Future[Made]) -> None:
        """Passes on what has come of a job. Dask's own executor says nothing where the
        worker that had the result is gone: here that is a worker that died."""
        try:
            here.set_result(there.result(timeout=_SECONDS))
        except Exception as error:
            given_up = there.status == "error"  # by the job, or by Dask for it
            here.set_exception(error if given_up else BrokenExecutor(str(error)))
        finally:
            self._there.discard(there)

    def _sent(self, job: Job) -> Any:
        """The files of the job, once on the cluster."""
        key = key_of({"source": job.source, "measure": job.measure})
        if key not in self._files:
            self._files[key] = self._client.scatter(packed(job), broadcast=True)
        return self._files[key]

    def renew(self) -> bool:
        if self._client.status != "running":
            hint = "what was built is kept: sweep again once it is there"
            raise BuildError(_OPTION, "has gone away", hint)
        self._files.clear()  # those that had them are gone
        return False

    def close(self, now: bool) -> None:
        if now:
            self._client.cancel(list(self._there))
        self._client.close()
