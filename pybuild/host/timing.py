"""Measures how long a call takes: repeats, each of so many calls, and their statistics.

Knows no model. Source: TVM's time_evaluator; what it does otherwise is in
docs/graph-executor.md.
"""

from __future__ import annotations

import functools
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import field
from typing import Any

from pybuild.records import dataclass

_GROWTH = 1.618
_NANO = 1e-9
_NANO_IN_MILLI = 1_000_000


@dataclass(frozen=True)
class BenchmarkResult:
    """Seconds of one call in each repeat; std: of all repeats (divided by count)."""

    results: Sequence[float]
    mean: float = field(init=False)
    median: float = field(init=False)
    min: float = field(init=False)
    max: float = field(init=False)
    std: float = field(init=False)

    def __post_init__(self) -> None:
        facts = {
            "mean": statistics.fmean(self.results),
            "median": statistics.median(self.results),
            "min": min(self.results),
            "max": max(self.results),
            "std": statistics.pstdev(self.results),
        }
        for name, value in facts.items():
            object.__setattr__(self, name, float(value))

    def __repr__(self) -> str:
        names = ("min", "mean", "median", "max", "std", "results")
        inside = ", ".join(f"{name}={getattr(self, name)}" for name in names)
        return f"BenchmarkResult({inside})"

    def __str__(self) -> str:
        names = ("mean", "median", "max", "min", "std")
        heads = " ".join(f"{f'{name} (ms)':^12}" for name in names)
        cells = " ".join(f"{getattr(self, name) * 1000:^12.4f}" for name in names)
        return f"Execution time summary:\n{heads}\n{cells}{' ' * 15}"


@dataclass(frozen=True)
class Timing:
    """How many runs and repeats a measurement takes.

    number    calls of a repeat to begin with; each repeat begins with it anew
    repeat    results
    min_repeat_ms  a repeat is done again, longer, until it takes this
    limit_zero_time_iterations  tries of a repeat that may take no time at all
    cooldown_interval_ms  of sleep after every `repeats_to_cooldown` repeats, first of
              all after the first
    cache_flush_bytes  copied before each lap, untimed, so that caches hold these
    f_preproc  called before each repeat with the arguments, untimed; "": nothing
    """

    number: int = 10
    repeat: int = 1
    min_repeat_ms: float = 0
    limit_zero_time_iterations: int = 100
    cooldown_interval_ms: float = 0
    repeats_to_cooldown: int = 1
    cache_flush_bytes: int = 0
    f_preproc: Callable[..., object] | str = ""

    def __post_init__(self) -> None:
        if isinstance(self.f_preproc, str) and self.f_preproc:
            what = f"there is no function '{self.f_preproc}'"
            raise ValueError(f"f_preproc: {what}: give the function itself")
        least = {
            "number": 1, "repeat": 1, "min_repeat_ms": 0, "repeats_to_cooldown": 1,
            "limit_zero_time_iterations": 0, "cooldown_interval_ms": 0,
            "cache_flush_bytes": 0,
        }  # fmt: skip
        for name, low in least.items():
            if getattr(self, name) < low:
                raise ValueError(f"{name} is {getattr(self, name)}, at least {low}")

    def prepare(self, *arguments: Any) -> None:
        """Prepares each repeat."""
        if not isinstance(self.f_preproc, str):
            self.f_preproc(*arguments)


@dataclass(frozen=True)
class Lap:
    """The result of a repeat."""

    nanoseconds: int
    number: int

    @property
    def seconds(self) -> float:
        """The seconds of one call."""
        return self.nanoseconds * _NANO / self.number


def measure(
    call: Callable[..., object],
    how: Timing,
    arguments: Sequence[Any] = (),
    clock: Callable[[], int] = time.perf_counter_ns,
    sleep: Callable[[float], object] = time.sleep,
) -> BenchmarkResult:
    """Calls once unmeasured, then measures as `how` says.

    clock, sleep  nanoseconds; seconds
    """

    old, new = bytes(how.cache_flush_bytes), bytearray(how.cache_flush_bytes)

    def lap(number: int) -> int:
        new[:] = old
        start = clock()
        for _ in range(number):
            call(*arguments)
        return clock() - start

    call(*arguments)
    prepare = functools.partial(how.prepare, *arguments)
    return BenchmarkResult([x.seconds for x in laps(lap, how, prepare, sleep)])


def _nothing(*arguments: Any) -> None:
    pass


def laps(
    lap: Callable[[int], int],
    how: Timing,
    prepare: Callable[[], object] = _nothing,
    sleep: Callable[[float], object] = time.sleep,
) -> Iterator[Lap]:
    """One for each repeat; `lap` makes so many calls and says how long they took."""
    for index in range(how.repeat):
        prepare()
        yield _long_enough(lap, how)
        if how.cooldown_interval_ms and index % how.repeats_to_cooldown == 0:
            sleep(how.cooldown_interval_ms / 1000)


def _long_enough(lap: Callable[[int], int], how: Timing) -> Lap:
    number, zeros = how.number, 0
    wanted = how.min_repeat_ms * _NANO_IN_MILLI
    while True:
        spent = lap(number)
        zeros += spent == 0
        if spent >= wanted or zeros >= how.limit_zero_time_iterations:
            return Lap(spent, number)
        if spent:
            number = 1 + int(max(wanted * number / spent, number * _GROWTH))


def time_evaluator(
    call: Callable[..., object], **options: Any
) -> Callable[..., BenchmarkResult]:
    """A function that measures calls with its arguments; options as of Timing."""
    how = Timing(**options)
    return lambda *arguments: measure(call, how, arguments)
