"""time_evaluator and BenchmarkResult: the algorithm, on a clock that the test moves."""

from __future__ import annotations

import time

import pytest

from pybuild.host.timing import BenchmarkResult, Timing, measure, time_evaluator


class Clock:
    """Nanoseconds; a call takes `cost` of them, a sleep its time."""

    def __init__(self, cost: float) -> None:
        self.now, self.cost, self.calls, self.slept = 0.0, cost, 0, 0.0

    def __call__(self) -> int:
        return int(self.now)

    def call(self) -> None:
        self.calls += 1
        self.now += self.cost

    def sleep(self, seconds: float) -> None:
        self.slept += seconds


def timed(cost: float, **options: object) -> tuple[BenchmarkResult, Clock]:
    clock = Clock(cost)
    how = Timing(**options)  # type: ignore[arg-type]
    return measure(clock.call, how, (), clock, clock.sleep), clock


def test_the_result_of_four_repeats() -> None:
    found = BenchmarkResult([1, 2, 2, 5])
    facts = (found.mean, found.median, found.min, found.max, found.std)
    assert facts == (2.5, 2.0, 1.0, 5.0, 1.5)
    assert list(found.results) == [1, 2, 2, 5]
    text = "BenchmarkResult(min=1.0, mean=2.5, median=2.0, max=5.0, std=1.5, "
    assert repr(found) == text + "results=[1, 2, 2, 5])"


def test_the_table_of_a_result() -> None:
    assert str(BenchmarkResult([0.001, 0.003])) == (
        "Execution time summary:\n"
        " mean (ms)   median (ms)    max (ms)     min (ms)     std (ms)  \n"
        "   2.0000       2.0000       3.0000       1.0000       1.0000   "
        "               "
    )


def test_calls_without_a_least_time_are_one_and_number_times_repeat() -> None:
    result, clock = timed(1000, number=3, repeat=4)
    assert clock.calls == 1 + 3 * 4
    assert result.results == [1e-6] * 4


def test_a_slow_call_is_called_twice_and_a_least_time_calls_more() -> None:
    assert timed(100e6, number=1, repeat=1)[1].calls == 2
    assert timed(100e6, number=1, repeat=1, min_repeat_ms=1000)[1].calls > 10


def test_number_begins_anew_with_each_repeat() -> None:
    result, clock = timed(1e6, number=1, repeat=3, min_repeat_ms=5)
    per_repeat = (clock.calls - 1) / 3
    assert per_repeat == int(per_repeat) == 1 + 6
    assert result.results == [1e-3] * 3


def test_number_grows_by_the_ratio_at_least() -> None:
    _, clock = timed(1e6, number=10, min_repeat_ms=10.5)
    assert clock.calls == 1 + 10 + 17


def test_calls_of_no_time_end() -> None:
    result, clock = timed(0, number=1, repeat=2, min_repeat_ms=1)
    assert result.results == [0.0, 0.0] and clock.calls == 1 + 2 * 100
    few = timed(0, number=1, repeat=1, min_repeat_ms=1, limit_zero_time_iterations=3)
    assert few[1].calls == 1 + 3


@pytest.mark.parametrize(("every", "sleeps"), [(1, 4), (2, 2), (3, 2), (5, 1)])
def test_cooldown(every: int, sleeps: int) -> None:
    _, clock = timed(
        10, number=1, repeat=4, cooldown_interval_ms=500, repeats_to_cooldown=every
    )
    assert clock.slept == 0.5 * sleeps


def test_preparation_is_not_timed() -> None:
    clock = Clock(10)

    def slow() -> None:
        clock.now += 1e9

    result = measure(clock.call, Timing(number=2, repeat=2, f_preproc=slow), (), clock)
    assert result.results == [1e-8, 1e-8]


@pytest.mark.parametrize(
    ("name", "value"),
    [("number", 0), ("repeat", 0), ("min_repeat_ms", -1), ("repeats_to_cooldown", 0),
     ("cooldown_interval_ms", -1), ("limit_zero_time_iterations", -1)],
)  # fmt: skip
def test_options_out_of_range_are_named(name: str, value: int) -> None:
    with pytest.raises(ValueError, match=f"{name} is {value}"):
        Timing(**{name: value})  # type: ignore[arg-type]


def test_an_evaluator_hands_arguments_through_by_the_real_clock() -> None:
    seen = []

    def nap(seconds: float) -> None:
        seen.append(seconds)
        time.sleep(seconds)

    result = time_evaluator(nap, number=2, repeat=2)(0.002)
    assert seen == [0.002] * 5
    assert 0.002 <= result.min < 0.1
