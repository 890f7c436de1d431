"""The parts of quantising: equalisation, bias correction, ranges, samples together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

import pybuild
from pybuild.dtype import DType
from pybuild.ir.graph import Graph
from pybuild.ops.interpret import interpret
from pybuild.passes.edit import Edit
from pybuild.quantisation.equalise import equalised, groups
from pybuild.quantisation.execute import execution
from pybuild.quantisation.fit import fitted
from pybuild.quantisation.products import gram, product, triangle
from pybuild.quantisation.ranges import BINS, Calibration, headroom, observe, ranges
from pybuild.quantisation.rewrite import CHANNEL_AXIS, least_scales
from pybuild.quantisation.samples import Samples, read_samples
from tests.graphs.quantise import normal, report_of, samples_of, small


def test_equalisation_computes_the_same() -> None:
    graph = small(np.logspace(-1.5, 1.5, 6))
    data = samples_of(graph)
    (found,) = groups(graph)
    assert [n.name for n in (*found.makers, *found.readers)] == ["conv", "dense"]
    seen = observe(execution(graph, data), data, ["conv", "pool", "flat"])
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


def residual(clamp: tuple[Any, Any] = (0.0, None)) -> Graph:
    """Two layers whose sum two others read, one of them depthwise."""
    make = pybuild.GraphBuilder("residual")
    scale = np.logspace(-1, 1, 6, dtype=np.float32)
    x = make.input("x", (1, 5, 5, 6))
    w, v = (normal((6, 1, 1, 6), i) * scale[:, None, None, None] for i in (0, 1))
    one = make.op("conv2d", x, make.constant("w", w), name="one", clamp=(0.0, None))
    two = make.op("conv2d", one, make.constant("v", v / scale), name="two")
    both = make.op("add", one, two, name="both", clamp=clamp)
    d = normal((3, 3, 6), 2) / scale
    left = make.op("depthwise_conv2d", both, make.constant("d", d), name="left")
    u = normal((4, 1, 1, 6), 3) / scale
    right = make.op("conv2d", both, make.constant("u", u), name="right")
    make.output(make.op("copy", left), "y")
    make.output(right, "z")
    return make.build()


def test_equalisation_over_a_residual_connection() -> None:
    """What is added up has one factor, in all layers around."""
    graph = residual()
    (found,) = groups(graph)
    assert [n.name for n in found.makers] == ["one", "two"]
    assert [n.name for n in found.readers] == ["two", "left", "right"]
    data = samples_of(graph)
    names = ["one", "two", "both"]
    seen = observe(execution(graph, data), data, names)
    other = equalised(graph, seen)
    for x in data.inputs["x"][:3]:
        before, after = (interpret(g, {"x": x}) for g in (graph, other))
        for name in ("y", "z"):
            close = np.abs(before[name] - after[name]).max()
            assert close < 1e-5 * np.abs(before[name]).max()
    changed = observe(execution(other, data), data, names)["both"].channels
    spread = seen["both"].channels.max() / seen["both"].channels.min()
    assert changed.max() / changed.min() < spread / 4
    plain, better = (report_of(graph, equalise=e) for e in (False, True))
    assert better.equalised == 1 and better.error < plain.error / 2
    assert groups(residual((0.0, 6.0))) == []


def layers() -> Graph:
    """Each kind of layer with weights, reading the same."""
    make = pybuild.GraphBuilder("layers")
    x = make.input("x", (1, 6, 6, 4))
    weights = {
        "plain": ("conv2d", (3, 3, 2, 4), {"strides": (2, 1)}),
        "grouped": ("conv2d", (6, 3, 3, 2), {"groups": 2, "pads": (1, 0, 1, 0)}),
        "depthwise": ("depthwise_conv2d", (3, 3, 8), {"dilations": (2, 1)}),
        "dense": ("dense", (5, 144), {}),
    }
    for seed, (name, (op, shape, attrs)) in enumerate(weights.items()):
        read = make.op("reshape", x, shape=(1, 144)) if op == "dense" else x
        w = make.constant(f"{name}_w", normal(shape, seed))
        make.output(make.op(op, read, w, name=name, **attrs), f"{name}_y")
    return make.build()


def test_weights_fitted_to_the_samples() -> None:
    """Where inputs go together, errors of weights cancel, of later samples too."""
    graph, rng = layers(), np.random.default_rng(5)

    def smooth(count: int) -> Samples:
        x = rng.standard_normal((count, 1, 1, 1, 4))
        x = x + 0.05 * rng.standard_normal((count, 1, 6, 6, 4))
        return read_samples(graph, {"x": x}, "data")

    data, later = smooth(40), smooth(40)
    made = fitted(execution(graph, data), data)
    assert [name.removesuffix("_y") for name in made] == [
        "plain", "grouped", "depthwise", "dense"
    ]  # fmt: skip
    for node in graph.nodes:
        if node.output not in made:
            continue
        w = graph.constants[node.inputs[1]].astype(np.float64)
        axis = CHANNEL_AXIS[node.op]
        scale = least_scales(w, axis).reshape(
            [-1 if i == axis else 1 for i in range(w.ndim)]
        )
        errors = []
        for steps in (np.rint(w / scale), made[node.output].steps):
            edit = Edit(graph)
            edit.nodes = list(graph.nodes)
            edit.constants[node.inputs[1]] = (steps * scale - w).astype(np.float32)
            runs = execution(edit.done(), later).over(later)
            errors.append(sum(np.square(v[node.output]).sum() for v in runs))
        assert errors[1] < 0.6 * errors[0], node.name


def test_sums_are_the_same_in_any_order() -> None:
    """What a core's BLAS adds first changes no bit; of plain products it does."""
    rng = np.random.default_rng(3)
    a, b = rng.standard_normal((2, 2, 500, 70)) * np.logspace(-3, 3, 70)
    order = rng.permutation(500)
    across = a.transpose(0, 2, 1).copy()
    plain = [across[..., o] @ b[:, o] for o in (slice(None), order)]
    assert not np.array_equal(*plain)
    made = [product(across[..., o], b[:, o]) for o in (slice(None), order)]
    assert np.array_equal(*made)
    assert np.abs(made[0] - plain[0]).max() < 1e-12 * np.abs(plain[0]).max()
    squares = [gram(a[:, o]) for o in (slice(None), order)]
    assert np.array_equal(*squares)
    close = np.abs(squares[0] - across @ a).max((1, 2))
    assert (close < 1e-5 * squares[0].max((1, 2))).all()


