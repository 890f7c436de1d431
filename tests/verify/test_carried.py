"""Layers of right float nets are right, also where one in between has a small range;
a hundred wrong weights are found where they are."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from pybuild.dtype import Array
from pybuild.graph_builder import GraphBuilder
from pybuild.ir.graph import Graph, Tensor
from pybuild.ops.interpret import interpret, operator_of
from pybuild.verify.carried import carried
from pybuild.verify.compare import Judge, Limits, Tally, ranges

SAMPLES = 3


def net() -> Graph:
    """Its middle is what is left of two sums that are far greater than their
    difference, as in norms of features."""
    chance, made = np.random.default_rng(1), GraphBuilder("norm")
    x = made.input("x", (1, 8, 8, 3))

    def conv(x: Tensor, outs: int, side: int, least: float | None = None) -> Tensor:
        w = chance.normal(0, 0.3, (outs, side, side, x.shape[3])).astype(np.float32)
        b = chance.normal(0, 0.1, outs).astype(np.float32)
        held = (made.constant(f"w{outs}", w), made.constant(f"b{outs}", b))
        return made.op("conv2d", x, *held, pads=(side // 2,) * 4, clamp=(least, None))

    x = conv(x, 8, 3, 0.0)
    great = made.constant("great", np.full((8,), 600.0, np.float32))
    x = made.op("sub", made.op("add", x, great), great)
    x = conv(x, 12, 1)
    x = conv(x, 4, 3)
    made.output(made.op("mean", made.op("mul", x, x), axes=(1, 2, 3), keepdims=False))
    return made.build()


def values(graph: Graph, x: Array, rounding: float = 0.0) -> dict[str, Array]:
    """Every tensor; rounding: each value is off by up to so much of itself."""
    chance = np.random.default_rng(2)
    found: dict[str, Array] = {**graph.constants, "x": x}
    for node in graph.nodes:
        reads = [found[name] if name else None for name in node.inputs]
        (made,) = operator_of(node, graph).reference(node, graph, reads)
        off = 1 + rounding * chance.uniform(-1, 1, made.shape)
        found[node.output] = (made * off).astype(np.float32)
    return {node.output: found[node.output] for node in graph.nodes}


def judged(graph: Graph, whole: Graph, rounding: float) -> tuple[Tally, Tally]:
    """A back end that runs `graph`, beside a reference that runs `whole`: as it is, and
    by what each layer has of its own."""
    chance, plain, own = np.random.default_rng(3), Tally(), Tally()
    for _ in range(SAMPLES):
        x = chance.normal(0, 1, (1, 8, 8, 3)).astype(np.float32)
        want, have = values(whole, x), values(graph, x, rounding)
        judge = Judge(graph, Limits(), ranges(graph, [want]))
        plain += judge.compare(have, want)
        own += judge.compare(have, carried(graph, {"x": x}, have, want))
    return plain, own


def test_what_is_carried_on_is_not_a_layer_s_own() -> None:
    graph = net()
    plain, own = judged(graph, graph, 2.0**-24)
    assert plain.mismatches > 0
    assert own.mismatches == 0


def test_numpy_of_one_net_is_equal() -> None:
    graph = net()
    x = np.random.default_rng(4).normal(0, 1, (1, 8, 8, 3)).astype(np.float32)
    have = values(graph, x)
    whole = interpret(graph, {"x": x})
    assert all((have[name] == whole[name]).all() for name in have)
    moved = carried(graph, {"x": x}, have, have)
    assert all((moved[name] == have[name]).all() for name in have)


@pytest.mark.parametrize("name", [n for n in net().constants if n.startswith("w")])
def test_wrong_weights_are_found_in_their_layer(name: str) -> None:
    graph = net()
    (layer,) = (node for node in graph.nodes if name in node.inputs)
    chance = np.random.default_rng(5)
    for _ in range(34):  # of three layers
        w = graph.constants[name].copy()
        at = tuple(int(chance.integers(n)) for n in w.shape)
        w[at] += np.float32(chance.choice((-1, 1)) * 0.01)
        wrong = replace(graph, constants={**graph.constants, name: w})
        own = judged(wrong, graph, 2.0**-24)[1]
        assert own.mismatches > 0, at
        assert own.first_layer == layer.name
