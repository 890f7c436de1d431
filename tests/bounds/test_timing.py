"""Which tests and loops of a kernel ask for data; the sums of each layer."""

from __future__ import annotations

import numpy as np
import pytest

import pybuild
from pybuild.bounds.timing import Timing, timing
from pybuild.bounds.values import Memory
from pybuild.dtype import DType
from pybuild.ir.loop_parse import parse
from pybuild.ops.conv import conv_parameters
from tests.toolchains import ROOT

DIGITS = ROOT / "examples" / "digits" / "digits_int8.tflite"
HEAD = """def kernel(count: i32, inputs: i32):
    y: mut(i8) = row(0, mut(i8))
    x: ptr(i8) = row(1, ptr(i8))
    table: ptr(i8) = row(inputs + 1, ptr(i8))
"""
# a kernel's body; tests of data, loops of data, places of data
ASKS = {
    "of what is constant, nothing": (
        """
    for i in range(0, cast(table[0], i32), 1):
        if table[i] < 0:
            for c in range(0, count, 1):
                y[c] = x[i]
""",
        (0, 0, 0),
    ),
    "a short test": ("\n    if x[0] < 0:\n        y[0] = x[1]\n", (1, 0, 0)),
    "a test around a loop": (
        """
    if x[0] < 0:
        for i in range(0, count, 1):
            y[i] = x[1]
""",
        (0, 1, 1),
    ),
    "a loop as long as data says": (
        "\n    for i in range(0, cast(x[0], i32), 1):\n        y[i] = x[1]\n",
        (0, 1, 1),
    ),
    "a number that a test of data has set": (
        """
    most: i32 = 1
    if x[0] < 0:
        most = 2
    for i in range(0, most, 1):
        y[i] = x[i]
""",
        (1, 1, 2),
    ),
    "a number that an earlier turn has loaded": (
        """
    last: i32 = 0
    for i in range(0, count, 1):
        if last < 3:
            y[i] = x[i]
        last = cast(x[i], i32)
""",
        (1, 0, 0),
    ),
    "a constant at a place that data names": (
        "\n    if at(table, cast(x[0], i32))[0] < 0:\n        y[0] = x[1]\n",
        (1, 0, 1),
    ),
    "a table at a place that data names": (
        "\n    n: i32 = cast(x[0], i32)\n    y[0] = table[n & 3]\n",
        (0, 0, 1),
    ),
    "a store to such a place": ("\n    y[cast(x[0], i32) & 7] = x[1]\n", (0, 0, 1)),
    "a pointer that a test of data moves": (
        "\n    from_: ptr(i8) = x\n    if x[0] < 0:\n        from_ = at(x, 1)\n"
        "    y[0] = from_[0]\n",
        (1, 0, 1),
    ),
    "a pointer that one of data's places is added to": (
        "\n    from_: ptr(i8) = at(x, cast(x[0], i32) & 1)\n    y[0] = from_[0]\n",
        (0, 0, 1),
    ),
}


@pytest.mark.parametrize("name", ASKS)
def test_what_asks_for_data(name: str) -> None:
    body, (short, loops, places) = ASKS[name]
    constant = Memory("constant", 4, np.zeros(4, np.int8))
    pointers = [Memory("output", 8), Memory("input", 8), constant]
    made = parse(HEAD + body[1:])
    assert timing(made, (4, 1), pointers) == Timing(short, loops, places)


def test_a_constant_that_may_be_replaced_is_data() -> None:
    made = parse(HEAD + ASKS["of what is constant, nothing"][0][1:])
    pointers = [Memory("output", 8), Memory("input", 8), Memory("constant", 4)]
    assert timing(made, (4, 1), pointers) == Timing(0, 2, 3)


def test_sums_of_each_layer_are_reached() -> None:
    """The bound is that of the worst input, computed one product after the other."""
    library = pybuild.load(DIGITS).build(target="cortex-m4")
    rows = {row.name: row for row in library.report.bounds}
    graph = library.plan.graph
    checked = 0
    for step in library.plan.steps:
        node = step.node
        if node.op not in ("conv2d", "dense"):
            continue
        weights = graph.constants[node.inputs[1]].astype(object)
        bias = graph.constants[node.inputs[2]].astype(object)
        zero = conv_parameters(node, graph).x_zero
        ends = DType.INT8.low - zero, DType.INT8.high - zero
        most = 0
        for channel, start in zip(weights, bias, strict=True):
            high = sum(max(w * e for e in (*ends, 0)) for w in channel.reshape(-1))
            low = sum(min(w * e for e in (*ends, 0)) for w in channel.reshape(-1))
            most = max(most, high + max(start, 0), -low - min(start, 0))
        found = rows[node.name]
        assert found.sum is not None and found.sum_room is not None
        assert most <= found.sum <= 2 * most
        assert found.sum_room == round(((1 << 31) - 1) / found.sum, 2)
        checked += 1
    assert checked >= 3
    assert all(row.data_loops == 0 for row in rows.values())
