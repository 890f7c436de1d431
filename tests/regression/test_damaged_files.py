"""Fields of model files that brought down what reads them."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

import numpy as np
import pytest

import pybuild
from pybuild.cli import main
from pybuild.errors import BuildError
from pybuild.frontends.tflite import load
from pybuild.package.folder import write_tree
from pybuild.params.files import read_arrays
from tests.frontends.onnx.models import model
from tests.ops.tflite_writer import FileOperator, FileTensor, write
from tests.toolchains import ROOT


def test_an_operator_set_beyond_32_bits(tmp_path: Path) -> None:
    onnx = pytest.importorskip("onnx")
    wild = onnx.load(ROOT / "tests" / "exported" / "block.onnx")
    wild.opset_import[0].version = 1 << 62
    onnx.save(wild, tmp_path / "wild.onnx")
    text = "wild.onnx: there is no operator set 4611686018427387904. Hint: give a"
    with pytest.raises(BuildError, match=text):
        pybuild.load(tmp_path / "wild.onnx")


def test_a_mirrored_axis_of_two_billion_elements() -> None:
    """Its places alone would take sixteen gigabytes."""
    tensors = [
        FileTensor("x", ((1 << 31) - 1,), "UINT8"),
        FileTensor("pads", (1, 2), "INT32", np.array([[3, 0]], np.int32)),
        FileTensor("y", (), "UINT8"),
    ]
    mirrored = FileOperator("MIRROR_PAD", (0, 1), (2,), "MirrorPadOptions", {"Mode": 1})
    data = write(tensors, [mirrored], [0], [2])
    with pytest.raises(BuildError, match="2147483647 elements side by side are too"):
        load("wild.tflite", data, {})


def packed(compression: int = zipfile.ZIP_STORED, shape: str = "(3,)") -> bytearray:
    """A .npz of three floats, whose header says that they are of this shape."""
    header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}}}\n".encode()
    head = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little")
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", compression) as archive:
        archive.writestr("x.npy", head + header + bytes(12))
    return bytearray(made.getvalue())


DEFLATED = packed(zipfile.ZIP_DEFLATED)
UNKNOWN, ENCRYPTED = packed(), packed()
DEFLATED[40:44] = b"\xff" * 4
UNKNOWN[UNKNOWN.find(b"PK\1\2") + 10] = 99
ENCRYPTED[ENCRYPTED.find(b"PK\1\2") + 8] = 1


@pytest.mark.parametrize(
    "data",
    [DEFLATED, UNKNOWN, ENCRYPTED, packed(shape=f"({1 << 50},)"), packed(shape="((")],
)
def test_archives_that_zlib_zipfile_or_numpy_cannot_read(data: bytearray) -> None:
    with pytest.raises(BuildError, match=r"is a damaged|packs 'x\.npy' by method 99"):
        read_arrays(bytes(data), "d.npz")


def test_a_member_of_an_archive_that_is_no_array() -> None:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        archive.writestr("notes.txt", "three floats")
    with pytest.raises(BuildError, match="notes"):
        read_arrays(made.getvalue(), "d.npz")


def test_nothing_half_written_is_left_beside_a_folder(tmp_path: Path) -> None:
    given, taken = tmp_path / "x.npz", tmp_path / "x.crtp"
    given.write_bytes(packed())
    taken.mkdir()
    assert main(["params", "convert", str(given), "-o", str(taken)]) == 2
    (tmp_path / "tree" / "net.c").mkdir(parents=True)
    with pytest.raises(BuildError, match=r"net\.c: cannot be written: is a dir"):
        write_tree(tmp_path / "tree", {"net.c": "int net;"}, "net", force=True)
    assert not list(tmp_path.rglob("*.part"))


def test_outputs_are_written_whatever_they_are_called(tmp_path: Path) -> None:
    """numpy.savez has an argument of this name."""
    given = {"x": np.zeros((1, 4), np.float32)}
    data = model([("Relu", ["x"], ["file"], {})], given, ["file"])
    (tmp_path / "net.onnx").write_bytes(data)
    words = ["run", str(tmp_path / "net.onnx"), "-o", str(tmp_path / "y.npz")]
    assert main(words) == 0
    with np.load(tmp_path / "y.npz") as found:
        assert found["file"].shape == (1, 4)
