"""What TensorFlow Lite Micro computes otherwise than LiteRT, and what only it has: by a
model of its kernels in plain Python, through C and LLVM.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from pybuild.dtype import Array
from pybuild.errors import BuildError
from pybuild.frontends.tflite import OPERATORS, load
from pybuild.ops.fixed_point.quant import quantize_multiplier
from tests.frontends.tflite import tflm
from tests.frontends.tflite.cases import BATCH, Case, compiled, library_of
from tests.frontends.tflite.draws import drawn
from tests.ops.tflite_writer import FileOperator, FileTensor, write

ROUNDINGS = ("litert", "tflm")
_X, _Y = (float(np.float32(0.03)), -7), (float(np.float32(0.11)), 12)
_ROWS = np.random.default_rng(4).integers(-128, 128, (3, 14)).astype(np.int8)
_BYTES = np.arange(-128, 128).astype(np.int8)


def _tensor(name: str, shape: tuple[int, ...], quant: tuple[float, int]) -> FileTensor:
    scale, zero = quant
    return FileTensor(name, shape, "INT8", None, (scale,), (zero,))


def _unary(code: str, x: tuple[float, int], y: tuple[float, int]) -> bytes:
    tensors = [_tensor("x", (256,), x), _tensor("y", (256,), y)]
    return write(tensors, [FileOperator(code, (0,), (1,))], [0], [1])


def _sum(
    shape: tuple[int, ...], x: tuple[float, int], y: tuple[float, int],
    exclusive: bool = False,
) -> bytes:  # fmt: skip
    axis = FileTensor("axis", (), "INT32", np.asarray(len(shape) - 1, np.int32))
    tensors = [_tensor("x", shape, x), axis, _tensor("y", shape, y)]
    options = {"Exclusive": exclusive}
    operator = FileOperator("CUMSUM", (0, 1), (2,), "CumsumOptions", options)
    return write(tensors, [operator], [0], [2])


_LONG = np.full(400, 100, np.int8)
# name -> file, input
FILES = {
    "sum": (_sum((3, 14), _X, _Y), _ROWS),
    "before": (_sum((3, 14), _X, _Y, True), _ROWS),
    "long": (_sum((400,), (0.002, -100), (0.8, -100)), _LONG),
    "relu6": (_unary("RELU6", (0.05, -20), (0.025, -100)), _BYTES),
}


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], Array]:
    """(name, rounding) -> what C and LLVM give alike."""
    keys = [(name, rounding) for name in FILES for rounding in ROUNDINGS]
    libraries = []
    for number, (name, rounding) in enumerate(keys):
        case = Case((name, rounding, number), FILES[name][0], [], None)
        libraries.append(library_of(case, rounding))
    root: Path = tmp_path_factory.mktemp("micro")
    made = {}
    for key, nets in zip(keys, compiled(libraries, root, ("c", "llvm")), strict=True):
        both = []
        for net in (nets[0][1], nets[1][1].host("llvm")):
            net.run(x=FILES[key[0]][1])
            output = net.get_output(nets[1][1].plan.graph.outputs[0])
            both.append(np.array(output))
        np.testing.assert_array_equal(*both)
        made[key] = both[0]
    return made


def _twice(x: int, multiplier: int, shift: int) -> int:
    """MultiplyByQuantizedMultiplier of a shift to the right."""
    high = (x * multiplier + (1 << 30)) >> 31
    half = 1 << (-shift - 1) if shift < 0 else 0
    return (high + half - (half > 0 and high < 0)) >> -shift


def _cumulated(row: list[int], exclusive: bool, micro: bool) -> list[int]:
    """TFLM's CumSum of int8, which LiteRT does not have; there without its start."""
    multiplier, shift = quantize_multiplier(2 * _X[0] / ((1 << 20) * _Y[0]))
    total, made = (-_X[1] << 19) if micro else 0, []
    for q in row:
        after = total + ((q - _X[1]) << 19)
        raw = _twice(total if exclusive else after, multiplier, shift) + _Y[1]
        made.append(max(-128, min(127, raw)))
        total = after
    return made


@pytest.mark.parametrize("rounding", ROUNDINGS)
@pytest.mark.parametrize("name", ["sum", "before"])
def test_running_sum(
    rounding: str, name: str, found: dict[tuple[str, str], Array]
) -> None:
    micro, exclusive = rounding == "tflm", name == "before"
    wanted = [_cumulated(row, exclusive, micro) for row in _ROWS.tolist()]
    np.testing.assert_array_equal(found[name, rounding], wanted)


def test_a_running_sum_beyond_int32(found: dict[tuple[str, str], Array]) -> None:
    """Of 400 times 200 steps of 1/500: within half a step of the real sum."""
    real = 0.4 * np.arange(1, 401)
    made = (found["long", "litert"].astype(int) + 100) * 0.8
    held = np.minimum(real, 227 * 0.8)
    assert np.abs(made - held).max() <= 0.4 + 1e-6


