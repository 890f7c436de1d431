"""Programs that write into tensors and buffers, as torch.export saves them: what torch
computed, run after run. Made by tests/exported/export_in_place.py.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pybuild
from pybuild.dtype import Array
from pybuild.errors import BuildError
from pybuild.frontends.torch.reader.program import Ref
from pybuild.ir.graph import Graph
from pybuild.ops.interpret import interpret, next_state
from tests.frontends.torch.test_operators import call, ran

FOLDER = Path(__file__).resolve().parents[2] / "exported"
CACHES = ("a", "b", "c", "d", "total", "window")


@pytest.fixture(scope="module")
def arrays() -> Any:
    return np.load(FOLDER / "in_place.npz")


def _side(arrays: Any, name: str, run: int, side: str) -> list[Array]:
    count = sum(key.startswith(f"{name}.{run}.{side}") for key in arrays.files)
    return [arrays[f"{name}.{run}.{side}{i}"] for i in range(count)]


def _inputs(graph: Graph, arrays: Any, name: str, run: int) -> dict[str, Array]:
    return dict(zip(graph.inputs, _side(arrays, name, run, "x"), strict=True))


@pytest.mark.parametrize("form", ["elements", "elements_core"])
def test_operators_in_place(form: str, arrays: Any) -> None:
    """79 operators, each on a copy of the input."""
    graph = pybuild.load(FOLDER / "in_place" / f"{form}.pt2").lower()
    found = interpret(graph, _inputs(graph, arrays, "elements", 0))
    want = _side(arrays, "elements", 0, "y")
    assert len(want) == len(graph.outputs) > 70
    for name, theirs in zip(graph.outputs, want, strict=True):
        np.testing.assert_allclose(found[name], theirs, 1e-5, 1e-5, err_msg=name)


@pytest.mark.parametrize("form", ["caches", "caches_core"])
def test_buffers_that_are_written_are_state(form: str, arrays: Any) -> None:
    """index_copy_, index_put_, scatter_ and index_add_ into caches; copy_; a part: all
    are written where they lie."""
    model = pybuild.load(FOLDER / "in_place" / f"{form}.pt2")
    assert sorted(model.graph.state) == [f"b_{name}" for name in CACHES]
    graph, state = model.lower(), None
    library = model.build()
    assert all(step.node.op != "assign" for step in library.plan.steps)
    net = library.host("llvm")
    for run in range(3):
        given = _inputs(graph, arrays, "caches", run)
        found = interpret(graph, given, state)
        state = next_state(graph, found)
        ours = net.run(**given)
        want = _side(arrays, "caches", run, "y")
        for name, theirs in zip(graph.outputs, want, strict=True):
            np.testing.assert_allclose(found[name], theirs, 1e-5, 1e-6, err_msg=name)
            np.testing.assert_allclose(ours[name], theirs, 1e-5, 1e-6, err_msg=name)
    net.close()


@pytest.mark.parametrize(
    ("target", "args", "what"),
    [
        ("scatter_reduce.two", {"index": Ref("i"), "reduce": "mean"},
         "reduce='mean' with these arguments is not supported. Hint: 'add'"),
        ("index_copy_.default", {"dim": None, "index": Ref("i"), "source": Ref("x")},
         "the operator is not supported with these arguments. Hint: exported.run_"),
        ("index_put.default", {"indices": [None, Ref("i"), Ref("i")],
                               "values": Ref("x")},
         "this order of indices is not supported. Hint: index_copy_"),
    ],
)  # fmt: skip
def test_what_is_not_there_says_how_to_go_on(
    target: str, args: dict[str, Any], what: str
) -> None:
    x, i = np.ones((2, 3, 3), np.float32), np.zeros((2, 2, 2), np.int64)
    made = call(target, "y", self=Ref("x"), **{"dim": 0, **args})
    with pytest.raises(BuildError, match=re.escape(f"net: node 'y': {what}")):
        ran([made], {"x": x, "i": i, "y": x}, ["y"])
