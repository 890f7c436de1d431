"""What the executor costs beside its kernels, with limits that a busy machine keeps."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from types import FrameType

import numpy as np
import pytest

import pybuild as tvm
from pybuild.graph_executor import GraphModule
from tests.executor.test_graph_executor import DEV, adder
from tests.graphs.networks import Network

STEPS = 500
ONE = np.ones((1, 1, 1, 1), np.float32)


def best(call: Callable[[], object], number: int) -> float:
    """Seconds of the processor for one call: the best of many tries. Other processes,
    which may have the machine too, are not counted.
    """
    tries = []
    for _ in range(30):
        start = time.thread_time()
        for _ in range(number):
            call()
        tries.append((time.thread_time() - start) / number)
    return min(tries)


def calls_of(function: Callable[[], object]) -> list[str]:
    """Names of the Python functions that a call of it enters."""
    names: list[str] = []

    def watch(frame: FrameType, event: str, _: object) -> None:
        if event == "call":
            names.append(frame.f_code.co_name)

    sys.setprofile(watch)
    try:
        function()
    finally:
        sys.setprofile(None)
    return names


def made(count: int) -> GraphModule:
    network = Network("steps", (1, 1, 1, 1), "float32", 0)
    for index in range(count):
        network.add(("tanh", "logistic")[index % 2], f"y{index}", (1, 1, 1, 1))
    library = tvm.build(network.model(), target="llvm")
    assert len(library.plan.steps) == count
    module = GraphModule(library["default"](DEV))
    module.run(image=ONE)
    return module


def test_a_step_costs_at_most_200_nanoseconds() -> None:
    """Kernel included: one tanh or logistic."""
    spent = best(made(STEPS).run, 20) / STEPS
    print(f"{spent * 1e9:.0f} ns a step")
    assert spent < 200e-9


def test_a_run_enters_few_python_functions() -> None:
    """They are what a call from Python costs: 2 to 4 microseconds, by the machine."""
    names = calls_of(made(1).run)
    assert names[0] == "run" and len(names) <= 10, names


def test_benchmark_hands_every_option_on(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[dict[str, object]] = []

    class Spy:
        def __init__(self, **options: object) -> None:
            seen.append(options)
            raise InterruptedError

    monkeypatch.setattr("pybuild.host.timing.Timing", Spy)
    options = {"repeat": 2, "number": 3, "min_repeat_ms": 4, "cooldown_interval_ms": 5}
    options |= {"limit_zero_time_iterations": 6, "repeats_to_cooldown": 7}
    x = np.ones(4, np.float32)
    for end_to_end in (False, True):
        with pytest.raises(InterruptedError):
            adder().benchmark(DEV, end_to_end=end_to_end, x=x, y=x, **options)
    assert seen == [options, options]
    with pytest.raises(KeyError, match="'x'"):
        adder().benchmark(DEV, z=x)


def test_end_to_end_counts_copies() -> None:
    module, x = adder(), np.ones(4, np.float32)
    outputs = module["run_from_inputs"](1, 0, "x", x, "y", x)
    assert [out.tolist() for out in outputs] == [[2, 2, 2, 2]]
    module.run(x=x + 1)
    assert outputs[0].tolist() == [2, 2, 2, 2]
    with pytest.raises(ValueError, match="pairs"):
        module.run_from_inputs(1, 0, "x")
    result = module.benchmark(DEV, end_to_end=True, repeat=3, number=2, x=x, y=x)
    assert len(result.results) == 3 and result.min > 0
    assert module.benchmark(DEV, x=x).min < result.min
    evaluate = module.module.time_evaluator("run", DEV, number=5, repeat=2)
    assert len(evaluate().results) == 2
