"""A .tflite graph goes through all passes and computes the same, bit for bit."""

from __future__ import annotations

import numpy as np
import pytest

from pybuild.frontends.tflite import load
from pybuild.ir.graph import Graph
from pybuild.ops.interpret import interpret
from pybuild.passes import PassOptions, run
from pybuild.passes.legalise import set_rounding
from tests.conftest import ROOT, model_path
from tests.passes.passes_graph import inputs_of

NAMES = [f"{n}_{kind}" for n in ("ad", "kws", "ic", "vww") for kind in ("int8", "f32")]


def assert_unchanged(graph: Graph, rounding: str) -> None:
    made = run(graph, PassOptions(rounding))
    assert (made.inputs, made.outputs) == (graph.inputs, graph.outputs)
    assert len(made.nodes) <= len(graph.nodes)
    values = inputs_of(graph, 1)
    want = interpret(set_rounding(graph, rounding), values)
    have = interpret(made, values)
    shared = [n for n in made.nodes if n.output in want]
    assert len(shared) >= len(made.nodes) - 1
    for node in shared:
        all_ = want[node.output]
        left = node.attrs.get("channels", tuple(range(all_.shape[-1])))
        assert np.array_equal(have[node.output], all_[..., list(left)]), node.output


@pytest.mark.parametrize("rounding", ["litert", "tflm", "single"])
def test_digits(rounding: str) -> None:
    path = ROOT / "examples" / "digits" / "digits_int8.tflite"
    assert_unchanged(load("digits.tflite", path.read_bytes(), {}), rounding)


@pytest.mark.parametrize("name", NAMES)
def test_models(name: str) -> None:
    data = model_path(f"{name}.tflite").read_bytes()
    assert_unchanged(load(f"{name}.tflite", data, {}), "litert")
