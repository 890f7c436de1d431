"""Every operator case: our numpy meaning against LiteRT's reference kernels."""

from __future__ import annotations

import numpy as np
import pytest

from pybuild.dtype import Array
from pybuild.frontends.tflite import load
from pybuild.ops.interpret import check_types, interpret
from tests.ops.cases import Case, cases, with_rounding
from tests.ops.litert import run_litert
from tests.ops.tflite_writer import to_tflite

_CASES = [c for c in cases() if c.in_litert]


@pytest.mark.parametrize("case", _CASES, ids=lambda c: c.name)
def test_numpy_equals_litert(case: Case) -> None:
    graph = case.graph("litert")
    assert check_types(graph) == []
    samples = [case.inputs(seed) for seed in range(12)]
    data = to_tflite(graph)
    loaded = with_rounding(load("one.tflite", data, {}), "litert")
    for inputs, theirs in zip(samples, run_litert(data, samples), strict=True):
        for ours in (interpret(graph, inputs), interpret(loaded, inputs)):
            _compare(ours["y"], theirs["y"])


def _compare(ours: Array, theirs: Array) -> None:
    assert ours.dtype == theirs.dtype
    assert ours.shape == theirs.shape
    if ours.dtype != np.float32:
        np.testing.assert_array_equal(ours, theirs)
        return
    span = max(float(np.abs(theirs).max()), 1e-6)
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-5 * span)
