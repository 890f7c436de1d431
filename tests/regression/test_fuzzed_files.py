"""What fuzzing has found in files: packing, kinds and axes."""

from __future__ import annotations

import io
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest

import pybuild
from pybuild.errors import BuildError
from pybuild.front.file import read_front
from pybuild.frontends.tflite import load
from pybuild.params.files import read_arrays
from tests.frontends.onnx.models import model
from tests.ops.tflite_writer import FileOperator, FileTensor, write
from tests.toolchains import ROOT

PT2 = ROOT / "tests" / "exported" / "pt2" / "tcn.pt2"


def packed_again(data: bytes, method: int) -> bytes:
    made = io.BytesIO()
    with (
        zipfile.ZipFile(io.BytesIO(data)) as archive,
        zipfile.ZipFile(made, "w", method) as again,
    ):
        for name in archive.namelist():
            again.writestr(name, archive.read(name))
    return made.getvalue()


def arrays() -> bytes:
    made = io.BytesIO()
    np.savez(made, w=np.arange(9))
    return made.getvalue()


def test_a_program_whose_packing_is_damaged() -> None:
    data = bytearray(packed_again(PT2.read_bytes(), zipfile.ZIP_DEFLATED))
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        (entry,) = (e for e in archive.infolist() if "/models/" in e.filename)
    start = entry.header_offset + 30 + len(entry.filename)
    data[start : start + 16] = b"\xff" * 16
    with pytest.raises(BuildError, match=r"is not a valid \.pt2 file \(error\)"):
        pybuild.load(bytes(data))


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_archives_are_packed_as_torch_and_numpy_do(method: int) -> None:
    """Others unpack to much more for a byte, and take longer."""
    wanted = rf"packs '.*' by method {method}"
    with pytest.raises(BuildError, match=wanted):
        pybuild.load(packed_again(PT2.read_bytes(), method))
    with pytest.raises(BuildError, match=wanted):
        read_arrays(packed_again(arrays(), method), "w.npz")
    assert read_arrays(packed_again(arrays(), zipfile.ZIP_DEFLATED), "w.npz")


