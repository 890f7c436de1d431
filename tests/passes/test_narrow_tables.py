"""Tables of float32 from which rows are gathered, narrow in flash by their values."""

from __future__ import annotations

import numpy as np
import pytest

import pybuild
from pybuild.dtype import Array
from pybuild.frontends.tflite import load
from pybuild.model import Model
from pybuild.ops.interpret import interpret
from pybuild.passes.lookups.scaled import scaled_table
from tests.frontends.tflite.files import packed4
from tests.ops.litert import run_litert
from tests.ops.tflite_writer import FileOperator, FileTensor, write

_ROWS, _WIDTH = 96, 16
_PLACES = np.asarray([0, 3, 95, 7, 3], np.int32)
_RNG = np.random.default_rng(5)
_NUMBERS = _RNG.integers(-127, 128, (_ROWS, _WIDTH)).astype(np.int8)
_NUMBERS[0, 0] = -128
_SCALE = np.float32(0.0123)
_SCALES = _RNG.uniform(0.002, 0.02, _ROWS).astype(np.float32)
_WIDE = _NUMBERS.astype(np.int32)

REAL: dict[str, Array] = {
    "one scale": _NUMBERS * _SCALE,
    "zero point": (_WIDE - 37).astype(np.float32) * _SCALE,
    "all above 0": (np.abs(_WIDE) + 125).astype(np.float32) * _SCALE,
    "rows": _NUMBERS * _SCALES[:, None],
    "halves": _RNG.normal(0, 1, _NUMBERS.shape).astype(np.float16).astype(np.float32),
    "others": _RNG.normal(0, 1, _NUMBERS.shape).astype(np.float32),
}
REAL["minus 0"] = REAL["one scale"].copy()
REAL["minus 0"][3, 3] = -0.0
BYTES = {"one scale": 1, "zero point": 1, "all above 0": 1, "rows": 1, "halves": 2}


def _gather(table: Array, axis: int = 0) -> bytes:
    shape = (5, _WIDTH) if axis == 0 else (_ROWS, 5)
    tensors = [
        FileTensor("i", (5,), "INT32"),
        FileTensor("t", table.shape, "FLOAT32", table),
        FileTensor("y", shape),
    ]
    operator = FileOperator("GATHER", (1, 0), (2,), "GatherOptions", {"Axis": axis})
    return write(tensors, [operator], [0], [2])


@pytest.mark.parametrize("name", REAL)
def test_rows_keep_their_bits(name: str) -> None:
    table = REAL[name]
    model = Model("m.tflite", load("m.tflite", _gather(table), {}), "litert", "0" * 64)
    library = model.build(target="cortex-m4", name="m")
    (made,) = library.host("llvm").run(i=_PLACES).values()
    assert made.tobytes() == table[_PLACES].tobytes()
    lowered = interpret(model.lower(), {"i": _PLACES})["y"]
    np.testing.assert_array_equal(lowered, table[_PLACES])
    more = 4 * _ROWS * (name == "rows") + 8
    assert library.report.flash.weights <= BYTES.get(name, 4) * table.size + more


def test_columns_have_no_scales_of_rows() -> None:
    """A scale for each row would be one for each value that is gathered."""
    graph = load("m.tflite", _gather(REAL["rows"], 1), {})
    model = Model("m.tflite", graph, "litert", "0" * 64)
    assert [node.op for node in model.lower().nodes] == ["gather"]


def test_what_has_no_scale() -> None:
    table = REAL["one scale"].copy()
    for value in (np.nan, np.inf, table[1, 1] * np.float32(1.0001)):
        table[5, 5] = value
        assert scaled_table(table, True) is None
    above = np.abs(_NUMBERS.astype(np.float32))  # 128 has no int8
    above[:, 1:3] = 128, 127
    assert scaled_table(above * _SCALES[:, None], True) is None
    tiny = _NUMBERS.astype(np.float32) * np.float32(1e-41)
    assert scaled_table(tiny, True) is None
    nothing = scaled_table(np.zeros((4, 4), np.float32), True)
    assert nothing is not None and not nothing.numbers.any()


@pytest.mark.parametrize("kind", ["INT8", "INT4"])
@pytest.mark.parametrize("each", [False, True])
def test_an_embedding_lookup_reads_bytes(kind: str, each: bool) -> None:
    numbers = _NUMBERS if kind == "INT8" else _NUMBERS >> 4
    scales = tuple(map(float, _SCALES)) if each else (float(_SCALE),)
    held = numbers if kind == "INT8" else packed4(numbers)
    tensors = [
        FileTensor("i", (5,), "INT32"),
        FileTensor("t", numbers.shape, kind, held, scales, (0,) * len(scales), 0),
        FileTensor("y", (5, _WIDTH)),
    ]
    data = write(tensors, [FileOperator("EMBEDDING_LOOKUP", (0, 1), (2,))], [0], [2])
    library = pybuild.load(data).build()
    (made,) = library.host("llvm").run(i=_PLACES).values()
    (theirs,) = run_litert(data, [{"i": _PLACES}])
    np.testing.assert_array_equal(made, theirs["y"])
    assert library.report.flash.weights <= numbers.size + 4 * len(scales) + 8


@pytest.mark.parametrize("dequantised", [False, True])
def test_a_table_is_dequantised_behind_or_before(dequantised: bool) -> None:
    quant = (float(_SCALE),), (3,)
    middle = FileTensor("m", _NUMBERS.shape)
    codes = ("DEQUANTIZE", "GATHER")
    if not dequantised:
        middle = FileTensor("m", (5, _WIDTH), "INT8", None, *quant)
        codes = ("GATHER", "DEQUANTIZE")
    tensors = [
        FileTensor("i", (5,), "INT32"),
        FileTensor("t", _NUMBERS.shape, "INT8", _NUMBERS, *quant),
        middle,
        FileTensor("y", (5, _WIDTH)),
    ]
    operators = []
    for at, code in enumerate(codes):
        reads = (at + 1, 0) if code == "GATHER" else (at + 1,)
        table = "GatherOptions" if code == "GATHER" else ""
        operators.append(FileOperator(code, reads, (at + 2,), table, {}))
    data = write(tensors, operators, [0], [3])
    library = pybuild.load(data).build()
    (made,) = library.host("llvm").run(i=_PLACES).values()
    (theirs,) = run_litert(data, [{"i": _PLACES}])
    np.testing.assert_array_equal(made, theirs["y"])
    assert library.report.flash.weights <= _NUMBERS.size + 8
