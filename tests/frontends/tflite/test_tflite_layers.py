"""Operators whose translation is more than a rename, against LiteRT."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pybuild
from pybuild.dtype import Array, DType
from pybuild.errors import BuildError
from pybuild.frontends.tflite import load
from pybuild.host.parameter_image import Weights
from pybuild.ir.graph import Graph
from pybuild.model import Model
from pybuild.ops.interpret import interpret
from pybuild.verify.check import check
from tests.ops.cases import with_rounding
from tests.ops.litert import run_litert
from tests.ops.tflite_writer import FileOperator, FileTensor, write

_CHANCE = np.random.default_rng(3)


def _int32(*values: Any) -> Array:
    return np.asarray(values, np.int32)


def _one(
    code: str,
    shapes: tuple[tuple[int, ...], tuple[int, ...]],
    table: str,
    options: Mapping[str, Any],
    *extra: Array,
) -> bytes:
    """A float32 model of one operator with constant operands after its input."""
    tensors = [FileTensor("x", shapes[0]), FileTensor("y", shapes[1])]
    for number, value in enumerate(extra):
        kind = value.dtype.name.upper()
        tensors.append(FileTensor(f"c{number}", value.shape, kind, value))
    inputs = (0, *range(2, len(tensors)))
    return write(tensors, [FileOperator(code, inputs, (1,), table, options)], [0], [1])


def _agrees(data: bytes, input_name: str = "x") -> Graph:
    """Runs both; they must give the same. Inputs are eighths: their products with
    weights of few bits are exact in float32, whatever the order of sums."""
    graph = with_rounding(load("one.tflite", data, {}), "litert")
    tensor = graph.tensor(input_name)
    if tensor.dtype is DType.FLOAT32:
        eighths = np.round(_CHANCE.normal(0, 16, tensor.shape))
        x = (eighths / 8).astype(np.float32)
    else:
        x = _CHANCE.integers(-128, 128, tensor.shape).astype(tensor.dtype.numpy)
    (theirs,) = run_litert(data, [{input_name: x}])
    ours = interpret(graph, {input_name: x})
    for name in graph.outputs:
        assert ours[name].shape == theirs[name].shape
        np.testing.assert_allclose(ours[name], theirs[name], rtol=0, atol=1e-5)
    return graph


_SLICES = {
    "begin_and_end": ((3, 4), ([1, 0], [-1, 3], [1, 2]), {"BeginMask": 2}),
    "open_ends": ((4, 6), ([9, 9], [0, 0], [1, 2]), {"BeginMask": 3, "EndMask": 3}),
    "backwards": ((4, 6), ([3, -1], [0, 0], [-1, -2]), {"EndMask": 2}),
    "one_row": ((4, 6), ([2, 0], [3, 6], [1, 1]), {"ShrinkAxisMask": 1}),
    "last_row": ((4, 6), ([-1, 0], [0, 6], [1, 1]), {"ShrinkAxisMask": 1}),
    "fewer_axes": ((4, 3, 2), ([1], [3], [1]), {}),
    "new_axis": ((4, 3), ([0, 1], [0, 3], [1, 1]), {"NewAxisMask": 1}),
    "offset": ((6, 7), ([1, 2], [3, 4], [1, 2]), {"Offset": True}),
    "offset_from_behind": ((6, 7), ([-4, -9], [2, 5], [1, 1]), {"Offset": True}),
    "offset_backwards": ((6, 7), ([4, 9], [-4, -4], [-1, -2]), {"Offset": True}),
    "offset_and_masks": (
        (6, 7, 5),
        ([1, 2, 1], [3, 4, 2], [1, 1, 1]),
        {"Offset": True, "BeginMask": 1, "ShrinkAxisMask": 4},
    ),
    "ellipsis": ((4, 3, 5), ([1, 0, 2], [3, 0, 4], [1, 1, 1]), {"EllipsisMask": 2}),
}


@pytest.mark.parametrize("name", _SLICES)
def test_strided_slice(name: str) -> None:
    shape, cuts, masks = _SLICES[name]
    extra = [_int32(*c) for c in cuts]
    data = _one("STRIDED_SLICE", (shape, shape), "StridedSliceOptions", masks, *extra)
    _agrees(data)


@pytest.mark.parametrize("masks", [{}, {"EndMask": 1}])
def test_an_offset_beyond_the_axis(masks: dict[str, int]) -> None:
    """LiteRT gives what lies behind the tensor."""
    extra = (_int32(2), _int32(2 if masks else 9), _int32(1))
    given = {"Offset": True, **masks}
    data = _one("STRIDED_SLICE", ((7,), (7,)), "StridedSliceOptions", given, *extra)
    with pytest.raises(BuildError, match=r"values from 2 on \(offset\) are not in an"):
        load("one.tflite", data, {})


def test_slice_to_the_end() -> None:
    extra = (_int32(1, 0, 2), _int32(-1, 2, 1))
    _agrees(_one("SLICE", ((4, 3, 5), (3, 2, 1)), "SliceOptions", {}, *extra))


@pytest.mark.parametrize("axis", [0, 2, -1])
def test_expand_dims(axis: int) -> None:
    data = _one("EXPAND_DIMS", ((4, 3), (4, 3)), "ExpandDimsOptions", {}, _int32(axis))
    assert sorted(_agrees(data).tensor("y").shape) == [1, 3, 4]


@pytest.mark.parametrize(
    ("dims", "expected"), [((), (4, 3)), ((0,), (4, 1, 3)), ((-2,), (1, 4, 3))]
)
def test_squeeze(dims: tuple[int, ...], expected: tuple[int, ...]) -> None:
    options = {"SqueezeDims": dims}
    data = _one("SQUEEZE", ((1, 4, 1, 3), expected), "SqueezeOptions", options)
    assert _agrees(data).tensor("y").shape == expected


def test_reshape_with_an_open_dimension() -> None:
    data = _one("RESHAPE", ((2, 6), (4, 3)), "", {}, _int32(-1, 3))
    assert _agrees(data).tensor("y").shape == (4, 3)


def test_transpose_counts_axes_from_the_end() -> None:
    options = ("TransposeOptions", {})
    data = _one("TRANSPOSE", ((2, 3, 4), (4, 2, 3)), *options, _int32(-1, 0, 1))
    _agrees(data)


def test_pad_with_a_value() -> None:
    extra = (_int32([0, 1], [2, 0]), np.asarray([-3.5], np.float32))
    _agrees(_one("PADV2", ((2, 3), (3, 5)), "PadV2Options", {}, *extra))


def test_int8_pad_with_a_value() -> None:
    scale = {"kind": "INT8", "scale": (0.5,), "zero_point": (3,)}
    tensors = [
        FileTensor("x", (2, 3), **scale),
        FileTensor("y", (3, 5), **scale),
        FileTensor("pads", (2, 2), "INT32", _int32([0, 1], [2, 0])),
        FileTensor("value", (1,), data=np.asarray([-100], np.int8), **scale),
    ]
    operator = FileOperator("PADV2", (0, 2, 3), (1,), "PadV2Options")
    _agrees(write(tensors, [operator], [0], [1]))


def test_mean_over_negative_axes() -> None:
    options = ("ReducerOptions", {"KeepDims": False})
    _agrees(_one("MEAN", ((2, 3, 4), (2,)), *options, _int32(-1, 1)))


@pytest.mark.parametrize("keep", [False, True])
def test_fully_connected_flattens(keep: bool) -> None:
    w = _CHANCE.normal(0, 1, (5, 12)).astype(np.float32)
    shape = (2, 3, 12) if keep else (2, 3, 4)
    options = ("FullyConnectedOptions", {"KeepNumDims": keep})
    expected = (2, 3, 5) if keep else (2, 5)
    graph = _agrees(_one("FULLY_CONNECTED", (shape, expected), *options, w))
    assert graph.tensor("y").shape == expected
    assert ("reshape" in [n.op for n in graph.nodes]) is not keep


def test_float16_weights_become_float32() -> None:
    """What the converter's float16 option writes."""
    w = _CHANCE.normal(0, 1, (5, 12)).astype(np.float16)
    tensors = [
        FileTensor("x", (2, 12)),
        FileTensor("y", (2, 5)),
        FileTensor("half", (5, 12), "FLOAT16", w),
        FileTensor("w", (5, 12)),
    ]
    operators = [
        FileOperator("DEQUANTIZE", (2,), (3,), "DequantizeOptions"),
        FileOperator("FULLY_CONNECTED", (0, 3), (1,), "FullyConnectedOptions"),
    ]
    graph = load("half.tflite", write(tensors, operators, [0], [1]), {})
    assert [n.op for n in graph.nodes] == ["dense"]
    np.testing.assert_array_equal(graph.constants["w"], w.astype(np.float32))