@pytest.mark.parametrize("kind", ["[40, 40]", "{a = 1}", "3", "true"])
def test_a_kind_of_features_that_is_no_text(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "front.toml"
    path.write_text(f"[features]\nkind = {kind}\n")
    wanted = r"front\.toml: \[features\]: there is no kind"
    with pytest.raises(BuildError, match=wanted):
        read_front(path)


@pytest.mark.parametrize(
    ("code", "options"),
    [("REVERSE_V2", ""), ("SPLIT", "SplitOptions"), ("GATHER", "GatherOptions"),
     ("CUMSUM", "CumsumOptions"), ("ARG_MAX", "ArgMaxOptions"),
     ("SUM", "ReducerOptions")],
)  # fmt: skip
def test_an_axis_of_a_scalar(code: str, options: str) -> None:
    """It has none: not even axis 0."""
    x = FileTensor("x", (), "FLOAT32")
    axis = FileTensor("axis", (1,), "INT32", np.array([0], np.int32))
    inputs = (1, 0) if code == "SPLIT" else (0, 1)
    one = FileOperator(code, inputs, (2,), options, {})
    y = FileTensor("y", (), "INT32" if code == "ARG_MAX" else "FLOAT32")
    with pytest.raises(BuildError, match="axis 0 of a tensor of 0 axes"):
        load("scalar.tflite", write([x, axis, y], [one], [0], [2]), {})


@pytest.mark.parametrize("code", ["BATCH_TO_SPACE_ND", "SPACE_TO_BATCH_ND"])
def test_blocks_of_a_scalar(code: str) -> None:
    """It has no batch."""
    sizes, margins = np.ones(1, np.int32), np.zeros((1, 2), np.int32)
    tensors = [
        FileTensor("x", (), "FLOAT32"),
        FileTensor("sizes", sizes.shape, "INT32", sizes),
        FileTensor("margins", margins.shape, "INT32", margins),
        FileTensor("y", (), "FLOAT32"),
    ]
    one = FileOperator(code, (0, 1, 2), (3,), "", {})
    with pytest.raises(BuildError, match="blocks"):
        load("scalar.tflite", write(tensors, [one], [0], [3]), {})


def test_rows_of_a_scalar() -> None:
    """It has no last axis."""
    kept = {"scale": (0.1,), "zero_point": (0,)}
    x, y = (FileTensor(name, (), "INT8", **kept) for name in "xy")
    one = FileOperator("LOG_SOFTMAX", (0,), (1,), "LogSoftmaxOptions", {})
    with pytest.raises(BuildError, match=r"LOG_SOFTMAX\): lacks an axis"):
        load("scalar.tflite", write([x, y], [one], [0], [1]), {})


def test_fewer_axes_of_a_batch_than_none() -> None:
    """2^30 fewer than the indices have: that many axes were counted."""
    tensors = [
        FileTensor("x", (2, 3), "FLOAT32"),
        FileTensor("rows", (2,), "INT32", np.zeros(2, np.int32)),
        FileTensor("y", (2, 3), "FLOAT32"),
    ]
    options = {"BatchDims": -(1 << 30)}
    one = FileOperator("GATHER", (0, 1), (2,), "GatherOptions", options)
    with pytest.raises(BuildError, match="axes of a batch of"):
        load("gather.tflite", write(tensors, [one], [0], [2]), {})


def test_unpacked_to_fewer_than_there_are() -> None:
    """A list of each of the 2^28 was made, and printed."""
    x, y = FileTensor("x", (1 << 28, 1), "INT8"), FileTensor("y", (1,), "INT8")
    one = FileOperator("UNPACK", (0,), (1,), "UnpackOptions", {"Num": 1})
    with pytest.raises(BuildError, match=r"pieces \[1\] of axis 0"):
        load("unpacked.tflite", write([x, y], [one], [0], [1]), {})


@pytest.mark.parametrize(
    ("mode", "size"), [("nearest", 1 << 21), ("linear", 1 << 21), ("cubic", 1 << 17)]
)
def test_an_image_resized_to_many_rows(mode: str, size: int) -> None:
    """An .onnx of 300 bytes asked for more than 3 GB of places and weights."""
    x = np.empty((1, 1, 1000, 2), np.float32)
    node = ("Resize", ["x", "", "", "s"], ["y"], {"mode": mode})
    sizes = np.array([1, 1, size, 2], np.int64)
    with pytest.raises(BuildError, match="is too large"):
        pybuild.load(model([node], {"x": x}, ["y"], {"s": sizes}))


@pytest.mark.parametrize("kind", ["BILINEAR", "NEAREST_NEIGHBOR"])
def test_resized_to_many_rows(kind: str) -> None:
    """A file of 500 bytes asked for 3 GB of places and weights of rows."""
    kept = {"scale": (0.1,), "zero_point": (0,)}
    tensors = [
        FileTensor("x", (1, 2, 2, 1), "INT8", **kept),
        FileTensor("sizes", (2,), "INT32", np.array([1 << 21, 1], np.int32)),
        FileTensor("y", (1, 1 << 21, 1, 1), "INT8", **kept),
    ]
    options = f"Resize{kind.title().replace('_', '')}Options"
    one = FileOperator(f"RESIZE_{kind}", (0, 1), (2,), options, {})
    with pytest.raises(BuildError, match="is too large"):
        load("resized.tflite", write(tensors, [one], [0], [2]), {})


def test_letters_of_an_equation() -> None:
    """The shape inference of onnx never ended with bytes beyond 127."""
    shapes = {"x": np.empty((2, 3), np.float32), "w": np.empty((3, 4), np.float32)}
    node = ("Einsum", ["x", "w"], ["y"], {"equation": "ij,jk->ik"})
    data = model([node], shapes, ["y"]).replace(b"ij,jk->ik", b"ij,?k->ik")
    with pytest.raises(BuildError, match="its equation has other signs than letters"):
        pybuild.load(data)


def test_a_long_row_takes_no_memory() -> None:
    """A file of 500 bytes asked for two numbers of 8 bytes for each channel."""
    shape, kept = (1, 1 << 24), {"scale": (0.1,), "zero_point": (0,)}
    x, y = (FileTensor(name, shape, "INT8", **kept) for name in "xy")
    data = write([x, y], [FileOperator("RELU", (0,), (1,), "", {})], [0], [1])
    # not ru_maxrss, which a process has of whoever started it
    told = "open('/proc/self/status').read().split('VmHWM:')[1].split()[0]"
    load_it = "pybuild.load(sys.stdin.buffer.read()).problems()"
    code = f"import sys, pybuild; {load_it}; print({told})"
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, input=data, capture_output=True, check=True)
    assert int(done.stdout) < 300_000  # KB
