"""How long people wait for the command line: processor seconds of a child process.

A processor second is worth two or three times as much on one day as on another, so
each is measured beside a yardstick, in turns, and told in seconds of a machine on
which the yardstick takes `NOMINAL`. Needs the folder of real models."""

from __future__ import annotations

import inspect
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from pybuild.select import build_seconds
from tests.conftest import ROOT, model_path

TRIES = 9
# seconds of the yardstick where the promised seconds were first measured: of what loads
# modules and makes records, and of what only computes. A machine may take twice as long
# for this, and no longer for the former
TURNS = 20
NOMINAL = 0.85 + TURNS * build_seconds.NOMINAL
FRESH = 0.5  # real seconds after which the machine may be another
_known: list[tuple[float, float]] = []  # when a yardstick ended, its seconds
# as a command: modules to find and load, records to make, and much to look at; then the
# piece of Python of build_seconds
YARDSTICK = f"""
import argparse, ast, asyncio, concurrent.futures.process, ctypes, dataclasses
import email.message, http.server, importlib.metadata, inspect, json, logging.config
import multiprocessing.managers, numpy.random, numpy.testing, pydoc
import time, unittest.mock, xml.dom.minidom, xmlrpc.server
text = inspect.getsource(argparse)
for _ in range(3):
    compile(ast.parse(text), "argparse.py", "exec")
for i in range(120):
    dataclasses.make_dataclass("C" + str(i), ["a", "b", "c"], frozen=True)
{inspect.getsource(build_seconds.fixed_work)}
for _ in range({TURNS}):
    fixed_work()
"""
NETWORKS = ("kws", "vww", "ic", "ad")
AFTER_IMPORT = """
import sys, time
import pybuild
start = time.process_time()
pybuild.load(sys.argv[1]).build(sys.argv[2])
print(time.process_time() - start)
"""


def best(seconds: Callable[[int], float], limit: float) -> float:
    """The least of a few tries; later ones only where the limit was missed."""
    least = float("inf")
    for attempt in range(TRIES):
        least = min(least, seconds(attempt))
        if least < limit:
            break
    return least


def nominal(measure: Callable[[int], float]) -> Callable[[int], float]:
    """In nominal seconds, by a yardstick before and after. A machine that is faster
    than nominal is held to the seconds that it takes: not every work is faster by as
    much."""

    def seconds(attempt: int) -> float:
        before, taken, after = just_now(), measure(attempt), yardstick()
        return taken * min(1.0, NOMINAL * 2 / (before + after))

    return seconds


def yardstick() -> float:
    """Processor seconds of a fixed piece of Python, the interpreter's start with it."""
    seconds = child("-c", YARDSTICK)[0]
    _known.append((time.monotonic(), seconds))
    return seconds


def just_now() -> float:
    """Of the yardstick: as the measurement before this one ended with, or anew."""
    if _known and time.monotonic() - _known[-1][0] < FRESH:
        return _known[-1][1]
    return yardstick()


def child(*arguments: str | Path) -> tuple[float, str]:
    """Runs Python with arguments; its processor seconds and what it printed."""
    words = [sys.executable, *map(str, arguments)]
    # an installed package has its bytecode, whatever the environment of the tests says
    own = {"PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": ""}
    environment = {**os.environ, **own}
    before = os.times()
    done = subprocess.run(words, env=environment, capture_output=True, text=True)
    after = os.times()
    assert done.returncode == 0, done.stderr
    user = after.children_user - before.children_user
    return user + after.children_system - before.children_system, done.stdout


@pytest.mark.parametrize("network", NETWORKS)
def test_a_build_takes_two_seconds_after_import(network: str, tmp_path: Path) -> None:
    path = model_path(f"{network}_int8.tflite")

    def measure(attempt: int) -> float:
        return float(child("-c", AFTER_IMPORT, path, tmp_path / str(attempt))[1])

    assert best(nominal(measure), 2.0) < 2.0
    assert (tmp_path / "0" / f"{network}_int8.c").is_file()


@pytest.mark.parametrize("network", NETWORKS)
def test_a_build_takes_three_seconds_as_a_process(network: str, tmp_path: Path) -> None:
    path = model_path(f"{network}_int8.tflite")

    def measure(attempt: int) -> float:
        out = tmp_path / str(attempt)
        return child("-m", "pybuild.cli", "build", path, "-o", out)[0]

    assert best(nominal(measure), 3.0) < 3.0
    assert (tmp_path / "0" / f"{network}_int8.c").is_file()


@pytest.mark.parametrize("network", NETWORKS)
def test_inspect_takes_a_second_and_a_half(network: str) -> None:
    path = model_path(f"{network}_int8.tflite")
    said: list[str] = []

    def measure(attempt: int) -> float:
        seconds, text = child("-m", "pybuild.cli", "inspect", path)
        said.append(text)
        return seconds

    assert best(nominal(measure), 1.5) < 1.5
    assert "multiply-accumulates" in said[0] and "arena" in said[0]


# planning is no imports: beside it, in the same process, runs the piece of Python whose
# seconds pybuild tells people's waiting by
LARGE = """
import sys, time
from pybuild.model import Model
from pybuild.select.build_seconds import fixed_work
from tests.graphs.mobile_net import chain, mobile_net
def seconds(work):
    start = time.process_time()
    work()
    return time.process_time() - start
made = {"mobile_net": lambda: mobile_net(96), "chain": lambda: chain(100)}
model = Model("large", made[sys.argv[1]](), "litert", "0" * 64)
before = [seconds(fixed_work) for _ in range(3)]
taken = seconds(lambda: model.build(target=sys.argv[2]).report)
print(taken, min(before), min(seconds(fixed_work) for _ in range(3)))
"""


# of a Cortex-M4 6.7 and 2.1 before layers that are alike were planned once, and the
# first 1.8 before proofs tried only the multipliers that real numbers allow: 1.2 alone,
# 1.75 beside three other processes
@pytest.mark.parametrize(
    ("graph", "target", "limit"),
    [
        ("mobile_net", "generic", 1.0),
        ("mobile_net", "cortex-m4", 2.4),
        ("chain", "generic", 1.0),
        ("chain", "cortex-m4", 1.5),
    ],
)
def test_large_networks_are_planned_in_seconds(
    graph: str, target: str, limit: float
) -> None:
    """65 layers of MobileNetV2, and 100 that are alike."""

    def seconds(attempt: int) -> float:
        said = child("-c", LARGE, graph, target)[1]
        taken, before, after = map(float, said.split())
        return taken * min(1.0, build_seconds.NOMINAL * 2 / (before + after))

    assert best(seconds, limit) < limit
