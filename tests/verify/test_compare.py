"""Limits, tallies and samples of `check`, on graphs made by hand."""

from __future__ import annotations

import json

import numpy as np
import pytest

from pybuild.dtype import DType
from pybuild.ir.graph import Graph, Node, Quant, Tensor
from pybuild.verify.compare import Judge, Limits, Tally, distance, ranges
from pybuild.verify.judgement import values_of
from pybuild.verify.layout import as_ours, channels_first, channels_last, flattened
from pybuild.verify.samples import KINDS, VARIED, sample, samples

ACT = Quant((0.5,), (-3,))


def graph(outputs: tuple[str, ...] = ("x", "f", "y")) -> Graph:
    tensors = {
        "x": Tensor("x", (1, 4, 4, 2), DType.INT8, ACT),
        "f": Tensor("f", (1, 4, 4, 2), DType.FLOAT32),
        "y": Tensor("y", (1, 4, 4, 2), DType.FLOAT32),
    }
    nodes = (
        Node("dequantize", "to_float", ("x",), ("f",)),
        Node("clip", "relu", ("f",), ("y",), {"clamp": (0.0, None)}),
    )
    return Graph("g", "g.tflite", nodes, tensors, ("x",), outputs)


def tally(limits: Limits, name: str, have: list[float], want: list[float]) -> Tally:
    kind = np.int8 if name == "x" else np.float32
    a, b = np.array(have, kind), np.array(want, kind)
    model = graph()
    judge = Judge(model, limits, ranges(model, [{name: b}]))
    return judge.compare({name: a}, {name: b})


def test_integers_must_be_equal() -> None:
    made = tally(Limits(), "x", [1, 2, 3], [1, 2, 5])
    assert (made.mismatches, made.max_abs, made.first_layer) == (1, 2.0, "x")
    assert not made.good
    assert tally(Limits(), "x", [1, 2, 5], [1, 2, 5]).good


def test_one_step_for_an_inexact_reference() -> None:
    want = [0.0] * 2000
    near = tally(Limits(steps=1), "x", [1.0, *want[1:]], want)
    assert (near.mismatches, near.unequal, near.good) == (0, 1, True)
    often = tally(Limits(steps=1), "x", [1.0] * 3 + want[3:], want)
    assert (often.mismatches, often.unequal, often.good) == (0, 3, False)
    far = tally(Limits(steps=1), "x", [2.0, *want[1:]], want)
    assert (far.mismatches, far.good) == (1, False)


def test_in_between_only_the_share_counts() -> None:
    want = {"x": np.zeros(2000, np.int8)}
    have = {"x": want["x"].copy()}
    have["x"][:2] = 3
    judge = Judge(graph(outputs=("y",)), Limits(steps=1), {})
    assert judge.compare(have, want).good
    have["x"][:3] = 3
    assert not judge.compare(have, want).good


def test_a_dequantised_output_counts_in_steps() -> None:
    """Its step is 0.5: the scale of what it was made from."""
    want = [0.0, 4.0]
    assert tally(Limits(steps=1), "f", [0.5, 4.0], want).mismatches == 0
    assert tally(Limits(steps=1), "f", [1.0, 4.0], want).mismatches == 1


@pytest.mark.parametrize(("error", "bad"), [(0.9e-4, 0), (1.2e-4, 1)])
def test_floats_by_the_range_of_the_tensor(error: float, bad: int) -> None:
    made = tally(Limits(), "y", [0.0 + error, 10.0], [0.0, 10.0])
    assert made.mismatches == bad
    assert made.first_layer == ("relu" if bad else None)


def test_the_range_of_a_probability_is_1() -> None:
    tensors = {n: Tensor(n, (2,), DType.FLOAT32) for n in ("x", "y")}
    node = Node("softmax", "soft", ("x",), ("y",), {"axis": 0, "beta": 1.0})
    soft = Graph("s", "s.onnx", (node,), tensors, ("x",), ("y",))
    value = np.array([0.5, 0.5001], np.float32)
    assert ranges(soft, [{"x": value, "y": value}])["y"] == 1.0
    assert ranges(soft, [{"x": value}])["x"] == pytest.approx(1e-4, rel=0.01)


def test_not_a_number_is_a_mismatch_and_valid_json() -> None:
    made = tally(Limits(), "y", [float("nan"), 1.0], [0.0, 1.0])
    assert made.mismatches == 1
    assert json.dumps(made.to_json(), allow_nan=False)
    assert made.to_json()["max_abs"] is None


def test_a_sum_keeps_the_first_bad_layer() -> None:
    made = Tally() + Tally(1, 2.0, "a", 1, 4) + Tally(2, 1.0, "b", 3, 4)
    assert made == Tally(3, 2.0, "a", 4, 8)


def test_distance_of_equal_infinities_is_zero() -> None:
    a = np.array([np.inf, np.nan, 1.0], np.float32)
    assert distance(a, a).tolist() == [0.0, 0.0, 0.0]


