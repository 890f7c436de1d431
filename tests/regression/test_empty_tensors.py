"""Tensors without elements, which no piece of memory stands for."""

from __future__ import annotations

from pybuild.graph_builder import GraphBuilder
from tests.graphs.rows import model_of


def test_an_empty_input_that_nothing_reads() -> None:
    net = GraphBuilder("empty")
    net.input("none", (0, 3), "float32")
    x = net.input("x", (1, 8, 4, 3), "float32")
    net.output(net.op("avg_pool2d", x, kernel=(3, 3)))
    for word in ("reuse", "keep", "consumable"):
        plan = model_of(net.build()).build(input=word).plan
        assert plan.arena_bytes >= 8 * 4 * 3 * 4
