"""Steps that a file has written out become one node, and mean the same."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from pybuild.ir.graph import Graph, Quant
from pybuild.ir.graph_text import parse, text
from pybuild.model import Model
from pybuild.ops.interpret import check_types, interpret
from pybuild.passes.turns.roll import roll
from tests.passes.passes_graph import F, Small, inputs_of, ops

STEPS, WIDE, UNITS = 6, 3, 4
WHOLE = Quant((0.03,), (5,))
WEIGHTS = Quant((0.01,) * UNITS, (0,) * UNITS, 0)


class Cells(Small):
    """h = tanh(w x + r h) for each row of x, as exporters write it out."""

    def __init__(self, whole: bool = False, steps: int = STEPS) -> None:
        super().__init__()
        self.whole, self.steps = whole, steps
        self.quant = WHOLE if whole else None
        self.input("x", 1, steps, WIDE, quant=self.quant)
        for name, width in (("w", WIDE), ("r", UNITS)):
            chance = np.random.default_rng(width)
            if whole:
                value = chance.integers(-127, 128, (UNITS, width)).astype(np.int8)
                self.constant(name, value, WEIGHTS)
            else:
                self.weights(name, UNITS, width)
        self.made: list[str] = []

    def step(self, turn: int, h: str, fn: str = "tanh") -> str:
        t, q = str(turn), self.quant
        attrs = {"begin": (0, turn, 0), "end": (1, turn + 1, WIDE)}
        self.node("slice", "x", f"x{t}", quant=q, strides=(1, 1, 1), **attrs)
        self.node("reshape", f"x{t}", f"row{t}", shape=(1, WIDE), quant=q)
        self.node("dense", f"row{t} w -", f"seen{t}", quant=q)
        self.node("dense", f"{h} r -", f"known{t}", quant=q)
        self.node("add", f"seen{t} known{t}", f"sum{t}", quant=q)
        end = Quant((1 / 128,), (0,)) if self.whole else None
        self.node(fn, f"sum{t}", f"t{t}", quant=end)
        name = f"h{t}"
        if self.whole:
            self.node("quantize", f"t{t}", name, quant=q)
        else:
            self.node("mul", f"t{t} t{t}", name)
        self.made.append(name)
        return name

    def zeros(self, name: str) -> str:
        kind, zero = (np.int8, 5) if self.whole else (F, 0)
        return self.constant(name, np.full((1, UNITS), zero, kind), self.quant)

    def rounded(self, *outputs: str) -> Graph:
        """As passes leave it."""
        graph = self.graph(*outputs)
        asked = ("add", "dense", "quantize", "tanh", "logistic")
        rule = [n.with_attrs(rounding="even") if n.op in asked and self.whole else n
                for n in graph.nodes]  # fmt: skip
        return replace(graph, nodes=tuple(rule))


def same(graph: Graph, *, loops: int = 1, turns: int = STEPS) -> Graph:
    """What roll makes of it: so many loops, and no bit that differs; on this machine
    too."""
    made = roll(graph)
    found = [node for node in made.nodes if node.op == "repeat"]
    assert [n.attrs["turns"] for n in found] == [turns] * loops, ops(made)
    given = inputs_of(graph)
    before, after = interpret(graph, given), interpret(made, given)
    library = Model("small", made, "onnx", "0" * 64).build(None, name="small")
    net = library.host("llvm")
    net.run(**given)
    for name in graph.outputs:
        np.testing.assert_array_equal(after[name], before[name])
        np.testing.assert_allclose(net.get_output(name), before[name], 0, 1e-6)
    assert library.report.flash.tables < 1024
    assert parse(text(made)).dump() == made.dump()
    return made


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("back", [False, True])
def test_a_layer_and_all_it_gives(whole: bool, back: bool) -> None:
    """Forward, or from the last row to the first; every step is an output."""
    cells = Cells(whole)
    h = cells.input("h", 1, UNITS, quant=cells.quant)
    for turn in reversed(range(STEPS)) if back else range(STEPS):
        h = cells.step(turn, h)
    for name in cells.made:
        cells.node("reshape", name, f"{name}.row", shape=(1, 1, UNITS))
    names = [f"h{t}.row" for t in range(STEPS)]
    cells.node("concat", " ".join(names), "y", quant=cells.quant, axis=1)
    made = same(cells.rounded("y"))
    assert ops(made) == ["repeat", "reshape"]


def test_a_first_step_from_zeros_that_was_folded() -> None:
    cells = Cells(whole=True)
    zero = cells.zeros("zero")
    h = cells.step(0, zero)
    graph = cells.rounded(h)
    known = interpret(graph, inputs_of(graph))["known0"]
    for turn in range(1, STEPS):
        h = cells.step(turn, h)
    cells.node("copy", h, "y")
    graph = cells.rounded("y")
    nodes = tuple(n for n in graph.nodes if n.output != "known0")
    constants = {**graph.constants, "known0": known}
    made = same(replace(graph, nodes=nodes, constants=constants))
    assert ops(made) == ["repeat", "copy"]
    constants["known0"] = known + np.int8(1)
    same(replace(graph, nodes=nodes, constants=constants), turns=STEPS - 1)


def test_a_last_step_that_is_another() -> None:
    cells = Cells()
    h = cells.input("h", 1, UNITS)
    for turn in range(STEPS - 1):
        h = cells.step(turn, h)
    h = cells.step(STEPS - 1, h, "logistic")
    made = same(cells.rounded(h, "h2"), turns=STEPS)
    assert ops(made).count("logistic") == 1


def test_two_layers_and_states_that_are_outputs() -> None:
    cells = Cells()
    first = h = cells.input("h", 1, UNITS)
    second = cells.input("g", 1, UNITS)
    for turn in range(STEPS):
        h = cells.step(turn, h)
    cells.weights("u", UNITS, UNITS, seed=3)
    cells.weights("v", UNITS, UNITS, seed=4)
    for turn in range(STEPS):
        cells.node("dense", f"h{turn} u -", f"a{turn}")
        cells.node("dense", f"{second} v -", f"b{turn}")
        cells.node("add", f"a{turn} b{turn}", f"c{turn}")
        second = cells.node("tanh", f"c{turn}", f"d{turn}")
    assert first == "h"
    same(cells.rounded(h, second), loops=2)


def test_what_is_no_loop_stays() -> None:
    """Three steps, weights of their own, weights that users may replace."""
    for case in ("short", "weights", "r", "w"):
        cells = Cells(steps=3 if case == "short" else STEPS)
        h = cells.input("h", 1, UNITS)
        for turn in range(cells.steps):
            if case == "weights":
                cells.weights(f"r{turn}", UNITS, UNITS, seed=turn)
                cells.constants["r"] = cells.constants[f"r{turn}"] + turn
            h = cells.step(turn, h)
        graph = cells.graph(h)
        if case == "weights":
            nodes = tuple(
                replace(n, inputs=tuple(
                    f"r{n.output[5:]}" if i == "r" else i for i in n.inputs))
                for n in graph.nodes
            )  # fmt: skip
            graph = replace(graph, nodes=nodes)
        if case in ("r", "w"):
            graph = replace(graph, parameters={case: case})
        assert roll(graph) == graph


def test_a_body_that_does_not_fit_is_refused() -> None:
    cells = Cells()
    h = cells.input("h", 1, UNITS)
    for turn in range(STEPS):
        h = cells.step(turn, h)
    graph = roll(cells.graph(h))
    (node,) = (n for n in graph.nodes if n.op == "repeat")
    wrong = (
        ({"turns": STEPS + 1}, "its turns cannot read"),
        ({"body": "graph turn"}, "its body is not a graph"),
        ({"reads": node.attrs["reads"][1:]}, "its body has other inputs or outputs"),
        ({"makes": ((1, 1),)}, "its turns cannot make"),
        ({"body": node.attrs["body"].replace("tanh", "repeat")}, "is not an operator"),
    )
    for attrs, said in wrong:
        bad = replace(graph, nodes=(node.with_attrs(**attrs),))
        (found,) = check_types(bad)
        assert said in str(found), found
