"""Pushed inputs that met no layer of their stage, or no stage at all."""

from __future__ import annotations

import numpy as np
import pytest

from pybuild.errors import BuildError
from pybuild.graph_builder import GraphBuilder
from pybuild.host.abi import CrtError
from pybuild.ir.graph import Graph, Tensor
from tests.graphs.rows import model_of
from tests.plan.test_rows import inputs_of, must_equal, outputs_of


def _conv(net: GraphBuilder, x: Tensor, size: int) -> Tensor:
    values = np.random.default_rng(0).normal(0, 0.3, (2, size, 1, x.shape[3]))
    return net.op("conv2d", x, net.constant(f"w_{x.name}", values.astype(np.float32)))


def _read_late(rows: int) -> Graph:
    """Layers of another input come first, and end the stage of the pushed one."""
    net = GraphBuilder("late")
    x = net.input("x", (1, rows, 3, 5), "float32")
    other = net.input("other", (1, 9), "float32")
    net.output(net.op("clip", other, clamp=(-1.0, 1.0)))
    y = _conv(net, x, 1)
    z = net.op("pad", y, pads=((2, 0), (2, 0), (1, 0), (1, 0)))
    net.output(net.op("transpose", z, perm=(3, 2, 1, 0)))
    net.output(y)
    return net.build()


@pytest.mark.parametrize("rows", [1, 6])
def test_a_stage_in_which_nothing_reads_what_is_pushed(rows: int) -> None:
    """Its rows were counted where no counters were: on top of the rows themselves."""
    model = model_of(_read_late(rows))
    wanted = outputs_of(model.build(plan="whole"))
    made = model.build(push=["x"])
    feeds = [i for i, s in enumerate(made.plan.steps) if s.node.op == "push"]
    (stage,) = (s for s in made.plan.stages if s.first <= feeds[0] < s.end)
    assert any(link.maker == feeds[0] - stage.first + 1 for link in stage.links)
    must_equal(outputs_of(made, poison=0x7F), wanted)
    net = made.host()
    net.set_input("other", inputs_of(model.graph)["other"])
    image = inputs_of(model.graph)["x"][0]
    for row in image:
        net.push_rows("x", row[None])
    must_equal([net.get_output(i) for i in range(3)], wanted)


def test_a_batch_cannot_be_pushed() -> None:
    net = GraphBuilder("batch")
    x = net.input("x", (2, 4, 3, 5), "float32")
    net.output(_conv(net, x, 3))
    text = "input 'x' is 2 images, which 'conv2d' reads in turn. Hint: push a single"
    with pytest.raises(BuildError, match=text):
        model_of(net.build()).build(push=["x"])


def test_a_part_of_an_input_cannot_be_pushed() -> None:
    """A slice that moves no byte: its rows were taken for those of the input."""
    net = GraphBuilder("part")
    x = net.input("x", (1, 7, 2, 5), "float32")
    ends = {"begin": (0, 1, 0, 0), "end": (1, 5, 2, 5), "strides": (1, 1, 1, 1)}
    net.output(_conv(net, net.op("slice", x, **ends), 3))
    with pytest.raises(BuildError, match="input 'x' is not read row by row"):
        model_of(net.build()).build(push=["x"])


def test_an_input_is_pushed_or_lazy() -> None:
    net = GraphBuilder("both")
    net.output(_conv(net, net.input("x", (1, 7, 2, 5), "float32"), 3))
    text = "--push: 'x' cannot be lazy, too: rows are copied .* Hint: leave out --lazy"
    with pytest.raises(BuildError, match=text):
        model_of(net.build()).build(push=["x"], lazy=["x"])


def test_rows_that_no_stage_can_take() -> None:
    """More than are counted."""
    net = GraphBuilder("long")
    x = net.input("x", (1, 40000, 1, 1), "float32")
    net.output(_conv(net, x, 3))
    text = "no order of the layers takes the rows of 'x' as they come. Hint: its first"
    with pytest.raises(BuildError, match=text):
        model_of(net.build()).build(push=["x"])


def test_what_is_not_bound_is_not_what_is_pushed() -> None:
    net = GraphBuilder("both")
    net.output(_conv(net, net.input("x", (1, 7, 2, 5), "float32"), 3))
    host = model_of(net.build()).build(push=["x"], lazy=["conv2d"]).host()
    rows = np.zeros((1, 2, 5), np.float32)
    with pytest.raises(CrtError, match="is not bound: 'conv2d'"):
        host.push_rows("x", rows)
