"""Lists of tensors and optional values through branches and turns, all resolved while
a file is read; boxes and spectra that are written out: what onnxruntime or numpy gives.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from pybuild.dtype import Array
from pybuild.errors import BuildError
from pybuild.frontends.onnx import load
from pybuild.ops.interpret import interpret

FLOAT, INT, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
node = helper.make_node


def _model(
    nodes: list[onnx.NodeProto],
    shapes: dict[str, list[int]],
    known: dict[str, Any] | None = None,
    rank: int = 2,
    told: list[int] | None = None,
) -> bytes:
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info(n, FLOAT, s) for n, s in shapes.items()],
        [helper.make_tensor_value_info("y", FLOAT, told or [None] * rank)],
        [numpy_helper.from_array(np.asarray(v), n) for n, v in (known or {}).items()],
    )
    opsets = [helper.make_opsetid("", 18)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=9)
    return bytes(model.SerializeToString())


def _by_onnxruntime(data: bytes, inputs: dict[str, Array]) -> Array:
    ort = pytest.importorskip("onnxruntime")
    ort.set_default_logger_severity(4)
    session = ort.InferenceSession(data, providers=["CPUExecutionProvider"])
    (found,) = session.run(None, inputs)
    return np.asarray(found)


def _same(data: bytes, inputs: dict[str, Array]) -> None:
    found = interpret(load("m.onnx", data, {}), inputs)["y"]
    wanted = _by_onnxruntime(data, inputs)
    assert found.shape == wanted.shape and found.dtype == wanted.dtype
    np.testing.assert_allclose(found, wanted, 1e-6, 1e-6)


def _list(name: str) -> onnx.ValueInfoProto:
    return helper.make_tensor_sequence_value_info(name, FLOAT, None)


def _side(nodes: list[onnx.NodeProto], name: str) -> onnx.GraphProto:
    return helper.make_graph(nodes, name, [], [_list(name)])


def _lists_of_branches() -> list[onnx.NodeProto]:
    """Of two pieces on either side, one by one where the condition is computed."""
    yes = [node("Neg", ["b"], ["m"]), node("SequenceConstruct", ["m", "a"], ["yes"])]
    no = [node("SequenceConstruct", ["a", "b"], ["no"])]
    return [
        node("Split", ["x"], ["a", "b"], axis=0, num_outputs=2),
        node("If", ["goes"], ["both"], then_branch=_side(yes, "yes"),
             else_branch=_side(no, "no")),
        node("Identity", ["both"], ["same"]),
        node("ConcatFromSequence", ["same"], ["y"], axis=1),
    ]  # fmt: skip


@pytest.mark.parametrize("goes", [True, False, None])
def test_lists_of_branches(goes: bool | None) -> None:
    nodes = _lists_of_branches()
    x = np.random.default_rng(0).normal(size=(4, 3)).astype(np.float32)
    if goes is not None:
        _same(_model(nodes, {"x": [4, 3]}, {"goes": goes}), {"x": x})
        return
    first = [
        node("ReduceSum", ["x"], ["sum"], keepdims=0),
        node("Less", ["sum", "zero"], ["goes"]),
    ]
    data = _model([*first, *nodes], {"x": [4, 3]}, {"zero": np.float32(0)})
    for one in (x - 3, x + 3):
        _same(data, {"x": one})


def test_a_list_that_turns_fill() -> None:
    body = helper.make_graph(
        [
            node("Gather", ["x", "i"], ["row"]),
            node("Add", ["row", "carried"], ["total"]),
            node("SequenceInsert", ["held", "total"], ["longer"]),
            node("Identity", ["going"], ["still"]),
        ],
        "body",
        [
            helper.make_tensor_value_info("i", INT, []),
            helper.make_tensor_value_info("going", BOOL, []),
            _list("held"),
            helper.make_tensor_value_info("carried", FLOAT, [3]),
        ],
        [
            helper.make_tensor_value_info("still", BOOL, []),
            _list("longer"),
            helper.make_tensor_value_info("total", FLOAT, [3]),
        ],
    )
    nodes = [
        node("SequenceEmpty", [], ["none"]),
        node("Loop", ["turns", "", "none", "start"], ["made", "last"], body=body),
        node("ConcatFromSequence", ["made"], ["rows"], axis=0, new_axis=1),
        node("Add", ["rows", "last"], ["y"]),
    ]
    known = {"turns": np.int64(4), "start": np.float32([1, 2, 3])}
    x = np.random.default_rng(1).normal(size=(4, 3)).astype(np.float32)
    _same(_model(nodes, {"x": [4, 3]}, known), {"x": x})


def test_a_function_of_each_of_a_list() -> None:
    value = helper.make_tensor_value_info
    body = helper.make_graph(
        [node("Mul", ["one", "one"], ["square"])],
        "body", [value("one", FLOAT, None)], [value("square", FLOAT, None)],
    )  # fmt: skip
    nodes = [
        node("SplitToSequence", ["x"], ["rows"], axis=0),
        node("SequenceMap", ["rows"], ["squares"], body=body),
        node("ConcatFromSequence", ["squares"], ["y"], axis=1),
    ]
    x = np.random.default_rng(2).normal(size=(2, 3)).astype(np.float32)
    found = interpret(load("m.onnx", _model(nodes, {"x": [2, 3]}), {}), {"x": x})["y"]
    np.testing.assert_allclose(found, (x * x).reshape(1, 6), 1e-6)


def _optional(of: str) -> list[onnx.NodeProto]:
    """x, doubled if there is something in an optional value."""
    kind = helper.make_tensor_type_proto(FLOAT, [2])
    made = {"tensor": node("Optional", ["x"], ["o"]),
            "list": node("Optional", ["l"], ["o"]),
            "nothing": node("Optional", [], ["o"], type=kind)}[of]  # fmt: skip
    got = [node("OptionalGetElement", ["p"], ["e"])]
    if of == "list":
        got = [node("OptionalGetElement", ["p"], ["f"]),
               node("SequenceAt", ["f", "zero"], ["e"])]  # fmt: skip
    value = helper.make_tensor_value_info
    yes = helper.make_graph(
        [*got, node("Add", ["e", "e"], ["two"])], "yes", [], [value("two", FLOAT, [2])]
    )
    no = helper.make_graph(
        [node("Identity", ["x"], ["one"])], "no", [], [value("one", FLOAT, [2])]
    )
    return [
        node("SequenceConstruct", ["x"], ["l"]),
        made,
        node("Identity", ["o"], ["p"]),
        node("OptionalHasElement", ["p"], ["there"]),
        node("If", ["there"], ["y"], then_branch=yes, else_branch=no),
    ]


@pytest.mark.parametrize("of", ["tensor", "list", "nothing"])
def test_optional_values(of: str) -> None:
    data = _model(_optional(of), {"x": [2]}, {"zero": np.int64(0)}, 1)
    x = np.float32([1.5, -2])
    found = interpret(load("m.onnx", data, {}), {"x": x})["y"]
    assert found.tolist() == (x if of == "nothing" else x * 2).tolist()


REFUSED = {
    "m.onnx: node 'n' (Add): input 'l' is a list of tensors": [
        node("SequenceConstruct", ["x"], ["l"]),
        node("Add", ["l", "x"], ["y"], name="n"),
    ],
    "m.onnx: node 'n' (OptionalGetElement): there is no value in 'o'": [
        node("Optional", [], ["o"], type=helper.make_tensor_type_proto(FLOAT, [2])),
        node("OptionalGetElement", ["o"], ["y"], name="n"),
    ],
    "m.onnx: node 'n' (DFT): the inverse of a whole spectrum is not supported. Hint: "
    "onesided=1 gives real values": [
        node("Unsqueeze", ["x", "ends"], ["r"]),
        node("DFT", ["r"], ["y"], inverse=1, name="n"),
    ],
}


@pytest.mark.parametrize("said", REFUSED)
def test_what_is_refused(said: str) -> None:
    rank = 3 if "DFT" in said else 1
    data = _model(REFUSED[said], {"x": [2]}, {"ends": [0, 2]}, rank)
    with pytest.raises(BuildError) as caught:
        load("m.onnx", data, {})
    assert said in [str(p) for p in caught.value.problems]


def test_lists_and_optionals_are_not_at_the_boundary() -> None:
    kind = helper.make_optional_type_proto(helper.make_tensor_type_proto(FLOAT, [2]))
    graph = helper.make_graph(
        [node("SequenceConstruct", ["x"], ["l"]), node("Identity", ["o"], ["p"])],
        "g",
        [helper.make_tensor_value_info("x", FLOAT, [2]),
         helper.make_value_info("o", kind)],
        [_list("l"), helper.make_tensor_value_info("x", FLOAT, [2])],
    )  # fmt: skip
    opsets = [helper.make_opsetid("", 18)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=9)
    with pytest.raises(BuildError) as caught:
        load("m.onnx", model.SerializeToString(), {})
    assert [str(problem) for problem in caught.value.problems] == [
        "m.onnx: input 'o' is an optional value, which is not supported. Hint: export "
        "the model with it, or without",
        "m.onnx: output 'l' is a list of tensors, which is not supported. Hint: give "
        "each of them an output of its own",
    ]


@pytest.mark.parametrize("scale", [1.0, 0.5])
def test_the_greatest_of_boxes(scale: float) -> None:
    """Boxes inside, beyond every edge, turned around, of halves, and outside."""
    boxes = np.float32(
        [[0, 0, 0, 6, 4], [1, 2.5, 1.5, 5, 3.5], [0, -3, -2, 3, 9],
         [1, 5, 4, 2, 1], [0, 20, 1, 30, 2], [1, 3, 2, 3, 2]]
    )  # fmt: skip
    attrs = {"pooled_shape": (3, 2), "spatial_scale": scale}
    nodes = [node("MaxRoiPool", ["x", "boxes"], ["y"], **attrs)]
    x = np.random.default_rng(4).normal(size=(2, 2, 5, 7)).astype(np.float32) - 1
    shapes = {"x": [2, 2, 5, 7], "boxes": [6, 5]}
    _same(_model(nodes, shapes, None, 4), {"x": x, "boxes": boxes})


def test_an_stft_whose_frames_are_known() -> None:
    """ONNX infers another shape where `onesided` is left to be what it is."""
    nodes = [node("STFT", ["x", "step", "", "frame"], ["y"])]
    known = {"step": np.int64(3), "frame": np.int64(8)}
    x = np.random.default_rng(6).normal(size=(1, 20, 1)).astype(np.float32)
    data = _model(nodes, {"x": [1, 20, 1]}, known, 4, [1, 5, 5, 2])
    frames = np.stack([x[0, n : n + 8, 0] for n in range(0, 13, 3)])
    made = np.fft.rfft(frames.astype(np.float64))
    found = interpret(load("m.onnx", data, {}), {"x": x})["y"]
    np.testing.assert_allclose(found[0, ..., 0], made.real, atol=1e-5)
    np.testing.assert_allclose(found[0, ..., 1], made.imag, atol=1e-5)


def test_slopes_of_channels_in_an_old_file() -> None:
    """One for each channel, also where columns are as many."""
    value = helper.make_tensor_value_info
    slope = np.float32([0.5, 0.25, 2])
    x = np.random.default_rng(7).normal(size=(2, 3, 4, 3)).astype(np.float32)
    graph = helper.make_graph(
        [node("Abs", ["x"], ["a"]), node("Sub", ["x", "a"], ["d"]),
         node("PRelu", ["d", "slope"], ["y"])],
        "g",
        [value("x", FLOAT, x.shape), value("slope", FLOAT, [3])],
        [value("y", FLOAT, x.shape)],
        [numpy_helper.from_array(slope, "slope")],
    )  # fmt: skip
    opsets = [helper.make_opsetid("", 6)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=3)
    found = interpret(load("m.onnx", model.SerializeToString(), {}), {"x": x})["y"]
    below = np.minimum(x - np.abs(x), 0)
    np.testing.assert_allclose(found, below * slope[:, None, None], 1e-6)
