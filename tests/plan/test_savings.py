"""Options that would save RAM: each is true, none is left out, all places say them."""

from __future__ import annotations

import functools
import json

import numpy as np
import pytest

import pybuild
from pybuild.cli import main
from pybuild.errors import BuildError
from pybuild.graph_builder import GraphBuilder
from pybuild.ir.graph import Graph, Tensor
from pybuild.library import Library
from pybuild.ops.interpret import interpret
from pybuild.package.page import report_page
from pybuild.passes.ends.integer_ends import integer_ends
from pybuild.savings import changes, that_fit
from tests.boards.devices import DIGITS
from tests.graphs.quantise import samples_of, small
from tests.graphs.rows import model_of


def _net(seed: int, channels_first: bool = False) -> Graph:
    """An image and three convolutions, of which the first has a stride."""
    chance, net = np.random.default_rng((46, seed)), GraphBuilder("net")
    side, quant = 2 * int(chance.integers(8, 14)), (0.05, -3)
    shape = (1, 3, side, side) if channels_first else (1, side, side, 3)
    x = net.input("x", shape, "int8", quant=(0.02, 0))
    if channels_first:
        x = net.op("transpose", x, perm=(0, 2, 3, 1), quant=(0.02, 0))

    def conv(x: Tensor, outs: int, size: int, step: int) -> Tensor:
        name, form = f"{outs}_{size}_{step}", (outs, size, size, x.shape[3])
        values = chance.integers(-127, 128, form).astype(np.int8)
        w = net.constant(f"w{name}", values, (0.004, 0))
        b = net.constant(f"b{name}", chance.integers(-99, 99, outs).astype(np.int32))
        pad = size // 2
        return net.op("conv2d", x, w, b, strides=(step, step), quant=quant,
                      pads=(pad, pad, pad, pad))  # fmt: skip

    y = conv(conv(conv(x, 8, 3, 2), 6, 3, 1), 4, 1, 1)
    net.output(y)
    return net.build()


@functools.cache
def _built(seed: int, channels_first: bool = False) -> Library:
    return model_of(_net(seed, channels_first)).build(target="cortex-m4")


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("channels_first", [False, True])
def test_what_is_said_is_what_the_option_gives(seed: int, channels_first: bool) -> None:
    made = _built(seed, channels_first)
    assert made.advised.savings
    for one in made.advised.savings:
        again = made.again(**one.changed)
        assert one.arena == again.plan.arena_bytes <= 0.95 * made.plan.arena_bytes
        assert one.instead == made.plan.arena_bytes
        assert "".join(one.options) in str(one) or len(one.options) > 1
    costs = [one.instructions for one in made.advised.savings]
    assert costs == sorted(costs) and min(costs) > 0.5


@pytest.mark.parametrize("seed", range(3))
def test_no_option_that_saves_is_left_out(seed: int) -> None:
    made = _built(seed)
    said = {one.options[0] for one in made.advised.savings if len(one.options) == 1}
    tries = {
        "--lazy x": {"lazy": ("x",)},
        "--push x": {"push": ("x",)},
        "--optimise ram": {"optimise": "ram"},
    }
    saves = {
        words
        for words, changed in tries.items()
        if made.again(**changed).plan.arena_bytes <= 0.95 * made.plan.arena_bytes
    }
    assert said == saves and saves


def test_a_combination_is_said_only_where_it_saves_more() -> None:
    for one in _built(0, True).advised.savings:
        for other in _built(0, True).advised.savings:
            if set(other.options) < set(one.options):
                assert one.arena <= 0.95 * other.arena


def test_plans_of_whole_tensors_are_told_of_rows() -> None:
    made = model_of(_net(1)).build(plan="whole")
    first = next(o for o in made.advised.savings if o.options == ("--plan rows",))
    assert first.arena == made.again(plan="rows").plan.arena_bytes


def test_nothing_is_said_of_what_is_in_use() -> None:
    made = _built(0).again(input="consumable", optimise="ram")
    words = [words for options, _ in changes(made) for words in options]
    assert "--input consumable" not in words and "--optimise ram" not in words
    pushed = _built(0).again(push=("x",))
    assert all("x" not in " ".join(options) for options, _ in changes(pushed))


def test_an_input_that_is_not_read_by_rows_is_passed_over() -> None:
    net = GraphBuilder("net")
    x = net.input("x", (1, 4000))
    w = net.constant("w", np.ones((2, 4000), np.float32))
    net.output(net.op("dense", x, w))
    made = model_of(net.build()).build()
    assert any("--push x" in options for options, _ in changes(made))
    with pytest.raises(BuildError):
        made.again(push=("x",))
    assert [one.options for one in made.advised.savings] == [("--lazy x",)]


def test_what_fits_is_named_the_cheapest_first() -> None:
    made = _built(0)
    least = min(one.arena for one in made.advised.savings if "lazy" not in one.changed)
    named = that_fit(made, least)
    assert named and not any("--lazy" in words for words in named)
    assert that_fit(made, least - 1) == ()
    every = that_fit(made, made.plan.arena_bytes)
    costs = {" ".join(o.options): o.instructions for o in made.advised.savings}
    known = [costs[words] for words in every if words in costs]
    assert known == sorted(known) and set(named) <= set(every)


def test_every_report_says_them(capsys: pytest.CaptureFixture[str]) -> None:
    made = _built(0)
    lines = [line for line in report_page(made.advised) if isinstance(line, str)]
    wanted = [f"less   {one}" for one in made.advised.savings]
    assert [line for line in lines if line.startswith("less")] == wanted
    told = json.loads(str(made.files()["report.json"]))["savings"]
    assert [one["arena"] for one in told] == [s.arena for s in made.advised.savings]
    page = made.to_html()
    assert "What would save RAM" in page
    assert f'"options":["{told[0]["options"][0]}"' in page.replace(": [", ":[")
    assert main(["inspect", str(DIGITS), "--target", "cortex-m4", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert ["--optimise ram"] in [one["options"] for one in facts["savings"]]


def test_integers_at_the_ends_of_what_is_quantised_here() -> None:
    """As if it had been quantised so: the same bytes, and the same answers."""
    graph, data = small(), samples_of(small()).inputs
    made = pybuild.quantise(graph, data).build(target="cortex-m4", input="keep")
    other = pybuild.quantise(graph, data, boundary="int8")
    other = other.build(target="cortex-m4", input="keep")
    (one,) = (s for s in made.advised.savings if s.options == ("--boundary int8",))
    assert one.arena == other.plan.arena_bytes <= 0.95 * made.plan.arena_bytes
    assert all("boundary" not in changed for _, changed in changes(other))
    ends = integer_ends(made.plan.graph)
    assert {ends.tensor(n).dtype.value for n in (*ends.inputs, *ends.outputs)} == {
        "int8"
    }
    assert integer_ends(ends) is ends
    x = data["x"][:1].reshape(graph.tensor("x").shape)
    known = interpret(made.plan.graph, {"x": x})
    (q,) = (n.output for n in made.plan.graph.nodes if n.inputs == ("x",))
    found = interpret(ends, {"x": known[q]})["y"].astype(np.float32)
    tensor = ends.tensor("y")
    real = (found - tensor.zero_point) * np.float32(tensor.scale)
    assert np.allclose(real, known["y"], rtol=1e-6, atol=0)
