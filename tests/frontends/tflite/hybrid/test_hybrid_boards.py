"""BATCH_MATMUL, SVDF and TRANSPOSE_CONV of int8 weights in a net, as C with sanitizers
and on an emulated core.
"""

from __future__ import annotations

from functools import cache

import numpy as np

import pybuild
from pybuild.boards.device import open_device, program_of, run_program
from pybuild.dtype import Array
from pybuild.library import Library
from tests.boards.devices import CORES
from tests.frontends.tflite.hybrid.test_hybrid_transposed import NEAR
from tests.ops.litert import run_litert
from tests.ops.tflite_writer import FileOperator, FileTensor, write
from tests.toolchains import require

_X, _COLUMNS, _UNITS, _MEMORY = (1, 4, 4, 6), 9, 6, 5
_LINE = 4 * 4 * _COLUMNS


@cache
def _net() -> bytes:
    rng = np.random.default_rng(11)

    def weights(name: str, *shape: int) -> FileTensor:
        value = rng.integers(-127, 128, shape).astype(np.int8)
        return FileTensor(name, shape, "INT8", value, (0.0117,), (0,))

    numbers = np.asarray([1, 8, 8, 5], np.int32), np.asarray([1, _LINE], np.int32)
    state = FileTensor("state", (1, _UNITS * _MEMORY), variable=True)
    tensors = [
        FileTensor("x", _X),
        weights("matrix", 6, _COLUMNS), FileTensor("product", (1, 4, 4, _COLUMNS)),
        FileTensor("line", (2,), "INT32", numbers[1]), FileTensor("flat", (1, _LINE)),
        weights("feature", _UNITS, _LINE), weights("time", _UNITS, _MEMORY),
        state, FileTensor("y", (1, _UNITS // 2)),
        FileTensor("sizes", (4,), "INT32", numbers[0]), weights("kernel", 5, 3, 3, 6),
        FileTensor("image", (1, 8, 8, 5)),
    ]  # fmt: skip
    strides = {"StrideH": 2, "StrideW": 2, "Padding": 0}
    operators = [
        FileOperator("BATCH_MATMUL", (0, 1), (2,), "BatchMatMulOptions",
                     {"AsymmetricQuantizeInputs": True}),
        FileOperator("RESHAPE", (2, 3), (4,)),
        FileOperator("SVDF", (4, 5, 6, -1, 7), (8,), "SVDFOptions", {"Rank": 2}),
        FileOperator("TRANSPOSE_CONV", (9, 10, 0), (11,), "TransposeConvOptions",
                     strides),
    ]  # fmt: skip
    return write(tensors, operators, [0], [8, 11])


@cache
def _library() -> Library:
    return pybuild.load(_net()).build(target="cortex-m4", name="net")


def _samples(count: int) -> list[dict[str, Array]]:
    rng = np.random.default_rng(2)
    return [{"x": rng.normal(0.2, 1, _X).astype(np.float32)} for _ in range(count)]


def _equal(made: dict[str, Array], wanted: dict[str, Array]) -> None:
    np.testing.assert_array_equal(made["y"], wanted["y"])
    reach = float(np.abs(wanted["image"]).max())
    np.testing.assert_allclose(made["image"], wanted["image"], 0, NEAR * reach)


def test_c_equals_litert() -> None:
    require("gcc")
    net, samples = _library().host("c"), _samples(7)
    for sample, wanted in zip(samples, run_litert(_net(), samples), strict=True):
        _equal(net.run(**sample), wanted)


def test_an_emulated_core_equals_litert() -> None:
    for tool in ("arm-none-eabi-gcc", "qemu-system-arm"):
        require(tool)
    samples = _samples(3)
    device = open_device(CORES["cortex-m4"], "gcc", "qemu", "cortex-m4")
    found = run_program(device, program_of(device, _library()), samples)
    for made, wanted in zip(found, run_litert(_net(), samples), strict=True):
        _equal(made, wanted)


def test_flash_is_that_of_the_file() -> None:
    """Of each output of a layer a few words of tables."""
    constants = 6 * _COLUMNS + _UNITS * (_LINE + _MEMORY) + 5 * 9 * 6
    outputs = _COLUMNS + _UNITS + 4 * 5
    assert _library().report.flash.weights <= 1.15 * constants + 12 * outputs
