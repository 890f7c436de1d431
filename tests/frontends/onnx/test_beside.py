"""Bytes of tensors come from files beside the model alone, wherever in it they are."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper

import pybuild
from pybuild.errors import BuildError
from pybuild.ops.interpret import interpret

# what makes a model around a node
Hidden = Callable[[onnx.NodeProto], onnx.ModelProto]


def _outside(where: str) -> onnx.TensorProto:
    """Four floats that are said to be in a file."""
    tensor = helper.make_tensor("value", onnx.TensorProto.FLOAT, [4], [0.0] * 4)
    tensor.ClearField("float_data")
    tensor.data_location = onnx.TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value=where)
    return tensor


def _in_a_function(node: onnx.NodeProto) -> onnx.ModelProto:
    opset = [helper.make_opsetid("", 17), helper.make_opsetid("own", 1)]
    body = [node, helper.make_node("Add", ["x", "value"], ["y"])]
    function = helper.make_function("own", "Plus", ["x"], ["y"], body, opset[:1])
    call = helper.make_node("Plus", ["x"], ["y"], domain="own")
    return _model([call], opset, [function])


def _in_graphs(depth: int, node: onnx.NodeProto) -> onnx.ModelProto:
    """An If in an If in an If."""
    info = helper.make_tensor_value_info("value", onnx.TensorProto.FLOAT, [4])
    for number in range(depth):
        graph = helper.make_graph([node], f"g{number}", [], [info])
        node = helper.make_node(
            "If", ["is"], ["value"], then_branch=graph, else_branch=graph
        )
    body = [node, helper.make_node("Add", ["x", "value"], ["y"])]
    return _model(body, [helper.make_opsetid("", 17)], [])


def _model(
    nodes: list[onnx.NodeProto],
    opset: list[onnx.OperatorSetIdProto],
    functions: list[onnx.FunctionProto],
) -> onnx.ModelProto:
    x, y = (helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, [4]) for n in "xy")
    yes = helper.make_tensor("is", onnx.TensorProto.BOOL, [], [True])
    graph = helper.make_graph(nodes, "net", [x], [y], [yes])
    made: onnx.ModelProto = helper.make_model(
        graph, opset_imports=opset, functions=functions, ir_version=9
    )
    return made


@pytest.mark.parametrize("hidden", [_in_a_function, partial(_in_graphs, 6)])
def test_no_file_of_the_current_folder_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hidden: Hidden
) -> None:
    """Wherever in the model the tensor is: only files beside the model are."""
    there, here = tmp_path / "there", tmp_path / "here"
    there.mkdir()
    here.mkdir()
    (here / "secret").write_bytes(bytes(range(16)))
    monkeypatch.chdir(here)
    node = helper.make_node("Constant", [], ["value"], value=_outside("secret"))
    onnx.save(hidden(node), there / "bad.onnx")
    with pytest.raises(BuildError, match="'secret', which is not there"):
        pybuild.load(there / "bad.onnx")
    values = np.array([1, 2, 3, 4], np.float32)
    (there / "secret").write_bytes(values.tobytes())
    given = {"x": np.zeros(4, np.float32)}
    graph = pybuild.load(there / "bad.onnx").lower()
    assert np.array_equal(interpret(graph, given)["y"], values)
