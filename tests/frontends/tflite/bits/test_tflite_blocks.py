"""Constants of 2 bits, and those with a scale for each block of a row
(BlockwiseQuantization): the numbers that they stand for, beside LiteRT's results.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from pybuild.dtype import Array
from pybuild.errors import BuildError
from pybuild.frontends.tflite import load
from pybuild.host.trace import recorded
from pybuild.model import Model
from pybuild.ops.interpret import interpret
from tests.frontends.tflite.files import packed
from tests.ops.litert import run_litert
from tests.ops.tflite_tables import Blocks
from tests.ops.tflite_writer import FileOperator, FileTensor, write

CHANCE = np.random.default_rng(9)
X = CHANCE.normal(size=(2, 64)).astype(np.float32)
OUTS = 24
# scales as ai-edge-quantizer writes them: float16 of 7 bits after the point
SCALES = (CHANCE.integers(129, 255, (OUTS, 2)) / 4096).astype(np.float16)
OPTIONS = {"FULLY_CONNECTED": "FullyConnectedOptions", "CONV_2D": "Conv2DOptions"}
WINDOW = {"StrideH": 1, "StrideW": 1, "Padding": 1}


def _numbers(bits: int, shape: tuple[int, ...] = (OUTS, 64)) -> Array:
    half = 1 << bits - 1
    return np.random.default_rng(bits).integers(-half, half, shape)


def _real(numbers: Array, scales: Array = SCALES) -> Array:
    """float32 values of numbers with a scale for each block of 32."""
    parts = numbers.reshape(-1, 2, 32).astype(np.float32)
    wide = parts * scales.reshape(-1, 2, 1).astype(np.float32)
    return wide.reshape(numbers.shape)


def _tensor(bits: int, numbers: Array, blocks: Blocks) -> FileTensor:
    data = packed(numbers, bits) if bits < 8 else numbers.astype(np.int8)
    return FileTensor("w", numbers.shape, f"INT{bits}", data, blocks=blocks)


def _layer(
    w: FileTensor, scales: Array = SCALES, code: str = "FULLY_CONNECTED",
    more: tuple[FileTensor, ...] = (),
) -> bytes:  # fmt: skip
    """A layer of a bias of zeros; its tensor 2 has the scales."""
    x, y = ((2, 64), (2, OUTS)) if len(w.shape) == 2 else (
        (1, 1, 2, 64), (1, 1, 2, OUTS)
    )  # fmt: skip
    tensors = [
        FileTensor("x", x), w,
        FileTensor("s", scales.shape, scales.dtype.name.upper(), scales),
        FileTensor("b", (OUTS,), "FLOAT32", np.zeros(OUTS, np.float32)),
        FileTensor("y", y), *more,
    ]  # fmt: skip
    options = {} if code == "FULLY_CONNECTED" else WINDOW
    layer = FileOperator(code, (0, 1, 3), (4,), OPTIONS[code], options)
    return write(tensors, [layer], [0], [4])


@pytest.mark.parametrize("code", OPTIONS)
@pytest.mark.parametrize("bits", [2, 4, 8])
def test_scales_of_blocks_give_the_layer_of_float32(bits: int, code: str) -> None:
    """The same graph as that of a file of the same values in float32."""
    shape = (OUTS, 64) if code == "FULLY_CONNECTED" else (OUTS, 1, 1, 64)
    numbers, blocks = (
        _numbers(bits, shape),
        Blocks(2, 32, shape=(1,) * (len(shape) - 1) + (32,)),
    )
    real = FileTensor("w", shape, "FLOAT32", _real(numbers))
    for given in (blocks, replace(blocks, shape=(), zero_points=0)):
        ours = load("m.tflite", _layer(_tensor(bits, numbers, given), code=code), {})
        plain = load("m.tflite", _layer(real, code=code), {})
        assert ours.nodes == plain.nodes
        np.testing.assert_array_equal(ours.constants["w"], plain.constants["w"])


def test_litert_rounds_the_inputs_of_blocks() -> None:
    """LiteRT makes the inputs of a row int8, so it differs by at most half a step of
    each input times its weight."""
    numbers = _numbers(4)
    data = _layer(_tensor(4, numbers, Blocks(2, 32)))
    (theirs,) = run_litert(data, [{"x": X}], "BUILTIN_WITHOUT_DEFAULT_DELEGATES")
    ours = interpret(load("m.tflite", data, {}), {"x": X})["y"]
    step = np.abs(X).max(1, keepdims=True) / 127
    most = step / 2 * np.abs(_real(numbers)).sum(1)
    assert (np.abs(theirs["y"] - ours) < 1.01 * most + 1e-5).all()
    assert np.abs(theirs["y"] - ours).max() > 0.001


@pytest.mark.parametrize("bits", [2, 4])
def test_rows_of_a_table_with_blocks(bits: int) -> None:
    numbers, rows = _numbers(bits), np.asarray([3, 0, 23], np.int32)
    tensors = [
        FileTensor("x", (3,), "INT32"), _tensor(bits, numbers, Blocks(2, 32)),
        FileTensor("s", SCALES.shape, "FLOAT16", SCALES), FileTensor("y", (3, 64)),
    ]  # fmt: skip
    data = write(tensors, [FileOperator("EMBEDDING_LOOKUP", (0, 1), (3,))], [0], [3])
    (theirs,) = run_litert(data, [{"x": rows}])
    ours = interpret(load("m.tflite", data, {}), {"x": rows})["y"]
    np.testing.assert_array_equal(ours, theirs["y"])


def _of_channels(numbers: Array, x: FileTensor, y: FileTensor) -> bytes:
    """A dense layer of 2 bits with a scale for each channel."""
    scale = tuple(float(s) for s in SCALES[:, 0].astype(np.float32))
    w = FileTensor("w", numbers.shape, "INT2", packed(numbers, 2), scale, (0,) * OUTS)
    layer = FileOperator(
        "FULLY_CONNECTED", (0, 1, -1), (2,), OPTIONS["FULLY_CONNECTED"]
    )
    return write([x, w, y], [layer], [0], [2])


def test_two_bits_by_channel_with_inputs_of_int8() -> None:
    x = FileTensor("x", (2, 64), "INT8", None, (0.1,), (5,))
    y = FileTensor("y", (2, OUTS), "INT8", None, (0.05,), (3,))
    data = _of_channels(_numbers(2), x, y)
    given = {"x": CHANCE.integers(-128, 128, (2, 64)).astype(np.int8)}
    (theirs,) = run_litert(data, [given])
    model = Model("m.tflite", load("m.tflite", data, {}), "litert", "0" * 64)
    ours = interpret(model.lower(), given)["y"]
    np.testing.assert_array_equal(ours, theirs["y"])


def test_two_bits_by_channel_with_inputs_of_float32() -> None:
    data = _of_channels(
        _numbers(2), FileTensor("x", (2, 64)), FileTensor("y", (2, OUTS))
    )
    (theirs,) = run_litert(data, [{"x": X}])
    ours = interpret(load("m.tflite", data, {}), {"x": X})["y"]
    np.testing.assert_array_equal(ours, theirs["y"])


HALF = FileTensor("h", (OUTS,), "FLOAT16", SCALES[:, 0])
POINTS = FileTensor("z", SCALES.shape, "INT8", np.ones(SCALES.shape, np.int8))
WRONG: dict[str, tuple[Blocks, dict[str, Any], str]] = {
    "none": (Blocks(2, 0), {}, "has blocks of 0 values. Hint: a row must be a whole"),
    "less": (Blocks(2, -32), {}, "has blocks of -32 values. Hint: a row must be"),
    "no divisor": (Blocks(2, 24), {}, "has blocks of 24 values. Hint: a row must be"),
    "huge": (Blocks(2, 2**31 - 1), {}, "has blocks of 2147483647 values. Hint: a row"),
    "no tensor": (Blocks(99, 32), {}, "the scales of 'w' are tensor 99 of 5. Hint"),
    "below": (Blocks(-1, 32), {}, "the scales of 'w' are tensor -1 of 5. Hint"),
    "itself": (Blocks(1, 32), {}, "the scales of 'w', 'w', are no constant. Hint"),
    "computed": (Blocks(0, 32), {}, "the scales of 'w', 'x', are no constant. Hint"),
    "too few": (Blocks(5, 32), {"more": (HALF,)}, "the scales of 'w', 'h', are 24 of "
                "float16, for 48 blocks of 32. Hint: quantise the model again"),
    "integers": (Blocks(5, 32), {"more": (POINTS,)}, "the scales of 'w', 'z', are 48 "
                 "of int8, for 48 blocks of 32. Hint: quantise the model again"),
    "infinite": (Blocks(2, 32), {"scales": SCALES * np.float16(np.inf)},
                 "has a scale that is not finite. Hint: quantise the model again"),
    "columns": (Blocks(2, 32, shape=(32, 1)), {}, "has blocks of \\[32, 1\\]. Hint: "
                "only blocks along the last axis are supported"),
    "zero points": (Blocks(2, 32, 5), {"more": (POINTS,)}, "'w' has zero points of "
                    "blocks, which LiteRT does not read. Hint: quantise its weights"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_blocks_that_make_no_sense(name: str) -> None:
    blocks, parts, said = WRONG[name]
    data = _layer(_tensor(4, _numbers(4), blocks), **parts)
    with pytest.raises(BuildError, match=said) as caught:
        load("m.tflite", data, {})
    (problem,) = caught.value.problems
    assert problem.where == "m.tflite: node 'y' (FULLY_CONNECTED)"


def test_packed_from_a_file_with_blocks() -> None:
    data = _layer(_tensor(4, _numbers(4), Blocks(2, 32)))
    model = Model("m.tflite", load("m.tflite", data, {}), "litert", "0" * 64)
    library = model.build(None, name="m", target="cortex-m4", optimise="size")
    roles = {p.role: p.array.nbytes for s in library.plan.steps
             for p in s.candidate.constants}  # fmt: skip
    assert roles["weights4"] == OUTS * 64 // 2 and "weights" not in roles
    real = interpret(model.graph, {"x": X})["y"]
    for code in ("llvm", "c"):
        made = recorded(library.host(code), {"x": X})["y"]
        np.testing.assert_allclose(made, real, 1e-5, 1e-4)
