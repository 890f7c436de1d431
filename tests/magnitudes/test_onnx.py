"""Operators of ONNX on one float: no number where ONNX Runtime has none; what is near
float64 at every magnitude is in test_functions.py.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import defs, helper, numpy_helper

from pybuild.dtype import Array
from pybuild.frontends.onnx.load import OPERATORS, load
from pybuild.ops.interpret import interpret
from tests.frontends.onnx.models import lowered, model, session
from tests.magnitudes.composed import ROWS
from tests.magnitudes.doors import ONNX, Operator

OPSET = {"Swish": 24}
NAMES = {"tensor(float)": "float32", "tensor(float16)": "float16"}


def types(one: Operator) -> set[str]:
    """Of its first input."""
    schema = defs.get_schema(one.kind, OPSET.get(one.kind, 22), "")
    kinds = {c.type_param_str: c.allowed_type_strs for c in schema.type_constraints}
    return {NAMES.get(t, t) for t in kinds[schema.inputs[0].type_str]}


def written(operators: dict[str, Operator], x: Array) -> bytes:
    """One model of them all: x -> y_NAME."""
    kind = helper.np_dtype_to_tensor_dtype(x.dtype)
    nodes, constants = [], []
    for name, one in operators.items():
        reads = ["x"]
        for number, value in enumerate(one.more):
            reads.append(f"c_{name}_{number}")
            array = np.asarray(value, x.dtype)
            if one.kind == "PRelu":
                array = array.reshape(1)
            constants.append(numpy_helper.from_array(array, reads[-1]))
        nodes.append(helper.make_node(one.kind, reads, [f"y_{name}"], **one.attrs))
    graph = helper.make_graph(
        nodes, "magnitudes", [helper.make_tensor_value_info("x", kind, x.shape)],
        [helper.make_tensor_value_info(f"y_{n}", kind, x.shape) for n in operators],
        constants,
    )  # fmt: skip
    opset = max(OPSET.get(one.kind, 22) for one in operators.values())
    imports = [helper.make_opsetid("", opset)]
    made = helper.make_model(graph, opset_imports=imports, ir_version=10)
    return bytes(made.SerializeToString())


def test_no_number_is_where_onnx_runtime_has_none() -> None:
    x = np.asarray([np.nan, np.inf, -np.inf, 0.5, -0.5, 2, -2, 0], np.float32)
    told = {n: one for n, one in ONNX.items() if one.kind not in OPSET}
    net = session(written(told, x))
    theirs = dict(zip((o.name for o in net.get_outputs()), net.run(None, {"x": x}),
                      strict=True))  # fmt: skip
    wrong: list[Any] = []
    for name, one in told.items():
        with np.errstate(all="ignore"):
            ours = np.asarray(one.function.true(x.astype(np.float64)))
        if not np.array_equal(np.isnan(ours), np.isnan(theirs[f"y_{name}"])):
            wrong.append((name, ours, theirs[f"y_{name}"]))
    assert not wrong, "\n".join(map(str, wrong))


# operators of ONNX that are not a function of one float, or that only move it
OTHERS = frozenset((
    "Add", "And", "ArgMax", "ArgMin", "BitCast", "BitShift", "BitwiseAnd",
    "BitwiseNot", "BitwiseOr", "BitwiseXor", "Cast", "CastLike", "Col2Im",
    "Compress", "Concat", "ConcatFromSequence", "ConstantOfShape", "Conv",
    "ConvInteger", "ConvTranspose", "CumProd", "CumSum", "DFT", "DeformConv",
    "DepthToSpace", "DequantizeLinear", "Det", "Div", "Dropout",
    "DynamicQuantizeLinear", "Einsum", "Equal", "Expand", "EyeLike", "Flatten",
    "GRU", "Gather", "GatherElements", "GatherND", "Gemm", "GlobalMaxPool",
    "Greater", "GreaterOrEqual", "GridSample", "Hardmax", "If", "IsInf", "IsNaN",
    "LSTM", "Less", "LessOrEqual", "Loop", "MatMul", "MatMulInteger", "Max",
    "MaxPool", "MaxRoiPool", "MaxUnpool", "Mean", "MelWeightMatrix", "Min", "Mod",
    "Mul", "NonMaxSuppression", "NonZero", "Not", "OneHot", "Optional",
    "OptionalGetElement", "OptionalHasElement", "Or", "Pad", "QLinearConv",
    "QLinearMatMul", "QuantizeLinear", "RNN", "Range", "Reshape", "Resize",
    "ReverseSequence", "RoiAlign", "STFT", "Scan", "Scatter", "ScatterElements",
    "ScatterND", "SequenceAt", "SequenceConstruct", "SequenceEmpty",
    "SequenceErase", "SequenceInsert", "SequenceLength", "Shape", "Size", "Slice",
    "SpaceToDepth", "Split", "SplitToSequence", "Squeeze", "Sub", "Sum",
    "TensorScatter", "Tile", "TopK", "Transpose", "Trilu", "Unique", "Unsqueeze",
    "Upsample", "Where", "Xor",
))  # fmt: skip


def test_no_operator_is_without_a_row() -> None:
    """A new one gets a line in doors.py, in composed.py, or above."""
    known = {kind for domain, kind in OPERATORS if not domain}
    held = {one.kind for one in (*ONNX.values(), *ROWS.values())}
    assert known - held == OTHERS
    assert not held & OTHERS


def test_reductions_over_no_axis_still_do_what_they_do_to_each() -> None:
    x = np.asarray([[-2.0, 0.5, 3.0]], np.float32)
    true = {"ReduceL1": abs(x), "ReduceL2": abs(x), "ReduceLogSumExp": x,
            "ReduceSumSquare": x * x, "ReduceLogSum": np.log(abs(x)),
            "ReduceSum": x}  # fmt: skip
    nodes = [
        helper.make_node(kind, ["a" if kind == "ReduceLogSum" else "x", "axes"], [kind],
                         noop_with_empty_axes=1)
        for kind in true
    ]  # fmt: skip
    info = helper.make_tensor_value_info
    graph = helper.make_graph(
        nodes, "none", [info(n, 1, x.shape) for n in "xa"],
        [info(kind, 1, x.shape) for kind in true],
        [numpy_helper.from_array(np.zeros(0, np.int64), "axes")],
    )  # fmt: skip
    imports = [helper.make_opsetid("", 18)]
    data = helper.make_model(graph, opset_imports=imports).SerializeToString()
    found = interpret(load("none.onnx", data, {}), {"x": x, "a": abs(x)})
    for kind, value in true.items():
        np.testing.assert_allclose(found[kind], value, rtol=1e-6, err_msg=kind)


def test_a_quantised_softplus_ends_where_the_numbers_do() -> None:
    """uint8 in steps of a half: beyond exp(88.7) too."""
    q = np.arange(256, dtype=np.uint8)
    half, zero = np.asarray(0.5, np.float32), np.asarray(0, np.uint8)
    nodes = [
        ("DequantizeLinear", ["q", "half", "zero"], ["x"], {}),
        ("Softplus", ["x"], ["s"], {}),
        ("QuantizeLinear", ["s", "half", "zero"], ["y"], {}),
    ]
    data = model(nodes, {"q": q}, ["y"], {"half": half, "zero": zero})
    found = interpret(lowered(data), {"q": q})["y"]
    true = np.rint(np.logaddexp(0, q / 2) * 2).clip(0, 255)
    np.testing.assert_array_equal(found, true)
