"""Every function of one float that a graph has, and every operator of ONNX and .tflite
that is one, at every magnitude, in float32 and float16, by C and LLVM: near float64.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from pybuild.boards.device import program_of, run_program
from pybuild.dtype import Array, DType
from pybuild.frontends.onnx import load as load_onnx
from pybuild.frontends.tflite import load as load_tflite
from pybuild.ir.graph import Graph, Node, Tensor, verify
from pybuild.kernels.layers.largest import largest
from pybuild.model import Model
from pybuild.ops.map import FUNCTIONS as OF_MAP
from tests.magnitudes.doors import ONNX, TFLITE
from tests.magnitudes.functions import FUNCTIONS, Function
from tests.magnitudes.grid import Bound, excess, grid, halves
from tests.magnitudes.runs import joined, results
from tests.magnitudes.test_onnx import types
from tests.magnitudes.test_onnx import written as written_onnx
from tests.magnitudes.test_tflite import written as written_tflite
from tests.perf.measure import device
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


def of_map(kind: DType, size: int) -> Graph:
    """Every function of map, and the layers beside it."""
    tensors = {"x": Tensor("x", (size,), kind)}
    nodes = [Node("map", n, ("x",), (n,), {"fn": n}) for n in sorted(functions())]
    if kind is DType.FLOAT32:
        nodes += [Node(n, f"layer_{n}", ("x",), (f"layer_{n}",), {}) for n in LAYERS]
    tensors |= {n.output: Tensor(n.output, (size,), kind) for n in nodes}
    outputs = tuple(n.output for n in nodes)
    graph = Graph("m", "m", tuple(nodes), tensors, ("x",), outputs)
    verify(graph)
    return graph


def _doors(kind: DType, x: Array) -> tuple[dict[str, Graph], dict[str, Function]]:
    """Graphs by door; of each output what it should be."""
    graphs = {"map": of_map(kind, x.size)}
    true = {f"map_{n}": FUNCTIONS[n.removeprefix("layer_")]
            for n in graphs["map"].outputs}  # fmt: skip
    onnx = {name: one for name, one in ONNX.items() if kind.value in types(one)}
    graphs["onnx"] = load_onnx("magnitudes.onnx", written_onnx(onnx, x), {})
    true |= {f"onnx_y_{name}": one.function for name, one in onnx.items()}
    if kind is DType.FLOAT32:
        data = written_tflite(TFLITE, x.size)
        graphs["tflite"] = load_tflite("magnitudes.tflite", data, {})
        true |= {f"tflite_y_{name}": one.function for name, one in TFLITE.items()}
    return graphs, true


@pytest.mark.parametrize("kind", [DType.FLOAT32, DType.FLOAT16], ids=lambda k: k.value)
def test_each_at_every_magnitude(kind: DType, tmp_path: Path) -> None:
    """Functions of a graph, and operators of ONNX and of .tflite."""
    require("gcc")
    assert functions() == FUNCTIONS.keys() - {"logistic"}, "a function without a row"
    x = grid() if kind is DType.FLOAT32 else halves()
    graphs, functions_of = _doors(kind, x)
    made = results("magnitudes", joined(graphs), {"x": x}, tmp_path)
    assert made.keys() == functions_of.keys()
    wrong = []
    for name, y in made.items():
        function = functions_of[name]
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
    near = replace(graph, nodes=tuple(nodes[:2]), outputs=("near",))
    model = Model("few.toml", near, "onnx", "0" * 64)
    fewer = "".join(model.build(name="few").sources().values())
    assert "sin_f32_near" in fewer
    assert "angles_any_quarters" in text and "_quarters" not in fewer


def test_a_core_gives_the_bits_of_this_machine() -> None:
    """Each function on a Cortex-M4, whose compiler and float unit are others."""
    x = np.unique(grid())[::41]
    x = np.concatenate([x, np.float32([0, -0.0, np.inf, -np.inf, np.nan])])
    on = device("cortex-m4")
    model = Model("core.toml", of_map(DType.FLOAT32, x.size), "onnx", "0" * 64)
    made = model.build(None, name="core", input="keep").host("llvm")(x=x)
    library = model.build(name="core", target="cortex-m4", input="keep")
    (found,) = run_program(on, program_of(on, library), [{"x": x}])
    for name, value in made.items():
        np.testing.assert_array_equal(found[name], value, name)
