"""ONNX models that mix layers with general operators, against ONNX's own reference."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import pybuild
import pybuild.backend as backend
from pybuild.cli import main
from pybuild.errors import BuildError
from pybuild.frontends.onnx import load
from pybuild.ops.interpret import interpret
from tests.frontends.onnx.models import session

FLOAT = TensorProto.FLOAT
SCALE, TWICE = np.asarray(0.1, np.float32), np.asarray(0.2, np.float32)


def _model(
    nodes: list[onnx.NodeProto],
    inputs: dict[str, tuple[int, list[int]]],
    output: tuple[int, int],
    constants: dict[str, Any],
) -> onnx.ModelProto:
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        nodes,
        "mixed",
        [value(name, kind, shape) for name, (kind, shape) in inputs.items()],
        [value("y", output[0], [None] * output[1])],
        [numpy_helper.from_array(np.asarray(v), n) for n, v in constants.items()],
    )
    opset = [helper.make_opsetid("", 21)]
    return helper.make_model(graph, opset_imports=opset, ir_version=10)


def _two_scales() -> onnx.ModelProto:
    """What was quantised with one scale is read with another."""
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"]),
        helper.make_node("DequantizeLinear", ["q", "t", "z"], ["y"]),
    ]
    known = {"s": SCALE, "t": TWICE, "z": np.asarray(3, np.int8)}
    return _model(nodes, {"x": (FLOAT, [12])}, (FLOAT, 1), known)


def _int16() -> onnx.ModelProto:
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"]),
        helper.make_node("DequantizeLinear", ["q", "s", "z"], ["y"]),
    ]
    known = {"s": SCALE, "z": np.asarray(7, np.int16)}
    return _model(nodes, {"x": (FLOAT, [12])}, (FLOAT, 1), known)


def _lists() -> onnx.ModelProto:
    """Lists of tensors: cut in four ways, put together, taken apart, joined."""
    node = helper.make_node
    nodes = [
        node("SplitToSequence", ["x", "two"], ["a"], axis=1),
        node("SplitToSequence", ["x", "sizes"], ["b"], axis=1),
        node("SplitToSequence", ["x"], ["c"], axis=1, keepdims=0),
        node("SplitToSequence", ["x"], ["d"], axis=0),
        node("SequenceAt", ["a", "last"], ["a2"]),
        node("SequenceAt", ["b", "one"], ["b1"]),
        node("SequenceAt", ["c", "two"], ["c2"]),
        node("SequenceLength", ["a"], ["count"]),
        node("Cast", ["count"], ["count_f"], to=FLOAT),
        node("Mul", ["c2", "count_f"], ["c2n"]),
        node("SequenceEmpty", [], ["empty"]),
        node("SequenceInsert", ["empty", "a2"], ["e1"]),
        node("SequenceInsert", ["e1", "b1", "zero"], ["e2"]),
        node("SequenceInsert", ["e2", "x", "last"], ["e3"]),
        node("SequenceInsert", ["e3", "x", "three"], ["e4"]),
        node("SequenceErase", ["e4", "one"], ["e5"]),
        node("ConcatFromSequence", ["e5"], ["wide"], axis=1),
        node("ConcatFromSequence", ["d"], ["whole"], axis=0),
        node("SequenceErase", ["c"], ["shorter"]),
        node("ConcatFromSequence", ["shorter"], ["stacked"], axis=-1, new_axis=1),
        node("SequenceConstruct", ["wide", "whole", "stacked"], ["all"]),
        node("ConcatFromSequence", ["all"], ["joined"], axis=1),
        node("ReduceSum", ["joined", "axes"], ["sums"], keepdims=0),
        node("Add", ["sums", "c2n"], ["y"]),
    ]
    known = {name: np.asarray(v, np.int64) for name, v in {
        "two": 2, "sizes": [1, 3, 1], "last": -1, "one": 1, "zero": 0, "three": 3,
        "axes": [1],
    }.items()}  # fmt: skip
    return _model(nodes, {"x": (FLOAT, [3, 5])}, (FLOAT, 1), known)


def _hard_double() -> onnx.ModelProto:
    """In a type that no layer has."""
    nodes = [
        helper.make_node("Cast", ["x"], ["d"], to=TensorProto.DOUBLE),
        helper.make_node("HardSwish", ["d"], ["swish"]),
        helper.make_node("HardSigmoid", ["d"], ["sigmoid"], alpha=0.25),
        helper.make_node("Sub", ["swish", "sigmoid"], ["s"]),
        helper.make_node("Cast", ["s"], ["y"], to=FLOAT),
    ]
    return _model(nodes, {"x": (FLOAT, [9])}, (FLOAT, 1), {})


def _bytes_as_numbers() -> onnx.ModelProto:
    """uint8 that is quantised for one reader and a number for another."""
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"]),
        helper.make_node("Transpose", ["q"], ["t"]),
        helper.make_node("Cast", ["t"], ["n"], to=TensorProto.INT32),
        helper.make_node("DequantizeLinear", ["t", "s", "z"], ["d"]),
        helper.make_node("Cast", ["n"], ["f"], to=FLOAT),
        helper.make_node("Add", ["d", "f"], ["y"]),
    ]
    known = {"s": SCALE, "z": np.asarray(100, np.uint8)}
    return _model(nodes, {"x": (FLOAT, [3, 4])}, (FLOAT, 2), known)


def _uint8_wraps() -> onnx.ModelProto:
    kind = TensorProto.UINT8
    nodes = [
        helper.make_node("Reshape", ["x", "s"], ["r"]),
        helper.make_node("Add", ["r", "b"], ["y"]),
    ]
    known = {"s": np.asarray([12], np.int64), "b": np.asarray([200], np.uint8)}
    return _model(nodes, {"x": (kind, [3, 4])}, (kind, 1), known)


def _shape_chain() -> onnx.ModelProto:
    """As exporters write `x.reshape(x.shape[0], -1)`."""
    nodes = [
        helper.make_node("Shape", ["x"], ["s"]),
        helper.make_node("Gather", ["s", "zero"], ["n"]),
        helper.make_node("Unsqueeze", ["n", "axis"], ["u"]),
        helper.make_node("Concat", ["u", "rest"], ["to"], axis=0),
        helper.make_node("Reshape", ["x", "to"], ["r"]),
        helper.make_node("Sub", ["r", "one"], ["y"]),
    ]
    known = {
        "zero": np.asarray(0, np.int64), "axis": np.asarray([0], np.int64),
        "rest": np.asarray([-1], np.int64), "one": np.asarray(1, np.float32),
    }  # fmt: skip
    return _model(nodes, {"x": (FLOAT, [2, 3, 2])}, (FLOAT, 2), known)


def _frames() -> onnx.ModelProto:
    nodes = [helper.make_node("STFT", ["x", "step", "window"], ["y"])]
    known = {
        "step": np.asarray(4, np.int64),
        "window": np.linspace(0.1, 1, 8, dtype=np.float32),
    }
    return _model(nodes, {"x": (FLOAT, [2, 20, 1])}, (FLOAT, 4), known)


MODELS = (
    _frames,
    _two_scales,
    _hard_double,
    _int16,
    _bytes_as_numbers,
    _uint8_wraps,
    _shape_chain,
)


@pytest.mark.parametrize("code", [backend.InLlvm, backend.InC])
@pytest.mark.parametrize("make", MODELS, ids=lambda make: make.__name__)
def test_as_the_reference(make: Any, code: Any) -> None:
    model = make()
    value = model.graph.input[0].type.tensor_type
    shape = [d.dim_value for d in value.shape.dim]
    rng = np.random.default_rng(5)
    x = rng.normal(0, 8, shape).astype(np.float32)
    if value.elem_type == TensorProto.UINT8:
        x = rng.integers(0, 256, shape).astype(np.uint8)
    (expected,) = ReferenceEvaluator(model).run(None, {"x": x})
    (found,) = code.run_model(model, [x])
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-4)


def test_lists_are_those_of_onnxruntime() -> None:
    """ONNX's own reference puts what is inserted before the last elsewhere."""
    model = _lists()
    x = np.random.default_rng(5).normal(0, 8, (3, 5)).astype(np.float32)
    data = model.SerializeToString()
    expected = session(data).run(None, {"x": x})[0]
    found = interpret(load("lists.onnx", data, {}), {"x": x})["y"]
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