@pytest.mark.parametrize("rounding", ROUNDINGS)
def test_relu6(rounding: str, found: dict[tuple[str, str], Array]) -> None:
    """TFLM clips the integers of the input and never looks at the output's scale."""
    wanted = np.clip(_BYTES, -20, 100)
    if rounding == "litert":
        wanted = np.clip(2 * (_BYTES.astype(int) + 20) - 100, -100, 127)
    np.testing.assert_array_equal(found["relu6", rounding], wanted)


# files that it computes otherwise than LiteRT
OTHERWISE = {
    "ADD int32": 2,
    "ADD_N int8": 0,
    "CUMSUM int8": 0,
    "EMBEDDING_LOOKUP int8": 0,
    "FULLY_CONNECTED int16": 1,
    "RELU6 int16": 0,
    "RSQRT int16": 0,
    "SPACE_TO_BATCH_ND int8": 2,
    "SUM int8": 0,
    "add int16, powers of 2": 0,
    "leaky int16, many": 0,
    "relu int16, many": 0,
    "sub int16, powers of 2": 1,
}


def _computed() -> list[tuple[str, int]]:
    """Every file that it computes, but for those without a meaning."""
    return [
        (name, number)
        for name, marks in tflm.page()["files"].items()
        for number, made in enumerate(marks)
        if name not in (*tflm.MEANINGLESS, *tflm.KINDS) and made is not None
    ]


def test_its_operators_are_known() -> None:
    """All that it registers, in each type in which it computes a file."""
    codes = tflm.page()["operators"]
    assert len(codes) >= 100
    assert not [code for code in codes if code not in OPERATORS]
    refused = []
    for name, number in _computed():
        one = drawn(*name.split(" "), number)
        try:
            load("m.tflite", one.bytes(), {})
        except BuildError as error:
            refused.append(f"{name} {number}: {error.problems[0]}")
    assert not refused


def _differing(cases: list[tuple[str, int]], root: Path) -> list[str]:
    known = tflm.page()["files"]
    return [
        f"{name} {number}"
        for (name, number), found in zip(cases, tflm.ours(cases, root), strict=True)
        if set(found.values()) != {known[name][number]}
    ]


def test_files_that_it_computes_otherwise(tmp_path: Path) -> None:
    assert not _differing(list(OTHERWISE.items()), tmp_path)


@pytest.mark.sweep
def test_all_files_with_integers(tmp_path: Path) -> None:
    known = tflm.page()["files"]
    cases = [(name, n) for name, n in _computed() if known[name][n] != "float"]
    assert len(cases) > 250
    for at in range(0, len(cases), BATCH):
        root = tmp_path / str(at)
        root.mkdir()
        assert not _differing(cases[at : at + BATCH], root)


def _table(*scales: float) -> FileTensor:
    data, zeros = np.zeros((3, 2), np.int8), (0,) * len(scales)
    return FileTensor("b", (3, 2), "INT8", data, scales, zeros, 1)


@pytest.mark.parametrize(
    ("code", "tensors", "inputs", "what"),
    [
        ("LOG_SOFTMAX", [_tensor("x", (1, 4), (0.1, 0)), _tensor("y", (1, 4), _Y)],
         (0,), "the output has scale 0.11 and zero point 12. Hint: quantise it with "
               "1/16 and 127"),
        ("LOG_SOFTMAX",
         [_tensor("x", (1, 4096), (0.1, 0)), _tensor("y", (1, 4096), (1 / 16, 127))],
         (0,), "4096 values in a row, at most 4095 in int8"),
        ("CUMSUM",
         [_tensor("x", (32768,), _X), _tensor("y", (32768,), _Y),
          FileTensor("b", (), "INT32", np.asarray(0, np.int32))],
         (0, 2), "32768 values in a row, below 32768 in int8"),
        ("DIV",
         [_tensor("x", (4,), (1e6, 0)), _tensor("y", (4,), (1e-3, 0)),
          _tensor("b", (4,), (1e-3, 0))],
         (0, 2), "scales 1e+06 by 0.001 to 0.001 are too far apart"),
        ("EMBEDDING_LOOKUP",
         [FileTensor("x", (2,), "INT32"), FileTensor("y", (2, 2)), _table(0.1, 0.2)],
         (0, 2), "'b' has no scale, nor one for each row"),
    ],
)  # fmt: skip
def test_bytes_that_are_refused(
    code: str, tensors: list[FileTensor], inputs: tuple[int, ...], what: str
) -> None:
    free = [i for i in inputs if tensors[i].data is None]
    operator = FileOperator(code, inputs, (1,))
    with pytest.raises(BuildError) as caught:
        load("m.tflite", write(tensors, [operator], free, [1]), {})
    told = [str(p) for p in caught.value.problems]
    assert told == [f"m.tflite: node 'y' ({code}): {what}"]
