"""Operators of .tflite on one float: no number where LiteRT has none; what is near
float64 at every magnitude is in test_functions.py.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest

from pybuild.dtype import Array
from pybuild.frontends.tflite import OPERATORS
from tests.magnitudes.composed_doors import TFLITE_ROWS
from tests.magnitudes.doors import TFLITE, Operator
from tests.ops.tflite_writer import FileOperator, FileTensor, write


def written(operators: dict[str, Operator], size: int) -> bytes:
    """One model of them all: x -> y_NAME."""
    tensors = [FileTensor(n, (size,)) for n in ("x", *(f"y_{n}" for n in operators))]
    nodes = []
    for number, one in enumerate(operators.values(), 1):
        ((table, options),) = one.attrs.items() if one.attrs else (("", {}),)
        nodes.append(FileOperator(one.kind, (0,), (number,), table, options))
    return write(tensors, nodes, [0], list(range(1, len(tensors))))


def ran_by_litert(data: bytes, inputs: Mapping[str, Array]) -> dict[str, Array]:
    from ai_edge_litert import interpreter

    kinds = interpreter.OpResolverType
    net = interpreter.Interpreter(
        model_content=data,
        experimental_op_resolver_type=kinds.BUILTIN_WITHOUT_DEFAULT_DELEGATES,
    )
    net.allocate_tensors()
    for one in net.get_input_details():
        net.set_tensor(one["index"], inputs[one["name"]])
    net.invoke()
    return {o["name"]: net.get_tensor(o["index"]) for o in net.get_output_details()}


def test_no_number_is_where_litert_has_none() -> None:
    pytest.importorskip("ai_edge_litert", reason="ai-edge-litert is not installed")
    x = np.asarray([np.nan, np.inf, -np.inf, 0.5, -0.5, 2, -2, 0], np.float32)
    theirs = ran_by_litert(written(TFLITE, x.size), {"x": x})
    wrong = []
    for name, one in TFLITE.items():
        with np.errstate(all="ignore"):
            ours = np.asarray(one.function.true(x.astype(np.float64)))
        if not np.array_equal(np.isnan(ours), np.isnan(theirs[f"y_{name}"])):
            wrong.append((name, ours, theirs[f"y_{name}"]))
    assert not wrong, "\n".join(map(str, wrong))


# operators of .tflite that are not a function of one float, or that only move it
OTHERS = frozenset((
    "ADD", "ADD_N", "ARG_MAX", "ARG_MIN", "ASSIGN_VARIABLE", "BATCH_MATMUL",
    "BATCH_TO_SPACE_ND", "BROADCAST_ARGS", "BROADCAST_TO", "CALL_ONCE", "CAST",
    "CONCATENATION", "CONV_2D", "CUMSUM", "DENSIFY", "DEPTHWISE_CONV_2D",
    "DEPTH_TO_SPACE", "DEQUANTIZE", "DIV", "DYNAMIC_UPDATE_SLICE",
    "EMBEDDING_LOOKUP", "EQUAL", "EXPAND_DIMS", "FILL", "FLOOR_DIV", "FLOOR_MOD",
    "FULLY_CONNECTED", "GATHER", "GATHER_ND", "GREATER", "GREATER_EQUAL", "IF",
    "LESS", "LESS_EQUAL", "LOGICAL_AND", "LOGICAL_NOT", "LOGICAL_OR", "MAXIMUM",
    "MAX_POOL_2D", "MINIMUM", "MIRROR_PAD", "MUL", "NOT_EQUAL", "PACK", "PAD",
    "PADV2", "POW", "PRELU", "QUANTIZE", "RANGE", "RANK", "READ_VARIABLE",
    "REDUCE_ALL", "REDUCE_ANY", "RESHAPE", "RESIZE_BILINEAR",
    "RESIZE_NEAREST_NEIGHBOR", "REVERSE_V2", "SELECT", "SELECT_V2", "SHAPE",
    "SLICE", "SPACE_TO_BATCH_ND", "SPACE_TO_DEPTH", "SPLIT", "SPLIT_V",
    "SQUARED_DIFFERENCE", "SQUEEZE", "STABLEHLO_COMPOSITE", "STRIDED_SLICE", "SUB",
    "SVDF", "TILE", "TRANSPOSE", "TRANSPOSE_CONV", "UNIDIRECTIONAL_SEQUENCE_LSTM",
    "UNPACK", "VAR_HANDLE", "WHILE", "ZEROS_LIKE",
))  # fmt: skip


def test_no_operator_is_without_a_row() -> None:
    """A new one gets a line in doors.py, in composed_doors.py, or above."""
    known = {code for code in OPERATORS if not code.startswith("CUSTOM ")}
    held = {one.kind for one in TFLITE.values()} | TFLITE_ROWS.keys()
    assert known - held == OTHERS
    assert not held & OTHERS