def test_places_that_are_not_in_a_list() -> None:
    nodes = [
        helper.make_node("SequenceConstruct", ["x"], ["a"]),
        helper.make_node("SequenceAt", ["a", "one"], ["y"], name="at"),
    ]
    known = {"one": np.asarray(1, np.int64)}
    model = _model(nodes, {"x": (FLOAT, [3])}, (FLOAT, 1), known)
    with pytest.raises(
        BuildError, match=r"'at' \(SequenceAt\): place 1 of 1 in a list"
    ):
        load("bad.onnx", model.SerializeToString(), {})


@pytest.mark.parametrize("kind", ["Adagrad", "Adam", "Momentum"])
@pytest.mark.parametrize("turn", [0, 3])
def test_steps_of_training(kind: str, turn: int) -> None:
    """Also after the first, which ONNX's own cases are of."""
    kept = {"Adagrad": ["h"], "Adam": ["v", "h"], "Momentum": ["v"]}[kind]
    attrs = {
        "Adagrad": {"decay_factor": 0.25, "epsilon": 1e-3},
        "Adam": {"alpha": 0.5, "beta": 0.75, "norm_coefficient_post": 0.125},
        "Momentum": {"alpha": 0.5, "beta": 0.75, "mode": "nesterov"},
    }[kind] | {"norm_coefficient": 0.25}
    names = ["r", "t", "x", "g", *kept]
    made = ["y", *(f"{name}_new" for name in kept)]
    rng = np.random.default_rng(7)
    given: dict[str, Any] = {
        n: rng.uniform(0.1, 2, 5).astype(np.float32) for n in names
    }
    given |= {"r": np.float32(0.5), "t": np.asarray(turn, np.int64)}
    domain = "ai.onnx.preview.training"
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        [helper.make_node(kind, names, made, domain=domain, **attrs)],
        "training",
        [value(n, TensorProto.INT64 if n == "t" else FLOAT, given[n].shape)
         for n in names],
        [value(n, FLOAT, [5]) for n in made],
    )  # fmt: skip
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid(domain, 1)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=10)
    found = interpret(load("t.onnx", model.SerializeToString(), {}), given)
    wanted = ReferenceEvaluator(model).run(None, given)
    for name, want in zip(made, wanted, strict=True):
        np.testing.assert_allclose(found[name], want, rtol=1e-5)


