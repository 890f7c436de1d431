"""What the .tflite front end refuses, word for word."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from pybuild.errors import BuildError
from pybuild.frontends.tflite import load
from tests.ops.tflite_writer import FileOperator, FileTensor, write

_X = FileTensor("x", (1, 4, 4, 2))
_Y = FileTensor("y", (1, 4, 4, 2))


def _problems(
    tensors: Sequence[FileTensor], *operators: FileOperator, **given: Any
) -> list[str]:
    inputs, outputs = given.pop("inputs", [0]), given.pop("outputs", [1])
    dims = given.pop("dims", {})
    data = write(tensors, operators, inputs, outputs, **given)
    with pytest.raises(BuildError) as caught:
        load("m.tflite", data, dims)
    return [str(p) for p in caught.value.problems]


def test_every_problem_at_once() -> None:
    middle = FileTensor("middle", (1, 4, 4, 2))
    found = _problems(
        [_X, _Y, middle],
        FileOperator("SKIP_GRAM", (0,), (2,)),
        FileOperator("MyThing", (2,), (1,)),
    )
    assert len(found) == 2
    start = (
        "m.tflite: node 'middle' (SKIP_GRAM): this operator is not supported. Hint: "
    )
    assert found[0].startswith(start)
    assert "m.tflite: node 'y' (CUSTOM MyThing): this operator" in found[1]


def test_what_follows_a_problem_is_still_examined() -> None:
    middle = FileTensor("middle", (1, 4, 4, 2))
    perm = FileTensor("perm", (3,), "INT32", np.asarray([0, 1, 2], np.int32))
    found = _problems(
        [_X, _Y, middle, perm],
        FileOperator("SKIP_GRAM", (0,), (2,)),
        FileOperator("TRANSPOSE", (2, 3), (1,)),
    )
    expected = "m.tflite: node 'y' (TRANSPOSE): perm (0, 1, 2) of a tensor of rank 4"
    assert found[1] == expected


def test_several_subgraphs() -> None:
    found = _problems([_X, _Y], FileOperator("RELU", (0,), (1,)), subgraphs=2)
    assert found == [
        "m.tflite: has 2 subgraphs that nothing calls: 'subgraph_0', 'subgraph_1'. "
        "Hint: --signature subgraph_0 builds that one"
    ]


def test_open_dimension() -> None:
    x = FileTensor("x", (1, 1, 4), signature=(-1, -1, 4))
    found = _problems([x, _Y], FileOperator("RELU", (0,), (1,)))
    assert found == [
        "m.tflite: dimension 1 of input 'x' [-1, -1, 4] is open. Hint: "
        "--input-dim x.1=n"
    ]


def test_dimension_that_is_not_open() -> None:
    found = _problems([_X, _Y], FileOperator("RELU", (0,), (1,)), dims={"batch": 2})
    assert found == ["--input-dim: 'batch' is not an open dimension of an input ('x')"]


def test_element_type() -> None:
    x = FileTensor("x", (1, 4), "COMPLEX64")
    found = _problems([x, _Y], FileOperator("RELU", (0,), (1,)))
    assert found == [
        "m.tflite: 'x' has type COMPLEX64, which is not supported. Hint: "
        "convert to int8 or float32"
    ]


def test_int32_activations() -> None:
    quant = {"kind": "INT32", "scale": (0.1,), "zero_point": (0,)}
    x, y = FileTensor("x", (1, 4), **quant), FileTensor("y", (1, 4), **quant)
    found = _problems([x, y], FileOperator("TANH", (0,), (1,)))
    assert found == [
        "m.tflite: node 'y' (TANH): 'x' is int32, which is not supported here. "
        "Hint: use int8 or float32"
    ]


def test_constant_of_another_size() -> None:
    w = FileTensor("w", (5, 9), data=np.zeros((5, 8), np.float32))
    x, y = FileTensor("x", (1, 9)), FileTensor("y", (1, 5))
    found = _problems([x, y, w], FileOperator("FULLY_CONNECTED", (0, 2), (1,)))
    assert found == [
        "m.tflite: node 'y' (FULLY_CONNECTED): constant 'w' of shape [5, 9] has "
        "160 bytes, not 180. Hint: the file is damaged"
    ]


def test_shape_of_an_absurd_size() -> None:
    x = FileTensor("x", (1, 1 << 30, 1 << 30, 2))
    found = _problems([x, _Y], FileOperator("RELU", (0,), (1,)))
    assert found == [
        "m.tflite: 'x' has shape [1, 1073741824, 1073741824, 2]. Hint: every "
        "dimension must be at least 1, and the whole below 2 GB"
    ]


def test_reads_before_it_is_computed() -> None:
    middle = FileTensor("middle", (1, 4, 4, 2))
    found = _problems([_X, _Y, middle], FileOperator("ADD", (0, 2), (1,)))
    expected = "m.tflite: node 'y' (ADD): reads 'middle' before it is computed"
    assert found == [expected]


def test_writes_twice() -> None:
    relu = FileOperator("RELU", (0,), (1,))
    found = _problems([_X, _Y], relu, relu)
    expected = "m.tflite: node 'y' (RELU): writes 'y', which has a value already"
    assert found == [expected]


def test_output_that_nobody_computes() -> None:
    found = _problems([_X, _Y])
    assert found == ["m.tflite: output 'y' is never computed"]


def test_tensor_that_does_not_exist() -> None:
    found = _problems([_X, _Y], FileOperator("RELU", (7,), (1,)))
    expected = "m.tflite: operator 0 (RELU): refers to tensors [1, 7] of 2. "
    assert found[0] == expected + "Hint: the file is damaged"


def test_fused_activation() -> None:
    add = FileOperator(
        "ADD", (0, 0), (1,), "AddOptions", {"FusedActivationFunction": 4}
    )
    assert _problems([_X, _Y], add) == [
        "m.tflite: node 'y' (ADD): the fused activation 4 is not supported. Hint: "
        "NONE, RELU, RELU_N1_TO_1 and RELU6 are"
    ]


def test_weights_with_a_zero_point() -> None:
    scale = {"kind": "INT8", "scale": (0.1,), "zero_point": (0,)}
    w = FileTensor(
        "w", (1, 2, 2, 2), "INT8", np.ones((1, 2, 2, 2), np.int8), (0.1,), (3,)
    )
    x, y = (
        FileTensor("x", (1, 4, 4, 2), **scale),
        FileTensor("y", (1, 3, 3, 1), **scale),
    )
    options = {"Padding": 1, "StrideH": 1, "StrideW": 1}
    layer = FileOperator("CONV_2D", (0, 2), (1,), "Conv2DOptions", options)
    found = _problems([x, y, w], layer)
    assert found == [
        "m.tflite: node 'y' (CONV_2D): weights 'w' have a zero point. Hint: "
        "quantise weights symmetrically"
    ]


def test_activation_without_a_scale() -> None:
    x, y = FileTensor("x", (1, 9), "INT8"), FileTensor("y", (1, 9), "INT8")
    found = _problems([x, y], FileOperator("TANH", (0,), (1,)))
    assert found == [
        "m.tflite: node 'y' (TANH): 'x' is int8 without a scale. Hint: "
        "quantise the model with scales"
    ]


def test_computed_weights() -> None:
    w = FileTensor("w", (5, 3, 3, 1))
    x, y = FileTensor("x", (1, 9, 9, 1)), FileTensor("y", (1, 9, 9, 5))
    options = {"StrideH": 1, "StrideW": 1}
    layer = FileOperator("CONV_2D", (0, 2), (1,), "Conv2DOptions", options)
    found = _problems([x, y, w], layer, inputs=[0, 2])
    assert found == ["m.tflite: node 'y' (CONV_2D): input 'w' must be a constant"]


def _known(name: str, value: Any, kind: str = "INT32") -> FileTensor:
    array = np.asarray(value, kind.lower())
    return FileTensor(name, array.shape, kind, array)


@pytest.mark.parametrize(
    ("code", "extra", "inputs", "what"),
    [
        ("SIN", (), (), "input 0 is missing"),
        ("POW", (), (0,), "input 1 is missing"),
        ("PACK", (), (), "has no inputs"),
        ("ADD_N", (), (), "has no inputs"),
        ("CUMSUM", ([0, 1],), (0, 2), "'k0' holds 2 integers, not 1"),
        ("SPLIT", ([0, 1],), (2, 0), "'k0' holds 2 integers, not 1"),
        ("RESIZE_BILINEAR", ([(1 << 31) - 1, 2],), (0, 2),
         "[1, 4, 4, 2] to [2147483647, 2] is too large"),
        ("RANGE", (0, 9, 0), (2, 3, 4), "from 0 to 9 by 0 has no values"),
        ("RANGE", (0, 1 << 30, 1), (2, 3, 4),
         "from 0 to 1073741824 by 1 has too many values"),
    ],
)  # fmt: skip
def test_inputs_that_no_converter_writes(
    code: str, extra: tuple[Any, ...], inputs: tuple[int, ...], what: str
) -> None:
    constants = [_known(f"k{i}", value) for i, value in enumerate(extra)]
    found = _problems([_X, _Y, *constants], FileOperator(code, inputs, (1,)))
    assert found == [f"m.tflite: node 'y' ({code}): {what}"]


def test_a_range_without_a_limit() -> None:
    constants = [_known(f"k{i}", v, "FLOAT32") for i, v in enumerate((0, np.nan, 1))]
    found = _problems([_X, _Y, *constants], FileOperator("RANGE", (2, 3, 4), (1,)))
    assert found == ["m.tflite: node 'y' (RANGE): from 0.0 to nan by 1.0 has no values"]
