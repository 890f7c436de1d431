"""Channels that never change leave the graph; its outputs do not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from pybuild.dtype import Array
from pybuild.graph import Graph, Quant, verify
from pybuild.ops.interpret import interpret
from pybuild.passes.constant_channels import drop_constant_channels
from tests.unit.passes_graph import ONES, Small, inputs_of

X, Y = Quant((0.05,), (-128,)), Quant((0.1,), (-128,))
SAME = {**ONES, "pads": (1, 1, 1, 1)}


def scales(count: int, axis: int = 0) -> Quant:
    return Quant(tuple(0.004 + 0.001 * c for c in range(count)), (0,) * count, axis)


class Net(Small):
    """Layers of int8; `dead` channels of a layer have no weights and this bias."""

    def layer(
        self,
        op: str,
        x: str,
        name: str,
        shape: tuple[int, ...],
        dead: dict[int, int],
        low: float = 0.0,
        high: float | None = None,
        attrs: dict[str, tuple[int, ...]] | None = None,
    ) -> str:
        chance = np.random.default_rng(len(name))
        last = op == "depthwise_conv2d"
        count = shape[-1] if last else shape[0]
        w: Array = chance.integers(-127, 128, shape).astype(np.int8)
        bias = chance.integers(-2000, 2000, count).astype(np.int32)
        for channel, value in dead.items():
            w[(..., channel) if last else channel] = 0
            bias[channel] = value
        self.constant(f"{name}_w", w, scales(count, len(shape) - 1 if last else 0))
        self.constant(f"{name}_b", bias, Quant((1.0,)))
        return self.node(op, f"{x} {name}_w {name}_b", name, quant=Y, rounding="double",
                         clamp=(low, high), **(attrs or ONES))  # fmt: skip


def widths(graph: Graph) -> dict[str, int]:
    return {n.output: graph.tensor(n.output).shape[-1] for n in graph.nodes}


def same_channels(graph: Graph, made: Graph) -> None:
    """Also between layers every channel that is left is what it was."""
    for seed in range(4):
        inputs = inputs_of(graph, seed)
        want, have = interpret(graph, inputs), interpret(made, inputs)
        for node in made.nodes:
            if "channels" in node.attrs:
                left = want[node.output][..., list(node.attrs["channels"])]
                np.testing.assert_array_equal(have[node.output], left)


def narrowed(graph: Graph) -> dict[str, int]:
    """Channels after the pass, whose outputs are those before."""
    verify(graph)
    made = drop_constant_channels(graph)
    verify(made)
    for seed in range(4):
        inputs = inputs_of(graph, seed)
        want, have = interpret(graph, inputs), interpret(made, inputs)
        for name in graph.outputs:
            np.testing.assert_array_equal(have[name], want[name])
    same_channels(graph, made)
    assert drop_constant_channels(made).dump() == made.dump()
    return widths(made)


def chain(
    dead: dict[int, int], attrs: dict[str, tuple[int, ...]], high: float | None = None
) -> Graph:
    net = Net()
    net.input("x", 1, 5, 6, 8, quant=X)
    net.layer("conv2d", "x", "first", (12, 1, 1, 8), dead, high=high)
    net.layer("depthwise_conv2d", "first", "deep", (3, 3, 12), {}, attrs=attrs)
    net.layer("conv2d", "deep", "last", (5, 1, 1, 12), {})
    return net.graph("last")


def test_zeros_go_through_a_depthwise_layer_and_its_padding() -> None:
    dead = dict.fromkeys((0, 3, 4, 5, 9), -40)
    assert narrowed(chain(dead, SAME)) == {"first": 8, "deep": 8, "last": 5}


def test_other_values_stop_at_padding() -> None:
    dead = dict.fromkeys((0, 3, 4, 5, 9), 100_000)
    assert narrowed(chain(dead, SAME)) == {"first": 12, "deep": 12, "last": 5}
    assert narrowed(chain(dead, ONES)) == {"first": 8, "deep": 8, "last": 5}


@pytest.mark.parametrize(("value", "left"), [(-40, 8), (100_000, 12)])
def test_padding_of_the_reader_itself(value: int, left: int) -> None:
    net = Net()
    net.input("x", 1, 5, 6, 8, quant=X)
    dead = dict.fromkeys((0, 3, 4, 5, 9), value)
    net.layer("conv2d", "x", "first", (12, 1, 1, 8), dead)
    net.layer("conv2d", "first", "last", (5, 3, 3, 12), {}, attrs=SAME)
    assert narrowed(net.graph("last")) == {"first": left, "last": 5}


def test_saturated_channels_are_constant() -> None:
    net = Net()
    net.input("x", 1, 5, 6, 8, quant=X)
    net.layer("conv2d", "x", "first", (8, 1, 1, 8), {})
    bias = net.constants["first_b"].copy()
    bias[:5] = 10_000_000
    net.constants["first_b"] = bias
    net.layer("conv2d", "first", "last", (5, 1, 1, 8), {})
    assert narrowed(net.graph("last")) == {"first": 4, "last": 5}


def test_through_add_pooling_and_reshape_to_dense() -> None:
    net = Net()
    net.input("x", 1, 4, 4, 8, quant=X)
    for name, gone in (("left", (1, 2, 3, 4, 5)), ("right", (2, 3, 4, 5, 6))):
        net.layer("conv2d", "x", name, (8, 1, 1, 8), dict.fromkeys(gone, -9))
    net.node("add", "left right", "sum", quant=Y, rounding="double", clamp=(None, None))
    net.node("avg_pool2d", "sum", "pooled", quant=Y, rounding="double", kernel=(4, 4),
             count_include_pad=False, strides=(4, 4), pads=(0, 0, 0, 0))  # fmt: skip
    net.node("reshape", "pooled", "flat", (1, 8))
    net.layer("dense", "flat", "scores", (3, 8), {}, attrs={})
    assert narrowed(net.graph("scores")) == {
        "left": 4, "right": 4, "sum": 4, "pooled": 4, "flat": 4, "scores": 3,
    }  # fmt: skip


def test_what_stays_whole() -> None:
    dead = dict.fromkeys((0, 3, 4, 5, 9), -40)
    graph = chain(dead, SAME)
    both = replace(graph, outputs=("last", "deep"))
    assert narrowed(both) == {"first": 12, "deep": 12, "last": 5}
    given = replace(graph, parameters={"first_w": "w"})
    assert drop_constant_channels(given) is given


@pytest.mark.parametrize("count", [11, 12])
def test_at_least_four_channels_stay(count: int) -> None:
    dead = dict.fromkeys(range(count), -40)
    assert narrowed(chain(dead, SAME)) == {"first": 4, "deep": 4, "last": 5}
