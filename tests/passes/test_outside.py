"""Taps that only stand on padding: what is left makes the same values, by shapes that
reach past either end, and is no larger than it must be."""

from __future__ import annotations

import numpy as np
import pytest

from pybuild.ir.graph import Graph, Quant
from pybuild.ops.interpret import interpret
from pybuild.passes.legalise import set_rounding
from pybuild.passes.outside import drop_outside_taps
from tests.passes.passes_graph import Small, after

Q = Quant((0.5,), (-9,))
# rows and columns, window, stride, dilation, pads (top, left, bottom, right), and the
# window that is left
CASES = (
    ((1, 1), (5, 5), 2, 1, (2, 2, 2, 2), (1, 1)),
    ((3, 3), (7, 7), 1, 1, (3, 3, 3, 3), (5, 5)),
    ((1, 8), (3, 3), 1, 1, (1, 1, 1, 1), (1, 3)),
    ((2, 2), (5, 3), 1, 1, (2, 1, 2, 1), (3, 3)),
    ((5, 5), (5, 5), 2, 1, (2, 2, 2, 2), (5, 5)),
    ((3, 2), (3, 3), 1, 2, (2, 2, 2, 2), (3, 1)),
    ((2, 4), (3, 3), 1, 3, (3, 3, 3, 3), (1, 3)),
    ((4, 1), (4, 3), 1, 1, (0, 2, 3, 0), (4, 1)),
)


def _layer(op: str, case: int, whole: bool = True) -> Graph:
    size, kernel, stride, gap, pads, _ = CASES[case]
    chance = np.random.default_rng(case)
    small = Small()
    quant = Q if whole else None
    x = small.input("x", 1, *size, 6, quant=quant)
    form = (*kernel, 6) if op == "depthwise_conv2d" else (4, *kernel, 6)
    outs = 6 if op == "depthwise_conv2d" else 4
    scales = tuple(chance.uniform(0.01, 0.02, outs).tolist())
    axis = 2 if op == "depthwise_conv2d" else 0
    kind = np.int8 if whole else np.float32
    w = chance.integers(-128, 128, form).astype(kind)
    small.constant("w", w, Quant(scales, (0,) * outs, axis) if whole else None)
    small.constant(
        "b", chance.integers(-999, 999, outs).astype(np.int32 if whole else kind)
    )
    attrs = {"strides": (stride, stride), "dilations": (gap, gap), "pads": pads}
    more = {} if op == "depthwise_conv2d" else {"groups": 1}
    y = Quant((2.0,), (5,)) if whole else None
    small.node(op, f"{x} w b", "y", quant=y, **attrs, **more)
    return set_rounding(small.graph("y"), "litert")


@pytest.mark.parametrize("op", ["conv2d", "depthwise_conv2d"])
@pytest.mark.parametrize("case", range(len(CASES)))
def test_what_is_left_makes_the_same(case: int, op: str) -> None:
    graph = _layer(op, case)
    made = after(drop_outside_taps, graph)
    axis = 0 if op == "depthwise_conv2d" else 1
    weights = made.tensor(made.nodes[0].inputs[1])
    assert weights.shape[axis : axis + 2] == CASES[case][-1]
    assert min(made.nodes[0].attrs["pads"]) >= 0
    chance = np.random.default_rng(case)
    for x in (chance.integers(-128, 128, graph.tensor("x").shape), -128, 127):
        given = {"x": np.broadcast_to(x, graph.tensor("x").shape).astype(np.int8)}
        have, want = (interpret(g, given)["y"] for g in (made, graph))
        np.testing.assert_array_equal(have, want)


def test_floats_stay() -> None:
    graph = _layer("conv2d", 0, whole=False)
    assert drop_outside_taps(graph).tensor("w").shape == (4, 5, 5, 6)
