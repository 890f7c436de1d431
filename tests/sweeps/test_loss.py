"""A sweep of 200 builds survives the loss of a worker, of processes here and of a Dask
cluster: what was in hand is done again, and the table has the same bytes."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, Future, ThreadPoolExecutor
from pathlib import Path

import pytest

import pybuild
from pybuild.errors import BuildError
from pybuild.sweeps.build import Made, build_job
from pybuild.sweeps.cluster import Cluster
from pybuild.sweeps.job import Job
from pybuild.sweeps.run import run
from tests.sweeps.networks import network, project
from tests.toolchains import ROOT, require_module

MIDDLE, ALL = 60, 200


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return network(tmp_path_factory.mktemp("model"), outside=True)


@pytest.fixture(scope="module")
def whole(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a sweep that nothing disturbs."""
    out = tmp_path_factory.mktemp("whole")
    found = pybuild.sweep(project(model), out, executor=ThreadPoolExecutor(1))
    assert (len(found.rows), found.built) == (ALL, ALL)
    assert 0 < len(found.failed) < ALL / 2, "a limit of 16 bytes is too low for some"
    return out


def same(one: Path, other: Path) -> None:
    """The table, the page, and every build with its report."""
    files = [
        {path.relative_to(top): path.read_bytes() for path in top.rglob("*.*")}
        for top in (one, other)
    ]
    assert files[0] == files[1]
    assert Path("sweep.jsonl") in files[0]


def once(act: Callable[[], None]) -> tuple[Callable[[int, int], None], list[int]]:
    """Progress that acts in the middle; and how many builds there were then."""
    acted: list[int] = []

    def progress(done: int, of: int) -> None:
        if done >= MIDDLE and not acted:
            acted.append(done)
            act()

    return progress, acted


def test_a_process_dies(model: Path, whole: Path, tmp_path: Path) -> None:
    def kill() -> None:
        os.kill(multiprocessing.active_children()[0].pid or 0, signal.SIGKILL)

    progress, acted = once(kill)
    found = pybuild.sweep(project(model), tmp_path, workers=2, progress=progress)
    assert acted and found.built == ALL
    same(tmp_path, whole)


def test_a_worker_of_dask_dies(model: Path, whole: Path, tmp_path: Path) -> None:
    """The model and what lies beside it are sent: the workers' paths are others."""
    require_module("distributed")
    from distributed import Client, LocalCluster

    with LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=None,
        local_directory=str(tmp_path / "dask"),
    ) as cluster, Client(cluster) as client:  # fmt: skip
        pids = client.run(os.getpid)
        assert len(set(pids.values())) == 2
        victim = next(iter(pids.values()))
        progress, acted = once(lambda: os.kill(victim, signal.SIGKILL))
        address = cluster.scheduler_address
        out = tmp_path / "out"
        found = pybuild.sweep(project(model), out, scheduler=address, progress=progress)
        assert acted and found.built == ALL
    same(out, whole)


def test_commands_of_dask(model: Path, tmp_path: Path) -> None:
    """A scheduler and workers as on machines of their own: processes that know of each
    other by an address alone; one is killed in the middle."""
    require_module("distributed")
    found = tmp_path / "scheduler.json"
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()

    def dask(*words: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "dask", *words]
        quiet = subprocess.DEVNULL
        return subprocess.Popen(
            command, env=env, cwd=elsewhere, stdout=quiet, stderr=quiet
        )

    scheduler = dask(
        "scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard",
        "--scheduler-file", str(found),
    )  # fmt: skip
    workers = []
    try:
        while not found.exists() or not found.read_text():
            assert scheduler.poll() is None
            time.sleep(0.05)
        address = json.loads(found.read_text())["address"]
        assert address.startswith("tcp://127.0.0.1:")
        workers = [
            dask("worker", address, "--no-nanny", "--nthreads", "1", "--no-dashboard")
            for _ in range(2)
        ]
        from distributed import Client

        with Client(address) as client:
            client.wait_for_workers(2)
        few = {"target": ["cortex-m0", "cortex-m4", "cortex-m33", "cortex-m55"],
               "optimise": ["size", "balanced", "speed"]}  # fmt: skip
        what = {"models": {"tiny": {"file": str(model)}}, "sweeps": {"few": few}}
        acted = []

        def progress(done: int, of: int) -> None:
            if done == 3 and not acted:
                acted.append(done)
                workers[0].kill()

        out = tmp_path / "out"
        made = pybuild.sweep(what, out, scheduler=address, progress=progress)
        assert acted and made.built == 12 and not made.failed
    finally:
        for process in (*workers, scheduler):
            process.kill()
            process.wait()
    here = pybuild.sweep(what, tmp_path / "here", executor=ThreadPoolExecutor(1))
    assert made.rows == here.rows
    same(out, tmp_path / "here")


