"""The order of layers and of assignments to what is kept from run to run."""

from __future__ import annotations

import numpy as np

import pybuild
from pybuild import GraphBuilder
from pybuild.entry import model_of
from pybuild.ir.graph import Graph
from pybuild.ops.interpret import interpret, next_state
from pybuild.ops.shape import ASSIGN
from pybuild.passes.state import assigned
from pybuild.plan.schedule.order import order_nodes

SIZE, STEPS = 64, 4


def _net() -> Graph:
    """Four layers; each reads its last eight inputs and keeps seven of them. The file
    makes all that is kept at its end."""
    b = GraphBuilder("net")
    y = b.input("x", (1, 1, 1, SIZE), "int8", (0.1, 0))
    state, windows = {}, []
    for i in range(STEPS):
        before = b.input(f"before{i}", (1, 7, 1, SIZE), "int8", (0.1, 0))
        window = b.op("concat", before, y, axis=1)
        windows.append(window)
        w = b.constant(f"w{i}", np.full((8, 1, SIZE), i + 1, np.int8), (0.01, 0))
        y = b.op("depthwise_conv2d", window, w, dtype="int8", quant=(0.1, 0))
    b.output(y, "y")
    for i, window in enumerate(windows):
        rest = b.op("slice", window, begin=(0, 1, 0, 0), end=window.shape,
                    strides=(1, 1, 1, 1))  # fmt: skip
        b.output(rest, f"after{i}")
        state[f"before{i}"] = f"after{i}"
    return model_of(b.build()).with_state(state).lower()


def test_what_is_kept_is_stored_early() -> None:
    """Before the next layer's window is made, so that only one is alive at once."""
    graph = assigned(_net())
    order = order_nodes(graph)
    assert sorted(map(id, order)) == sorted(map(id, graph.nodes))
    places = {node.op: [] for node in order}  # type: dict[str, list[int]]
    for at, node in enumerate(order):
        places[node.op].append(at)
    later = zip(places[ASSIGN], places["concat"][1:], strict=False)
    assert all(stored < window for stored, window in later)


def test_an_old_value_is_read_before() -> None:
    graph = assigned(_net())
    order = order_nodes(graph)
    for name, state in graph.state.items():
        (at,) = (i for i, node in enumerate(order) if state.next in node.outputs)
        assert all(name not in node.inputs for node in order[at:])


def test_bytes_and_bits() -> None:
    """States, one window and one next value; every run as numpy's."""
    graph = _net()
    library = pybuild.build(graph)
    states = STEPS * 7 * SIZE
    assert library.report.ram.arena < states + 2 * 8 * SIZE + 2 * SIZE + 64
    net, state, rng = library.host(), None, np.random.default_rng(0)
    for _ in range(10):
        x = rng.integers(-128, 128, (1, 1, 1, SIZE)).astype(np.int8)
        values = interpret(graph, {"x": x}, state)
        state = next_state(graph, values)
        net.run(x=x)
        np.testing.assert_array_equal(net.get_output("y"), values["y"])
