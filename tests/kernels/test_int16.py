"""Sums of int16 layers: of 32 bits only where proven, scaled by all of float64."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from pybuild.dtype import Array, DType
from pybuild.errors import BuildError
from pybuild.host.trace import recorded
from pybuild.ir.graph import Graph, Node, Quant, Tensor
from pybuild.kernels.table import candidates
from pybuild.model import Model
from pybuild.ops.interpret import check_types, interpret
from pybuild.targets.target import TARGETS


def _dense(weights: Array, bias: int, scale: float, y_scale: float = 1.0) -> Graph:
    """One row of inputs, one scale; the bias in int64."""
    outputs, inputs = weights.shape
    tensors = {
        "x": Tensor("x", (1, inputs), DType.INT16, Quant((1.0,))),
        "w": Tensor("w", weights.shape, DType.INT8, Quant((scale,))),
        "b": Tensor("b", (outputs,), DType.INT64, Quant((scale,))),
        "y": Tensor("y", (1, outputs), DType.INT16, Quant((y_scale,))),
    }
    constants = {"w": weights, "b": np.full(outputs, bias, np.int64)}
    node = Node("dense", "fc", ("x", "w", "b"), ("y",))
    return Graph("fc", "fc.tflite", (node,), tensors, ("x",), ("y",), constants)


def _total(graph: Graph) -> DType:
    bias = candidates(graph.nodes[0].with_attrs(rounding="away"), graph)[0].constants[1]
    return DType.of(bias.array)


def test_32_bits_only_where_every_sum_fits() -> None:
    """-2^15 * 127 * 515 and a bias of the rest: one less does not fit."""
    weights = np.full((1, 515), 127, np.int8)
    rest = 515 * 127 * 32768 - (2**31 - 1)
    assert _total(_dense(weights, rest, 2**-16)) is DType.INT32
    assert _total(_dense(weights, rest - 1, 2**-16)) is DType.INT64


@pytest.mark.parametrize("bias", [0, 4321, 2**31 + 12345, -(2**33)])
def test_rounds_as_float64(bias: int) -> None:
    """Sums on both sides of ties, where the last bits of a float64 scale decide."""
    y_scale = float(np.float32(1.3))
    w_scale = float(np.float32(27000 / max(abs(bias), 2**22)))
    graph = _dense(np.asarray([[1, 127], [1, 127]], np.int8), bias, w_scale, y_scale)
    scale = w_scale / y_scale
    net = Model("fc.tflite", graph, "litert", "0" * 64).build(None).host("llvm")
    first = round((bias - 2**22) * scale)
    tried = 0
    steps = np.linspace(first, round((bias + 2**22) * scale), 40).astype(int)
    for wanted in steps[1:-1]:
        for sum_ in int(np.ceil((wanted + 0.5) / scale)) + np.arange(-1, 2):
            high = round((sum_ - bias) / 127)
            x = np.asarray([[sum_ - bias - 127 * high, high]], np.int64)
            if abs(high) > 32767:
                continue
            tried += 1
            real = sum_ * np.float64(scale)
            whole = np.trunc(real)
            whole += np.sign(real) * (abs(real - whole) >= 0.5)
            expected = [[np.clip(whole, -32768, 32767)] * 2]
            sample = {"x": x.astype(np.int16)}
            np.testing.assert_array_equal(recorded(net, sample)["y"], expected)
            made = interpret(_away(graph), sample)["y"]
            np.testing.assert_array_equal(made, expected)
    assert tried > 90


def _away(graph: Graph) -> Graph:
    (node,) = graph.nodes
    made = node.with_attrs(rounding="away")
    return replace(graph, nodes=(made,))


def test_scales_too_far_apart() -> None:
    graph = _dense(np.full((1, 24), 127, np.int8), 0, 100.0)
    with pytest.raises(BuildError, match="too far apart for 32 bits"):
        candidates(graph.nodes[0], graph)


def test_int16_with_a_zero_point() -> None:
    graph = _dense(np.full((1, 24), 127, np.int8), 0, 1.0)
    x = Tensor("x", (1, 24), DType.INT16, Quant((1.0,), (3,)))
    changed = replace(graph, tensors={**graph.tensors, "x": x})
    (problem,) = check_types(changed)
    assert problem.what == "'x' is int16 with a zero point"


def test_pairs_of_products_are_the_cheapest_on_a_core_that_has_them() -> None:
    """But not for sums of 64 bits."""
    for inputs, name in ((24, "conv2d_s16_dsp"), (600, "conv2d_s16_s64")):
        graph = _dense(np.full((4, inputs), 127, np.int8), 0, 2**-20)
        found = candidates(graph.nodes[0], graph, TARGETS["cortex-m4"])
        assert min(found, key=lambda c: c.cost).func.name.startswith(name)
