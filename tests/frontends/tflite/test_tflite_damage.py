"""Damaged .tflite files: a Graph or a BuildError, quickly, never anything else."""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np
import pytest

from pybuild.errors import BuildError
from pybuild.frontends.tflite import load
from pybuild.ir.graph import Graph
from tests.conftest import ROOT, model_path

_DIGITS = ROOT / "examples" / "digits" / "digits_int8.tflite"
_REAL = [f"{n}_{k}.tflite" for n in ("ad", "ic", "kws", "vww") for k in ("f32", "int8")]


def mutations(data: bytes, count: int, seed: int) -> Iterator[bytes]:
    """Truncated files, flipped bits, changed bytes near the ends, wild offsets."""
    rng = np.random.default_rng(seed)
    for number in range(count):
        broken = bytearray(data)
        match number % 5:
            case 0:
                broken = broken[: int(rng.integers(0, len(data)))]
            case 1:
                for at in rng.integers(0, len(data), 3):
                    broken[at] ^= 1 << int(rng.integers(0, 8))
            case 2:
                for at in rng.integers(max(0, len(data) - 20000), len(data), 3):
                    broken[at] = int(rng.integers(0, 256))
            case 3:
                for at in rng.integers(0, min(len(data), 3000), 3):
                    broken[at] = int(rng.integers(0, 256))
            case _:
                at = int(rng.integers(0, len(data) - 4)) & ~3
                wild = int(rng.choice([0, (1 << 32) - 1, (1 << 31) - 1, 1 << 30]))
                broken[at : at + 4] = wild.to_bytes(4, "little")
        yield bytes(broken)


def _survive(data: bytes, count: int) -> int:
    """Loads every mutation; how many were refused."""
    refused = 0
    for broken in mutations(data, count, 5):
        start = time.thread_time()
        try:
            assert isinstance(load("broken.tflite", broken, {}), Graph)
        except BuildError as error:
            refused += 1
            assert all(str(p).startswith("broken.tflite: ") for p in error.problems)
        assert time.thread_time() - start < 5
    return refused


def test_damaged_digits() -> None:
    assert _survive(_DIGITS.read_bytes(), 400) > 100


@pytest.mark.parametrize("name", _REAL)
def test_damaged_real_models(name: str) -> None:
    assert _survive(model_path(name).read_bytes(), 200) > 20


@pytest.mark.parametrize("data", [b"", b"TFL3", b"\0" * 64, b"abcdTFL3" * 20])
def test_garbage(data: bytes) -> None:
    with pytest.raises(BuildError, match="is not a valid TensorFlow Lite file"):
        load("broken.tflite", data, {})
