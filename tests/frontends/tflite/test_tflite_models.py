"""The real .tflite models: numpy against LiteRT, every intermediate."""

from __future__ import annotations

import numpy as np
import pytest

from pybuild.dtype import Array, DType
from pybuild.frontends.tflite import load
from pybuild.ir.graph import Graph
from pybuild.ops.hybrid import SUMS
from pybuild.ops.interpret import check_types, interpret, operator_of
from pybuild.verify.samples import samples
from tests.conftest import model_path
from tests.ops.cases import with_rounding
from tests.ops.litert import run_litert


def _values(graph: Graph, count: int) -> list[dict[str, Array]]:
    return [dict(s.inputs) for s in samples(graph, count)]


@pytest.mark.parametrize(
    ("name", "count"), [("ad", 20), ("kws", 20), ("vww", 8), ("ic", 8)]
)
def test_int8_model_is_exact(name: str, count: int) -> None:
    data = model_path(f"{name}_int8.tflite").read_bytes()
    graph = with_rounding(load(f"{name}_int8.tflite", data, {}), "litert")
    assert check_types(graph) == []
    inputs = _values(graph, count)
    seen: dict[str, set[bytes]] = {}
    for given, theirs in zip(inputs, run_litert(data, inputs), strict=True):
        ours = interpret(graph, given)
        for node in graph.nodes:
            name = node.output
            np.testing.assert_array_equal(ours[name], theirs[name], err_msg=name)
            seen.setdefault(name, set()).add(ours[name].tobytes())
    # a comparison of values that never change would prove nothing
    assert all(len(values) > 1 for values in seen.values())


@pytest.mark.parametrize("name", ["ad", "vww", "ic"])
def test_float_model_is_close(name: str) -> None:
    data = model_path(f"{name}_f32.tflite").read_bytes()
    graph = load(f"{name}_f32.tflite", data, {})
    inputs = _values(graph, 3)
    for given, theirs in zip(inputs, run_litert(data, inputs), strict=True):
        ours = interpret(graph, given)
        for node in graph.nodes:
            reference = theirs[node.output]
            span = max(float(np.abs(reference).max()), 1e-6)
            error = float(np.abs(ours[node.output] - reference).max())
            assert error <= 1e-5 * span, node.name


def test_layers_of_the_hybrid_model_equal_litert() -> None:
    """Given what LiteRT has before each layer of int8 weights."""
    data = model_path("kws_f32.tflite").read_bytes()
    graph = load("kws_f32.tflite", data, {})
    inputs, seen = _values(graph, 2), 0
    for given, theirs in zip(inputs, run_litert(data, inputs), strict=True):
        values = {**theirs, **given}
        for node in graph.nodes:
            if node.op not in ("quantize_dynamic", "scale_sums", *SUMS):
                continue
            names = [n for n in node.inputs if n]
            reads = {n: values.get(n, graph.constants.get(n)) for n in names}
            given_to = [reads.get(n) for n in node.inputs]
            made = operator_of(node, graph).reference(node, graph, given_to)
            values.update(zip(node.outputs, made, strict=True))
            if node.op == "scale_sums":
                np.testing.assert_array_equal(made[0], theirs[node.output])
                seen += 1
    assert seen == 2 * sum(n.op == "scale_sums" for n in graph.nodes) > 0


def test_hybrid_model_is_dequantised_by_wish() -> None:
    """LiteRT quantises the activations of this file on the fly: near, not equal."""
    data = model_path("kws_f32.tflite").read_bytes()
    graph = load("kws_f32.tflite", data, {}, hybrid="float")
    assert {t.dtype for t in graph.tensors.values()} == {DType.FLOAT32}
    inputs = _values(graph, 3)
    for given, theirs in zip(inputs, run_litert(data, inputs), strict=True):
        for name in graph.outputs:
            span = float(np.abs(theirs[name]).max())
            error = np.abs(interpret(graph, given)[name] - theirs[name]).max()
            assert error <= 0.05 * span


def test_names_and_batch_survive() -> None:
    data = model_path("kws_int8.tflite").read_bytes()
    graph = load("kws_int8.tflite", data, {})
    assert graph.name == "kws_int8"
    assert graph.inputs == ("input_1",)
    assert graph.outputs == ("Identity",)
    assert graph.tensor("input_1").shape == (1, 49, 10, 1)
    assert graph.nodes[-1].name == "Identity"


def test_batch_of_the_users_choice() -> None:
    data = model_path("kws_int8.tflite").read_bytes()
    one = with_rounding(load("kws_int8.tflite", data, {}), "litert")
    three = with_rounding(load("kws_int8.tflite", data, {"input_1": 3}), "litert")
    assert three.tensor("Identity").shape == (3, 12)
    rng = np.random.default_rng(0)
    x = rng.integers(-128, 128, (3, 49, 10, 1)).astype(np.int8)
    together = interpret(three, {"input_1": x})["Identity"]
    for i in range(3):
        alone = interpret(one, {"input_1": x[i : i + 1]})["Identity"]
        np.testing.assert_array_equal(together[i : i + 1], alone)