@pytest.mark.parametrize("size", [1, 9, 64, 65, 200])
def test_triangle(size: int) -> None:
    rows = np.random.default_rng(size).standard_normal((3, size + 20, size))
    square = gram(rows)
    made = triangle(square)
    assert np.array_equal(made, np.triu(made))
    back = made @ made.transpose(0, 2, 1)
    assert np.abs(back - square).max() < 1e-10 * square.max()


def test_what_is_fitted() -> None:
    """Not weights that two layers read, nor rows beyond the limit."""
    make = pybuild.GraphBuilder("shared")
    x, wide = make.input("x", (1, 4)), make.input("wide", (1, 2305))
    w, v = make.constant("w", normal((4, 4))), make.constant("v", normal((3, 2305)))
    first = make.op("dense", x, w, name="first")
    make.output(make.op("dense", first, w, name="second"))
    make.output(make.op("dense", wide, v, name="long"))
    graph = make.build()
    data = samples_of(graph, 3)
    assert fitted(execution(graph, data), data) == {}
    report = report_of(graph, 3)
    assert not report.fitted and report.error < 0.02


def test_headroom() -> None:
    """Of an exponential tail, about the scale by which it falls."""
    rng = np.random.default_rng(0)
    found = [headroom(rng.exponential(2.0, 500)) for _ in range(20)]
    assert abs(np.mean(found) - 2) < 0.2
    assert headroom(np.float64([5, 1, 2])) == 3
    assert headroom(np.float64([5] * 2 + [1] * 18)) == headroom(np.float64([7])) == 0
    graph = small()
    data = samples_of(graph)
    run = execution(graph, data)
    seen = observe(run, data, ["x", "conv"])
    found_ranges = ranges(run, data, seen, Calibration())
    for name, each in seen.items():
        low, high = found_ranges[name]
        assert high == each.highs.max() + headroom(each.highs) > each.highs.max()
        assert low == (each.lows.min() - headroom(-each.lows) if name == "x" else 0)


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
    assert groups(make.build()) == []


def test_biases_take_the_mean_error_back() -> None:
    """Inputs that are all positive: the error of a weight is one of the mean."""
    graph = small()
    data = {"x": np.abs(samples_of(graph).inputs["x"])}
    errors = []
    for correct in (False, True):
        made = pybuild.quantise(
            graph, data, bias_correction=correct, equalise=False, fit_weights=False,
            boundary="int8",
        )  # fmt: skip
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
    outlier = np.append(normal((100_000,)), np.float32(80))
    low, high = observed(outlier, "entropy", 50)
    assert 3 < high < 12 and low == outlier.min()
    heavy = normal((400_000,)) ** 7
    low, high = observed(heavy, "entropy", 50)
    top = max(-low, high)
    assert top < 0.9 * np.abs(heavy).max() and (np.abs(heavy) > top).sum() <= 4
    even = np.linspace(0, 1, 40000, dtype=np.float32)
    assert observed(even, "entropy", 50) == (0, 1)
    assert observed(np.zeros(9, np.float32), "entropy", 50) == (0, 0)


def test_samples_of_integers() -> None:
    """As any type, but only those that the input's type has."""
    make = pybuild.GraphBuilder("ids")
    make.output(make.op("copy", make.input("ids", (1, 2), DType.INT8)), "y")
    graph = make.build()
    data = np.float64([[[1, -128]], [[127, 0]]])
    assert np.array_equal(read_samples(graph, {"ids": data}, "").inputs["ids"], data)
    for wrong in (128, 0.5):
        data[1, 0, 1] = wrong
        with pytest.raises(pybuild.BuildError) as error:
            read_samples(graph, {"ids": data}, "data")
        what = "data: 'ids' holds 1 values that are outside the int8 range"
        assert str(error.value) == f"{what}. Hint: the first is in sample 1"


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
