"""Channels that never change leave the graph; its outputs do not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from pybuild.ir.graph import Graph, Quant, verify
from pybuild.ops.interpret import check_types, interpret
from pybuild.package.page import report_page
from pybuild.passes.channels.constant import drop_constant_channels
from tests.graphs.rows import model_of
from tests.passes.channel_nets import SAME, Net, X, Y, random_net
from tests.passes.passes_graph import ONES, inputs_of


def widths(graph: Graph) -> dict[str, int]:
    return {n.output: graph.tensor(n.output).shape[-1] for n in graph.nodes}


def same_values(graph: Graph, made: Graph, seeds: int) -> None:
    """Also between layers every channel that is left is what it was."""
    for seed in range(seeds):
        inputs = inputs_of(graph, seed)
        want, have = interpret(graph, inputs), interpret(made, inputs)
        for node in made.nodes:
            left = node.attrs.get("channels")
            value = want[node.output]
            value = value if left is None else value[..., list(left)]
            np.testing.assert_array_equal(have[node.output], value)


def narrowed(graph: Graph) -> dict[str, int]:
    """Channels after the pass, whose outputs are those before."""
    verify(graph)
    made = drop_constant_channels(graph)
    verify(made)
    same_values(graph, made, 4)
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


def test_a_build_says_what_is_removed() -> None:
    graph = chain(dict.fromkeys((0, 3, 4, 5, 9), -40), SAME)
    made = drop_constant_channels(graph)
    before, after = (
        sum(value.nbytes for value in one.constants.values()) for one in (graph, made)
    )
    assert made.removed == (4, before - after)
    report = model_of(graph).build().report
    assert (report.flash.removed_channels, report.flash.removed) == made.removed
    line = f"note   4 channels that never change are removed, with {before - after:,} "
    assert any(str(one).startswith(line) for one in report_page(report))
    plain = model_of(chain({}, SAME)).build().report
    assert not any("never change" in str(one) for one in report_page(plain))


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


DEAD = dict.fromkeys((1, 2, 4, 7), 100_000)


def test_concatenated_parts_lose_their_own() -> None:
    net = Net()
    net.start(DEAD, "a")
    net.start(dict.fromkeys((0, 3, 5, 6), -9), "b")
    net.start({2: 100}, "c")
    net.node("concat", "a b c", "joined", axis=3)
    made = narrowed(net.end("joined"))
    assert made == {"a": 4, "b": 4, "c": 8, "joined": 16, "last": 5}


def test_constants_lose_what_they_are_joined_to() -> None:
    net = Net()
    net.start(DEAD)
    some = np.arange(-8, 0, dtype=np.int8)
    net.constant("some", some.reshape(1, 1, 1, 8), Y)
    net.node("add", "first some", "sum", quant=Y, rounding="double",
             clamp=(None, None))  # fmt: skip
    net.constant("one", some[:1].reshape(1, 1, 1, 1), Y)
    net.node("mul", "sum one", "product", quant=Y, rounding="double",
             clamp=(None, None))  # fmt: skip
    assert narrowed(net.end("product")) == {
        "first": 4, "sum": 4, "product": 4, "last": 5,
    }  # fmt: skip


def test_a_constant_part_is_folded() -> None:
    net = Net()
    net.start({})
    net.constant("some", np.full((1, 6, 6, 4), 33, np.int8), Y)
    net.node("concat", "some first some", "joined", axis=3)
    assert narrowed(net.end("joined")) == {"first": 8, "joined": 8, "last": 5}


def test_one_value_for_all_channels_is_no_channel() -> None:
    net = Net()
    net.start(dict.fromkeys(DEAD, 300))
    net.layer("conv2d", "first", "weight", (1, 1, 1, 8), {}, low=None)
    net.node("mul", "first weight", "product", quant=Y, rounding="double",
             clamp=(None, None))  # fmt: skip
    assert narrowed(net.end("product")) == {
        "first": 8, "weight": 1, "product": 8, "last": 5,
    }  # fmt: skip


def test_squeezed_and_excited() -> None:
    net = Net()
    net.start(dict.fromkeys((1, 2, 4, 7), -9))
    net.node("mean", "first", "mean", quant=Y, rounding="double", axes=(1, 2),
             keepdims=True)  # fmt: skip
    net.layer("conv2d", "mean", "less", (4, 1, 1, 8), {})
    net.layer("conv2d", "less", "more", (8, 1, 1, 4), {})
    net.node("logistic", "more", "gate", quant=Quant((1 / 256,), (-128,)),
             rounding="double")  # fmt: skip
    net.node("mul", "first gate", "product", quant=Y, rounding="double",
             clamp=(None, None))  # fmt: skip
    made = narrowed(net.end("product"))
    assert made == {**dict.fromkeys(made, 4), "last": 5}


def test_flattened_channels_lose_all_their_places() -> None:
    net = Net()
    net.start(DEAD)
    net.node("reshape", "first", "flat", (1, 288))
    net.layer("dense", "flat", "scores", (3, 288), {}, attrs={})
    assert narrowed(net.graph("scores")) == {"first": 4, "flat": 144, "scores": 3}


def test_a_slice_begins_where_its_channels_are() -> None:
    net = Net()
    net.start(dict.fromkeys(range(4), 9))
    net.node("slice", "first", "some", quant=Y, begin=(0, 0, 0, 4), end=(1, 6, 6, 8),
             strides=(1, 1, 1, 1))  # fmt: skip
    assert narrowed(net.end("some")) == {"first": 4, "some": 4, "last": 5}


def test_differences_of_what_is_unknown_are_unknown() -> None:
    net = Net()
    net.start(DEAD)
    net.start({}, "other")
    net.node("sub", "first other", "less", quant=Y, rounding="double",
             clamp=(None, None))  # fmt: skip
    assert narrowed(net.end("less"))["less"] == 8


@pytest.mark.parametrize(
    ("op", "attrs", "shape"),
    [
        ("clip", {"clamp": (0.2, 5.0)}, ()),
        ("leaky_relu", {"alpha": 0.25}, ()),
        ("quantize", {}, ()),
        ("transpose", {"perm": (0, 2, 1, 3)}, ()),
        ("reshape", {}, (1, 9, 4, 8)),
        ("max_pool2d", {"kernel": (3, 3), "strides": (2, 2), "pads": (1, 1, 1, 1)}, ()),
        ("avg_pool2d", {"kernel": (3, 3), "strides": (1, 1), "pads": (1, 1, 1, 1)}, ()),
        ("pad", {"pads": ((0, 0), (1, 0), (0, 2), (0, 0)), "value": 12.7}, ()),
        ("slice", {"begin": (0, 2, 0, 0), "end": (1, 6, 6, 8),
                   "strides": (1, 1, 3, 1)}, ()),
    ],
)  # fmt: skip
def test_through(op: str, attrs: dict[str, tuple[int, ...]], shape: tuple[int]) -> None:
    """12.7 is what saturated channels are, too."""
    net = Net()
    net.start(DEAD)
    quant = Y if op in ("clip", "leaky_relu", "quantize") else None
    net.node(op, "first", "y", shape, quant or Y, rounding="double", **attrs)
    # as large as the type allows: 25.5
    assert narrowed(net.end("y")) == (
        {"first": 8, "y": 8, "last": 5} if op == "pad"
        else {"first": 4, "y": 4, "last": 5}
    )  # fmt: skip


RULES = ("double", "single", "even", "wide")


@pytest.mark.parametrize("rule", RULES)
def test_random_nets(rule: str) -> None:
    """Of many something goes; "wide": int16 activations."""
    assert sum(smaller(random_net(seed, rule)) for seed in range(6)) > 2


@pytest.mark.sweep
@pytest.mark.parametrize("rule", RULES)
def test_many_random_nets(rule: str) -> None:
    assert sum(smaller(random_net(seed, rule)) for seed in range(6, 100)) > 40


def smaller(graph: Graph) -> bool:
    made = drop_constant_channels(graph)
    verify(made)
    assert check_types(made) == []
    same_values(graph, made, 2)
    return widths(made) != widths(graph)
