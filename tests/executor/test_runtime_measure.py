"""TVM's test_runtime_measure: how often a time evaluator calls, and what it says."""

from __future__ import annotations

import numpy as np

import pybuild as tvm
from pybuild.contrib import graph_executor
from pybuild.runtime.module import BenchmarkResult
from tests.executor.kernels import add_one, add_one_graph

N = 4


def counted() -> tuple[graph_executor.GraphModule, list[int]]:
    mod = graph_executor.create(add_one_graph(N), add_one(), tvm.cpu(0))
    mod.set_input(x=np.ones(N, "float32"))
    calls: list[int] = []
    go = mod.net.go

    def slow() -> None:
        calls.append(1)
        go()

    mod.net.go = slow  # type: ignore[method-assign]
    return mod, calls


def test_min_repeat_ms() -> None:
    mod, calls = counted()
    mod.module.time_evaluator("run", tvm.cpu(), number=1, repeat=1)()
    assert len(calls) == 2
    timer = mod.module.time_evaluator(
        "run", tvm.cpu(), number=1, repeat=1, min_repeat_ms=20
    )
    assert timer().mean > 0
    assert len(calls) > 10 + 2


def test_benchmark_result() -> None:
    r = BenchmarkResult([1, 2, 2, 5])
    assert (r.mean, r.median, r.min, r.max, r.std) == (2.5, 2.0, 1, 5, 1.5)


def test_benchmark() -> None:
    mod, calls = counted()
    dev, x = tvm.cpu(0), np.ones(N, "float32")
    assert len(mod.benchmark(dev, repeat=4, number=3, x=x).results) == 4
    assert len(calls) == 1 + 4 * 3
    result = mod.benchmark(dev, repeat=2, number=2, end_to_end=True, x=x)
    assert len(result.results) == 2 and result.mean > 0
