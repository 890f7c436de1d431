"""Damaged model files through the whole build: a result or a BuildError, never
another exception."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

import pybuild
from pybuild.errors import BuildError
from tests.conftest import ROOT, models_folder

DIGITS = sorted((ROOT / "examples" / "digits").glob("digits_*.*"))
SMALL = [path for path in DIGITS if path.suffix in (".tflite", ".onnx")]
REAL = sorted(models_folder().glob("*_*.*"))


def damaged(data: bytes, chance: random.Random) -> bytes:
    """A few bytes changed, a piece cut out, doubled, or the end missing."""
    raw = bytearray(data)
    match chance.randrange(4):
        case 0:
            for _ in range(chance.randrange(1, 9)):
                raw[chance.randrange(len(raw))] = chance.randrange(256)
        case 1:
            for _ in range(chance.randrange(1, 5)):  # where the structure is
                near = chance.choice((len(raw) - 1, min(len(raw) - 1, 2000)))
                raw[chance.randrange(near)] ^= 1 << chance.randrange(8)
        case 2:
            start = chance.randrange(len(raw))
            del raw[start : start + chance.randrange(1, 64)]
        case 3:
            del raw[chance.randrange(len(raw)) :]
    return bytes(raw)


def build_all(path: Path, count: int, folder: Path) -> None:
    data = path.read_bytes()
    file = folder / f"damaged{path.suffix}"
    for seed in range(count):
        chance = random.Random(f"{path.name} {seed}")
        file.write_bytes(damaged(data, chance))
        try:
            pybuild.load(file).build()
        except BuildError as error:
            assert str(error), seed
        except Exception as error:
            raise AssertionError(f"{path.name}, mutation {seed}") from error


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("path", [*SMALL, *REAL], ids=lambda path: path.name)
@pytest.mark.parametrize("count", [15, pytest.param(500, marks=pytest.mark.sweep)])
def test_mutations(path: Path, count: int, tmp_path: Path) -> None:
    build_all(path, count, tmp_path)
