"""Variables of .tflite files: what LiteRT's reference kernels give, run after run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pybuild
from pybuild.dtype import Array
from pybuild.errors import BuildError
from pybuild.frontends.tflite import load
from pybuild.model import Model
from pybuild.ops.interpret import interpret, next_state
from pybuild.verify.check import check
from tests.ops.litert import run_litert
from tests.ops.tflite_writer import FileOperator, FileTensor, write

FIRST = np.array([[3, -2, 0, 40]], np.int8)


def tensor(name: str, kind: str, data: Array | None = None) -> FileTensor:
    scale = ((0.5,), (3,)) if kind == "INT8" else ((), ())
    return FileTensor(name, (1, 4), kind, data, *scale)


def handle(output: int, name: str) -> FileOperator:
    options = {"Container": "", "SharedName": name}
    return FileOperator("VAR_HANDLE", (), (output,), "VarHandleOptions", options)


def file(kind: str, *begun: FileOperator, first: Array | None = None) -> bytes:
    """y = v1 + x; v1 := y, read anew: z = v1 * x; w = v2; v2 := x."""
    names = ("x", "y", "again", "z", "w")
    tensors = [tensor(n, kind) for n in (*names, "before")]
    tensors += [FileTensor(n, (), "RESOURCE") for n in ("h1", "h2")]
    x, y, again, z, w, before, one, two = range(8)
    operators = [
        FileOperator("CALL_ONCE", (), (), "CallOnceOptions", {"InitSubgraphIndex": 1}),
        handle(one, "v1"),
        handle(two, "v2"),
        FileOperator("READ_VARIABLE", (one,), (before,), "ReadVariableOptions"),
        FileOperator("ADD", (before, x), (y,), "AddOptions"),
        FileOperator("ASSIGN_VARIABLE", (one, y), (), "AssignVariableOptions"),
        FileOperator("READ_VARIABLE", (one,), (again,), "ReadVariableOptions"),
        FileOperator("MUL", (again, x), (z,), "MulOptions"),
        FileOperator("READ_VARIABLE", (two,), (w,), "ReadVariableOptions"),
        FileOperator("ASSIGN_VARIABLE", (two, x), (), "AssignVariableOptions"),
    ]
    value = FIRST.astype(np.int8 if kind == "INT8" else np.float32)
    value = value if first is None else first
    inside = [FileTensor("h1", (), "RESOURCE"), FileTensor("h2", (), "RESOURCE")]
    inside.append(FileTensor("v", value.shape, kind, value, *scales(kind)))
    calls = [handle(0, "v1"), handle(1, "v2")]
    calls += [
        FileOperator("ASSIGN_VARIABLE", (h, 2), (), "AssignVariableOptions")
        for h in (0, 1)
    ]
    parts = (inside, [*calls, *begun])
    return write(tensors, operators, [x], [y, z, w], called=[parts])


def scales(kind: str) -> Any:
    return ((0.5,), (3,)) if kind == "INT8" else ((), ())


@pytest.mark.parametrize("kind", ["INT8", "FLOAT32"])
def test_variables_are_litert_s(kind: str) -> None:
    data = file(kind)
    graph = load("m.tflite", data, {})
    made = Model("m.tflite", graph, "litert", "")
    assert sorted(graph.state) == ["v1_1", "v2_1"] and graph.inputs == ("x",)
    net, state = made.build().host(), None
    rng = np.random.default_rng(1)
    dtype = np.int8 if kind == "INT8" else np.float32
    inputs = [{"x": rng.integers(-9, 9, (1, 4)).astype(dtype)} for _ in range(4)]
    for given, want in zip(inputs, run_litert(data, inputs), strict=True):
        have = net(**given)
        values = interpret(graph, given, state)
        state = next_state(graph, values)
        for name in ("y", "z", "w"):
            np.testing.assert_array_equal(have[name], want[name])
            np.testing.assert_array_equal(values[name], want[name])
    net.reset()
    np.testing.assert_array_equal(net(**inputs[0])["y"], run_litert(
        data, inputs[:1])[0]["y"])  # fmt: skip


def test_what_a_branch_assigns() -> None:
    """if (c) v := x; y = v"""
    inside = [tensor(n, "FLOAT32") for n in ("a", "b")]
    inside.append(FileTensor("h", (), "RESOURCE"))
    set_ = FileOperator("ASSIGN_VARIABLE", (2, 0), (), "AssignVariableOptions")
    move = FileOperator("RELU", (0,), (1,))
    first = FileTensor("v", (1, 4), "FLOAT32", FIRST.astype(np.float32))
    begun = [FileTensor("h", (), "RESOURCE"), first]
    begin = FileOperator("ASSIGN_VARIABLE", (0, 1), (), "AssignVariableOptions")
    called = [
        (begun, [handle(0, "v"), begin]),
        (inside, [handle(2, "v"), set_, move], [0], [1]),
        (inside[:2], [move], [0], [1]),
    ]
    tensors = [tensor(n, "FLOAT32") for n in ("x", "w", "y")]
    tensors += [FileTensor("c", (), "BOOL"), FileTensor("h", (), "RESOURCE")]
    options = {"ThenSubgraphIndex": 2, "ElseSubgraphIndex": 3}
    operators = [
        FileOperator("CALL_ONCE", (), (), "CallOnceOptions", {"InitSubgraphIndex": 1}),
        FileOperator("IF", (3, 0), (1,), "IfOptions", options),
        handle(4, "v"),
        FileOperator("READ_VARIABLE", (4,), (2,), "ReadVariableOptions"),
    ]
    data = write(tensors, operators, [0, 3], [1, 2], called=called)
    graph, state = load("m.tflite", data, {}), None
    for turn, chosen in enumerate((False, True, False, True)):
        x = np.full((1, 4), turn, np.float32)
        values = interpret(graph, {"x": x, "c": np.asarray(chosen)}, state)
        state = next_state(graph, values)
        wanted = FIRST if turn == 0 else np.full((1, 4), turn - (not chosen))
        np.testing.assert_array_equal(values["y"], wanted)


def test_only_constants_are_assigned_at_first() -> None:
    more = FileOperator("RELU", (2,), (2,))
    with pytest.raises(BuildError, match="its subgraph has an operator RELU"):
        load("m.tflite", file("FLOAT32", more), {})


def test_a_variable_of_another_shape() -> None:
    first = np.zeros((1, 5), np.float32)
    with pytest.raises(BuildError, match=r"begins as float32\[1, 5\], it is"):
        load("m.tflite", file("FLOAT32", first=first), {})


def test_each_sample_of_a_check_begins_anew(tmp_path: Path) -> None:
    path = tmp_path / "m.tflite"
    path.write_bytes(file("INT8"))
    assert check(path, pybuild.load(path).build(), ["llvm"], samples=3).ok


@pytest.mark.parametrize("kind", ["INT8", "FLOAT32"])
def test_a_cache_is_written_where_it_lies(kind: str) -> None:
    """v := v with a row of x at a computed place (DYNAMIC_UPDATE_SLICE); y = v + v."""
    shape, row = (1, 8, 2, 4), (1, 1, 2, 4)
    tensors = [
        FileTensor(name, one, kind, None, *scales(kind))
        for name, one in (("x", row), ("old", shape), ("new", shape), ("y", shape))
    ]
    tensors += [FileTensor("at", (4,), "INT32"), FileTensor("h", (), "RESOURCE")]
    operators = [
        FileOperator("CALL_ONCE", (), (), "CallOnceOptions", {"InitSubgraphIndex": 1}),
        handle(5, "v"),
        FileOperator("READ_VARIABLE", (5,), (1,), "ReadVariableOptions"),
        FileOperator("DYNAMIC_UPDATE_SLICE", (1, 0, 4), (2,)),
        FileOperator("ADD", (2, 2), (3,), "AddOptions"),
        FileOperator("ASSIGN_VARIABLE", (5, 2), (), "AssignVariableOptions"),
    ]
    dtype = np.int8 if kind == "INT8" else np.float32
    rng = np.random.default_rng(1)
    first = rng.integers(-9, 9, shape).astype(dtype)
    inside = [FileTensor("h", (), "RESOURCE")]
    inside.append(FileTensor("v", shape, kind, first, *scales(kind)))
    calls = [
        handle(0, "v"),
        FileOperator("ASSIGN_VARIABLE", (0, 1), (), "AssignVariableOptions"),
    ]
    data = write(tensors, operators, [0, 4], [3], called=[(inside, calls)])
    library = Model("m.tflite", load("m.tflite", data, {}), "litert", "").build()
    assert all(step.node.op != "assign" for step in library.plan.steps)
    net = library.host()
    inputs = [
        {
            "x": rng.integers(-9, 9, row).astype(dtype),
            "at": np.array([0, n, 0, 0], "i4"),
        }
        for n in (0, 3, 7, 11, -2, 3)
    ]
    for given, want in zip(inputs, run_litert(data, inputs), strict=True):
        np.testing.assert_array_equal(net(**given)["y"], want["y"])
