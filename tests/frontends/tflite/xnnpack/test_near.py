"""How near `--rounding single` is to LiteRT's default interpreter: the table of
docs/integers.md, by fewer files than its figures are of.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from pybuild.frontends.tflite import load
from pybuild.ir.graph import Graph, Quant
from pybuild.ops.interpret import interpret
from pybuild.passes import PassOptions, run
from tests.frontends.tflite.xnnpack.near import (
    EQUAL,
    OFF,
    OPERATORS,
    default_net,
    measured,
    ran,
)
from tests.graphs.mobile_net import mobile_net
from tests.ops.tflite_writer import to_tflite

pytest.importorskip("ai_edge_litert", reason="ai-edge-litert is not installed")
PAGE = Path(__file__).parents[4] / "docs/integers.md"
_CHANCE = np.random.default_rng(4)


@pytest.mark.parametrize("code", EQUAL)
def test_these_are_equal(code: str) -> None:
    found = measured(code, 6, 8, False)
    assert found.outputs > 80
    assert found.differ == 0, found


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("code", OFF)
def test_no_more_differ_than_the_table_says(code: str, ties: bool) -> None:
    found = measured(code, 6, 8, ties)
    assert found.outputs > 80
    # of so few outputs, one or two more by chance
    assert found.differ <= OFF[code][ties] / 100 * found.outputs + 2, found
    assert found.steps <= 1, found


def test_the_page_has_every_operator_and_no_greater_share() -> None:
    rows = [line.split("|")[1:-1] for line in PAGE.read_text().splitlines()
            if line.startswith("| ") and line.count("|") == 6]  # fmt: skip
    told = {}
    for names, _, drawn, ties, _ in rows:
        if drawn.strip() not in ("scales drawn", "---"):
            shares = tuple(float(t.strip().removesuffix(" %")) for t in (drawn, ties))
            told |= dict.fromkeys(names.replace(" ", "").split(","), shares)
    assert told.keys() == {*OPERATORS}
    for code, shares in told.items():
        most = OFF.get(code, (0, 0))
        assert all(s <= m for s, m in zip(shares, most, strict=True)), code


def _mobile_net(told: bool) -> bytes:
    """told  biases have scales, as converters write them"""
    graph = mobile_net(64)
    plain = {"clamp": (None, None), "pads": (0, 0, 0, 0), "strides": (1, 1)}
    plain |= {"dilations": (1, 1), "groups": 1}
    nodes = tuple(replace(node, attrs={**plain, **node.attrs}) for node in graph.nodes)
    graph = replace(graph, nodes=nodes)
    return to_tflite(_with_scales(graph) if told else graph)


def _with_scales(graph: Graph) -> Graph:
    tensors = dict(graph.tensors)
    for node in graph.nodes:
        if node.op not in ("conv2d", "depthwise_conv2d", "dense"):
            continue
        x, w, bias = (graph.tensor(name) for name in node.inputs)
        assert w.quant is not None
        scales = tuple(float(np.float32(x.scale) * np.float32(s))
                       for s in w.quant.scale)  # fmt: skip
        zeros = (0,) * len(scales)
        tensors[bias.name] = replace(bias, quant=Quant(scales, zeros, 0))
    return replace(graph, tensors=tensors)


@pytest.mark.parametrize("told", [True, False])
def test_65_layers_are_as_those_that_run(told: bool) -> None:
    """XNNPACK takes no layer whose bias has no scale: of these, LiteRT's own kernels
    run, which round twice, and 65 layers are far from those that round once.
    """
    data = _mobile_net(told)
    net = default_net(data)
    graph = run(load("net.tflite", data, {}), PassOptions("single"))
    shape = graph.tensor(graph.inputs[0]).shape
    x = {graph.inputs[0]: _CHANCE.integers(-128, 128, shape).astype(np.int8)}
    far = np.abs(interpret(graph, x)[graph.outputs[0]].astype(int) - ran(net, x)[0])
    assert (far.max() == 0) == told
