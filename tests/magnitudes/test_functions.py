"""Every function of one float that a graph has, at every magnitude, by C and LLVM."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from pybuild.dtype import DType
from pybuild.ir.graph import Graph, Node, Tensor, verify
from pybuild.kernels.layers.largest import largest
from pybuild.ops.map import FUNCTIONS as OF_MAP
from tests.magnitudes.functions import FUNCTIONS
from tests.magnitudes.grid import Bound, excess, grid, halves
from tests.magnitudes.runs import results
from tests.toolchains import require

# layers of float32, beside the functions of map
LAYERS = ("logistic", "tanh")
_HALF = Bound(0.1, 1e-7)


def functions() -> set[str]:
    """Of map: those of one float to a float."""
    return {
        name
        for name, f in OF_MAP.items()
        if f.count == 1 and f.result == "same" and DType.FLOAT32 in f.types
    }


def _graph(kind: DType, size: int) -> Graph:
    tensors = {"x": Tensor("x", (size,), kind)}
    nodes = [Node("map", n, ("x",), (n,), {"fn": n}) for n in sorted(functions())]
    if kind is DType.FLOAT32:
        nodes += [Node(n, f"layer_{n}", ("x",), (f"layer_{n}",), {}) for n in LAYERS]
    tensors |= {n.output: Tensor(n.output, (size,), kind) for n in nodes}
    outputs = tuple(n.output for n in nodes)
    graph = Graph("m", "m", tuple(nodes), tensors, ("x",), outputs)
    verify(graph)
    return graph


@pytest.mark.parametrize("kind", [DType.FLOAT32, DType.FLOAT16], ids=lambda k: k.value)
def test_each_function_at_every_magnitude(kind: DType, tmp_path: Path) -> None:
    require("gcc")
    assert functions() == FUNCTIONS.keys() - {"logistic"}, "a function without a row"
    x = grid() if kind is DType.FLOAT32 else halves()
    wrong = []
    made = results("magnitudes", _graph(kind, x.size), {"x": x}, tmp_path)
    for name, y in made.items():
        function = FUNCTIONS[name.removeprefix("layer_")]
        with np.errstate(all="ignore"):
            true = function.true(x.astype(np.float64))
        bound = function.bound if kind is DType.FLOAT32 else _HALF
        bad, _ = excess(y, true, bound)
        places = np.flatnonzero(bad)[:3]
        wrong += [f"{name}({x[i]}) = {y[i]}, not {true[i]}" for i in places]
    assert not wrong, "\n".join(wrong)


def test_a_bound_of_the_graph_keeps_the_table_of_two_over_pi_away(
    tmp_path: Path,
) -> None:
    """sin(tanh(x)), sin(x): of the first 2048 is out of reach."""
    names = {"tanh": "x", "near": "tanh", "any": "x"}
    tensors = {n: Tensor(n, (8,), DType.FLOAT32) for n in ("x", *names)}
    nodes = [Node("tanh", "tanh", ("x",), ("tanh",), {})]
    nodes += [Node("map", n, (names[n],), (n,), {"fn": "sin"}) for n in ("near", "any")]
    graph = Graph("m", "m", tuple(nodes), tensors, ("x",), ("near", "any"))
    assert largest(graph, "tanh") == 1 and largest(graph, "x") == np.inf
    x = np.asarray([0, 1, -3, 3e8, 1e38, np.inf, -np.inf, np.nan], np.float32)
    made = results("angles", graph, {"x": x}, tmp_path)
    text = (tmp_path / "angles.c").read_text()
    assert "sin_f32_near" in text and "sin_f32_any" in text
    np.testing.assert_allclose(made["near"], np.sin(np.tanh(x)), rtol=3e-7)
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(made["any"], np.sin(x.astype(float)), rtol=3e-7)
