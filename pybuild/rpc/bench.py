"""Measures a model on a board at the end of a line, by the board's own counter."""

from __future__ import annotations

import statistics
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, cast

from pybuild.errors import BuildError
from pybuild.host.source import Portable
from pybuild.progress import Progress, silent
from pybuild.records import dataclass
from pybuild.rpc.address import connect
from pybuild.verify.bench import Seconds
from pybuild.verify.samples import sample

if TYPE_CHECKING:
    from pybuild.host.build_facts import Library


@dataclass(frozen=True)
class StageTime:
    """The layers that are computed together, by name; seconds of one run."""

    layers: tuple[str, ...]
    ticks: int
    seconds: float


@dataclass(frozen=True)
class RemoteBench:
    """board: as it calls itself; hz: of its counter; ticks: of each run."""

    model: str
    port: str
    board: str
    hz: float
    runs: int
    ticks: tuple[int, ...]
    seconds: Seconds
    stages: tuple[StageTime, ...]

    def to_json(self) -> dict[str, Any]:
        plain = asdict(self)
        return {**plain, "ticks": list(self.ticks), "stages": list(plain["stages"])}


def bench_remote(
    where: str,
    library: Library,
    runs: int = 10,
    seed: int = 0,
    progress: Progress = silent,
    key_file: str | None = None,
) -> RemoteBench:
    """Runs on a seeded input, then each stage once.

    where, key_file  as in pybuild.rpc.connect: serial:/dev/ttyUSB0,921600, tcp:...
    Errors  BuildError, too, for a board without a counter; RemoteError where the line
            or the board is not there
    """
    with connect(where, cast(Portable, library), key_file=key_file) as remote:
        made, net = remote.instance(cast(Portable, library))
        if made.slots:
            net.load_params(made.weights)
        graph = cast("Library", made).plan.graph
        name = remote.board.welcome.board
        try:
            hz = remote.board.hz
        except ValueError:
            what = "has no counter that says how long a run takes"
            hint = "give config.ticks and config.hz, crt/rpc.h"
            raise BuildError(where, what, hint) from None
        inputs = sample(graph, "uniform", (seed, 0)).inputs

        def given() -> None:
            for key, value in inputs.items():
                net.set_input(key, value)

        ticks = []
        for index in range(runs + 1):
            given()  # a run may use them up
            ticks.append(net.ticks(1))
            progress(index + 1, runs + 1)
        del ticks[0]  # it has a little to set up
        if graph.state:
            net.reset()
        given()
        net.setup()
        stages = []
        for index, steps in enumerate(net.stage_steps):
            spent = net.run_stage(index)
            layers = tuple(net.plan.steps[i].node.name for i in steps)
            stages.append(StageTime(layers, spent, spent / hz))
    seconds = [one / hz for one in ticks]
    spread = statistics.pstdev(seconds)
    told = Seconds(
        min(seconds), statistics.median(seconds), statistics.fmean(seconds),
        max(seconds), spread,
    )  # fmt: skip
    return RemoteBench(
        library.report.name, where, name, hz, runs, tuple(ticks), told, tuple(stages)
    )
