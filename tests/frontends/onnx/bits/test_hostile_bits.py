"""Weights of few bits whose blocks, scales and zero points do not fit each other: one
error that names the node, what is wrong, and what helps.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

import pybuild
from pybuild.dtype import Array
from pybuild.errors import BuildError

# valid inputs, None: not in the file; and attributes
NODES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "MatMulNBits": (
        {"x": None, "B": np.zeros((16, 2, 16), np.uint8), "scales": np.ones(32, "f"),
         "zero_points": np.zeros(16, np.uint8)},
        {"K": 64, "N": 16, "bits": 4, "block_size": 32},
    ),
    "GatherBlockQuantized": (
        {"data": np.zeros((40, 32), np.uint8), "x": None,
         "scales": np.ones((40, 4), "f"), "zero_points": np.zeros((40, 2), np.uint8)},
        {"gather_axis": 0, "quantize_axis": 1, "block_size": 16, "bits": 4},
    ),
    "DequantizeLinear": (
        {"w": np.ones((64, 16), np.int8), "s": np.ones((2, 16), "f"),
         "z": np.zeros((2, 16), np.int8)},
        {"axis": 0, "block_size": 32},
    ),
}  # fmt: skip
USUAL = "blocks of 16, 32, 64, 128 or 256 values are usual"
SIZES = "export it again: its sizes do not fit each other"
TABLE = "a table of two axes, whole blocks along the last one"
ONE = "export it again: one for each block, the last of which may be shorter"
REALS = "float32 or float16 or bfloat16"
NBITS: list[tuple[dict[str, Any], str]] = [
    ({"block_size": 0}, f"K=64, N=16, block_size=0 make no sense. Hint: {USUAL}"),
    ({"block_size": 3}, f"K=64, N=16, block_size=3 make no sense. Hint: {USUAL}"),
    ({"N": 0}, f"K=64, N=0, block_size=32 make no sense. Hint: {USUAL}"),
    ({"bits": -4}, "-4 bits are not supported. Hint: 2, 4 and 8 are"),
    ({"block_size": 2**62},
     "its input 'B' has 512 values of uint8, not 36893488147419103232 of uint8. "
     f"Hint: {SIZES}"),
    ({"B": np.zeros(512, np.int8)},
     f"its input 'B' has 512 values of int8, not 512 of uint8. Hint: {SIZES}"),
    ({"scales": np.ones(31, "f")},
     f"its input 'scales' has 31 values of float32, not 32 of {REALS}. Hint: {SIZES}"),
    ({"scales": np.full(32, np.nan, "f")},
     "its input 'scales' has values that are not finite. Hint: quantise the model "
     "again"),
    ({"zero_points": np.zeros(32, np.uint8)},
     f"its input 'zero_points' has 32 values of uint8, not 16 of uint8. Hint: {SIZES}"),
]  # fmt: skip
ROWS: list[tuple[dict[str, Any], str]] = [
    ({"block_size": size}, f"rows along axis 0, or blocks of {size} along axis 1 of "
     f"[40, 32], are not supported. Hint: {TABLE}") for size in (0, -16, 24)
] + [
    ({"bits": 0}, "0 bits in a table of uint8 are not supported. Hint: a table of "
     "uint8 may have 2, 4 or 8 bits"),
    ({"scales": np.ones((39, 4), "f")},
     f"its input 'scales' has 156 values of float32, not 160 of {REALS}. Hint: "
     f"{SIZES}"),
    ({"zero_points": np.zeros((40, 4), np.int32)},
     "its input 'zero_points' has 160 values of int32, not 80 of uint8. Hint: "
     f"{SIZES}"),
]  # fmt: skip
BLOCKS: list[tuple[dict[str, Any], str]] = [
    ({"block_size": size}, f"[2, 16] scales or zero points of [64, 16] in blocks of "
     f"{size} along axis 0. Hint: {ONE}") for size in (-32, 16, 64, 2**40)
] + [
    ({"s": np.ones((4, 16), "f")}, "[4, 16] scales or zero points of [64, 16] in "
     f"blocks of 32 along axis 0. Hint: {ONE}"),
    ({"z": np.zeros((1, 16), np.int8)}, "[1, 16] scales or zero points of [64, 16] in "
     f"blocks of 32 along axis 0. Hint: {ONE}"),
    ({"block_size": 0}, "[2, 16] scales or zero points along axis 0 of [64, 16]. Hint: "
     "export it again: one, one for each along the axis, or a block_size"),
]  # fmt: skip
CASES = {"MatMulNBits": NBITS, "GatherBlockQuantized": ROWS, "DequantizeLinear": BLOCKS}


def _model(kind: str, inputs: dict[str, Any], attrs: dict[str, Any]) -> Any:
    last = kind == "DequantizeLinear"
    domain = "" if last else "com.microsoft"
    nodes = [helper.make_node(kind, [*inputs], ["y"], domain=domain, **attrs)]
    shape, type_ = [2, 64], TensorProto.FLOAT
    if kind == "GatherBlockQuantized":
        shape, type_ = [2, 3], TensorProto.INT64
    if last:
        nodes[0].output[0] = "f"
        nodes.append(helper.make_node("MatMul", ["x", "f"], ["y"]))
    x = helper.make_tensor_value_info("x", type_, shape)
    out = [2, 3, 64] if kind == "GatherBlockQuantized" else [2, 16]
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, out)
    held: dict[str, Array] = {n: v for n, v in inputs.items() if v is not None}
    values = [numpy_helper.from_array(v, n) for n, v in held.items()]
    graph = helper.make_graph(nodes, "g", [x], [y], values)
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)


@pytest.mark.parametrize("kind", CASES)
def test_one_error_that_says_what_does_not_fit(kind: str) -> None:
    inputs, attrs = NODES[kind]
    pybuild.load(_model(kind, inputs, attrs)).lower()
    for change, said in CASES[kind]:
        parts = {n: change.get(n, v) for n, v in inputs.items()}
        model = _model(kind, parts, {n: change.get(n, v) for n, v in attrs.items()})
        with pytest.raises(BuildError) as caught:
            pybuild.load(model)
        (problem,) = caught.value.problems
        name = "f" if kind == "DequantizeLinear" else "y"
        assert str(problem) == f"model.onnx: node '{name}' ({kind}): {said}"