def test_samples_reach_the_corners_and_repeat() -> None:
    one, two = list(samples(graph(), 9, 3)), list(samples(graph(), 9, 3))
    assert [s.kind for s in one[: len(KINDS)]] == list(KINDS)
    for a, b in zip(one, two, strict=True):
        assert np.array_equal(a.inputs["x"], b.inputs["x"])
        assert a.inputs["x"].dtype == np.int8
    by_kind = {s.kind: s.inputs["x"] for s in one}
    assert set(by_kind["lowest"].flat) == {-128}
    assert set(by_kind["highest"].flat) == {127}
    assert set(by_kind["zero"].flat) == {-3}
    assert {by_kind["stripes"].min(), by_kind["stripes"].max()} == {-128, 127}
    other = next(iter(samples(graph(), 1, 4))).inputs["x"]
    assert not np.array_equal(other, one[0].inputs["x"])


def test_samples_of_numbers_of_rows_are_rows() -> None:
    """As Keras embeds words: numbers below 0 count from the end."""
    types = {"x": DType.FLOAT32, "i": DType.INT32, "table": DType.FLOAT32}
    tensors = {
        name: Tensor(name, (7, 2) if name == "table" else (2, 3), dtype)
        for name, dtype in types.items()
    }
    tensors |= {"less": Tensor("less", (2, 3), DType.BOOL)}
    names = ("end", "at", "size", "zero")
    tensors |= {name: Tensor(name, (2, 3), DType.INT32) for name in names}
    tensors |= {"y": Tensor("y", (2, 3, 2), DType.FLOAT32)}
    nodes = (
        Node("map", "c", ("x",), ("i",), {"fn": "cast", "to": "int32"}),
        Node("map", "l", ("i", "zero"), ("less",), {"fn": "less"}),
        Node("map", "a", ("i", "size"), ("end",), {"fn": "add"}),
        Node("map", "w", ("less", "end", "i"), ("at",), {"fn": "where"}),
        Node("gather", "g", ("table", "at"), ("y",), {"axis": 0}),
    )
    words = Graph("n", "n.tflite", nodes, tensors, ("x",), ("y",))
    seen = [s.inputs["x"] for s in samples(words, 9)]
    assert (np.min(seen), np.max(seen)) == (0, 6)


def test_layouts_there_and_back() -> None:
    """Told by the operators, not by the shape: here all three sizes are equal."""
    shape = (1, 4, 4, 4)
    tensors = {n: Tensor(n, shape, DType.INT8, ACT) for n in "abcdw"}
    nodes = (
        Node("transpose", "t", ("a",), ("b",), {"perm": (0, 2, 3, 1)}),
        Node("max_pool2d", "p", ("b",), ("c",)),
        Node("clip", "r", ("c",), ("d",)),
    )
    model = Graph("n", "n.onnx", nodes, tensors, ("a",), ("d",))
    last = channels_last(model)
    assert last == {"b", "c", "d"}
    ours = np.arange(64, dtype=np.uint8).reshape(shape)
    theirs = channels_first(ours)
    assert theirs[0, 1, 2, 3] == ours[0, 2, 3, 1]
    back = as_ours(theirs, model, "d", last)
    assert back.dtype == np.int8
    assert np.array_equal(back, (ours.astype(int) - 128).astype(np.int8))
    kept = as_ours(theirs, model, "a", last).astype(int)
    assert np.array_equal(kept + 128, theirs)


def test_channels_that_a_build_dropped_are_taken_out() -> None:
    tensors = {n: Tensor(n, (1, 4, 4, 2), DType.INT8, ACT) for n in "ab"}
    node = Node("max_pool2d", "p", ("a",), ("b",), {"channels": (1, 3)})
    model = Graph("n", "n.onnx", (node,), tensors, ("a",), ("b",))
    ours = np.arange(64, dtype=np.int8).reshape(1, 4, 4, 4)
    value = as_ours(channels_first(ours), model, "b", channels_last(model))
    found = values_of(model, {"b": value}, ["b"])
    assert np.array_equal(found["b"], ours[..., [1, 3]])


def test_a_flatten_of_channels_last_is_in_no_order_of_the_file() -> None:
    tensors = {
        "a": Tensor("a", (1, 4, 4, 4), DType.FLOAT32),
        "p": Tensor("p", (1, 4, 4, 4), DType.FLOAT32),
        "f": Tensor("f", (1, 64), DType.FLOAT32),
        "r": Tensor("r", (1, 64), DType.FLOAT32),
        "w": Tensor("w", (5, 64), DType.FLOAT32),
        "y": Tensor("y", (1, 5), DType.FLOAT32),
    }
    nodes = (
        Node("max_pool2d", "pool", ("a",), ("p",)),
        Node("reshape", "flat", ("p",), ("f",)),
        Node("clip", "relu", ("f",), ("r",)),
        Node("dense", "dense", ("r", "w", ""), ("y",)),
    )
    model = Graph("n", "n.onnx", nodes, tensors, ("a",), ("y",))
    assert flattened(model, channels_last(model)) == {"f", "r"}


@pytest.mark.parametrize("kind", sorted({*KINDS, *VARIED}))
@pytest.mark.parametrize("dtype", [DType.FLOAT32, DType.INT8])
def test_a_sample_of_rank_0_is_an_array(kind: str, dtype: DType) -> None:
    """Reference interpreters refuse numpy's scalars."""
    quant = Quant((0.1,), (3,)) if dtype is DType.INT8 else None
    graph = Graph(
        "one", "one", (), {"x": Tensor("x", (), dtype, quant)}, ("x",), (), {}
    )
    value = sample(graph, kind, (0, 0)).inputs["x"]
    assert isinstance(value, np.ndarray)
    assert (value.shape, value.dtype) == ((), dtype.numpy)
