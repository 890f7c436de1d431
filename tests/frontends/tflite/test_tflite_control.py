"""IF and WHILE of .tflite files: what LiteRT's reference kernels give."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pybuild
from pybuild.cli import main
from pybuild.dtype import Array
from pybuild.errors import BuildError
from pybuild.frontends.tflite import load
from pybuild.model import Model
from pybuild.ops.interpret import interpret
from tests.ops.litert import run_litert
from tests.ops.tflite_writer import FileOperator, FileTensor, write

Parts = tuple[list[FileTensor], list[FileOperator], list[int], list[int]]


def _known(name: str, value: Any, kind: str = "INT32") -> FileTensor:
    array = np.asarray(value, kind.lower())
    return FileTensor(name, array.shape, kind, array)


def _x(name: str = "x", kind: str = "FLOAT32") -> FileTensor:
    return FileTensor(name, (1, 4), kind)


def _side(code: str, table: str) -> Parts:
    """(a, b) -> (a op b, b)"""
    operator = FileOperator(code, (0, 1), (2,), table)
    return [_x("a"), _x("b"), _x("c")], [operator], [0, 1], [2, 1]


def _branches(condition: FileTensor) -> bytes:
    options = {"ThenSubgraphIndex": 1, "ElseSubgraphIndex": 2}
    operator = FileOperator("IF", (2, 0, 1), (3, 4), "IfOptions", options)
    sides = [_side("ADD", "AddOptions"), _side("MUL", "MulOptions")]
    tensors = [_x("x"), _x("z"), condition, _x("y"), _x("w")]
    inputs = [0, 1] if condition.data is not None else [0, 1, 2]
    return write(tensors, [operator], inputs, [3, 4], called=sides)


def _turns(limit: int, computed: bool = False) -> bytes:
    """while i < limit: i, v = i + 1, v * x + v[i]"""
    counter = FileTensor("i", (), "INT32")
    carried = [counter, _x("v"), _x("k")]
    goes = FileTensor("goes", (), "BOOL")
    condition: Parts = (
        [*carried, _known("limit", limit), goes],
        [FileOperator("LESS", (0, 3), (4,), "LessOptions")], [0, 1, 2], [4],
    )  # fmt: skip
    body: Parts = (
        [*carried, _known("one", 1), FileTensor("next", (), "INT32"), _x("p"), _x("q"),
         FileTensor("picked", (1,), "FLOAT32")],
        [FileOperator("MUL", (1, 2), (5,), "MulOptions"),
         FileOperator("GATHER", (1, 0), (7,), "GatherOptions", {"Axis": 1}),
         FileOperator("ADD", (5, 7), (6,), "AddOptions"),
         FileOperator("ADD", (0, 3), (4,), "AddOptions")],
        [0, 1, 2], [4, 6, 2],
    )  # fmt: skip
    options = {"CondSubgraphIndex": 1, "BodySubgraphIndex": 2}
    start = counter if computed else _known("start", 0)
    operator = FileOperator("WHILE", (0, 1, 2), (3, 4, 5), "WhileOptions", options)
    tensors = [start, _x("v"), _x("k"), FileTensor("n", (), "INT32"), _x("y"), _x("w")]
    inputs = [0, 1, 2] if computed else [1, 2]
    return write(tensors, [operator], inputs, [3, 4, 5], called=[condition, body])


def _equal(data: bytes, samples: list[dict[str, Array]], max_turns: int = 0) -> None:
    graph = load("m.tflite", data, {}, max_turns)
    model = Model("m.tflite", graph, "litert", "0" * 64)
    library = model.build(None, name="m")
    names = library.plan.graph.outputs
    for code in ("c", "llvm"):
        net = library.host(code)
        for sample, theirs in zip(samples, run_litert(data, samples), strict=True):
            net.run(**sample)
            for name in names:
                np.testing.assert_allclose(
                    net.get_output(name), theirs[name], rtol=1e-6
                )


def _drawn(count: int, *names: str) -> list[dict[str, Array]]:
    rng = np.random.default_rng(3)
    return [
        {n: rng.normal(0, 1, (1, 4)).astype(np.float32) for n in names}
        for _ in range(count)
    ]


def test_a_computed_condition_chooses() -> None:
    data = _branches(FileTensor("c", (1,), "BOOL"))
    samples = _drawn(2, "x", "z")
    _equal(data, [{**s, "c": np.array([i == 0])} for i, s in enumerate(samples)])


@pytest.mark.parametrize("value", [True, False])
def test_a_known_condition_leaves_one_branch(value: bool) -> None:
    data = _branches(_known("c", [value], "BOOL"))
    _equal(data, _drawn(1, "x", "z"))
    ops = [node.op for node in load("m.tflite", data, {}).nodes]
    assert ("add" in ops, "mul" in ops) == (value, not value)


@pytest.mark.parametrize("limit", [0, 3])
def test_turns_of_a_known_number(limit: int) -> None:
    _equal(_turns(limit), _drawn(2, "v", "k"))


def test_turns_of_a_computed_number_up_to_a_bound() -> None:
    samples = _drawn(4, "v", "k")
    counters = [{"i": np.asarray(n, np.int32)} for n in (0, 1, 2, 3)]
    whole = [{**s, **c} for s, c in zip(samples, counters, strict=True)]
    _equal(_turns(3, True), whole, 3)
    graph = load("m.tflite", _turns(3, True), {}, 2)
    late, early = (interpret(graph, whole[n]) for n in (0, 1))
    assert (late["n"], early["n"]) == (2, 3)  # two turns, whatever the condition says


def test_the_bound_is_an_option(tmp_path: Path) -> None:
    path = tmp_path / "m.tflite"
    path.write_bytes(_turns(3, True))
    out = str(tmp_path / "out")
    assert main(["build", str(path), "--max-turns", "2", "-o", out]) == 0
    with pytest.raises(BuildError, match=r"--max-turns: '-1' is not a number from 0"):
        pybuild.load(path, max_turns=-1)


def test_turns_of_a_computed_number() -> None:
    with pytest.raises(BuildError) as caught:
        load("m.tflite", _turns(3, True), {})
    assert [str(p) for p in caught.value.problems] == [
        "m.tflite: node 'n' (WHILE): its number of turns is not known at build time. "
        "Hint: --max-turns N says how many there are at most; all are written out"
    ]


def _refused(code: str, names: tuple[str, str], *called: Parts) -> str:
    """What is wrong with an operator that calls subgraph 1 twice."""
    options = {f"{name}SubgraphIndex": 1 for name in names}
    table = f"{code.capitalize()}Options"
    tensors = [_known("c", [True], "BOOL"), _x("x"), _x("y"), _x("w")]
    inputs = (1, 1) if code == "WHILE" else (0, 1)
    operator = FileOperator(code, inputs, (2, 3), table, options)
    with pytest.raises(BuildError) as caught:
        load("m.tflite", write(tensors, [operator], [1], [2, 3], called=called), {})
    return str(caught.value.problems[0])


def test_a_condition_of_two_outputs() -> None:
    found = _refused("WHILE", ("Cond", "Body"), _side("ADD", "AddOptions"))
    what = "its condition has 2 outputs, not 1"
    assert found == f"m.tflite: node 'y' (WHILE): {what}"


def test_a_subgraph_that_calls_itself() -> None:
    options = {"ThenSubgraphIndex": 1, "ElseSubgraphIndex": 1}
    again = FileOperator("IF", (1, 0), (2,), "IfOptions", options)
    inside: Parts = ([_x("a"), _known("d", [True], "BOOL"), _x("b")], [again], [0], [2])
    found = _refused("IF", ("Then", "Else"), inside)
    assert found == "m.tflite: node 'b_1' (IF): calls subgraph 1, which it is part of"
