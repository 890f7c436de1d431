"""What chooses or repeats values stays int8 between layers that are quantised here: a
maximum of an axis (CBAM, PointNet), a copy as `expand_as` makes it (ECA)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import pybuild
from pybuild.dtype import DType
from pybuild.ops.interpret import interpret
from tests.frontends.doors.layers import numbers
from tests.frontends.doors.writers import Onnx


def largest(o: Onnx, x: str) -> str:
    """Attention of places: the largest of each pixel's channels as a gate."""
    gate = o.node("ReduceMax", [x, o.plain(np.asarray([1]))], keepdims=1)
    return o.node("Mul", [x, o.node("Sigmoid", [gate])])


def repeated(o: Onnx, x: str) -> str:
    """Attention of channels, repeated for each pixel before it is multiplied."""
    gate = o.node("Sigmoid", [o.node("GlobalAveragePool", [x])])
    wide = o.node("Expand", [gate, o.plain(np.asarray([1, 8, 6, 6]))])
    return o.node("Mul", [x, wide])


def masked(o: Onnx, x: str) -> str:
    """What it may choose is not finite, and has no scale."""
    least = o.plain(np.full((), -np.inf, np.float32))
    return o.node("Max", [o.node("Tanh", [x]), least])


@pytest.mark.parametrize("made", [largest, repeated, masked])
def test_moved_values_stay_bytes(made: Callable[[Onnx, str], str]) -> None:
    o = Onnx(int8=False)
    first = o.weighted(numbers(8, 3, 1, 1), 0, numbers(8))
    x = o.node("Relu", [o.node("Conv", [o.input((1, 6, 6, 3)), *first])])
    last = o.weighted(numbers(4, 8, 1, 1), 0, numbers(4))
    model = pybuild.load(o.file(o.node("Conv", [made(o, x), *last])))
    shape = (16, 1, 3, 6, 6)
    some = np.random.default_rng(945).normal(0, 1, shape).astype(np.float32)
    whole = pybuild.quantise(model, {"x0": some}).model.lower()
    inner = [n for n in whole.nodes if n.op not in ("quantize", "dequantize")]
    floats = {n.op for n in inner if whole.tensor(n.output).dtype is DType.FLOAT32}
    floats -= {"transpose"}  # of the output
    assert floats == set()
    real = model.lower()
    (y,) = whole.outputs
    for given in some[:4]:
        want = interpret(real, {"x0": given})[y]
        found = interpret(whole, {"x0": given})[y]
        assert np.abs(found - want).max() < 0.03 * np.ptp(want)
