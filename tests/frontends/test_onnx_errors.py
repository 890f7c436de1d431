"""What the ONNX frontend refuses, with its exact words, all findings at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from pybuild.errors import BuildError
from pybuild.frontends.onnx import load
from pybuild.graph import Graph

FLOAT = TensorProto.FLOAT
Dims = list[int | str | None]


def build(
    nodes: list[onnx.NodeProto],
    shape: Dims,
    constants: Mapping[str, np.ndarray] | None = None,
    opset: int = 13,
    rank: int | None = None,
) -> onnx.ModelProto:
    output = [None] * (len(shape) if rank is None else rank)
    graph = helper.make_graph(
        nodes,
        "bad",
        [helper.make_tensor_value_info("x", FLOAT, shape)],
        [helper.make_tensor_value_info("y", FLOAT, output)],
        [numpy_helper.from_array(v, n) for n, v in (constants or {}).items()],
    )
    opsets = [helper.make_opsetid("", opset), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def node(kind: str, reads: list[str], **attrs: object) -> onnx.NodeProto:
    return helper.make_node(kind, reads, ["y"], name="layer", **attrs)


def read(model: onnx.ModelProto, **dims: int) -> Graph:
    return load("bad.onnx", model.SerializeToString(), dims)


def problems(model: onnx.ModelProto, **dims: int) -> list[str]:
    with pytest.raises(BuildError) as caught:
        read(model, **dims)
    return [str(problem) for problem in caught.value.problems]


IMAGE: Dims = [1, 3, 8, 8]
SCALE, ZERO = np.asarray(0.1, np.float32), np.asarray(0, np.int8)

CASES: dict[str, tuple[Callable[[], onnx.ModelProto], str]] = {
    "conv3d": (
        lambda: build(
            [node("Conv", ["x", "w"])], [1, 3, 8, 8, 8],
            {"w": np.zeros((2, 3, 1, 1, 1), np.float32)},
        ),
        "(Conv): input [1, 3, 8, 8, 8] and weights [2, 3, 1, 1, 1]: only one or two "
        "spatial axes are supported",
    ),
    "pool_dilations": (
        lambda: build(
            [node("MaxPool", ["x"], kernel_shape=[2, 2], dilations=[2, 2])], IMAGE
        ),
        "(MaxPool): dilations [2, 2] are not supported",
    ),
    "weights": (
        lambda: build([node("Conv", ["x", "x"])], [1, 1, 1, 1]),
        "(Conv): its weight 'x' is computed by the model. Hint: only constant weights "
        "are supported; fold them at export",
    ),
    "pad_mode": (
        lambda: build(
            [node("Pad", ["x", "p"], mode="reflect")], [4],
            {"p": np.asarray([1, 1], np.int64)},
        ),
        "(Pad): mode 'reflect' is not supported. Hint: only constant padding is",
    ),
    "divisor": (
        lambda: build([node("Div", ["x", "x"])], IMAGE),
        "(Div): its divisor 'x' is computed by the model. Hint: only division by a "
        "constant is supported",
    ),
    "gather": (
        lambda: build(
            [node("Gather", ["x", "i"])], IMAGE, {"i": np.asarray(0, np.int64)}, rank=3,
        ),
        "(Gather): can only be computed from constants. Hint: give fixed shapes at "
        "export, or use onnxsim",
    ),
    "recurrent": (
        lambda: build(
            [node("RNN", ["x", "w", "r"], hidden_size=1)], [2, 1, 1],
            {n: np.zeros((1, 1, 1), np.float32) for n in "wr"}, rank=4,
        ),
        "(RNN): the operator RNN is not supported. Hint: simplify with onnxsim, or "
        "export without it; `crt inspect` lists all",
    ),
    "two_scales": (
        lambda: build(
            [
                helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"], name="q"),
                node("DequantizeLinear", ["q", "t", "z"]),
            ],
            [4], {"s": SCALE, "t": SCALE * np.float32(2), "z": ZERO},
        ),
        "(DequantizeLinear): 'q' was quantised with another scale or zero point. "
        "Hint: use one scale for each tensor",
    ),
    "int16": (
        lambda: build(
            [
                helper.make_node(
                    "QuantizeLinear", ["x", "s", "z"], ["q"], name="layer"
                ),
                helper.make_node("DequantizeLinear", ["q", "s", "z"], ["y"], name="d"),
            ],
            [4], {"s": SCALE, "z": np.asarray(0, np.int16)}, opset=21,
        ),
        "(QuantizeLinear): quantisation to int16 is not supported. Hint: use int8 or "
        "uint8",
    ),
    "training": (
        lambda: build(
            [
                helper.make_node(
                    "BatchNormalization", ["x", *"abcd"], ["y", "m", "v"],
                    name="layer", training_mode=1,
                )
            ], IMAGE,
            {n: np.ones(3, np.float32) for n in "abcd"}, opset=15,
        ),
        "(BatchNormalization): training mode is not supported. Hint: export the model "
        "in evaluation mode",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_message(name: str) -> None:
    make, message = CASES[name]
    assert problems(make()) == [f"bad.onnx: node 'layer' {message}"]


def test_all_findings_at_once() -> None:
    nodes = [
        helper.make_node("MaxPool", ["x"], ["a"], kernel_shape=[2, 2],
                         dilations=[2, 2], name="one"),
        helper.make_node("Relu", ["a"], ["b"], name="between"),
        helper.make_node("Div", ["x", "x"], ["c"], name="two"),
        helper.make_node("Concat", ["b", "c"], ["y"], axis=1, name="three"),
    ]  # fmt: skip
    nodes.pop()
    nodes.append(helper.make_node("Relu", ["c"], ["y"], name="last"))
    found = problems(build(nodes, IMAGE))
    assert [line.split("'")[1] for line in found] == ["one", "two"]


def test_dynamic_dimensions() -> None:
    """By its own name, by input and axis, by the input where it is the only one."""
    model = build([node("Relu", ["x"])], ["batch", 4, None])
    assert problems(model) == [
        "bad.onnx: input 'x' has a dynamic dimension 'batch'. "
        "Hint: --input-dim batch=1",
        "bad.onnx: input 'x' has a dynamic dimension 'x.2'. Hint: --input-dim x.2=1",
    ]
    data = model.SerializeToString()
    graph = load("bad.onnx", data, {"batch": 2, "x.2": 5})
    assert graph.tensor("x").shape == graph.tensor("y").shape == (2, 4, 5)
    one = build([node("Relu", ["x"])], [None, 4]).SerializeToString()
    assert load("bad.onnx", one, {"x": 3}).tensor("y").shape == (3, 4)
    assert problems(build([node("Relu", ["x"])], [4]), batch=2) == [
        "--input-dim: no dynamic dimension is named 'batch'"
    ]


def test_external_data() -> None:
    model = build([node("Add", ["x", "w"])], [4], {"w": np.ones(4, np.float32)})
    tensor = model.graph.initializer[0]
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="weights.bin")
    assert problems(model) == [
        "bad.onnx: 1 tensors are in other files ('w', ...). Hint: save with "
        "onnx.save(model, path, save_as_external_data=False)"
    ]


def test_a_function_that_calls_itself() -> None:
    model = build([helper.make_node("F", ["x"], ["y"], domain="my")], [4])
    inner = [helper.make_node("F", ["a"], ["b"], domain="my")]
    opsets = [helper.make_opsetid("", 13), helper.make_opsetid("my", 1)]
    model.functions.append(helper.make_function("my", "F", ["a"], ["b"], inner, opsets))
    model.opset_import.append(helper.make_opsetid("my", 1))
    assert problems(model) == ["bad.onnx: its functions call each other in a circle"]


def test_shapes_that_do_not_fit() -> None:
    model = build([node("Add", ["x", "w"])], [4], {"w": np.ones(3, np.float32)})
    (line,) = problems(model)
    assert line == (
        "bad.onnx: node 'layer' (Add): shapes or types do not fit: Incompatible "
        "dimensions. Hint: check it with onnx.shape_inference"
    )


def test_weights_shorter_than_their_shape() -> None:
    model = build([node("Add", ["x", "w"])], [4], {"w": np.ones(4, np.float32)})
    model.graph.initializer[0].dims[0] = 1 << 40
    (line,) = problems(model)
    assert line.startswith("bad.onnx: ")


@pytest.mark.parametrize("opset", [7, 9, 11, 13, 17, 21, 23])
def test_opsets(opset: int) -> None:
    constants = {"w": np.ones((2, 3, 3, 3), np.float32)}
    model = build([node("Conv", ["x", "w"])], IMAGE, constants, opset)
    ops = [n.op for n in read(model).nodes]  # the first is of the weights
    assert ops == ["transpose", "transpose", "conv2d", "transpose"]


def test_huge_shapes_are_refused_at_once() -> None:
    found = problems(build([node("Relu", ["x"])], [1 << 20, 1 << 20]))
    assert found == ["bad.onnx: input 'x' has 4398046511104 bytes"]
