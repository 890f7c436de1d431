"""Both languages as text: what is written can be read back, and is the same."""

from __future__ import annotations

import numpy as np
import pytest

import pybuild
from pybuild.ir import graph_text, loop_text
from pybuild.ir.graph import Graph
from pybuild.ir.loop_parse import parse
from pybuild.select.devices import offers, table_of
from tests.toolchains import ROOT

MODELS = ("digits/digits_int8.tflite", "digits/digits_f32.onnx", "streams/gru.onnx")
TARGETS = ("generic", "cortex-m0", "cortex-m4", "cortex-m55", "host")


def _lowered(name: str) -> Graph:
    return pybuild.load(ROOT / "examples" / name).lower()


@pytest.mark.parametrize("name", MODELS)
def test_a_graph_is_read_back(name: str) -> None:
    graph = _lowered(name)
    made = graph_text.parse(graph_text.text(graph))
    assert graph_text.text(made) == graph_text.text(graph)
    for field in ("nodes", "tensors", "inputs", "outputs", "state", "parameters"):
        assert getattr(made, field) == getattr(graph, field), field
    for key, value in graph.constants.items():
        assert made.constants[key].dtype == value.dtype
        assert np.array_equal(made.constants[key], value)


@pytest.mark.parametrize("target", TARGETS)
def test_kernels_are_read_back(target: str) -> None:
    count = 0
    for name in MODELS:
        for optimise in ("balanced", "size", "speed"):
            found = offers(_lowered(name), table_of(target), optimise)
            for func in {c.func for each in found.values() for c in each if c.func}:
                assert parse(loop_text.text(func)) == func, func.name
                count += 1
    assert count > 20


def test_a_graph_written_by_hand() -> None:
    made = graph_text.parse(
        """
# remarks are left out
graph two from "a model.tflite"
input x: float32[2]
param "the weight" is w: float32[2] = [1.0, 2.0]
"y/1": float32[2] = mul(x, w, _device=1)
output "y/1"
home "y/1" 1
"""
    )
    assert made.source == "a model.tflite"
    assert made.nodes[0].inputs == ("x", "w") and made.nodes[0].device == 1
    assert made.parameters == {"w": "the weight"} and made.homes == {"y/1": 1}


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("input x int8[2]", "line 1: 'x int8[2]' is not NAME: TYPE[SHAPE]"),
        ("input x: int9[2]", "line 1: 'int9' is not a valid DType"),
        ("y: int8[2] = add", "line 1: OUTPUT = OPERATOR(INPUT, ..., ATTRIBUTE=VALUE"),
        ("graph", "line 1: graph NAME from FILE"),
        ("const c: int8[2] = [1, 2, 3]", "line 1: cannot reshape array of size 3"),
    ],
)
def test_faults_in_a_graph_name_their_line(line: str, said: str) -> None:
    with pytest.raises(ValueError, match="line 1") as told:
        graph_text.parse(line)
    assert str(told.value).startswith(said)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("y = 1", "line 2: 'y' is not known"),
        ("y: i9 = 1", "line 2: 'i9' is not a type"),
        ("y: i32 = sin(n)", "line 2: 'sin' is not known"),
        (
            "while n: pass",
            "line 2: 'while n:\\n    pass' is not a statement of a kernel",
        ),
        ("y: i32 = n +", "line 2: invalid syntax"),
        ("y: i8 = n", "kernel k: "),
    ],
)
def test_faults_in_a_kernel_name_their_line(line: str, said: str) -> None:
    with pytest.raises(ValueError) as told:
        parse(f"def k(n: i32):\n    {line}\n")
    assert str(told.value).startswith(said.replace("\\n", "\n"))
