"""Products of two computed tensors in TensorFlow Lite files: every bit is LiteRT's."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import pybuild
from pybuild.verify.check import check
from tests.ops.tflite_writer import FileOperator, FileTensor, write

Sizes = tuple[int, int, int]
# rows, products of a sum, columns; scale of y: sums go right, and left
SIZES: tuple[tuple[Sizes, float], ...] = (
    ((8, 16, 8), 0.3), ((5, 7, 3), 0.03), ((4, 33, 6), 0.0005), ((2, 3, 2), 0.01),
)  # fmt: skip
_ZEROS = (3, -5, 7)


def _tensor(name: str, shape: tuple[int, ...], kind: str, scale: float) -> FileTensor:
    zero = _ZEROS["abcwxy".index(name) % 3] if kind == "INT8" else 0
    if kind == "FLOAT32":
        return FileTensor(name, shape, kind)
    return FileTensor(name, shape, kind, None, (scale,), (zero,))


def _equal(data: bytes, path: Path) -> None:
    path.write_bytes(data)
    library = pybuild.build(path)
    made = check(path, library, ref="litert", samples=4)
    assert made.ok and made.reference.startswith("LiteRT"), made
    assert set(made.backends) == {"c", "llvm"}


@pytest.mark.parametrize("turned", [(False, False), (True, False), (False, True)])
@pytest.mark.parametrize("kind", ["INT8", "INT16"])
def test_batch_matmul(kind: str, turned: tuple[bool, bool], tmp_path: Path) -> None:
    small = 256.0 if kind == "INT16" else 1.0
    for (m, k, n), scale in SIZES:
        a = (2, k, m) if turned[0] else (2, m, k)
        b = (2, n, k) if turned[1] else (2, k, n)
        tensors = [
            _tensor("a", a, kind, 0.05 / small), _tensor("b", b, kind, 0.04 / small),
            _tensor("y", (2, m, n), kind, scale / small),
        ]  # fmt: skip
        options = {"AdjX": turned[0], "AdjY": turned[1]}
        layer = FileOperator(
            "BATCH_MATMUL", (0, 1), (2,), "BatchMatMulOptions", options
        )
        _equal(write(tensors, [layer], [0, 1], [2]), tmp_path / "m.tflite")
    (step,) = (
        s
        for s in pybuild.build(tmp_path / "m.tflite").plan.steps
        if s.node.op == "matmul"
    )
    assert step.candidate.func is not None
    assert step.candidate.func.name.startswith(f"matmul_s{kind[3:]}")


@pytest.mark.parametrize("kind", ["INT8", "FLOAT32"])
def test_fully_connected_with_computed_weights(kind: str, tmp_path: Path) -> None:
    chance = np.random.default_rng(4)
    for number, ((m, k, n), scale) in enumerate(SIZES):
        rows = (2, m) if number % 2 else (m,)
        tensors = [
            _tensor("x", (*rows, k), kind, 0.05), _tensor("w", (n, k), kind, 0.04),
            _tensor("y", (*rows, n), kind, scale),
        ]  # fmt: skip
        reads: tuple[int, ...] = (0, 1, -1)
        if number:
            value = chance.integers(-900, 900, n)
            scales = (float(np.float32(0.05) * np.float32(0.04)),)
            whole = FileTensor("b", (n,), "INT32", value.astype(np.int32), scales, (0,))
            real = FileTensor("b", (n,), "FLOAT32", (value / 900).astype(np.float32))
            tensors.append(whole if kind == "INT8" else real)
            reads = (0, 1, 3)
        options = {"FusedActivationFunction": (0, 1, 3, 0)[number],
                   "KeepNumDims": number % 2 == 1}  # fmt: skip
        layer = FileOperator(
            "FULLY_CONNECTED", reads, (2,), "FullyConnectedOptions", options
        )
        _equal(write(tensors, [layer], [0, 1], [2]), tmp_path / "m.tflite")
