"""Parts of nets that nobody here had seen, each as the converter wrote it where it was
found: every layer is LiteRT's by both back ends."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import pybuild
from pybuild.verify.check import check
from tests.ops.tflite_writer import FileOperator, FileTensor, write

_CHANCE = np.random.default_rng(37)


def _int32(name: str, values: object) -> FileTensor:
    array = np.asarray(values, np.int32)
    return FileTensor(name, array.shape, "INT32", array)


def _int8(name: str, shape: tuple[int, ...], scale: float, zero: int) -> FileTensor:
    return FileTensor(name, shape, "INT8", None, (scale,), (zero,))


def _is_litert_s(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "part.tflite"
    path.write_bytes(data)
    seen = check(path, pybuild.load(path).build(), ("c", "llvm"), "litert", 3, True)
    assert seen.ok, seen.backends


def test_a_dilated_layer_of_an_open_batch(tmp_path: Path) -> None:
    """Keras with an open batch: blocks padded with a zero point that is not 0, a plain
    convolution, the blocks back. It was refused: "has no scale"."""
    w = _CHANCE.integers(-127, 128, (5, 3, 3, 4)).astype(np.int8)
    tensors = [
        _int8("x", (1, 6, 8, 4), 0.02, -128),
        _int32("blocks", [2, 2]),
        _int32("pads", [[2, 2], [2, 2]]),
        _int8("apart", (4, 5, 6, 4), 0.02, -128),
        FileTensor("w", w.shape, "INT8", w, (0.01,), (0,)),
        _int8("summed", (4, 3, 4, 5), 0.03, 7),
        _int32("crops", [[0, 0], [0, 0]]),
        _int8("y", (1, 6, 8, 5), 0.03, 7),
        FileTensor("b", (5,), "INT32", np.arange(5, dtype=np.int32), (2e-4,), (0,)),
    ]
    plain = {"Padding": 1, "StrideH": 1, "StrideW": 1}
    operators = [
        FileOperator("SPACE_TO_BATCH_ND", (0, 1, 2), (3,)),
        FileOperator("CONV_2D", (3, 4, 8), (5,), "Conv2DOptions", plain),
        FileOperator("BATCH_TO_SPACE_ND", (5, 1, 6), (7,)),
    ]
    _is_litert_s(tmp_path, write(tensors, operators, [0], [7]))


def test_layers_of_which_rows_and_columns_are_as_many(tmp_path: Path) -> None:
    """An MLP-Mixer with as many patches as channels: what is added is computed with
    its axes changed, which its shape does not tell. `--per-layer` said it is wrong."""
    shape = (1, 4, 4)
    tensors = [
        FileTensor("x", shape),
        _int32("order", [0, 2, 1]),
        FileTensor("turned", shape),
        FileTensor("curved", shape),
        FileTensor("back", shape),
        FileTensor("sum", shape),
        _int32("axes", [2]),
        FileTensor("y", (1, 4, 1)),
    ]
    operators = [
        FileOperator("TRANSPOSE", (0, 1), (2,), "TransposeOptions", {}),
        FileOperator("LOGISTIC", (2,), (3,)),
        FileOperator("SUB", (3, 2), (4,), "SubOptions", {}),
        FileOperator("ADD", (0, 4), (5,), "AddOptions", {}),
        FileOperator("MEAN", (5, 6), (7,), "ReducerOptions", {"KeepDims": True}),
    ]
    _is_litert_s(tmp_path, write(tensors, operators, [0], [7]))
