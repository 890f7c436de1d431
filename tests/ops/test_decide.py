"""Decisions over time: numpy, C and LLVM give what their sentences say, run after run,
for integers and float32.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pytest

from pybuild.dtype import Array, DType
from pybuild.errors import BuildError
from pybuild.features import Decision
from pybuild.ir.graph import Graph, Node, Quant, Tensor, verify
from pybuild.library import Library
from pybuild.model import Model
from pybuild.ops.interpret import interpret, next_state
from tests.frontends.tflite.cases import compiled

CLASSES, RUNS = 5, 160
QUANTS = {
    "int8": Quant((1 / 256,), (-128,)), "int16": Quant((1 / 32768,)), "float32": None,
}  # fmt: skip
DECISIONS = {
    "plain": Decision(smooth=1, threshold=0.5),
    "smooth": Decision(smooth=4, threshold=0.45, release=0.3),
    "late": Decision(smooth=7, threshold=0.4, release=0.1, refractory=10),
    "ignoring": Decision(smooth=2, threshold=0.4, refractory=3, ignore=(0, 3)),
}
CASES = [(kind, name) for kind in QUANTS for name in DECISIONS]


def _graph(kind: str, decision: Decision) -> Graph:
    x = Tensor("scores", (1, CLASSES), DType(kind), QUANTS[kind])
    taken = {"scores"}

    def fresh(name: str) -> str:
        assert name not in taken
        taken.add(name)
        return name

    made, ends = decision.nodes(x, "test", fresh)
    best = Node(
        "best_above", "best", ("scores",), ("best",), {"least": 0.5, "ignore": (1,)}
    )
    tensors = {t.name: t for t in (x, *made.tensors, Tensor("best", (1,), DType.INT32))}
    graph = Graph(
        "decide", "decide", (*made.nodes, best), tensors, ("scores",), (*ends, "best"),
        {}, state=made.state,
    )  # fmt: skip
    verify(graph)
    return graph


@cache
def _scores(kind: str) -> Array:
    """Peaks that come and go, ties, and the ends of the type."""
    rng = np.random.default_rng(3)
    t = np.arange(RUNS)[:, None]
    real = 0.5 + 0.5 * np.sin(t / (6 + np.arange(CLASSES)) + np.arange(CLASSES))
    real = np.round(real * rng.uniform(0.6, 1, (RUNS, 1)), 2)
    real[::17] = real[::17, :1]
    if kind == "float32":
        return real.astype(np.float32)[:, None]
    quant, dtype = QUANTS[kind], DType(kind)
    assert quant is not None
    q = np.round(real / quant.scale[0]) + quant.zero_point[0]
    q[5:14], q[30] = dtype.low, dtype.high
    return np.clip(q, dtype.low, dtype.high).astype(kind)[:, None]


def _said(kind: str, decision: Decision) -> list[tuple[int, int, int]]:
    """What should be heard, in exact fractions."""
    quant = QUANTS[kind]
    scale, zero = (Fraction(quant.scale[0]), quant.zero_point[0]) if quant else (1, 0)
    rows = [[Fraction(float(n)) for n in row[0]] for row in _scores(kind)]
    low = decision.threshold if decision.release is None else decision.release
    past = [[Fraction(zero)] * CLASSES] * (decision.smooth - 1)
    active = before = -1
    wait, said = 0, []
    for row in rows:
        past = [*past, row]
        mean = [sum(each) / decision.smooth for each in zip(*past, strict=True)]
        if quant:  # a half is rounded up
            mean = [Fraction((2 * m + 1) // 2) for m in mean]
        past = past[1:]
        real = [(m - zero) * scale for m in mean]
        best = real.index(max(real))
        if real[best] >= Fraction(decision.threshold) and best not in decision.ignore:
            active = best
        elif active >= 0 and real[active] < Fraction(low):
            active = -1
        wait, heard = max(wait - 1, 0), -1
        if active >= 0 and active != before and wait == 0:
            heard, wait = active, decision.refractory + 1
        before = active
        alone = [(m - zero) * scale for m in row]
        first = alone.index(max(alone))
        best = first if alone[first] >= Fraction(1, 2) and first != 1 else -1
        said.append((heard, active, best))
    return said


def _runs(library: Library, net: Any, kind: str) -> list[tuple[int, int, int]]:
    made = []
    for scores in _scores(kind):
        net.run(scores=scores)
        found = tuple(int(net.get_output(n)[0]) for n in library.plan.graph.outputs)
        made.append((found[0], found[1], found[2]))
    return made


@pytest.fixture(scope="module")
def nets(tmp_path_factory: pytest.TempPathFactory) -> dict[Any, dict[str, Any]]:
    libraries = [
        Model("d.json", _graph(kind, DECISIONS[name]), "litert", "0" * 64).build(
            name=f"d_{kind}_{name}"
        )
        for kind, name in CASES
    ]
    found = compiled(libraries, tmp_path_factory.mktemp("decide"), ("c",))
    return {
        case: {"library": library, **dict(every), "llvm": library.host("llvm")}
        for case, every, library in zip(CASES, found, libraries, strict=True)
    }


@pytest.mark.parametrize(("kind", "name"), CASES)
def test_what_is_heard(kind: str, name: str, nets: dict[Any, dict[str, Any]]) -> None:
    decision, graph = DECISIONS[name], _graph(kind, DECISIONS[name])
    said, state, made = _said(kind, decision), None, []
    for scores in _scores(kind):
        values = interpret(graph, {"scores": scores}, state)
        state = next_state(graph, values)
        made.append(tuple(int(values[n][0]) for n in graph.outputs))
    if kind == "float32" and decision.smooth > 1:  # sums of floats are rounded
        said = [(*row[:2], best) for row, (*_, best) in zip(made, said, strict=True)]
    assert made == said
    heard = [word for word, *_ in said if word >= 0]
    assert len(heard) > 5 and len({active for _, active, _ in said}) > 3
    every = dict(nets[kind, name])
    library = every.pop("library")
    for backend, net in every.items():
        assert _runs(library, net, kind) == said, backend


@pytest.mark.parametrize(
    ("decision", "what"),
    [
        (Decision(smooth=0), "smooth is 0 runs, not 1 to 1024"),
        (Decision(threshold=0.2, release=0.4), "release is 0.4, threshold 0.2"),
        (Decision(refractory=-1), "refractory is -1 runs"),
        (Decision(ignore=(5,)), "ignores class 5, there are 5"),
        (Decision(threshold=float("nan")), "threshold nan"),
    ],
)
def test_what_makes_no_sense_is_refused(decision: Decision, what: str) -> None:
    with pytest.raises(BuildError, match=what):
        _graph("int8", decision)


def test_scores_of_another_type_are_refused() -> None:
    x = Tensor("scores", (3,), DType.INT32)
    with pytest.raises(BuildError, match="scores 'scores' are int32"):
        Decision().nodes(x, "test", str)


@pytest.mark.parametrize("name", ["plain", "smooth"])
@pytest.mark.parametrize("place", range(CLASSES))
def test_no_class_where_a_score_is_nan(
    name: str, place: int, nets: dict[Any, dict[str, Any]]
) -> None:
    """Nothing is heard or held for as long as NaN is in the average."""
    graph, decision = _graph("float32", DECISIONS[name]), DECISIONS[name]
    lost, high = np.zeros((1, CLASSES), np.float32), np.zeros((1, CLASSES), np.float32)
    high[0, 3], lost[0, place] = 0.9, np.nan
    rows = [high] * 8 + [lost] + [high] * 8
    state, made = None, []
    for scores in rows:
        values = interpret(graph, {"scores": scores}, state)
        state = next_state(graph, values)
        made.append([int(values[n][0]) for n in graph.outputs])
    held, best = ([row[n] for row in made] for n in (1, 2))
    gone = range(8, 8 + decision.smooth)
    assert held[7] == best[7] == held[-1] == 3 and best[8] == -1 and best[9] == 3
    assert [n for n in range(7, len(rows)) if held[n] < 0] == [*gone]
    for backend in ("c", "llvm"):
        net = nets["float32", name][backend]
        net.reset()
        for scores, wanted in zip(rows, made, strict=True):
            net.run(scores=scores)
            assert [int(net.get_output(n)[0]) for n in graph.outputs] == wanted, backend
        net.reset()
