"""Every rounding rule on every int8 case: near the real result, and within int32."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from pybuild.dtype import Array, DType
from pybuild.ir.graph import Graph, Tensor
from pybuild.ops.conv import conv_parameters
from pybuild.ops.eltwise import add_parameters
from pybuild.ops.fixed_point.quant import accumulator_bound, real
from pybuild.ops.interpret import interpret
from pybuild.ops.softmax import softmax_parameters
from tests.ops.cases import ROUNDINGS, Case, cases

# a resized tensor has no rule of rounding but one; of real numbers it is not made so
_OTHERS = ("dequantize", "resize_bilinear")
_CASES = [c for c in cases() if c.dtype is DType.INT8 and c.op not in _OTHERS]
_INT32 = 1 << 31


def _floats(graph: Graph) -> Graph:
    """The same graph on real numbers."""
    tensors = {n: Tensor(n, t.shape, DType.FLOAT32) for n, t in graph.tensors.items()}
    reals = {
        n: real(v, graph.tensor(n)).astype(np.float32)
        for n, v in graph.constants.items()
    }
    return replace(graph, tensors=tensors, constants=reals)


def _exact(graph: Graph, inputs: dict[str, Array]) -> Array:
    """The result of real numbers, in steps of the output, unrounded."""
    x = {n: real(v, graph.tensor(n)).astype(np.float32) for n, v in inputs.items()}
    y = graph.tensor("y")
    if graph.nodes[0].op == "quantize":
        result = x["x"]
    else:
        result = interpret(_floats(graph), x)["y"]
    steps = result.astype(np.float64) / y.scale + y.zero_point
    return np.clip(steps, y.dtype.low, y.dtype.high)


@pytest.mark.parametrize("rounding", ROUNDINGS)
@pytest.mark.parametrize("case", _CASES, ids=lambda c: c.name)
def test_near_the_real_result(case: Case, rounding: str) -> None:
    graph = case.graph(rounding)
    for seed in range(6):
        inputs = case.inputs(seed)
        found = interpret(graph, inputs)["y"].astype(np.float64)
        error = np.abs(found - _exact(graph, inputs))
        # one rounding; the others round twice or more
        limit = 0.51 if rounding == "onnx" and case.op != "softmax" else 1.01
        assert float(error.max()) <= limit


@pytest.mark.parametrize("rounding", ROUNDINGS)
@pytest.mark.parametrize("case", _CASES, ids=lambda c: c.name)
def test_sums_fit_int32(case: Case, rounding: str) -> None:
    graph = case.graph(rounding)
    node = graph.nodes[0]
    match node.op:
        case "conv2d" | "dense":
            made = conv_parameters(node, graph)
            bias = graph.constants.get(node.inputs[2]) if node.inputs[2] else None
            bound = accumulator_bound(
                graph.constants[node.inputs[1]], bias, made.x_zero
            )
            assert max(int(np.abs(b).max()) for b in bound) < _INT32
        case "add" | "sub" if rounding == "onnx":
            added = add_parameters(node, graph)
            most = 255 * (abs(added.a_multiplier) + abs(added.b_multiplier))
            assert most + (1 << (30 - added.shift)) < _INT32
        case "add" | "sub":
            added = add_parameters(node, graph)
            assert 255 << added.left < 1 << 28
            assert max(added.a_shift, added.b_shift, added.shift) <= 0
        case "softmax":
            soft = softmax_parameters(node, graph)
            count = graph.tensor("x").shape[node.attrs["axis"]]
            if soft.rounding == "even":
                assert max(soft.table) * count < _INT32
                assert soft.numerator < 1 << 62
                share = (soft.numerator + max(soft.table) // 2) // max(soft.table)
                assert max(soft.table) * share + (1 << (soft.shift - 1)) < 1 << 63
            else:
                assert ((max(soft.table) + 2048) >> 12) * count < _INT32
            assert max(soft.table) < _INT32
