"""Linear layers that PT2E quantises dynamically: torch's numbers, by int8 sums, with
weights of a byte. The files are export_dynamic.py's.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pybuild
from pybuild.boards.device import program_of, run_program
from pybuild.frontends import graphjson
from pybuild.frontends.onnx import load as load_onnx
from pybuild.frontends.torch.load import converted
from pybuild.frontends.torch.reader.program import Call, Kind, Program, Ref
from pybuild.ir.graph import Graph
from pybuild.kernels.table import candidates
from pybuild.ops import hybrid
from pybuild.ops.interpret import interpret
from pybuild.targets.target import TARGETS
from tests.boards.devices import device
from tests.conftest import ROOT
from tests.kernels.kernel_bench import Job, run_c, run_llvm
from tests.toolchains import require

FOLDER = ROOT / "tests" / "exported"
NAMES = ("dynamic", "dynamic_tensor")
RUNS = 5


@pytest.fixture(scope="module")
def arrays() -> Any:
    return np.load(FOLDER / "dynamic.npz")


@pytest.mark.parametrize("name", NAMES)
def test_torch_computes_the_same(name: str, arrays: Any) -> None:
    model = pybuild.load(FOLDER / f"{name}.pt2")
    nets = [model.build().host(backend) for backend in ("llvm", "c")]
    nets.append(model.build(target="cortex-m55").host("llvm"))
    for run in range(RUNS):
        for net in nets:
            (made,) = net.run(x=arrays[f"{name}.{run}.x"]).values()
            np.testing.assert_allclose(made, arrays[f"{name}.{run}.y"], 1e-6, 2e-7)


@pytest.mark.parametrize("name", NAMES)
def test_layers_are_sums_of_int8(name: str) -> None:
    """Two layers read one tensor, which is quantised once."""
    model = pybuild.load(FOLDER / f"{name}.pt2")
    library, kinds = (
        model.build(target="cortex-m4"),
        [n.op for n in model.lower().nodes],
    )
    assert [kinds.count(f"{kind}_sums") for kind in ("dense", "scale")] == [4, 4]
    assert kinds.count("quantize_dynamic") == 3 and "dense" not in kinds
    weights = (13 + 3) * 32 + 16 * 24 + 24 * 5
    assert library.report.flash.weights <= weights + 3 * 4 * (16 + 16 + 24 + 5)


def test_a_graph_in_json_is_the_graph_itself(arrays: Any) -> None:
    """With the rule of the range, its least scale, and sums."""
    graph = pybuild.load(FOLDER / "dynamic.pt2").lower()
    again = graphjson.load("g.json", *graphjson.dump(graph))
    x = {graph.inputs[0]: arrays["dynamic.0.x"]}
    (first,), (second,) = (
        [interpret(one, x)[name] for name in one.outputs] for one in (graph, again)
    )
    np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize(
    ("board", "target"), [("mps2-an386", "cortex-m4"), ("mps3-an547", "cortex-m55")]
)
def test_on_a_board(board: str, target: str, arrays: Any) -> None:
    require("arm-none-eabi-gcc")
    model, x = pybuild.load(FOLDER / "dynamic.pt2"), arrays["dynamic.0.x"]
    library = model.build(name="net", target=target)
    (made,) = run_program(device(board), program_of(device(board), library), [{"x": x}])
    (value,) = made.values()
    np.testing.assert_allclose(value, arrays["dynamic.0.y"], 1e-6, 2e-7)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_no_number_becomes_one(bad: float, arrays: Any) -> None:
    x = arrays["dynamic.0.x"].copy()
    x[0, 1, 2] = bad
    (made,) = (
        pybuild.load(FOLDER / "dynamic.pt2").build().host("llvm").run(x=x).values()
    )
    assert np.isnan(made).all()


def ranges() -> list[tuple[Graph, np.ndarray]]:
    """The node that quantises, alone; what it reads: of both signs, and ends of the
    range, ties between two steps, less than the least scale, 0."""
    whole = pybuild.load(FOLDER / "dynamic.pt2").lower()
    node = next(n for n in whole.nodes if n.op == "quantize_dynamic")
    shape = whole.tensor(node.inputs[0]).shape
    x = np.random.default_rng(5).normal(0, 1, shape)
    ties = np.arange(x.size).reshape(shape) / 2 % 128 - 37.5
    ties.reshape(-1)[:2] = -100, 155
    made = (x, np.abs(x) + 1, -np.abs(x), ties, 1e-4 * x, 0 * x, 1e30 * x)
    names = (*node.inputs, *node.outputs)
    graph = Graph(
        "one", "one", (node,), {n: whole.tensor(n) for n in names},
        tuple(node.inputs), tuple(node.outputs),
    )  # fmt: skip
    return [(graph, one.astype(np.float32)) for one in made]


@pytest.mark.parametrize("target", ["generic", "cortex-m55"])
def test_each_integer_is_numpy_s(target: str, tmp_path: Path) -> None:
    jobs = []
    for graph, x in ranges():
        (node,) = graph.nodes
        wanted = hybrid.quantize(node, graph, [x])
        (one,) = candidates(node, graph, TARGETS[target], "balanced")
        expected = dict(zip(node.outputs, wanted, strict=True))
        jobs.append(Job(one, {node.inputs[0]: x}, expected))
    for results in (run_llvm(jobs), run_c(jobs, tmp_path)):
        for job, result in zip(jobs, results, strict=True):
            for name, want in job.outputs.items():
                np.testing.assert_array_equal(result[name], want, name)


def test_what_others_read_is_a_real_number() -> None:
    """A tensor is made int8 by its range, and no linear layer reads it."""
    own = "quantized_decomposed"
    real = {"scale": Ref("s"), "zero_point": Ref("z")}
    bounds = {"quant_min": -128, "quant_max": 127, "dtype": Kind("int8")}
    calls = (
        Call(f"{own}.choose_qparams.tensor", "c",
             {"input": Ref("x"), "eps": 2**-12, **bounds}, ("s", "z"), "c"),
        Call(f"{own}.quantize_per_tensor.tensor", "q",
             {"input": Ref("x"), **real, **bounds}, ("q",), "q"),
        Call(f"{own}.dequantize_per_tensor.tensor", "y",
             {"input": Ref("q"), **real, **bounds}, ("y",), "y"),
    )  # fmt: skip
    names, kinds = ("x", "s", "z", "q", "y"), {"z": "int64", "q": "int8"}
    shapes = {name: (1, 4, 13) if name in "xqy" else (1,) for name in names}
    types = {name: kinds.get(name, "float32") for name in names}
    program = Program("p", calls, ("x",), ("y",), {}, shapes, types)
    message, _ = converted(program)
    graph = load_onnx("p", message.SerializeToString(), {})
    one, x = ranges()[0]
    q, scale, zero = hybrid.quantize(one.nodes[0], one, [x])
    made = interpret(graph, {"x": x})["y"]
    less = (q.astype(np.int32) - zero).astype(np.float32)
    np.testing.assert_array_equal(made, less * scale)
