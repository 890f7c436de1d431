"""Which states a layer writes where they lie, and which an assignment must: where the
old value is read later, where the state is an output, where two states become one. And
random nets with state, run after run, beside numpy.
"""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np
import pytest

from pybuild.graph_builder import GraphBuilder
from pybuild.ir.graph import Tensor
from pybuild.library import Library
from pybuild.model import Model
from pybuild.ops.interpret import interpret, next_state
from tests.graphs.rows import model_of

SHAPE = (1, 6, 5, 4)
Net = Callable[[GraphBuilder, Tensor, Tensor], None]


def must_equal(model: Model, runs: int = 4, **options: object) -> Library:
    """The library of a model, which gives what numpy does, run after run."""
    library = model.build(**options)
    chance, state = np.random.default_rng(1), None
    net = library.host("llvm")
    for _ in range(runs):
        given = {
            name: chance.normal(0, 1, model.graph.tensor(name).shape).astype("f4")
            if model.graph.tensor(name).dtype.is_float
            else chance.integers(0, 6, model.graph.tensor(name).shape)
            for name in model.graph.inputs
        }
        found = interpret(model.graph, given, state)
        state = next_state(model.graph, found)
        made = net.run(**given)
        for name in model.graph.outputs:
            np.testing.assert_allclose(made[name], found[name], 1e-4, 1e-5, name)
    net.close()
    return library


def assigned(library: Library) -> int:
    return sum(step.node.op == "assign" for step in library.plan.steps)


# ---- one state, one way --------------------------------------------------------------


def _row(net: GraphBuilder, x: Tensor) -> Tensor:
    return net.op("reshape", net.op("slice", x, begin=(0, 0, 0, 0), end=(1, 1, 5, 4),
                                    strides=(1, 1, 1, 1)), shape=(1, 20))  # fmt: skip


def _written(net: GraphBuilder, x: Tensor, old: Tensor) -> Tensor:
    at = net.constant("at", np.array([2], np.int64))
    flat = net.op("reshape", old, shape=(6, 20))
    made = net.op("scatter", flat, at, _row(net, x), join="none")
    return net.op("reshape", made, shape=SHAPE)


def _read_before(net: GraphBuilder, x: Tensor, old: Tensor) -> None:
    net.output(net.op("add", old, x), "y")
    net.output(_written(net, x, old), "next")


def _read_later(net: GraphBuilder, x: Tensor, old: Tensor) -> None:
    """In the file; nothing keeps it from being first."""
    new = _written(net, x, old)
    net.output(net.op("add", old, x), "y")
    net.output(new, "next")


def _read_with_the_new(net: GraphBuilder, x: Tensor, old: Tensor) -> None:
    new = _written(net, x, old)
    net.output(net.op("mul", new, old), "y")
    net.output(new, "next")


def _written_twice(net: GraphBuilder, x: Tensor, old: Tensor) -> None:
    new = _written(net, x, old)
    at = net.constant("then", np.array([-1, 0], np.int64))
    rows = net.op("concat", _row(net, x), _row(net, new), axis=0)
    flat = net.op("reshape", new, shape=(6, 20))
    made = net.op("scatter", flat, at, rows, join="add")
    net.output(net.op("clip", x, clamp=(0.0, None)), "y")
    net.output(net.op("reshape", made, shape=SHAPE), "next")


def _summed(net: GraphBuilder, x: Tensor, old: Tensor) -> None:
    new = net.op("add", old, x)
    net.output(net.op("mul", new, new), "y")
    net.output(new, "next")


def _window(net: GraphBuilder, x: Tensor, old: Tensor) -> None:
    """Read over rows while it is written: not what one layer may do to itself."""
    weights = np.random.default_rng(2).normal(0, 0.2, (4, 3, 3, 4)).astype("f4")
    w = net.constant("w", weights)
    made = net.op("conv2d", net.op("add", old, x), w, pads=(1, 1, 1, 1))
    made = net.op("add", net.op("conv2d", old, w, pads=(1, 1, 1, 1)), made)
    net.output(net.op("clip", x, clamp=(0.0, None)), "y")
    net.output(made, "next")


def _conv_of_itself(net: GraphBuilder, x: Tensor, old: Tensor) -> None:
    weights = np.random.default_rng(2).normal(0, 0.2, (4, 3, 3, 4)).astype("f4")
    w = net.constant("w", weights)
    net.output(net.op("add", old, x), "y")
    net.output(net.op("conv2d", old, w, pads=(1, 1, 1, 1)), "next")


def _of_an_input(net: GraphBuilder, x: Tensor, old: Tensor) -> None:
    net.output(net.op("sub", x, old), "y")
    net.output(net.op("reshape", x, shape=SHAPE), "next")


WAYS: dict[Net, int] = {
    _read_before: 0, _read_later: 0, _read_with_the_new: 1, _written_twice: 0,
    _summed: 0, _window: 0, _conv_of_itself: 1, _of_an_input: 0,
}  # fmt: skip


def model(way: Net) -> Model:
    net = GraphBuilder("state")
    way(net, net.input("x", SHAPE, "float32"), net.input("old", SHAPE, "float32"))
    return model_of(net.build()).with_state({"old": "next"})


@pytest.mark.parametrize("plan", ["rows", "whole"])
@pytest.mark.parametrize("way", WAYS)
def test_a_state_is_assigned_only_where_it_must_be(way: Net, plan: str) -> None:
    assert assigned(must_equal(model(way), plan=plan)) == WAYS[way]


