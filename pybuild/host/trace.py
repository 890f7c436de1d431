"""The intermediate results of a run, and the time of each stage.

Rows are taken as they are written, so that memory may be used again at once.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from pybuild.dtype import Array
from pybuild.host.abi import ffi
from pybuild.host.devices import read
from pybuild.host.native import Net
from pybuild.host.timing import BenchmarkResult, Timing, laps, measure
from pybuild.ops import OPERATORS
from pybuild.ops.base.function import has_reference
from pybuild.plan.plan import Plan


def recorded(
    net: Net, inputs: Mapping[str, Any], there: Mapping[str, Array] | None = None
) -> dict[str, Array]:
    """Runs once; every tensor of the plan by its name, `inputs` as they were given.

    there  inputs that the instance has already
    """
    graph, buffer = net.plan.graph, ffi().buffer
    steps = net.plan.steps
    record: dict[str, Array] = {
        wrote.tensor: np.zeros(graph.tensor(wrote.tensor).bytes, np.uint8)
        for step in steps
        if step.is_layer
        for wrote in step.candidate.outputs
    }
    told: set[int] = set()  # of steps of devices: whose work the CPU does

    def hook(context: Any, step: int, row: int, count: int, rows: Any) -> int:
        if not steps[step].is_layer:
            return 0
        first, *others = steps[step].candidate.outputs
        data = np.frombuffer(buffer(rows, count * first.row_bytes), np.uint8)
        at = row * first.row_bytes
        record[first.tensor][at : at + data.size] = data
        for number, other in enumerate(others, 1):
            record[other.tensor][:] = net.written(step, number, other.tensor)
        told.add(step)
        return 0

    kept = net.kept()
    with net.hooked(hook):
        for name, value in inputs.items():
            net.set_input(name, value)
        if net.pushed.rows:
            net.go()
        for stage in range(0 if net.pushed.rows else net.stages):
            net.run_stage(stage)
            first = net.plan.stages[stage].first
            step = steps[first]
            if step.device and first not in told:
                for wrote in step.candidate.outputs:
                    place = net.plan.places[wrote.tensor]
                    size = graph.tensor(wrote.tensor).bytes
                    piece = net.memory[place.region][place.home : place.home + size]
                    record[wrote.tensor] = read(net.devices[step.device], piece)
    return tensors_of(net.plan, record, {**kept, **(there or {}), **inputs})


def tensors_of(
    plan: Plan, record: Mapping[str, Array], inputs: Mapping[str, Any]
) -> dict[str, Array]:
    """The tensors that the steps wrote, and those that no step writes: views, further
    outputs on a board.
    """
    graph = plan.graph
    values: dict[str, Array] = {n: np.asarray(v) for n, v in inputs.items()}
    for name, raw in record.items():
        tensor = graph.tensor(name)
        values[name] = raw.view(tensor.dtype.numpy).reshape(tensor.shape)
    for node in graph.nodes:
        missing = {name for name in node.outputs if name and name not in values}
        if missing and (node.output in missing or has_reference(node)):
            reads = [
                graph.constants.get(n, values.get(n)) if n else None
                for n in node.inputs
            ]
            made = OPERATORS[node.op].reference(node, graph, reads)
            named = zip(node.outputs, made, strict=True)
            values.update((name, value) for name, value in named if name in missing)
    return values


def run_of(net: Net, inputs: Mapping[str, Any]) -> Callable[[], None]:
    """A run; the rows of an only pushed input in one call, so that Python's part of
    it is small."""
    if len(net.pushed.rows) != 1:

        def whole() -> None:
            for name, value in inputs.items():
                net.set_input(name, value)
            net.go()

        return whole
    name = net.inputs[next(iter(net.pushed.rows))].name
    rest = {n: value for n, value in inputs.items() if n != name}

    def run() -> None:
        for other, value in rest.items():
            net.set_input(other, value)
        net.push_rows(name, inputs[name])

    return run


def layer_seconds(net: Net, runs: int, inputs: Mapping[str, Any]) -> list[list[float]]:
    """Seconds of each step, for each of `runs` runs: step after step, each whole, on
    what is in memory then; memory is of no use afterwards."""
    if net.pushed.rows or not all(step.is_layer for step in net.plan.steps):
        return _watched_seconds(net, runs, inputs)
    clock, rows = time.perf_counter, []
    _give(net, inputs)
    net.go()
    for _ in range(runs):
        _give(net, inputs)
        row = []
        for step in range(len(net.plan.steps)):
            start = clock()
            net.idle()
            middle = clock()
            net.run_step(step)
            row.append(max(0.0, clock() - middle - (middle - start)))
        rows.append(row)
    return rows


def _watched_seconds(
    net: Net, runs: int, inputs: Mapping[str, Any]
) -> list[list[float]]:
    """The same of steps that only a run can do (copies, rows that are pushed): by the
    hook, after each band.

    What it costs to watch (a call of Python for each band) is measured beside them, by
    as many runs that nobody watches, and taken off.
    """
    watch = _Watch(len(net.plan.steps))
    rows, alone = [], []
    for _ in range(runs):
        alone.append(_seconds_alone(net, inputs))
        with net.hooked(watch.hook):
            rows.append(_seconds_watched(net, inputs, watch))
    calls = np.array(watch.calls) / runs
    watched = np.median(np.sum(rows, axis=1))
    cost = max(0.0, watched - np.median(alone)) / max(1.0, calls.sum())
    found: list[list[float]] = np.maximum(0.0, np.array(rows) - cost * calls).tolist()
    return found


class _Watch:
    """The hook: after each band, the time that its step took since the last one."""

    def __init__(self, steps: int) -> None:
        self.seconds = [0.0] * steps
        self.calls = [0] * steps
        self.now = 0.0

    def hook(self, context: Any, step: int, row: int, count: int, data: Any) -> int:
        now = time.perf_counter()
        self.seconds[step] += now - self.now
        self.calls[step] += 1
        self.now = time.perf_counter()
        return 0

    def rest(self, step: int) -> None:
        """Adds the time since the last record to a step: what is not a band (a copy, a
        wait)."""
        self.seconds[step] += time.perf_counter() - self.now


def _seconds_watched(net: Net, inputs: Mapping[str, Any], watch: _Watch) -> list[float]:
    """The seconds of each step in one run."""
    watch.seconds = [0.0] * len(watch.seconds)
    if net.pushed.rows:
        run = run_of(net, inputs)
        watch.now = time.perf_counter()
        run()
        return watch.seconds
    _give(net, inputs)
    for stage, steps in enumerate(net.plan.stages):
        watch.now = time.perf_counter()
        net.run_stage(stage)
        watch.rest(steps.first)
    return watch.seconds


def _seconds_alone(net: Net, inputs: Mapping[str, Any]) -> float:
    """The seconds of one run without a hook; pushing inputs is included."""
    run = run_of(net, inputs) if net.pushed.rows else net.go
    if not net.pushed.rows:
        _give(net, inputs)
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def _give(net: Net, inputs: Mapping[str, Any]) -> None:
    for name, value in inputs.items():
        net.set_input(name, value)


def _nothing() -> None:
    pass


def stage_times(
    net: Net, how: Timing, before: Callable[[], None] = _nothing
) -> list[list[float]]:
    """Seconds of each stage in each repeat, for the inputs that are there; before:
    called before each run, which may use them up.
    """
    clock = time.perf_counter_ns
    sums = [0] * net.stages

    def lap(number: int) -> int:
        sums[:] = [0] * net.stages
        for _ in range(number):
            before()
            for stage in range(net.stages):
                start = clock()
                net.run_stage(stage)
                sums[stage] += clock() - start
        return sum(sums)

    lap(1)
    found: list[list[float]] = [[] for _ in sums]
    for done in laps(lap, how):
        for stage, spent in enumerate(sums):
            found[stage].append(spent * 1e-9 / done.number)
    return found


def step_time(
    net: Net, step: int, how: Timing, before: Callable[[], None] = _nothing
) -> BenchmarkResult:
    """One step alone, again and again; memory is then as after a run. What only runs
    can do (a copy, a wait, unpacking, the work of a device) is timed in whole runs.
    """
    before()
    if not net.plan.steps[step].is_layer or not all(map(net.is_here, net.devices)):
        stage = next(s for s, steps in enumerate(net.stage_steps) if step in steps)
        return BenchmarkResult(stage_times(net, how, before)[stage])
    net.go()
    kept = [memory.copy() for memory in net.memory]
    result = measure(net.run_step, how, (step,))
    for memory, values in zip(net.memory, kept, strict=True):
        memory[:] = values
    return result