def test_weights_that_one_reader_turns_stay_as_they_are_for_others() -> None:
    """Of float16, then read by a convolution and, turned, by a transposed one."""
    w = _CHANCE.normal(size=(2, 3, 3, 2)).astype(np.float16)
    shape = (1, 5, 5, 2)
    tensors = [
        FileTensor("x", shape),
        FileTensor("half", w.shape, "FLOAT16", w),
        FileTensor("w", w.shape),
        FileTensor("turned", shape),
        FileTensor("size", (4,), "INT32", _int32(*shape)),
        FileTensor("straight", shape),
        FileTensor("bias", (2,), data=np.zeros(2, np.float32)),
    ]
    once = {"Padding": 0, "StrideH": 1, "StrideW": 1}
    plain = once | {"DilationHFactor": 1, "DilationWFactor": 1}
    operators = [
        FileOperator("DEQUANTIZE", (1,), (2,), "DequantizeOptions"),
        FileOperator("TRANSPOSE_CONV", (4, 2, 0), (3,), "TransposeConvOptions", once),
        FileOperator("CONV_2D", (0, 2, 6), (5,), "Conv2DOptions", plain),
    ]
    _agrees(write(tensors, operators, [0], [3, 5]))


def _transposed(w: Array) -> bytes:
    shape = (1, 5, 5, 2)
    tensors = [
        FileTensor("x", shape),
        FileTensor("w", w.shape, data=w),
        FileTensor("size", (4,), "INT32", _int32(*shape)),
        FileTensor("y", shape),
    ]
    once = {"Padding": 0, "StrideH": 1, "StrideW": 1}
    one = FileOperator("TRANSPOSE_CONV", (2, 1, 0), (3,), "TransposeConvOptions", once)
    return write(tensors, [one], [0], [3])