def test_a_state_that_is_an_output_too() -> None:
    net = GraphBuilder("state")
    x, old = (net.input(name, SHAPE, "float32") for name in ("x", "old"))
    net.output(_written(net, x, old), "next")
    library = must_equal(model_of(net.build()).with_state({"old": "next"}))
    assert library.graph.outputs == ("next",)


@pytest.mark.parametrize("turned", [False, True])
def test_two_states_that_change_places(turned: bool) -> None:
    """Each is what the other was, with a row of the input; or both become the same."""
    net = GraphBuilder("state")
    x, a, b = (net.input(name, SHAPE, "float32") for name in ("x", "a", "b"))
    made = _written(net, x, b)
    other = net.op("mul", a, x) if turned else net.op("add", made, x)
    net.output(net.op("add", a, b), "y")
    net.output(made, "a_next")
    net.output(other, "b_next")
    pairs = {"a": "a_next", "b": "b_next"}
    must_equal(model_of(net.build()).with_state(pairs))


@pytest.mark.parametrize("optimise", ["balanced", "ram"])
def test_layers_in_lock_step_do_not_read_new_rows(optimise: str) -> None:
    """A convolution reads rows of the old value; in lock step with the layer that
    writes the new one some would be new."""
    net, shape = GraphBuilder("state"), (1, 24, 16, 8)
    x, old = (net.input(name, shape, "float32") for name in ("x", "old"))
    values = np.random.default_rng(2)
    weights = [values.normal(0, 0.1, (8, 3, 3, 8)).astype("f4") for _ in range(3)]
    w = [net.constant(f"w{i}", one) for i, one in enumerate(weights)]
    pads = {"pads": (1, 1, 1, 1)}
    before = net.op("conv2d", old, w[0], **pads)
    new = net.op("conv2d", net.op("conv2d", x, w[1], **pads), w[2], **pads)
    both = net.op("add", before, new)
    net.output(net.op("avg_pool2d", both, kernel=(24, 16)), "y")
    net.output(new, "next")
    connected = model_of(net.build()).with_state({"old": "next"})
    library = must_equal(connected, optimise=optimise, input="keep")
    assert assigned(library) == 0
    assert any(stage.links for stage in library.plan.stages)


# ---- random nets ---------------------------------------------------------------------


def random_net(seed: int) -> Model:
    """Layers that read any of the last tensors; three states that become any."""
    chance, net = random.Random(seed), GraphBuilder("state")
    values = np.random.default_rng(seed)
    states = [net.input(name, SHAPE, "float32") for name in "abc"]
    made = [net.input("x", SHAPE, "float32"), *states]
    for number in range(chance.randint(5, 14)):
        x, y = (chance.choice(made[-6:]) for _ in range(2))
        match chance.choice(["conv", "point", "add", "mul", "clip", "row", "tail"]):
            case "conv" | "point" as op:
                size = 3 if op == "conv" else 1
                shape = (4, size, size, 4)
                w = net.constant(
                    f"w{number}", values.normal(0, 0.2, shape).astype("f4")
                )
                new = net.op("conv2d", x, w, pads=(size // 2,) * 4)
            case "add" | "mul" as op if x is not y:
                new = net.op(op, x, net.op("tanh", y))
            case "row":
                at = net.constant(f"at{number}", np.array([number % 6], np.int64))
                new = net.op("reshape", x, shape=(6, 20))
                new = net.op("scatter", new, at, _row(net, y), join="none")
                new = net.op("reshape", new, shape=SHAPE)
            case "tail":
                cut = {"begin": (0, 2, 0, 0), "end": SHAPE, "strides": (1, 1, 1, 1)}
                last = {**cut, "begin": (0, 4, 0, 0)}
                parts = net.op("slice", x, **cut), net.op("slice", y, **last)
                new = net.op("concat", *parts, axis=1)
            case _:
                new = net.op("clip", x, clamp=(-1.0, 1.0))
        made.append(new)
    ends = chance.sample(made[4:], min(4, len(made) - 4))
    for name, one in zip(("y", "a_next", "b_next", "c_next"), ends, strict=False):
        net.output(one, name)
    graph = net.build()
    pairs = {n: f"{n}_next" for n in "abc" if f"{n}_next" in graph.outputs}
    return model_of(graph).with_state(pairs)


@pytest.mark.parametrize("seed", range(40))
def test_random_nets_keep_their_state(seed: int) -> None:
    options = [{}, {"optimise": "ram"}, {"plan": "whole"}, {"input": "consumable"}]
    must_equal(random_net(seed), **options[seed % len(options)])


@pytest.mark.parametrize("compress", ["lz4", "lz4-layer"])
def test_constants_that_are_packed(compress: str) -> None:
    """Where 300 rows lie, which is known, is packed; nothing else of the step is."""
    net = GraphBuilder("state")
    x, old = (net.input(name, (300, 4), "float32") for name in ("x", "old"))
    at = net.constant("at", np.arange(300)[::-1].copy())
    new = net.op("scatter", old, at, x, join="add")
    net.output(net.op("mul", new, new), "y")
    net.output(new, "next")
    model = model_of(net.build()).with_state({"old": "next"})
    library = must_equal(model, compress=compress)
    assert assigned(library) == 0
