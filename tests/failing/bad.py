"""Makes the bad inputs of messages.toml: each function writes one model file."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from tests.failing.foreign import FOREIGN
from tests.frontends.graphjson.tvm_graphs import call, duplex, graph, null
from tests.ops.tflite_writer import FileOperator, FileTensor, write

DIGITS = Path(__file__).resolve().parents[2] / "examples" / "digits"
FLOAT = TensorProto.FLOAT

Dims = Sequence[int | str]
Value = tuple[str, int, Dims]


def _onnx(
    path: Path,
    nodes: Sequence[onnx.NodeProto],
    inputs: Sequence[Value],
    outputs: Sequence[Value],
    constants: dict[str, np.ndarray] | None = None,
) -> Path:
    graph = helper.make_graph(
        nodes,
        "bad",
        [helper.make_tensor_value_info(*value) for value in inputs],
        [helper.make_tensor_value_info(*value) for value in outputs],
        [numpy_helper.from_array(v, name) for name, v in (constants or {}).items()],
    )
    opsets = [helper.make_opsetid("", 13), helper.make_opsetid("my.ops", 1)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    onnx.save(model, path)
    return path


def missing(folder: Path) -> Path:
    return folder / "missing.tflite"


def folder(folder: Path) -> Path:
    (folder / "folder.tflite").mkdir()
    return folder / "folder.tflite"


def other_type(folder: Path) -> Path:
    (folder / "notes.txt").write_text("hello")
    return folder / "notes.txt"


def empty_tflite(folder: Path) -> Path:
    (folder / "empty.tflite").write_bytes(b"")
    return folder / "empty.tflite"


def garbage_tflite(folder: Path) -> Path:
    (folder / "garbage.tflite").write_bytes(bytes(range(256)))
    return folder / "garbage.tflite"


def truncated_tflite(folder: Path) -> Path:
    whole = (DIGITS / "digits_int8.tflite").read_bytes()
    (folder / "truncated.tflite").write_bytes(whole[: len(whole) // 2])
    return folder / "truncated.tflite"


def opset_99(folder: Path) -> Path:
    model = onnx.load(DIGITS / "digits_f32.onnx")
    model.opset_import[0].version = 99
    onnx.save(model, folder / "late.onnx")
    return folder / "late.onnx"


def empty_onnx(folder: Path) -> Path:
    (folder / "empty.onnx").write_bytes(b"")
    return folder / "empty.onnx"


def garbage_onnx(folder: Path) -> Path:
    (folder / "garbage.onnx").write_bytes(bytes(range(256)))
    return folder / "garbage.onnx"


def truncated_onnx(folder: Path) -> Path:
    whole = (DIGITS / "digits_f32.onnx").read_bytes()
    (folder / "truncated.onnx").write_bytes(whole[: len(whole) // 2])
    return folder / "truncated.onnx"


def unknown_operators(folder: Path) -> Path:
    """Two, to show that both are found."""
    nodes = [
        helper.make_node("RandomNormalLike", ["x"], ["d"], name="first"),
        helper.make_node("Wobble", ["d"], ["y"], name="second", domain="my.ops"),
    ]
    values = [("x", FLOAT, [1])], [("y", FLOAT, [1])]
    return _onnx(folder / "unknown.onnx", nodes, *values)


def five_problems(folder: Path) -> Path:
    """Each of another kind, and found by another part of the front end."""
    shape = ("to", TensorProto.INT64, [2])
    nodes = [
        helper.make_node("Conv", ["image", "w"], ["c"], name="stem"),
        helper.make_node("Beam", ["c"], ["y0"], name="mine", domain="my.ops"),
        helper.make_node("Reshape", ["c", "to"], ["y1"], name="flat"),
        helper.make_node("Cast", ["c"], ["y2"], name="text", to=TensorProto.STRING),
        helper.make_node("MatMul", ["c", "m"], ["y3"], name="product"),
    ]
    constants = {
        "w": np.ones((4, 3, 3, 3), np.float32),
        "m": np.ones((5, 5), np.float32),
    }
    outputs: list[Value] = [(f"y{i}", FLOAT, [1]) for i in (0, 1, 2, 3)]
    inputs: list[Value] = [("image", FLOAT, ["batch", 3, 8, 8]), shape]
    return _onnx(folder / "five.onnx", nodes, inputs, outputs, constants)


def five_problems_tflite(folder: Path) -> Path:
    image = FileTensor("image", (1, 1, 4), signature=(-1, -1, 4))
    scale = {"kind": "INT8", "scale": (0.1,)}
    weights = np.ones((5, 4), np.int8)
    tensors = [
        image,
        FileTensor("heard", (1, 1, 4)),
        FileTensor("q", (1, 4), zero_point=(0,), **scale),
        FileTensor("w", (5, 4), "INT8", weights, (0.1,) * 5, (3, 2, 1, 0, 0)),
        FileTensor("dense", (1, 5), zero_point=(0,), **scale),
        FileTensor("short", (5, 9), data=np.zeros((5, 8), np.float32)),
        FileTensor("long", (1, 9)),
        FileTensor("scores", (1, 5)),
        FileTensor("twice", (1, 1, 4)),
    ]
    signed = {"FusedActivationFunction": 4}
    operators = [
        FileOperator("Beam", (0,), (1,)),
        FileOperator("FULLY_CONNECTED", (2, 3), (4,)),
        FileOperator("FULLY_CONNECTED", (6, 5), (7,)),
        FileOperator("ADD", (0, 0), (8,), "AddOptions", signed),
    ]
    data = write(tensors, operators, [0, 2, 6], [1, 4, 7, 8])
    (folder / "five.tflite").write_bytes(data)
    return folder / "five.tflite"


def five_phases(folder: Path) -> Path:
    """Two that the front end finds, two sums that no kernel can hold; see options."""
    scale = {"scale": (0.1,), "zero_point": (0,)}
    far = FileTensor("x", (1, 140_000), "INT8", scale=(0.1,), zero_point=(-128,))
    tensors = [
        far,
        FileTensor(
            "w", (1, 140_000), "INT8", np.full((1, 140_000), 127, np.int8), **scale
        ),
        FileTensor("wide", (1, 1), "INT8", **scale),
        FileTensor("real", (1, 4)),
        FileTensor("heard", (1, 4)),
        FileTensor("sum", (1, 4)),
        FileTensor("wider", (1, 1), "INT8", scale=(0.2,), zero_point=(0,)),
    ]
    signed = {"FusedActivationFunction": 4}
    dense = "FullyConnectedOptions"
    operators = [
        FileOperator("Beam", (3,), (4,)),
        FileOperator("FULLY_CONNECTED", (0, 1), (2,), dense),
        FileOperator("ADD", (4, 4), (5,), "AddOptions", signed),
        FileOperator("FULLY_CONNECTED", (0, 1), (6,), dense),
    ]
    data = write(tensors, operators, [0, 3], [2, 4, 5, 6])
    (folder / "phases.tflite").write_bytes(data)
    return folder / "phases.tflite"


def output_of_no_scale(folder: Path) -> Path:
    """Two layers whose output is calibrated to next to nothing; one has no name."""
    names = ["x", "sx", "zero", "w", "sx", "zero", "sy", "zero"]
    nodes = [
        helper.make_node("QLinearMatMul", names, ["small"], name="product"),
        helper.make_node("QLinearMatMul", names, ["smaller"]),
    ]
    whole = TensorProto.INT8
    constants = {
        "sx": np.float32(0.1),
        "sy": np.float32(1e-12),
        "zero": np.int8(0),
        "w": np.full((4, 1), 127, np.int8),
    }
    results = [(name, whole, [1, 1]) for name in ("small", "smaller")]
    return _onnx(folder / "far.onnx", nodes, [("x", whole, [1, 4])], results, constants)


def dynamic(folder: Path) -> Path:
    nodes = [helper.make_node("Relu", ["x"], ["y"], name="relu")]
    values = [("x", FLOAT, ["batch", 4])], [("y", FLOAT, ["batch", 4])]
    return _onnx(folder / "dynamic.onnx", nodes, *values)


def float8(folder: Path) -> Path:
    nodes = [helper.make_node("Identity", ["x"], ["y"], name="keep")]
    values = (
        [("x", TensorProto.FLOAT8E4M3FN, [4])],
        [("y", TensorProto.FLOAT8E4M3FN, [4])],
    )
    return _onnx(folder / "float8.onnx", nodes, *values)


def no_operators(folder: Path) -> Path:
    return _onnx(folder / "none.onnx", [], [("x", FLOAT, [4])], [("x", FLOAT, [4])])


def no_outputs(folder: Path) -> Path:
    nodes = [helper.make_node("Relu", ["x"], ["y"], name="relu")]
    return _onnx(folder / "none.onnx", nodes, [("x", FLOAT, [4])], [])


def negative_dimension(folder: Path) -> Path:
    nodes = [helper.make_node("Relu", ["x"], ["y"], name="relu")]
    values = [("x", FLOAT, [-1, 4])], [("y", FLOAT, [-1, 4])]
    return _onnx(folder / "zero.onnx", nodes, *values)


def relu(folder: Path) -> Path:
    nodes = [helper.make_node("Relu", ["x"], ["y"], name="relu")]
    values = [("x", FLOAT, [1, 4])], [("y", FLOAT, [1, 4])]
    return _onnx(folder / "relu.onnx", nodes, *values)


def digits(folder: Path) -> Path:
    return DIGITS / "digits_int8.tflite"


def float_digits(folder: Path) -> Path:
    """Beside it data that fits, data that does not, and some with holes."""
    image = np.full((3, 1, 1, 8, 8), 0.5, np.float32)
    good = np.linspace(0, 1, 640, dtype=np.float32).reshape(10, 1, 8, 8)
    np.savez(folder / "good.npz", allow_pickle=False, image=good)
    wrong = {"pixels": image, "image": image[..., 0], "labels": np.zeros(4)}
    np.savez(folder / "wrong.npz", allow_pickle=False, **wrong)
    image[1, 0, 0, 2, 5] = np.nan
    image[2, 0, 0, 0, :2] = np.inf
    far = np.full((2, 1, 8, 8), 1e39)  # float64 has it
    np.savez(folder / "far.npz", allow_pickle=False, image=far)
    holes = {"image": image, "labels": np.asarray([0, 9, 10, 3])}
    np.savez(folder / "holes.npz", allow_pickle=False, **holes)
    return DIGITS / "digits_f32.onnx"


def reshape_by_input(folder: Path) -> Path:
    nodes = [helper.make_node("Reshape", ["x", "to"], ["y"], name="reshape")]
    inputs = [("x", FLOAT, [2, 3]), ("to", TensorProto.INT64, [2])]
    return _onnx(folder / "reshape.onnx", nodes, inputs, [("y", FLOAT, [None, None])])


def places_of_what_is_not_zero(folder: Path) -> Path:
    nodes = [
        helper.make_node("NonZero", ["x"], ["where"], name="nz"),
        helper.make_node("Compress", ["x", "mask"], ["some"], name="pick", axis=0),
        helper.make_node("ReduceMax", ["where"], ["last"], name="last"),
    ]
    inputs = [("x", FLOAT, [2, 3]), ("mask", TensorProto.BOOL, [2])]
    outputs = [("where", TensorProto.INT64, [2, None]), ("some", FLOAT, [None, 3])]
    outputs.append(("last", TensorProto.INT64, [1, 1]))
    return _onnx(folder / "places.onnx", nodes, inputs, outputs)


def json_of_functions(folder: Path) -> Path:
    path = folder / "duplex.json"
    path.write_text(json.dumps(duplex()))
    return path


def json_without_a_copy(folder: Path) -> Path:
    nodes = [null("x"), call("a", "f", [[0, 0], [0, 0]])]
    nodes += [call("b", "f", [[1, 0], [0, 0]])]
    for node in nodes[1:]:
        node["attrs"]["op"] = "add"
    top = graph(nodes, [0], [[2, 0]], [[4]] * 3)
    top["attrs"]["device_index"] = ["list_int", [0, 0, 1]]
    path = folder / "split.json"
    path.write_text(json.dumps(top))
    return path


def json_storage(folder: Path) -> Path:
    """Each kind of storage that cannot be."""
    nodes = [null("x"), call("view", "__nop", [[0, 0]]), call("a", "__copy", [[0, 0]])]
    nodes += [call("b", "__copy", [[2, 0]]), call("c", "__copy", [[3, 0]])]
    top = graph(nodes, [0], [[4, 0]], [[4]] * 5, storage=[0, 5, 1, 1, 0])
    top["attrs"]["device_index"] = ["list_int", [0, 0, 0, 0, 1]]
    path = folder / "storage.json"
    path.write_text(json.dumps(top))
    return path


MAKERS: dict[str, Callable[[Path], Path]] = {
    made.__name__: made
    for made in (
        missing,
        folder,
        other_type,
        empty_tflite,
        garbage_tflite,
        truncated_tflite,
        opset_99,
        empty_onnx,
        garbage_onnx,
        truncated_onnx,
        unknown_operators,
        five_problems,
        five_problems_tflite,
        five_phases,
        output_of_no_scale,
        dynamic,
        float8,
        no_operators,
        no_outputs,
        negative_dimension,
        relu,
        digits,
        float_digits,
        reshape_by_input,
        places_of_what_is_not_zero,
        json_of_functions,
        json_storage,
        json_without_a_copy,
    )
} | FOREIGN