def test_parameters_of_transposed_convolutions_are_in_the_order_of_the_file() -> None:
    a, b = (_CHANCE.normal(size=(2, 3, 3, 2)).astype(np.float32) for _ in range(2))
    graph = load("a.tflite", _transposed(a), {})
    model = Model("a.tflite", graph, "litert", "0" * 64)
    library = model.build(params="replaceable")
    net, x = library.host(), _CHANCE.normal(size=(1, 5, 5, 2)).astype(np.float32)
    for w in (a, b):
        net.load_params(Weights(library.image({"w": w})))
        net.run(x=x)
        wanted = run_litert(_transposed(w), [{"x": x}])[0]["y"]
        np.testing.assert_allclose(net.get_output("y"), wanted, atol=1e-5)


def test_dequantized_constant_weights_per_channel() -> None:
    w = _CHANCE.integers(-127, 128, (3, 1, 1, 2)).astype(np.int8)
    scale = (0.5, 0.25, 0.125)
    quant = {"scale": scale, "zero_point": (0, 0, 0), "axis": 0}
    tensors = [
        FileTensor("x", (1, 2, 2, 2)),
        FileTensor("y", (1, 2, 2, 3)),
        FileTensor("q", (3, 1, 1, 2), "INT8", w, **quant),
        FileTensor("w", (3, 1, 1, 2)),
        FileTensor("b", (3,), data=np.ones(3, np.float32)),
    ]
    options = {"StrideH": 1, "StrideW": 1}
    operators = [
        FileOperator("DEQUANTIZE", (2,), (3,), "DequantizeOptions"),
        FileOperator("CONV_2D", (0, 3, 4), (1,), "Conv2DOptions", options),
    ]
    graph = _agrees(write(tensors, operators, [0], [1]))
    expected = w * np.asarray(scale, np.float32).reshape(3, 1, 1, 1)
    np.testing.assert_array_equal(graph.constants["w"], expected)


