"""--state auto: which outputs are inputs of the next run, where that is obvious."""

from __future__ import annotations

from pathlib import Path

import pytest

import pybuild
from pybuild.errors import BuildError
from pybuild.ir.graph import Graph
from pybuild.passes.state import obvious
from tests.passes.passes_graph import Small

GRU = Path("examples/streams/gru.onnx")


def pair(*names: str) -> Graph:
    """x, a, b -> y, c, d, where c and d are both of a and b."""
    g = Small()
    for name in names[:3]:
        g.input(name, 1, 4)
    g.node("add", f"{names[1]} {names[2]}", "sum")
    for name in names[3:]:
        g.node("add", f"sum {names[0]}", name)
    return g.graph(*names[3:])


def test_a_state_is_known_by_its_type() -> None:
    model = pybuild.load(GRU, state="auto")
    assert dict(model.recipe.load.state) == {"h": "h_next"}  # as it would be told
    told = pybuild.load(GRU, state={"h": "h_next"})
    assert model.graph.dump() == told.graph.dump()
    assert model.graph.inputs == ("frame",)


@pytest.mark.parametrize(
    "names",
    [
        ("x", "h0", "c0", "hn", "cn"),
        ("x", "past_key", "past_value", "present_key", "present_value"),
        ("x", "h", "c", "h_next", "c_next"),
        ("x", "rnn/state_in", "cell.in", "rnn/state_out", "cell.out"),
    ],
)
def test_states_of_one_type_are_known_by_their_names(names: tuple[str, ...]) -> None:
    assert obvious(pair(*names)) == {names[1]: names[3], names[2]: names[4]}


def test_what_is_open_is_asked() -> None:
    """Two of one type without names that tell; a net without another input."""
    with pytest.raises(BuildError, match=r"is not obvious. Hint: say it: p=x or q=x"):
        obvious(pair("x", "a", "b", "p", "q"))
    g = Small()
    g.input("x", 1, 4)
    g.node("tanh", "x", "y")
    with pytest.raises(BuildError, match="say it: y=x"):
        obvious(g.graph("y"))
    g.input("z", 1, 3)
    g.node("tanh", "z", "w")
    with pytest.raises(BuildError, match="y=x or w=z"):
        obvious(g.graph("y", "w"))
