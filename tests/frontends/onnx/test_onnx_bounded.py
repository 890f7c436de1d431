"""Results as large as the data says: with a bound, and what may be computed of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import pybuild
import pybuild.backend as backend
from pybuild.boards.check import check_on_board
from pybuild.cli import main
from pybuild.dtype import DType
from pybuild.errors import BuildError
from pybuild.frontends.onnx import load
from pybuild.ir.graph import Graph, Node, Tensor
from pybuild.ops.interpret import interpret
from pybuild.verify.compare import Judge, Limits
from tests.boards.devices import CORES, device
from tests.frontends.onnx.models import expected, session
from tests.frontends.onnx.models import model as onnx_model

Nodes = Sequence[onnx.NodeProto]
I64 = TensorProto.INT64
node = helper.make_node
KNOWN = {
    "zero": np.float32(0), "zeros": np.int64([0]), "one": np.int64([1]),
    "table": np.arange(40, dtype=np.float32).reshape(2, 20) % 7,
    "column": np.float32([[1], [2]]), "two": np.int64([2]),
    "matrix": np.arange(12, dtype=np.float32).reshape(4, 3) - 5,
    "flat": np.int64([-1, 2]), "first": np.asarray(0, np.int64),
}  # fmt: skip
FOUND = [node("Greater", ["x", "zero"], ["m"]), node("NonZero", ["m"], ["nz"])]
ROWS = [
    node("ReduceMax", ["x"], ["best"], axes=[1], keepdims=0),
    node("Greater", ["best", "zero"], ["which"]),
    node("Compress", ["x", "which"], ["rows"], axis=0),
]


def _model(nodes: Nodes, shape: Sequence[int], outputs: Sequence[str]) -> bytes:
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        list(nodes),
        "bounded",
        [value("x", TensorProto.FLOAT, shape)],
        [helper.make_empty_tensor_value_info(name) for name in outputs],
        [numpy_helper.from_array(np.asarray(v), n) for n, v in KNOWN.items()],
    )
    opset = [helper.make_opsetid("", 15)]
    model = helper.make_model(graph, opset_imports=opset, ir_version=10)
    return onnx.shape_inference.infer_shapes(model).SerializeToString()


def _x(shape: Sequence[int]) -> Any:
    return np.random.default_rng(3).normal(-0.4, 1, shape).astype(np.float32)


# nodes, shape of x, outputs, axis of each that is as long as the data says
FOLLOWED: dict[str, tuple[Nodes, Sequence[int], dict[str, int]]] = {
    "places of elements and the elements": (
        [
            *FOUND,
            node("Transpose", ["nz"], ["at"]),
            node("GatherND", ["x", "at"], ["y"]),
            node("Sigmoid", ["y"], ["s"]),
            node("Reshape", ["at", "flat"], ["pairs"]),
        ],
        (4, 5), {"nz": 1, "at": 0, "s": 0, "pairs": 0},
    ),
    "columns of a table": (
        [
            *FOUND,
            node("Squeeze", ["nz", "zeros"], ["i"]),
            node("Gather", ["table", "i"], ["t"], axis=1),
            node("Mul", ["t", "column"], ["u"]),
            node("ReduceSum", ["u", "zeros"], ["s"], keepdims=0),
            node("Unsqueeze", ["s", "one"], ["y"]),
            node("Concat", ["y", "y"], ["wide"], axis=1),
            node("Slice", ["wide", "one", "two", "one"], ["last"]),
        ],
        (20,), {"t": 1, "s": 0, "wide": 0, "last": 0},
    ),
    "rows by a matrix": (
        [
            *ROWS,
            node("MatMul", ["rows", "matrix"], ["p"]),
            node("Softmax", ["p"], ["y"], axis=1),
            node("ArgMax", ["y"], ["best_of"], axis=1, keepdims=0),
            node("Gather", ["y", "first"], ["firsts"], axis=1),
        ],
        (6, 4), {"rows": 0, "y": 0, "best_of": 0, "firsts": 0},
    ),
}  # fmt: skip


@pytest.mark.parametrize("room", [3, 99])
@pytest.mark.parametrize("name", FOLLOWED)
def test_what_holds_is_as_onnxruntime_has_it(name: str, room: int) -> None:
    nodes, shape, outputs = FOLLOWED[name]
    data, x = _model(nodes, shape, list(outputs)), _x(shape)
    bounds = {"rows" if "rows" in outputs else "nz": room}
    graph = load("m.onnx", data, {}, bounds=bounds)
    found = interpret(graph, {"x": x})
    net = session(data)
    wanted = dict(zip(outputs, net.run(None, {"x": x}), strict=True))
    for output, axis in outputs.items():
        bound, want, have = graph.bounded[output], wanted[output], found[output]
        assert (bound.axis, bound.count) == (axis, f"{output}_count")
        count = int(found[bound.count][0])
        assert count == want.shape[axis] > 3
        holds = range(min(count, room))
        want, have = (np.take(value, holds, axis) for value in (want, have))
        np.testing.assert_allclose(have, want, rtol=1e-6, atol=1e-6)


def test_the_rest_of_places_is_minus_one_and_of_values_zero() -> None:
    nodes = [*ROWS, node("NonZero", ["which"], ["nz"])]
    data, x = _model(nodes, (6, 4), ["rows", "nz"]), _x((6, 4))
    graph = load("m.onnx", data, {}, bounds={"rows": 6, "nz": 6})
    found = interpret(graph, {"x": np.where(np.arange(6)[:, None] == 2, x, -1)})
    assert found["rows_count"].tolist() == found["nz_count"].tolist() == [1]
    assert found["nz"].tolist() == [[2, -1, -1, -1, -1, -1]]
    assert not found["rows"][1:].any() and found["rows"][0].tolist() == x[2].tolist()


def test_its_shape_is_computed() -> None:
    nodes = [*FOUND, node("Shape", ["nz"], ["s"]), node("Size", ["nz"], ["n"])]
    nodes += [node("Cast", ["n"], ["f"], to=1), node("Shape", ["nz"], ["t"], end=1)]
    data, x = _model(nodes, (4, 5), ["s", "n", "t"]), _x((4, 5))
    found = interpret(load("m.onnx", data, {}, bounds={"nz": 20}), {"x": x})
    wanted = session(data).run(None, {"x": x})
    for name, want in zip(("s", "n", "t"), wanted, strict=True):
        assert found[name].tolist() == want.tolist()


def test_places_of_what_is_known_are_known() -> None:
    """As exporters write `arange`."""
    fill = numpy_helper.from_array(np.int64([1]))
    nodes = [
        node("Shape", ["x"], ["s"]),
        node("ConstantOfShape", ["s"], ["ones"], value=fill),
        node("NonZero", ["ones"], ["nz"]),
        node("Cast", ["nz"], ["f"], to=1),
        node("Add", ["f", "x"], ["y"]),
        node("NonZero", ["first"], ["none"]),
        node("Shape", ["none"], ["s0"]),
    ]
    graph = load("m.onnx", _model(nodes, (5,), ["y", "s0"]), {})
    found = interpret(graph, {"x": np.zeros(5, np.float32)})
    assert found["y"].tolist() == [[0, 1, 2, 3, 4]] and found["s0"].tolist() == [0, 0]
    assert not graph.bounded


BOXES = {
    "most": np.int64([20]), "share": np.float32([0.6]), "least": np.float32([0.3]),
    "column": np.int64([2]), "image": np.int64([0]),
}  # fmt: skip


@pytest.mark.parametrize("room", [5, 99])
@pytest.mark.parametrize("centre", [0, 1])
def test_boxes_taken_are_those_of_onnxruntime(room: int, centre: int) -> None:
    """And the scores of them, as detectors end."""
    rng = np.random.default_rng(4)
    inputs = {
        "boxes": rng.uniform(0.2, 2, (2, 24, 4)).astype(np.float32),
        "scores": rng.uniform(0, 1, (2, 3, 24)).astype(np.float32).round(1),
    }
    nodes = [
        ("NonMaxSuppression", ["boxes", "scores", "most", "share", "least"], ["taken"],
         {"center_point_box": centre}),
        ("Gather", ["taken", "column"], ["box"], {"axis": 1}),
        ("Squeeze", ["box", "one"], ["which"], {}),
        ("Gather", ["boxes", "which"], ["found"], {"axis": 1}),
    ]  # fmt: skip
    known = {**BOXES, "one": np.int64([1])}
    data = onnx_model(nodes, inputs, ["taken", "found"], known)
    graph = load("m.onnx", data, {}, bounds={"taken": room})
    found = interpret(graph, inputs)
    want = expected(data, inputs)
    count = int(found["taken_count"][0])
    assert count == len(want["taken"]) > 5
    holds = min(count, room)
    np.testing.assert_array_equal(found["taken"][:holds], want["taken"][:holds])
    assert (found["taken"][holds:] == -1).all()
    np.testing.assert_array_equal(found["found"][:, :holds], want["found"][:, :holds])


@pytest.mark.parametrize("kept", [1, 0])
def test_each_value_once(kept: int) -> None:
    """What is not a number is one value, the largest; with room for fewer and more."""
    x = np.float32([3, np.nan, 1, 3, -2, np.nan, 1, 1])
    outputs = ["y", "first", "number", "often"]
    nodes = [("Unique", ["x"], outputs, {"sorted": kept})]
    data = onnx_model(nodes, {"x": x}, outputs)
    graph = load("m.onnx", data, {}, bounds={"first": 3})
    net = pybuild.model.Model("u.onnx", graph, "onnx", "").build(name="u").host()
    net.run(x=x)
    order = [-2, 1, 3, np.nan] if kept else [3, np.nan, 1, -2]
    first = [4, 2, 0, 1] if kept else [0, 1, 2, 4]
    number = [2, 3, 1, 2, 0, 3, 1, 1] if kept else [0, 1, 2, 0, 3, 1, 2, 2]
    often = [1, 3, 2, 2] if kept else [2, 2, 3, 1]
    np.testing.assert_array_equal(net.get_output("y"), np.float32(order[:3]))
    assert net.get_output("first").tolist() == first[:3]
    assert net.get_output("number").tolist() == number
    assert net.get_output("often").tolist() == often[:3]
    assert net.get_output("y_count").tolist() == [4]
    whole = interpret(load("m.onnx", data, {}, roomy=True), {"x": x})
    assert whole["first"].tolist() == [*first, -1, -1, -1, -1]
    assert whole["often"].tolist() == [*often, 0, 0, 0, 0]


@pytest.mark.parametrize("length", [6, 7])
def test_half_a_spectrum_back(length: int) -> None:
    rng = np.random.default_rng(6)
    x = rng.normal(size=(2, 4, 2)).astype(np.float32)
    known = {"length": np.asarray(length, np.int64)}
    attrs = {"axis": 1, "inverse": 1, "onesided": 1}
    wave = np.fft.irfft(x[..., 0] + 1j * x[..., 1], length, 1)[..., None]
    graph = helper.make_graph(
        [node("DFT", ["x", "length"], ["y"], **attrs)],
        "half",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, x.shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, wave.shape)],
        [numpy_helper.from_array(v, n) for n, v in known.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    found = interpret(load("m.onnx", model.SerializeToString(), {}), {"x": x})
    np.testing.assert_allclose(found["y"], wave, atol=1e-6)


def _inside(name: str) -> onnx.GraphProto:
    value = helper.make_tensor_value_info
    nodes = [node("NonZero", ["m"], [name])]
    return helper.make_graph(nodes, name, [], [value(name, I64, [2, None])])


REFUSED = {
    "sum along it": [node("ReduceSum", ["nz", "one"], ["y"])],
    "sum of all": [node("ReduceSum", ["nz"], ["y"])],
    "best along it": [node("ArgMax", ["nz"], ["y"], axis=-1)],
    "the last of it": [node("Slice", ["nz", "one", "two", "one"], ["y"])],
    "one of it": [node("Gather", ["nz", "first"], ["y"], axis=1)],
    "another next to it": [node("Concat", ["nz", "nz"], ["y"], axis=1)],
    "flattened": [node("Flatten", ["nz"], ["y"])],
    "reshaped": [node("Reshape", ["nz", "flat"], ["y"])],
    "as many others": [
        node("Greater", ["zero", "x"], ["m2"]),
        node("NonZero", ["m2"], ["nz2"]),
        node("Add", ["nz", "nz2"], ["y"]),
    ],
    "a constant as long": [
        node("Cast", ["nz"], ["f"], to=1),
        node("Transpose", ["f"], ["g"]),
        node("Transpose", ["table"], ["w"]),
        node("Add", ["g", "w"], ["y"]),
    ],
    "along it by a matrix": [
        node("Cast", ["nz"], ["f"], to=1),
        node("Transpose", ["table"], ["w"]),
        node("MatMul", ["f", "w"], ["y"]),
    ],
    "in a branch": [
        node("ReduceMax", ["x"], ["most"], keepdims=0),
        node("Greater", ["most", "zero"], ["c"]),
        node("If", ["c"], ["y"], then_branch=_inside("a"), else_branch=_inside("b")),
    ],
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_would_compute_with_what_is_not_there(name: str) -> None:
    data = _model([*FOUND, *REFUSED[name]], (4, 5), ["y"])
    with pytest.raises(BuildError, match="holds less than it has room for"):
        load("m.onnx", data, {}, roomy=True)


def _nonzero_file(folder: Path) -> Path:
    (folder / "nz.onnx").write_bytes(_model([*FOUND, *ROWS], (4, 5), ["nz", "rows"]))
    return folder / "nz.onnx"


def test_built_and_checked_from_the_command_line(tmp_path: Path) -> None:
    path = _nonzero_file(tmp_path)
    bounds = ["--bound", "nz=7", "--bound", "rows=4"]
    checked = ["--samples", "3", "--ref", "ort", "--backend", "llvm"]
    assert main(["check", str(path), *bounds, *checked]) == 0
    assert main(["build", str(path), *bounds, "-o", str(tmp_path / "out")]) == 0
    text = (tmp_path / "out" / "nz.h").read_text()
    assert "const int64_t *nz_nz_count(const struct nz *m);" in text
    assert "along axis 1 only as many hold as" in text
    with pytest.raises(BuildError, match=r"^--bound: is for .onnx files only"):
        pybuild.load("examples/digits/digits_int8.tflite", bounds={"a": 1})


@pytest.mark.sweep
@pytest.mark.parametrize("core", ["cortex-m0", "cortex-m4"])
def test_on_emulated_cores(core: str, tmp_path: Path) -> None:
    path = _nonzero_file(tmp_path)
    board = device(CORES[core], core=core)
    model = pybuild.load(path, bounds={"nz": 7, "rows": 4})
    done = check_on_board(board, model.build(target=board.core.target), path, count=3)
    (tally,) = done.result.backends.values()
    assert done.result.ok and tally.elements > 0


def test_a_reference_that_holds_another_number_is_unequal() -> None:
    graph = load("m.onnx", _model(FOUND, (4, 5), ["nz"]), {}, bounds={"nz": 7})
    judge, have = Judge(graph, Limits(), {}), interpret(graph, {"x": _x((4, 5))})
    want = np.argwhere(_x((4, 5)) > 0).T
    assert want.shape[1] < 7 and judge.compare(have, {"nz": want}).good
    assert judge.compare(have, {"nz": want[:, :-1]}).max_abs == math.inf
    want[1, -1] += 1
    assert judge.compare(have, {"nz": want}).mismatches == 1


def test_the_backend_cuts_what_is_not_there() -> None:
    model = onnx.load_from_string(_model([*FOUND, *ROWS], (4, 5), ["rows", "nz"]))
    x = _x((4, 5))
    rows, places = backend.run_model(model, [x])
    assert places.tolist() == np.argwhere(x > 0).T.tolist()
    assert rows.tolist() == x[(x > 0).any(1)].tolist()


@pytest.mark.parametrize("truth", [[1, 1, 0, 1, 1], [0, 0, 0, 1, 0]])
def test_no_place_is_written_behind_the_others(truth: list[int]) -> None:
    tensors = {"x": Tensor("x", (5,), DType.BOOL), "y": Tensor("y", (4,), DType.INT32)}
    nodes = (Node("places", "y", ("x",), ("y",), {"count": 3}),)
    graph = Graph("p", "p", nodes, tensors, ("x",), ("y",))
    net = pybuild.model.Model("p.onnx", graph, "onnx", "").build(name="p").host()
    whole = np.full(8, 77, np.int32)
    net.bind_output("y", whole[:4])
    net.run(x=np.asarray(truth, bool))
    count = sum(truth)
    places = [*np.flatnonzero(truth), -1, -1, -1][:3]
    assert whole.tolist() == [count, *places, 77, 77, 77, 77]


@pytest.mark.parametrize("layout", ["nchw", "nhwc"])
def test_the_axis_follows_the_layout(layout: str) -> None:
    nodes = [
        node("ReduceMax", ["x"], ["best"], axes=[0, 2, 3], keepdims=0),
        node("Greater", ["best", "zero"], ["which"]),
        node("Compress", ["x", "which"], ["y"], axis=1),
    ]
    data = _model(nodes, (1, 3, 4, 4), ["y"])
    model = pybuild.model.Model(
        "m.onnx", load("m.onnx", data, {}, roomy=True), "onnx", ""
    )
    graph: Graph = model.lower(layout={"y": layout})
    assert graph.bounded["y"].axis == (1 if layout == "nhwc" else 2)
