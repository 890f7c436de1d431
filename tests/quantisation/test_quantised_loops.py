"""Recurrent layers that are quantised here: a loop of integers, one range for what is
in the same place of all its steps."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import onnx
import pytest

import pybuild
from pybuild.ops.interpret import interpret
from pybuild.quantisation.quantise import quantisable
from tests.models.matrix import example, float_model


@pytest.mark.parametrize(
    ("name", "wide"), [("lstm", False), ("gru", True), ("lstm_bidirectional", False)]
)
def test_steps_stay_one_step_and_a_loop(name: str, wide: bool, tmp_path: Path) -> None:
    """No step of float; bit for bit what numpy makes; near to the float network."""
    file, chance = tmp_path / f"{name}.onnx", np.random.default_rng(3)
    onnx.save(float_model(name), file)
    model = pybuild.load(file)
    some = [example(float_model(name), chance) for _ in range(12)]
    data = {key: np.stack([one[key] for one in some]) for key in some[0]}
    layers = sorted({n.name for n in quantisable(model.graph).nodes}) if wide else []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = pybuild.quantise(model, data, int16=layers)
    library = made.model.build()
    graph = library.plan.graph
    loops = [node for node in graph.nodes if node.op == "repeat"]
    assert len(loops) == (2 if "bidirectional" in name else 1)
    kind = "int16" if wide else "int8"
    assert all(graph.tensor(n.output).dtype.value == kind for n in loops)
    assert all(f.op == "gather" for f in made.report.floats)
    assert made.report.error < (0.005 if wide else 0.04)
    assert library.report.flash.tables < 1024
    net = library.host("llvm")
    for one in some[:4]:
        net.run(**one)
        expected = interpret(graph, one)
        for output in graph.outputs:
            np.testing.assert_array_equal(net.get_output(output), expected[output])
