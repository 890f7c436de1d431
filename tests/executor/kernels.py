"""What te.compute and relay make in TVM's own tests, made here: the part of a script
that builds. What runs afterwards is as there."""

from __future__ import annotations

import json
from collections.abc import Sequence

import numpy as np

import pybuild
from pybuild.dtype import Array
from pybuild.ir.graph import Graph
from pybuild.ir.loop import FLOAT32, load
from pybuild.kernels.base.builder import Builder
from pybuild.ops.base.function import Function
from tests.frontends.graphjson.tvm_graphs import call, graph, null
from tests.frontends.onnx.test_functions import by_loop


def add_one(name: str = "myadd", count: int = 4) -> Function:
    """B = A + 1"""
    k = Builder(f"{name}_loop")
    y = k.row("y", 0, FLOAT32, writable=True)
    x = k.row("x", 1, FLOAT32)
    with k.loop("i", count) as i:
        k.store(y, i, load(x, i) + 1.0)
    return pybuild.function(name, loop=k.finish(), arguments=[])


def add_one_graph(count: int = 4) -> str:
    nodes = [null("x"), call("add", "myadd", [[0, 0, 0]])]
    return json.dumps(graph(nodes, [0], [[1, 0, 0]], [[count]] * 2))


def split_in_two() -> Function:
    """The first and the second half of four rows."""
    k = Builder("halves")
    parts = [k.row(f"y{i}", i, FLOAT32, writable=True) for i in range(2)]
    x = k.row("x", 2, FLOAT32)
    with k.loop("i", 4) as i:
        for half, y in enumerate(parts):
            k.store(y, i, load(x, i + 4 * half))
    return pybuild.function("halves", loop=k.finish(), arguments=[])


def addition(shape: Sequence[int] = (1, 10)) -> str:
    """z = x + y, both inputs."""
    nodes = [null("x"), null("y"), call("z", "add", [[0, 0], [1, 0]])]
    top = graph(nodes, [0, 1], [[2, 0]], [list(shape)] * 3)
    top["nodes"][2]["attrs"]["op"] = "add"
    return json.dumps(top)


def workload(seed: int = 0) -> tuple[Graph, dict[str, Array]]:
    """A small float network and its weights, as get_workload() gives them."""
    rng = np.random.default_rng(seed)
    weights = {
        "conv_weight": rng.standard_normal((4, 3, 3, 3)).astype(np.float32),
        "fc_weight": rng.standard_normal((10, 4 * 6 * 6)).astype(np.float32) / 9,
    }
    b = pybuild.GraphBuilder("workload")
    data = b.input("data", (1, 6, 6, 3))
    kept = {name: b.parameter(name, value) for name, value in weights.items()}
    y = b.op("conv2d", data, kept["conv_weight"], pads=(1, 1, 1, 1), clamp=(0, None))
    y = b.op("reshape", y, shape=(1, 4 * 6 * 6))
    y = b.op("dense", y, kept["fc_weight"])
    b.output(b.op("softmax", y, axis=1, beta=1.0), "scores")
    return b.build(), weights


elemwise_add, elemwise_sub = by_loop("elemwise_add", "+"), by_loop("elemwise_sub", "-")
