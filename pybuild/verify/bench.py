"""Times a build on this machine, whole and by layer, one thread.

Knows nothing of plans or generated code.
"""

from __future__ import annotations

import importlib.util
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pybuild.dtype import Array
from pybuild.errors import BuildError
from pybuild.host.lazy_buffers import bind_lazy
from pybuild.host.trace import layer_seconds, run_of
from pybuild.ir.graph import Graph
from pybuild.package.report import Layer, layer
from pybuild.plan.schedule.lock_step import PUSH
from pybuild.records import dataclass
from pybuild.verify.apart import loaded, possible
from pybuild.verify.reference import NOT_TIMED, SECONDS, TIMED, reads, timed_here
from pybuild.verify.samples import sample

if TYPE_CHECKING:
    from pybuild.host.build_facts import Library

WARM_UP_SECONDS = 0.05


@dataclass(frozen=True)
class Seconds:
    """The seconds of one run."""

    min: float
    median: float
    mean: float
    max: float
    std: float


@dataclass(frozen=True)
class LayerTime:
    """seconds: the median over the runs, of the layer run by itself."""

    name: str
    short: str
    op: str
    macs: int
    seconds: float


@dataclass(frozen=True)
class Against:
    """The same runs in another interpreter; ratio: our median over its median."""

    name: str
    seconds: Seconds
    ratio: float


@dataclass(frozen=True)
class BenchResult:
    model: str
    backend: str
    runs: int
    seconds: Seconds
    layers: tuple[LayerTime, ...]
    against: Against | None = None

    def to_json(self) -> dict[str, Any]:
        """The keys of a host bench; `against` only where it was asked for."""
        plain: dict[str, Any] = {"board": "host", **asdict(self)}
        plain["layers"] = list(plain["layers"])
        if self.against is None:
            del plain["against"]
        return plain


def bench(
    library: Library,
    backend: str = "llvm",
    runs: int = 50,
    against: str | Path | None = None,
    seed: int = 0,
) -> BenchResult:
    """Times `runs` runs on one seeded input, which is pushed where rows are.

    against  the .tflite file, to time LiteRT's default CPU interpreter on the same
             input in turn with ours
    Errors   BuildError where the back end or LiteRT is missing
    """
    inputs = sample(library.plan.graph, "uniform", (seed, 0)).inputs
    net = bind_lazy(library.host(backend))
    try:
        rivals = [timed(run_of(net, inputs))]
        name = ""
        if against is not None:
            name, rival = litert(Path(against), library.plan.graph, inputs)
            rivals.append(rival)
        times = _side_by_side(rivals, runs)
        by_layer = layer_seconds(net, runs, inputs)
    finally:
        net.close()
    graph = library.plan.graph
    steps = [layer(step.node, graph) for step in library.plan.steps]
    ours = seconds(times[0])
    other = None
    if against is not None:
        theirs = seconds(times[1])
        other = Against(name, theirs, ours.median / theirs.median)
    return BenchResult(
        model=library.report.name,
        backend=backend,
        runs=runs,
        seconds=ours,
        layers=_layers(steps, by_layer),
        against=other,
    )


def seconds(times: Sequence[float]) -> Seconds:
    return Seconds(
        min(times),
        statistics.median(times),
        statistics.fmean(times),
        max(times),
        statistics.pstdev(times),
    )


def timed(run: Callable[[], object]) -> Callable[[], float]:
    """The seconds of a run right after another one: what ran between, here or in the
    process of a rival, has taken the caches.
    """

    def clocked() -> float:
        run()
        start = time.perf_counter()
        run()
        return time.perf_counter() - start

    return clocked


def _side_by_side(
    rivals: Sequence[Callable[[], float]], runs: int
) -> list[list[float]]:
    """Times of each, taken in turn, so that a busy moment meets all of them."""
    for run in rivals:
        _warm_up(run)
    times: list[list[float]] = [[] for _ in rivals]
    for _ in range(runs):
        for run, seen in zip(rivals, times, strict=True):
            seen.append(run())
    return times


def _warm_up(run: Callable[[], float]) -> None:
    end = time.perf_counter() + WARM_UP_SECONDS
    run()
    while time.perf_counter() < end:
        run()


def _layers(
    steps: Sequence[Layer], runs: Sequence[Sequence[float]]
) -> tuple[LayerTime, ...]:
    """The times of the layers; the copy of a pushed row is counted with its first
    reader."""
    medians = [statistics.median(times) for times in zip(*runs, strict=True)]
    return tuple(
        LayerTime(step.name, step.short, step.op, step.macs, spent)
        for step, spent in zip(steps, medians, strict=True)
        if step.op != PUSH
    )


def litert(
    path: Path, graph: Graph, inputs: Mapping[str, Array]
) -> tuple[str, Callable[[], float]]:
    """LiteRT's default interpreter on one thread, its name and what times a run
    of it as timed() does, in a process of its own.

    Errors  BuildError; ReferenceCrashed, in a run too
    """
    if not reads("litert", path):
        raise BuildError(path.name, "LiteRT reads only .tflite files")
    if importlib.util.find_spec("ai_edge_litert") is None:
        hint = "pip install ai-edge-litert"
        raise BuildError("--against", "ai_edge_litert is missing", hint)
    if possible():
        facts, run = loaded(path, "LiteRT", TIMED, graph, hint=NOT_TIMED)
        name = str(facts["name"])
    else:
        name, run = timed_here(path, graph)
    return name, lambda: float(run(inputs)[SECONDS])
