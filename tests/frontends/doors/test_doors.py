"""A layer is one canonical graph, whether a .tflite or an ONNX file spells it, and
costs the same; what differs is in a table, with its reason.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pybuild
from pybuild.ir.graph import Graph
from pybuild.select.choose import estimated
from tests.frontends.doors.layers import LAYERS, files

# of int8: LiteRT's kernel has integers of its own, ONNX computes in float32 between
# QuantizeLinear and DequantizeLinear, and each has the bits of its reference
APART = {
    ("sum of pixels", True): "LiteRT sums integers",
    ("log softmax", True): "LiteRT has a table of exp and a logarithm of integers",
    ("div", True): "LiteRT divides integers",
    ("bilinear", True): "LiteRT has weights of integers",
    ("prelu", True): "LiteRT scales both sides by multipliers of integers",
}
# of instructions by estimate, where both have one graph: what a rule of rounding takes
MOST = 1.25
DEARER = {
    ("matmul", True): "ONNX's rule multiplies float32, by functions on a Cortex-M0",
    ("matmul, second turned", True): "as matmul",
    (
        "softmax of channels",
        True,
    ): "LiteRT's exp is of integers, on a Cortex-M55 dearer",
}
# nodes that stand at the ends of an ONNX file alone
_ENDS = ("quantize", "dequantize", "copy")


def canonical(graph: Graph) -> list[tuple[Any, ...]]:
    """Each node that computes or moves bytes: operator, function, shape, type."""
    found: list[tuple[Any, ...]] = []
    ends = {*graph.inputs, *graph.outputs}
    for node in graph.nodes:
        if node.op in _ENDS:
            ends |= {*node.inputs, *node.outputs}
    for node in graph.nodes:
        turned = node.op == "transpose" and ends & {*node.inputs, *node.outputs}
        if node.op in (*_ENDS, "reshape") or turned:
            continue
        y = graph.tensor(node.output)
        found.append((node.op, node.attrs.get("fn", ""), y.shape, y.dtype.value))
    return found


@pytest.mark.parametrize("int8", [False, True], ids=["float", "int8"])
def test_both_doors_give_one_graph(int8: bool) -> None:
    for name in LAYERS:
        first, second = (canonical(pybuild.load(f).lower()) for f in files(name, int8))
        same = first == second
        assert same != ((name, int8) in APART), (name, first, second)


@pytest.mark.parametrize("name", ["conv 3x3, relu", "dense as product and sum", "silu",
                                  "depth to space", "hard swish"])  # fmt: skip
def test_both_doors_give_one_result(name: str) -> None:
    """Of float32: the layers that are compared are the same layer."""
    first, second = (pybuild.load(data).build() for data in files(name, False))
    chance, given = np.random.default_rng(4), {}
    for x in first.graph.inputs:
        shape = first.graph.tensor(x).shape
        given[x] = chance.normal(0, 2, shape).astype(np.float32)
    turned = {
        x: v.transpose(0, 3, 1, 2) if v.ndim == 4 else v for x, v in given.items()
    }
    (have,) = first.host("llvm").run(**given).values()
    (want,) = second.host("llvm").run(**turned).values()
    want = want.transpose(0, 2, 3, 1) if want.ndim == 4 else want
    np.testing.assert_allclose(have, want, 1e-4, 1e-5)


@pytest.mark.sweep
@pytest.mark.parametrize("target", ["cortex-m0", "cortex-m4", "cortex-m55"])
@pytest.mark.parametrize("int8", [False, True], ids=["float", "int8"])
def test_both_doors_cost_the_same(int8: bool, target: str) -> None:
    """By estimate, without what turns and converts the ends of an ONNX file."""
    for name in LAYERS:
        if (name, int8) in APART | DEARER:
            continue
        costs = []
        for data in files(name, int8):
            library = pybuild.load(data).build(target=target)
            steps = [
                (step.node, step.candidate)
                for step in library.plan.steps
                if step.node.op not in (*_ENDS, "transpose")
            ]
            costs.append(sum(estimated(steps, library.kernels)))
        assert max(costs) < MOST * min(costs), (name, costs)
