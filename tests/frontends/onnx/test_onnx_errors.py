"""What the ONNX frontend refuses, with its exact words, all findings at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from pybuild.errors import BuildError, Problem
from pybuild.frontends.onnx import load
from pybuild.frontends.onnx.draft.draft import Draft
from pybuild.frontends.onnx.reader.op import Boundary
from pybuild.ir.graph import Graph

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
    return helper.make_model(graph, opset_imports=opsets, ir_version=9)


def node(kind: str, reads: list[str], **attrs: object) -> onnx.NodeProto:
    return helper.make_node(kind, reads, ["y"], name="layer", **attrs)


def read(model: onnx.ModelProto, **dims: int) -> Graph:
    return load("bad.onnx", model.SerializeToString(), dims)


def problems(model: onnx.ModelProto, **dims: int) -> list[str]:
    with pytest.raises(BuildError) as caught:
        read(model, **dims)
    return [str(problem) for problem in caught.value.problems]


IMAGE: Dims = [1, 3, 8, 8]

CASES: dict[str, tuple[Callable[[], onnx.ModelProto], str]] = {
    **{
        f"window-{kind}": (
            lambda kind=kind: build(  # type: ignore[misc]
                [node(kind, ["x"], kernel_shape=[5, 5], dilations=[2, 2])],
                [1, 3, 8, 9], opset=22,
            ),
            f"({kind}): the window [5, 5] with dilations [2, 2] is larger than its "
            "padded input [8, 9]. Hint: a larger input, a smaller window, or padding",
        )
        for kind in ("AveragePool", "LpPool", "MaxPool")
    },
    "window-conv": (
        lambda: build(
            [node("Conv", ["x", "w"])], [1, 1, 2, 2, 2],
            {"w": np.ones((1, 1, 1, 1, 3), np.float32)},
        ),
        "(Conv): the window [1, 1, 3] is larger than its padded input, of [2, 2, 2] "
        "before padding",
    ),
    "nothing-left": (
        lambda: build(
            [node("ConvTranspose", ["x", "w"], pads=[0, 0, 3, 0])], [1, 1, 2, 2],
            {"w": np.ones((1, 1, 1, 1), np.float32)},
        ),
        "(ConvTranspose): nothing is left of its output: it would be [-1, 2] in size. "
        "Hint: smaller pads",
    ),
    "shrunk": (
        lambda: build(
            [node("Resize", ["x", "", "s"])], [1, 1, 3, 3],
            {"s": np.array([1, 1, 0.1, 0.1], np.float32)},
        ),
        "(Resize): nothing is left of its input: 'y' has shape [1, 1, 0, 0]. Hint: a "
        "larger input, or padding",
    ),
    "blocks": (
        lambda: build([node("SpaceToDepth", ["x"], blocksize=4)], [1, 1, 4, 6]),
        "(SpaceToDepth): [4, 6] are not whole blocks of 4 by 4",
    ),
    "offsets": (
        lambda: build(
            [node("DeformConv", ["x", "w", "o"], pads=[1, 1, 1, 1])], [1, 1, 3, 3],
            {
                "w": np.ones((1, 1, 3, 3), np.float32),
                "o": np.ones((1, 18, 2, 3), np.float32),
            }, opset=19,
        ),
        "(DeformConv): offsets for [2, 3] windows, where [3, 3] fit",
    ),
    "unknown": (
        lambda: build([node("RandomNormalLike", ["x"])], [4]),
        "(RandomNormalLike): the operator RandomNormalLike is not supported. Hint: "
        "simplify with onnxsim, or export without it; `crt inspect` lists all",
    ),
    "types": (
        lambda: build(
            [
                helper.make_node("Cast", ["x"], ["a"], name="layer", to=17),
                helper.make_node("Cast", ["a"], ["y"], name="back", to=1),
            ], [4], opset=19,
        ),
        "(Cast): a change to type float8e4m3fn is not supported. Hint: use a float, "
        "integer or bool type",
    ),
    "value": (
        lambda: build(
            [
                helper.make_node("Cast", ["x"], ["i"], name="cast", to=7),
                helper.make_node("Expand", ["c", "i"], ["y"], name="layer"),
            ], [2], {"c": np.ones(1, np.float32)}, rank=2,
        ),
        "(Expand): its shape is computed by the model. Hint: --input-value x=..., or "
        "a fixed shape at export",
    ),
    "random": (
        lambda: build(
            [node("Dropout", ["x", "r", "t"])], [4],
            {"r": np.asarray(0.5, np.float32), "t": np.asarray(True)},
        ),
        "(Dropout): training mode is random",
    ),
    "mirrored": (
        lambda: build(
            [node("Pad", ["x", "p"], mode="reflect")], [4],
            {"p": np.array([0, 2**31 - 8])}, opset=18,
        ),
        "(Pad): axis 0 would have 2147483644 elements. Hint: constant padding takes "
        "no table of them",
    ),
    "turns": (
        lambda: build(
            [
                helper.make_node("Cast", ["x"], ["n"], name="cast", to=7),
                helper.make_node("Squeeze", ["n"], ["m"], name="squeeze"),
                node("Loop", ["m", "", "x"], body=_counted()),
            ], [1], opset=16,
        ),
        "(Loop): its trip count is computed by the model. Hint: --input-value x=..., "
        "or a fixed shape at export",
    ),
}  # fmt: skip


def _counted() -> onnx.GraphProto:
    """A body that adds its input to itself."""
    value = helper.make_tensor_value_info
    nodes = [
        helper.make_node("Identity", ["going"], ["on"]),
        helper.make_node("Add", ["old", "old"], ["new"]),
    ]
    inputs = [
        value("turn", TensorProto.INT64, []),
        value("going", TensorProto.BOOL, []),
        value("old", FLOAT, [1]),
    ]
    outputs = [value("on", TensorProto.BOOL, []), value("new", FLOAT, [1])]
    return helper.make_graph(nodes, "body", inputs, outputs)


def test_an_input_of_text() -> None:
    value = helper.make_tensor_value_info
    values = [value("x", TensorProto.STRING, [2])], [value("y", FLOAT, [2])]
    graph = helper.make_graph([node("Relu", ["x"])], "bad", *values)
    said = "bad.onnx: input 'x' is text, which is not supported. Hint: export with"
    assert problems(helper.make_model(graph))[0].startswith(said)


@pytest.mark.parametrize("name", CASES)
def test_message(name: str) -> None:
    make, message = CASES[name]
    assert problems(make()) == [f"bad.onnx: node 'layer' {message}"]


def test_all_findings_at_once() -> None:
    nodes = [
        helper.make_node("Cast", ["x"], ["a"], to=17, name="one"),
        helper.make_node("Identity", ["a"], ["b"], name="between"),
        helper.make_node("Cast", ["x"], ["c"], to=17, name="two"),
        helper.make_node("Cast", ["c"], ["y"], to=1, name="last"),
    ]
    found = problems(build(nodes, IMAGE, opset=19))
    assert [line.split("'")[1] for line in found] == ["one", "two"]


def test_an_unknown_operator_inside_a_branch() -> None:
    """Its own place comes first, then that of the node around it."""
    value = helper.make_tensor_value_info("b", onnx.TensorProto.FLOAT, [4])
    inside = helper.make_node("Beam", ["x"], ["b"], domain="my.ops", name="inside")
    branches = [
        helper.make_graph([made], "branch", [], [value])
        for made in (inside, helper.make_node("Identity", ["x"], ["b"]))
    ]
    names = dict(zip(("then_branch", "else_branch"), branches, strict=True))
    model = build([helper.make_node("If", ["c"], ["y"], name="if", **names)], [4])
    truth = helper.make_tensor_value_info("c", onnx.TensorProto.BOOL, [])
    model.graph.input.append(truth)
    model.opset_import.append(helper.make_opsetid("my.ops", 1))
    found = problems(model)
    assert [line.split("'")[1] for line in found] == ["inside", "if"]
    assert all("the operator my.ops.Beam is not supported" in line for line in found)


def test_stand_ins_are_for_models_with_a_problem() -> None:
    """Without one they would be taken for tensors that something computes."""
    draft = Draft("bad.onnx", ())
    draft.told = {"a": Boundary("a", "float32", (2, 3))}
    draft.stand_in(["a"])
    assert not draft.has("a")
    draft.problems.append(Problem("bad.onnx", "is wrong"))
    draft.stand_in(["a", "b"])
    assert draft.tensor("a").shape == (2, 3) and not draft.has("b")


def test_dynamic_dimensions() -> None:
    """By its own name, by input and axis, by the input where it is the only one."""
    model = build([node("Relu", ["x"])], ["batch", 4, None])
    assert problems(model) == [
        "bad.onnx: input 'x' has a dynamic dimension 'batch'. "
        "Hint: --input-dim batch=1",
        "bad.onnx: input 'x' has a dynamic dimension 'x.2'. Hint: --input-dim x.2=SIZE",
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
        "bad.onnx: tensor 'w' is in the file 'weights.bin', which is not given here. "
        "Hint: keep both files in one folder, or save with external_data=False"
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
        "bad.onnx: node 'layer' (Add): [4] and [3] do not broadcast. Hint: each size "
        "must be 1 or that of the others, counted from the last"
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