def _branch(nodes: list[onnx.NodeProto], name: str) -> onnx.GraphProto:
    value = helper.make_tensor_value_info(name, FLOAT, [3])
    return helper.make_graph(nodes, name, [], [value])


def test_a_branch_in_a_branch_reads_what_is_around_it() -> None:
    node = helper.make_node
    inner = {
        "then_branch": _branch([node("Neg", ["near"], ["a"])], "a"),
        "else_branch": _branch([node("Mul", ["near", "x"], ["b"])], "b"),
    }
    outer = [node("Abs", ["x"], ["near"]), node("If", ["small"], ["y1"], **inner)]
    nodes = [
        node("ReduceMax", ["x"], ["most"], keepdims=0),
        node("Less", ["most", "one"], ["small"]),
        node("Less", ["zero", "most"], ["some"]),
        node("If", ["some"], ["y"], then_branch=_branch(outer, "y1"),
             else_branch=_branch([node("Identity", ["x"], ["c"])], "c")),
    ]  # fmt: skip
    known = {"one": np.float32(1), "zero": np.float32(0)}
    model = _model(nodes, {"x": (FLOAT, [3])}, (FLOAT, 1), known)
    graph = load("nested.onnx", model.SerializeToString(), {})
    for x in np.float32([[-2, -1, -3], [0.5, -2, 0.25], [3, -2, 1]]):
        (want,) = ReferenceEvaluator(model).run(None, {"x": x})
        np.testing.assert_array_equal(interpret(graph, {"x": x})["y"], want)


def test_values_that_decide_a_shape() -> None:
    """run() builds for the values it is given, anew when they change."""
    inputs = {"x": (FLOAT, [6]), "shape": (TensorProto.INT64, [2])}
    nodes = [helper.make_node("Reshape", ["x", "shape"], ["y"])]
    rep = backend.prepare(_model(nodes, inputs, (FLOAT, 2), {}))
    x = np.arange(6, dtype=np.float32)
    for shape in ([2, 3], [3, 2], [6, 1]):
        assert rep.run([x, np.asarray(shape, np.int64)])[0].shape == tuple(shape)


def test_values_that_are_given_to_a_build(tmp_path: Path) -> None:
    """The input is a constant from there on."""
    inputs = {"x": (FLOAT, [6]), "shape": (TensorProto.INT64, [2])}
    nodes = [helper.make_node("Reshape", ["x", "shape"], ["y"])]
    path = tmp_path / "shaped.onnx"
    onnx.save(_model(nodes, inputs, (FLOAT, 2), {}), path)
    options = ["--input-value", "shape=3,-1", "-o", str(tmp_path / "out")]
    assert main(["build", str(path), *options]) == 0
    options = ["--input-value", "shape=3,-1", "--backend", "llvm"]
    assert main(["check", str(path), *options]) == 0
    graph = pybuild.load(path, input_values={"shape": [3, -1]}).lower()
    assert graph.inputs == ("x",) and graph.tensor("y").shape == (3, 2)


@pytest.mark.parametrize("target", ["generic", "cortex-m4", "cortex-m55"])
def test_moves_of_nothing(target: str) -> None:
    """A tensor without elements that is only moved, on cores that move words."""
    held = [
        numpy_helper.from_array(np.asarray(v, np.int64), n)
        for n, v in {"b": [2], "e": [2], "a": [0]}.items()
    ]
    nodes = [
        helper.make_node("Slice", ["x", "b", "e", "a"], ["none"]),
        helper.make_node("Concat", ["none", "x"], ["y"], axis=0),
    ]
    info = helper.make_tensor_value_info
    x, y = (info(n, TensorProto.FLOAT, (3, 4)) for n in "xy")
    graph = helper.make_graph(nodes, "g", [x], [y], held)
    opset = [helper.make_opsetid("", 17)]
    data = helper.make_model(graph, opset_imports=opset, ir_version=9)
    net = pybuild.load(data).build(target=target).host("llvm")
    given = np.arange(12, dtype=np.float32).reshape(3, 4)
    np.testing.assert_array_equal(net.run(x=given)["y"], given)
