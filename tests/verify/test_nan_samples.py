"""Samples with NaN and infinity: check takes them, and compares what they give."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import pybuild
from pybuild.cli import main
from pybuild.dtype import DType
from pybuild.errors import BuildError
from pybuild.ir.graph import Graph, Tensor
from pybuild.verify.compare import Judge, Limits, ranges
from tests.ops.tflite_writer import FileOperator, FileTensor, write

X = np.array([[np.nan, 1, np.inf, -np.inf, 2, -3, 0, np.nan]], np.float32)


def _file(folder: Path, code: str, table: str = "", **options: int) -> Path:
    pooled = code == "MAX_POOL_2D"
    shapes = ((1, 1, 8, 1), (1, 1, 4, 1)) if pooled else ((1, 8), (1, 8))
    tensors = [FileTensor(n, s) for n, s in zip("xy", shapes, strict=True)]
    path = folder / "one.tflite"
    path.write_bytes(
        write(tensors, [FileOperator(code, (0,), (1,), table, options)], (0,), (1,))
    )
    return path


def test_nan_equals_nan_and_infinity_itself(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, data = _file(tmp_path, "RELU"), tmp_path / "x.npy"
    np.save(data, X[None])
    words = ["check", str(path), "--data", str(data), "--backend", "llvm", "--json"]
    assert main(words) == 0, capsys.readouterr()


def test_nan_is_no_number(tmp_path: Path) -> None:
    """LiteRT's maximum hands on the other number, ours NaN: that is seen."""
    size = {"StrideW": 2, "StrideH": 1, "FilterWidth": 2, "FilterHeight": 1}
    path = _file(tmp_path, "MAX_POOL_2D", "Pool2DOptions", Padding=1, **size)
    x = np.where(np.isinf(X), 4, X).reshape(1, 1, 1, 8, 1)
    result = pybuild.check(path, x, backends=["llvm"])
    assert result.backends["llvm"].mismatches == 2


def test_infinity_allows_no_more_than_numbers() -> None:
    graph = Graph("g", "g", (), {"y": Tensor("y", (3,), DType.FLOAT32)}, (), ())
    want = {"y": np.array([np.inf, 1, 2], np.float32)}
    have = {"y": np.array([np.inf, 1, 2.5], np.float32)}
    spans = ranges(graph, [want])
    assert spans == {"y": 1.0}
    assert Judge(graph, Limits(), spans).compare(have, want).mismatches == 1
    nothing = {"y": np.array([np.nan, np.inf, -np.inf], np.float32)}
    assert 0 < ranges(graph, [nothing])["y"] < 1e-20


def test_samples_to_quantise_with_must_be_finite(tmp_path: Path) -> None:
    with pytest.raises(BuildError, match="infinite or NaN"):
        pybuild.quantise(pybuild.load(_file(tmp_path, "RELU")), {"x": X[None]})