@pytest.mark.parametrize(
    ("status", "kind"), [("finished", BrokenExecutor), ("error", ValueError)]
)
def test_a_result_that_cannot_be_had_ends_its_job(status: str, kind: type) -> None:
    """A worker may die between a job's end and its result's way here."""

    class There:
        def result(self, timeout: float) -> Made:
            raise ValueError(f"nobody has it after {timeout} s")

    there, here, cluster = There(), Future[Made](), Cluster.__new__(Cluster)
    there.status, cluster._there = status, {there}
    cluster._ended(there, here)
    assert type(here.exception(0)) is kind and not cluster._there


SWEEP = """
import json, os, pybuild, sys
def progress(done, of):
    if done >= 60:
        os._exit(9)
what = json.loads(sys.argv[1])
pybuild.sweep(what, sys.argv[2], workers=1, progress=progress)
"""


def test_killed_it_goes_on_where_it_was(
    model: Path, whole: Path, tmp_path: Path
) -> None:
    script = tmp_path / "sweep.py"
    script.write_text(SWEEP)
    out = tmp_path / "out"
    words = [sys.executable, str(script), json.dumps(project(model)), str(out)]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    assert subprocess.run(words, env=env, capture_output=True).returncode == 9
    kept = len(list((out / "builds").glob("*.json")))
    assert kept >= MIDDLE - 1 and not (out / "sweep.jsonl").exists()
    found = pybuild.sweep(project(model), out, executor=ThreadPoolExecutor(1))
    assert found.built == ALL - kept
    same(out, whole)
    again = pybuild.sweep(project(model), out, workers=1)
    assert again.built == 0 and again.rows == found.rows


# ---- a build that ends its worker ---------------------------------------------


class Frail:
    """Workers that a job named deadly takes down, each time; one named slow ends only
    with the second workers. fresh: how often there were others."""

    count = 3

    def __init__(self) -> None:
        self.fresh, self.broken = 0, False

    def submit(self, job: Job) -> Future[Made]:
        if self.broken:
            raise BrokenExecutor
        future: Future[Made] = Future()
        if job.name == "deadly":
            self.broken = True
            future.set_exception(BrokenExecutor())
        elif job.name != "slow" or self.fresh:
            future.set_result(Made({"name": job.name}))
        return future

    def renew(self) -> bool:
        self.fresh, self.broken = self.fresh + 1, False
        return True

    def close(self, now: bool) -> None:
        pass


def jobs(names: str) -> list[Job]:
    return [Job(n, n, "", {}, {}, {}, {}, {}, None, "", {}, "") for n in names.split()]


def test_a_build_that_kills_costs_its_own_row_alone() -> None:
    found: dict[str, Made] = {}
    workers = Frail()
    names = "a b c slow d deadly f g h i j k"
    run(jobs(names), workers, lambda job, one: found.update({job.name: one}))
    assert sorted(found) == sorted(names.split()) and workers.fresh == 3
    (problem,) = found.pop("deadly").problems
    assert str(problem) == "deadly: ends the worker that builds it (3 workers ended)"
    assert all(not one.problems for one in found.values())


def test_workers_that_never_begin_are_told() -> None:
    with pytest.raises(BuildError, match=r"before they have built anything"):
        run(jobs("deadly"), Frail(), lambda job, one: None)


def test_another_pybuild_builds_nothing() -> None:
    (problem,) = build_job(*jobs("tiny")).problems
    assert "another pybuild" in str(problem)
