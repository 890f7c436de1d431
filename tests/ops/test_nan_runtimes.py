"""NaN and infinity: what the C of ONNX and TensorFlow Lite files gives is what ONNX
Runtime and LiteRT give, but where docs/nan.md says otherwise.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pybuild
from pybuild.dtype import Array
from tests.ops.litert import run_litert
from tests.ops.tflite_writer import FileOperator, FileTensor, write

NAN, INF = np.nan, np.inf
X = np.array([NAN, -NAN, INF, -INF, 1, -2, 0.5, 7], np.float32)
A = np.array([NAN, 1, NAN, 2, INF, NAN, 1, -INF], np.float32)
B = np.array([1, NAN, NAN, 3, NAN, -INF, 0, 1], np.float32)
ROW = np.array([1, NAN, 3, 2, 0, 5, NAN, 4, 7], np.float32)
IMAGE = ROW.reshape(1, 1, 3, 3)
MANY = np.tile(X, 9)  # as many as it takes for each way to quantise
# of each type the zero point, and what X is in steps of 0.5; ONNX Runtime makes the
# least of NaN
STEPS = {
    "int8": (3, [3, 3, 127, -128, 5, -1, 4, 17]),
    "uint8": (3, [3, 3, 255, 0, 5, 0, 4, 17]),
    "int16": (0, [0, 0, 32767, -32768, 2, -4, 1, 14]),
}

# of what is defined by a comparison the result is a number
UNARY: dict[str, dict[str, Any]] = {
    "Relu": {}, "LeakyRelu": {}, "HardSigmoid": {}, "HardSwish": {},
    "ThresholdedRelu": {}, "Shrink": {}, "Sign": {}, "Floor": {}, "Ceil": {},
    "Round": {}, "Abs": {}, "Neg": {}, "Sqrt": {}, "Reciprocal": {}, "Softsign": {},
    "IsNaN": {}, "IsInf": {},
}  # fmt: skip
BINARY = ("Max", "Min", "Add", "Mul", "PRelu", "Less", "Greater", "Equal",
          "LessOrEqual", "GreaterOrEqual")  # fmt: skip


def _onnx(path: Path) -> dict[str, Array]:
    """One file with all of them; the inputs."""
    onnx = pytest.importorskip("onnx")
    from onnx import helper

    inputs = {"x": X, "a": A, "b": B, "row": ROW, "image": IMAGE, "many": MANY}
    more = {"low": np.float32(0), "high": np.float32(6), "three": np.array([3])}
    nodes = [helper.make_node(op, ["x"], [op], **kw) for op, kw in UNARY.items()]
    nodes += [helper.make_node(op, ["a", "b"], [op]) for op in BINARY]
    nodes += [
        helper.make_node("Clip", ["x", "low", "high"], ["Clip"]),
        helper.make_node("ArgMax", ["row"], ["ArgMax"]),
        helper.make_node("ArgMin", ["row"], ["ArgMin"]),
        helper.make_node("Cast", ["x"], ["Cast"], to=onnx.TensorProto.BOOL),
        helper.make_node("Where", ["Less", "a", "b"], ["Where"]),
        # those below are not as ONNX Runtime's
        helper.make_node("MaxPool", ["image"], ["MaxPool"], kernel_shape=[3, 1]),
        helper.make_node("GlobalMaxPool", ["image"], ["GlobalMaxPool"]),
        helper.make_node("ReduceMax", ["row"], ["ReduceMax"]),
        helper.make_node("ReduceMin", ["row"], ["ReduceMin"]),
        helper.make_node("TopK", ["row", "three"], ["TopK", "places"]),
        helper.make_node(
            "TopK", ["row", "three"], ["Least", "least places"], largest=0
        ),
        helper.make_node("Cast", ["x"], ["Whole"], to=onnx.TensorProto.INT32),
    ]  # fmt: skip
    more["scale"] = np.float32(0.5)
    for kind, (zero, _) in STEPS.items():
        more[f"zero {kind}"] = np.array(zero, kind)
        reads = ["many", "scale", f"zero {kind}"]
        nodes.append(helper.make_node("QuantizeLinear", reads, [kind]))
    ends = [name for node in nodes for name in node.output]
    of = helper.np_dtype_to_tensor_dtype
    graph = helper.make_graph(
        nodes, "g",
        [helper.make_tensor_value_info(n, of(v.dtype), v.shape)
         for n, v in inputs.items()],
        [helper.make_empty_tensor_value_info(n) for n in ends],
        [onnx.numpy_helper.from_array(np.asarray(v), n) for n, v in more.items()],
    )  # fmt: skip
    opset = [helper.make_opsetid("", 21)]
    model = helper.make_model(graph, opset_imports=opset, ir_version=10)
    onnx.save(onnx.shape_inference.infer_shapes(model), path)
    return inputs


# ours, where ONNX Runtime's depends on where the NaN stands, or is the processor's
# ONNX Runtime's ArgMax depends on where its buffer begins: the first NaN, or another
OURS = {
    "ArgMax": [1],
    "MaxPool": [NAN, NAN, 7], "GlobalMaxPool": [NAN], "ReduceMax": [NAN],
    "ReduceMin": [NAN], "TopK": [NAN, NAN, 7], "places": [1, 6, 8],
    "Least": [0, 1, 2], "least places": [4, 0, 3],
    "Whole": [0, 0, None, None, 1, -2, 0, 7],
    **{kind: steps * 9 for kind, (_, steps) in STEPS.items()},
}  # fmt: skip


def test_onnx(tmp_path: Path) -> None:
    runtime = pytest.importorskip("onnxruntime")
    path = tmp_path / "all.onnx"
    inputs = _onnx(path)
    session = runtime.InferenceSession(path, providers=["CPUExecutionProvider"])
    names = [one.name for one in session.get_outputs()]
    wanted = dict(zip(names, session.run(None, inputs), strict=True))
    net = pybuild.load(path).build(None, input="keep").host("llvm")
    found = net(**inputs)
    assert OURS.keys() < wanted.keys()
    for name, want in wanted.items():
        have, want = found[name].reshape(-1), OURS.get(name, want.reshape(-1))
        pairs = [(h, w) for h, w in zip(have, want, strict=True) if w is not None]
        for got, right in pairs:
            assert got == pytest.approx(right, rel=1e-6, nan_ok=True), (name, have)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("board", "target"),
    [
        ("microbit", "cortex-m0"),
        pytest.param("mps2-an386", "cortex-m4", marks=pytest.mark.sweep),
        ("mps3-an547", "cortex-m55"),
    ],
)
def test_boards(board: str, target: str, tmp_path: Path) -> None:
    """The same bits of all integers, and NaN where this machine has it."""
    path = tmp_path / "all.onnx"
    inputs = _onnx(path)
    samples = {name: value[None] for name, value in inputs.items()}
    # what is not as ONNX Runtime's is in docs/nan.md
    result = pybuild.check(path, samples, on=board, target=target, ref="numpy")
    assert result.ok, result


TFLITE = ("RELU", "RELU6", "RELU_N1_TO_1", "LEAKY_RELU", "HARD_SWISH", "FLOOR", "ABS",
          "NEG", "SQRT")  # fmt: skip
TABLES = {"LEAKY_RELU": "LeakyReluOptions", "HARD_SWISH": "HardSwishOptions",
          "ABS": "AbsOptions", "NEG": "NegOptions"}  # fmt: skip


def test_tflite(tmp_path: Path) -> None:
    """With the fused activations of a dense layer, of an addition and of a pool."""
    tensors, operators = [FileTensor("x", X.shape)], []
    tensors += [FileTensor("a", A.shape), FileTensor("row", (1, 9)),
                FileTensor("image", (1, 3, 3, 1)),
                FileTensor("w", (2, 9), data=np.ones((2, 9), np.float32))]  # fmt: skip
    inputs = {"x": X, "a": A, "row": ROW[None], "image": IMAGE.reshape(1, 3, 3, 1)}

    def add(code: str, reads: tuple[int, ...], shape: tuple[int, ...], name: str,
            table: str = "", **options: Any) -> None:  # fmt: skip
        operators.append(FileOperator(code, reads, (len(tensors),), table, options))
        tensors.append(FileTensor(name, shape))

    for code in TFLITE:
        more = {"Alpha": 0.1} if code == "LEAKY_RELU" else {}
        add(code, (0,), X.shape, code, TABLES.get(code, ""), **more)
    add("ADD", (0, 1), X.shape, "added", "AddOptions", FusedActivationFunction=3)
    dense, pool = "FullyConnectedOptions", "Pool2DOptions"
    add("FULLY_CONNECTED", (2, 4), (1, 2), "dense", dense, FusedActivationFunction=1)
    size = {"Padding": 1, "StrideW": 1, "StrideH": 1}
    size |= {"FilterWidth": 3, "FilterHeight": 1}
    add("AVERAGE_POOL_2D", (3,), (1, 3, 1, 1), "average", pool,
        FusedActivationFunction=1, **size)  # fmt: skip
    add("MAX_POOL_2D", (3,), (1, 3, 1, 1), "most", pool, **size)
    add("MAXIMUM", (0, 1), X.shape, "maximum", "MaximumMinimumOptions")
    ends = range(5, len(tensors))
    path = tmp_path / "all.tflite"
    path.write_bytes(write(tensors, operators, (0, 1, 2, 3), list(ends)))
    (wanted,) = run_litert(path.read_bytes(), [inputs])
    # LiteRT hands on the other one
    wanted["most"] = np.array([NAN, 5, NAN])
    wanted["maximum"] = np.where(np.isnan(X) | np.isnan(A), NAN, np.maximum(X, A))
    found = pybuild.load(path).build(None, input="keep").host("llvm")(**inputs)
    for index in ends:
        name = tensors[index].name
        have, want = found[name].reshape(-1), wanted[name].reshape(-1)
        # LiteRT ends a layer without an activation at the greatest float
        np.testing.assert_allclose(have, want, 1e-6, 0, err_msg=name)
