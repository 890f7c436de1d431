"""The parts of quantising: equalisation, bias correction, ranges, samples together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

import pybuild
from pybuild.ops.interpret import interpret
from pybuild.quantisation.equalise import equalised, pairs
from pybuild.quantisation.execute import execution
from pybuild.quantisation.ranges import BINS, Calibration, observe, ranges
from pybuild.quantisation.samples import read_samples
from tests.quantise_graphs import normal, report_of, samples_of, small


def test_equalisation_computes_the_same() -> None:
    graph = small(np.logspace(-1.5, 1.5, 6))
    data = samples_of(graph)
    found = pairs(graph)
    assert [(p.maker.name, p.reader.name) for p in found] == [("conv", "dense")]
    seen = observe(execution(graph, data), data, ["conv"])
    other = equalised(graph, seen)
    for x in data.inputs["x"][:3]:
        before, after = (interpret(g, {"x": x})["y"] for g in (graph, other))
        assert np.abs(before - after).max() < 1e-5 * np.abs(before).max()
    changed = observe(execution(other, data), data, ["conv"])["conv"].channels
    spread = seen["conv"].channels.max() / seen["conv"].channels.min()
    assert spread > 500 and changed.max() / changed.min() < 3
    plain, better = (report_of(graph, equalise=e) for e in (False, True))
    assert (plain.equalised, better.equalised) == (0, 1)
    assert better.error < plain.error / 4


@pytest.mark.parametrize(
    "change",
    [
        {"clamp": (0.0, 6.0)},  # a factor would move its upper end
        {"output": True},  # a user sees it
        {"twice": True},  # another reads it
    ],
)
def test_what_cannot_be_equalised(change: Mapping[str, Any]) -> None:
    make = pybuild.GraphBuilder("fixed")
    x = make.input("x", (1, 8))
    clamp = change.get("clamp", (0.0, None))
    w, v = (make.constant(n, normal((8, 8), i)) for i, n in enumerate("wv"))
    first = make.op("dense", x, w, name="first", clamp=clamp)
    last = make.op("dense", first, v, name="last")
    if "twice" in change:
        last = make.op("add", last, first)
    if "output" in change:
        make.output(first, "first_out")
    make.output(last, "y")
    assert len(pairs(make.build())) == 0


def test_biases_take_the_mean_error_back() -> None:
    """Inputs that are all positive: the error of a weight is one of the mean."""
    graph = small()
    data = {"x": np.abs(samples_of(graph).inputs["x"])}
    errors = []
    for correct in (False, True):
        made = pybuild.quantise(
            graph, data, bias_correction=correct, equalise=False, boundary="int8"
        )
        assert made.report.bias_corrected == correct
        errors.append(made.report.error)
    assert errors[1] < 0.9 * errors[0]


def observed(values: np.ndarray, method: str, percentile: float) -> tuple[float, float]:
    make = pybuild.GraphBuilder("line")
    make.output(make.op("copy", make.input("x", (1, values.size))), "y")
    graph = make.build()
    data = read_samples(graph, {"x": values.reshape(1, 1, -1)}, "data")
    run = execution(graph, data)
    seen = observe(run, data, ["x"])
    return ranges(run, data, seen, Calibration(method, percentile))["x"]


def test_ranges() -> None:
    values = np.arange(-1000, 9001, dtype=np.float32)
    assert observed(values, "minmax", 50) == (-1000, 9000)
    low, high = observed(values, "percentile", 90)
    assert low == -1000 and abs(high - 8000) < 2 * 9000 / BINS
    assert observed(values[1001:], "minmax", 50) == (0, 9000)  # zero is in all
    outlier = np.append(normal((40000,)), np.float32(80))
    low, high = observed(outlier, "entropy", 50)
    assert 3 < high < 12 and low == outlier.min()
    even = np.linspace(0, 1, 40000, dtype=np.float32)
    assert observed(even, "entropy", 50) == (0, 1)
    assert observed(np.zeros(9, np.float32), "entropy", 50) == (0, 0)


def test_samples_together_or_alone() -> None:
    """What goes over the batch is of each sample, whatever is computed at once."""
    for op, attrs in (
        ("mean", {"axes": (0,), "keepdims": True}),
        ("softmax", {"axis": 0, "beta": 1.0}),
    ):
        make = pybuild.GraphBuilder("batch")
        x = make.input("x", (1, 5))
        make.output(make.op("add", make.op(op, x, **attrs), x), "y")
        graph = make.build()
        data = samples_of(graph, 7)
        run = execution(graph, data)
        assert not run.together
        made = np.concatenate([values["y"] for values in run.over(data)])
        x = data.inputs["x"]
        assert np.array_equal(made, x + (x if op == "mean" else 1))
    assert execution(small(), samples_of(small(), 7)).together
