"""Weights without their zeros, and products of int16 by int8: what LiteRT gives."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import pybuild
from pybuild.dtype import Array
from pybuild.errors import BuildError
from pybuild.ops.interpret import interpret
from pybuild.verify.reference import reference
from tests.ops.tflite_tables import Sparse
from tests.ops.tflite_writer import FileOperator, FileTensor, write

RNG = np.random.default_rng(9)


def _rows(dense: Array) -> tuple[Array, tuple[list[int], list[int]]]:
    """Values of a matrix without zeros, and where each row's begin and are."""
    segments, indices, values = [0], [], []
    for row in dense:
        found = np.flatnonzero(row)
        indices += found.tolist()
        values += row[found].tolist()
        segments.append(len(indices))
    return np.asarray(values, dense.dtype), (segments, indices)


def _blocked(dense: Array) -> tuple[Array, Sparse]:
    """Blocks of 1x4 in rows, as TensorFlow's pruning keeps them."""
    blocks = dense.reshape(dense.shape[0], -1, 4)
    segments, indices, values = [0], list[int](), list[Array]()
    for row in blocks:
        found = np.flatnonzero(row.any(-1))
        indices += found.tolist()
        values += [row[n] for n in found]
        segments.append(len(indices))
    levels = (dense.shape[0], (segments, indices), 4)
    return np.concatenate(values), Sparse((0, 1, 2), (1,), levels, "Uint16Vector")


def _pruned(kind: str) -> Array:
    dense = RNG.integers(-100, 100, (12, 16)) * (RNG.random((12, 16)) < 0.3)
    dense[3] = 0
    made: Array = dense.astype(kind)
    return made


def _layer(kind: str, values: Array, sparse: Sparse, densify: bool = True) -> bytes:
    scale = {"int8": ((0.02,), (0,))}.get(kind, ((), ()))
    ends = "FLOAT32" if kind == "float16" else kind.upper()
    x = {"int8": ((0.05,), (3,))}.get(kind, ((), ()))
    y = {"int8": ((0.9,), (-4,))}.get(kind, ((), ()))
    tensors = [
        FileTensor("x", (2, 16), ends, None, *x),
        FileTensor("s", (12, 16), kind.upper(), values, *scale, sparse=sparse),
        FileTensor("w", (12, 16), kind.upper(), None, *scale),
        FileTensor("f", (12, 16), "FLOAT32"),
        FileTensor("y", (2, 12), ends, None, *y),
    ]
    operators = [FileOperator("DENSIFY", (1,), (2,), "DensifyOptions")] * densify
    weights = 2 if densify else 1
    if kind == "float16":
        operators.append(FileOperator("DEQUANTIZE", (2,), (3,)))
        weights = 3
    table = "FullyConnectedOptions"
    operators.append(FileOperator("FULLY_CONNECTED", (0, weights, -1), (4,), table))
    return write(tensors, operators, [0], [4])


def _equal(data: bytes, folder: Path, x: dict[str, Array], exact: bool) -> None:
    path = folder / "m.tflite"
    path.write_bytes(data)
    model = pybuild.load(path)
    graph = model.lower()
    theirs = reference("litert", path, graph).run(x)
    (name,) = graph.outputs
    found = [interpret(graph, x)[name]]
    for code in ("c", "llvm"):
        net = model.build(name="m").host(code)
        found.append(net.run(**x)[name])
        net.close()
    for have in found:
        if exact:
            assert (have == theirs[name]).all()
        else:
            np.testing.assert_allclose(have, theirs[name], 1e-5, 1e-4)


@pytest.mark.parametrize("kind", ["float32", "float16", "int8"])
@pytest.mark.parametrize("form", ["rows", "columns", "blocks"])
def test_weights_without_zeros(kind: str, form: str, tmp_path: Path) -> None:
    dense = _pruned(kind)
    if form == "blocks":
        values, sparse = _blocked(dense)
    elif form == "rows":
        values, found = _rows(dense)
        sparse = Sparse((0, 1), (), (12, found))
    else:
        values, found = _rows(dense.T)
        sparse = Sparse((1, 0), (), (16, found), "Uint8Vector")
    x = RNG.integers(-128, 128, (2, 16))
    given = x.astype("int8") if kind == "int8" else (x / 64).astype(np.float32)
    _equal(_layer(kind, values, sparse), tmp_path, {"x": given}, kind == "int8")


@pytest.mark.parametrize(
    "sparse",
    [
        Sparse((0, 1), (), (12, ([0] * 12, [1]))), Sparse((0, 1), (), (12, 16)),
        Sparse((0, 1), (), (12, ([0, 3] + [3] * 11, [0, 1, 16]))),
        Sparse((0, 0), (), (12, 16)), Sparse((0, 1), (), (1 << 30, 1 << 30)),
        Sparse((0, 1, 2), (7,), (12, 4, 4)),
    ],
)  # fmt: skip
def test_damaged_tables_of_zeros(sparse: Sparse) -> None:
    data = _layer("float32", np.ones(3, np.float32), sparse)
    with pytest.raises(BuildError, match="is not a valid TensorFlow Lite file"):
        pybuild.load(data)


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize(("depth", "scale"), [(8, 0.011), (100, 0.0013), (3, 0.00017)])
def test_products_of_int16_by_int8(
    known: bool, depth: int, scale: float, tmp_path: Path
) -> None:
    b = RNG.integers(-128, 128, (2, depth, 5)).astype(np.int8)
    tensors = [
        FileTensor("a", (2, 3, depth), "INT16", None, (0.002,), (0,)),
        FileTensor("b", b.shape, "INT8", b if known else None, (0.01,), (0,)),
        FileTensor("c", (2, 3, 5), "INT16", None, (scale,), (0,)),
    ]
    table = "BatchMatMulOptions"
    operator = FileOperator("BATCH_MATMUL", (0, 1), (2,), table)
    data = write(tensors, [operator], [0] if known else [0, 1], [2])
    a = RNG.integers(-32768, 32768, (2, 3, depth)).astype(np.int16)
    _equal(data, tmp_path, {"a": a} if known else {"a": a, "b": b}, True)