def test_names_that_repeat_or_are_missing_become_unique() -> None:
    tensors = [FileTensor("x", (3,)), FileTensor("x", (3,)), FileTensor("", (3,))]
    operators = [FileOperator("RELU", (0,), (1,)), FileOperator("TANH", (1,), (2,))]
    graph = load("one.tflite", write(tensors, operators, [0], [2]), {})
    assert graph.inputs == ("x",)
    assert graph.outputs == ("tensor_2",)
    assert len(graph.tensors) == 3


def test_open_dimension_by_axis() -> None:
    tensors = [
        FileTensor("x", (1, 1, 4), signature=(-1, -1, 4)),
        FileTensor("y", (1, 1, 4), signature=(-1, -1, 4)),
    ]
    data = write(tensors, [FileOperator("RELU", (0,), (1,))], [0], [1])
    graph = load("one.tflite", data, {"x.1": 7})
    assert graph.tensor("y").shape == (1, 7, 4)


def _turned() -> bytes:
    """A transposed convolution whose output's shape is an input of the file."""
    weights = _CHANCE.normal(0, 1, (3, 2, 2, 3)).astype(np.float32)
    tensors = [
        FileTensor("shape", (4,), "INT32"),
        FileTensor("w", weights.shape, "FLOAT32", weights),
        FileTensor("x", (1, 4, 4, 3)),
        FileTensor("y", (1, 8, 8, 3)),
    ]
    options = {"StrideH": 2, "StrideW": 2}
    made = FileOperator(
        "TRANSPOSE_CONV", (0, 1, 2), (3,), "TransposeConvOptions", options
    )
    return write(tensors, [made], [0, 2], [3])


def test_an_input_that_decides_a_shape_is_given(tmp_path: Path) -> None:
    path = tmp_path / "turned.tflite"
    path.write_bytes(_turned())
    with pytest.raises(BuildError, match="Hint: --input-value shape="):
        pybuild.load(path)
    made = pybuild.load(path, input_values={"shape": [1, 8, 8, 3]})
    assert made.graph.inputs == ("x",)
    seen = check(path, made.build(), ("llvm",), samples=2)
    assert seen.ok and seen.reference.startswith("LiteRT")


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"z": [1]}, "there is no input 'z'. Hint: one of shape, x"),
        ({"shape": [1, 2]}, "input 'shape' is int32[4], 2 numbers are given"),
    ],
)
def test_a_value_that_does_not_fit(values: dict[str, list[int]], said: str) -> None:
    with pytest.raises(BuildError) as caught:
        pybuild.load(_turned(), input_values=values)
    assert str(caught.value) == f"--input-value: {said}"


@pytest.mark.parametrize("near", [False, True])
@pytest.mark.parametrize("scales", [(0.0003, 0.00025), (0.001, 0.0011)])
def test_gelu_of_every_int16(scales: tuple[float, float], near: bool) -> None:
    x = np.arange(-(1 << 15), 1 << 15, dtype=np.int16)
    tensors = [
        FileTensor(name, x.shape, "INT16", None, (float(np.float32(scale)),), (0,))
        for name, scale in zip("xy", scales, strict=True)
    ]
    options = {"Approximate": near}
    operator = FileOperator("GELU", (0,), (1,), "GeluOptions", options)
    data = write(tensors, [operator], [0], [1])
    graph = with_rounding(load("one.tflite", data, {}), "litert")
    (theirs,) = run_litert(data, [{"x": x}])
    np.testing.assert_array_equal(interpret(graph, {"x": x})["y"], theirs["y"])
