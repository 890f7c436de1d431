"""Operators whose results are as many as the data says, and boxes in images: the same
on emulated cores as on this machine.
"""

from __future__ import annotations

import functools

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from pybuild.boards.check import check_on_board
from pybuild.frontends.onnx import load
from pybuild.model import Model
from tests.boards.devices import device

FLOAT, INT = TensorProto.FLOAT, TensorProto.INT64
BOUNDS = {"taken": 8, "values": 12}


@functools.cache
def _model() -> Model:
    """NonMaxSuppression, RoiAlign of what it reads, Unique of rounded scores."""
    node, value = helper.make_node, helper.make_tensor_value_info
    nodes = [
        node("NonMaxSuppression", ["boxes", "scores", "most", "share"], ["taken"]),
        node("Squeeze", ["boxes", "zero"], ["corners"]),
        node("RoiAlign", ["image", "corners", "first"], ["cut"],
             output_height=2, output_width=3, spatial_scale=2.0),
        node("Mul", ["scores", "three"], ["tripled"]),
        node("Cast", ["tripled"], ["whole"], to=TensorProto.INT32),
        node("Unique", ["whole"], ["values", "", "", "counts"]),
    ]  # fmt: skip
    known = {
        "most": np.asarray([4]), "share": np.float32([0.1]), "zero": np.asarray([0]),
        "first": np.zeros(9, np.int64), "three": np.float32(3),
    }  # fmt: skip
    shapes = {"boxes": [1, 9, 4], "scores": [1, 2, 9], "image": [1, 2, 5, 5]}
    kinds = {"taken": (INT, 2), "cut": (FLOAT, 4), "values": (6, 1), "counts": (INT, 1)}
    graph = helper.make_graph(
        nodes,
        "boxes",
        [value(name, FLOAT, shape) for name, shape in shapes.items()],
        [value(name, kind, [None] * rank) for name, (kind, rank) in kinds.items()],
        [numpy_helper.from_array(array, name) for name, array in known.items()],
    )
    opsets = [helper.make_opsetid("", 18)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=9)
    data = model.SerializeToString()
    made = load("boxes.onnx", data, {}, bounds=BOUNDS)
    return Model("boxes.onnx", made, "onnx", "0" * 64)


@pytest.mark.parametrize(
    "name", ["mps2-an386", pytest.param("riscv32-virt", marks=pytest.mark.sweep)]
)
def test_boxes_are_the_same(name: str) -> None:
    board = device(name)
    library = _model().build(target=board.core.target)
    operators = {node.op for node in library.plan.graph.nodes}
    assert {"suppress", "roi_align", "distinct"} <= operators
    done = check_on_board(board, library, "boxes.onnx", count=3)
    assert done.result.ok
