"""Makes models in formats that are not read, each as its own program begins them."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable
from pathlib import Path

from tests.ops.tflite_writer import FileOperator, FileTensor, write


def _zip(*names: str) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name in names:
            archive.writestr(zipfile.ZipInfo(name), b"")
    return out.getvalue()


def _field(number: int, content: bytes) -> bytes:
    """A field of bytes of a protobuf message."""
    return bytes([*_varint(number << 3 | 2), *_varint(len(content))]) + content


def _varint(value: int) -> list[int]:
    return [value] if value < 128 else [value & 0x7F | 0x80, *_varint(value >> 7)]


_META = _field(2, _field(1, _field(4, b"serve")))
_NODE = _field(1, _field(1, b"x") + _field(2, b"Placeholder"))
_LFS = b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 132\n"
_HTML = b"\n<!DOCTYPE html>\n<html><body>Not found</body></html>"

# name of the file -> what it holds
FILES = {
    "pointer.tflite": _LFS,
    "page.onnx": _HTML,
    "net.pt": _zip("net/data.pkl", "net/version"),
    "net.pth": b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19.",
    "script.pt": _zip("net/code/net.py", "net/constants.pkl", "net/data.pkl"),
    "program.pt2": _zip("serialized_exported_program.json", "version"),
    "damaged.pt2": _zip("net/archive_format", "net/models/model.json"),
    "net.h5": b"\x89HDF\r\n\x1a\n\0\0\0\0",
    "net.keras": _zip("metadata.json", "config.json", "model.weights.h5"),
    "arrays.npz": _zip("x.npy"),
    "net.zip": _zip("net.tflite"),
    "net.onnx.gz": b"\x1f\x8b\x08\0\0\0\0\0",
    "net.safetensors": (2).to_bytes(8, "little") + b"{}",
    "net.mlmodel": b"\x08\x01" + _field(2, b"") + _field(500, b""),
    "frozen.pb": _NODE + _field(4, b""),
    "saved_model.pb": b"\x08\x01" + _META,
}


def _made(name: str) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        (folder / name).write_bytes(FILES[name])
        return folder / name

    return make


def saved_model(folder: Path) -> Path:
    (folder / "wake").mkdir()
    (folder / "wake" / "saved_model.pb").write_bytes(FILES["saved_model.pb"])
    return folder / "wake"


def for_ethos_u(folder: Path) -> Path:
    tensors = [FileTensor("x", (1, 4), "INT8", scale=(0.5,), zero_point=(0,))]
    tensors += [FileTensor("y", (1, 4), "INT8", scale=(0.5,), zero_point=(0,))]
    path = folder / "vela.tflite"
    path.write_bytes(write(tensors, [FileOperator("ethos-u", (0,), (1,))], (0,), (1,)))
    return path


FOREIGN: dict[str, Callable[[Path], Path]] = {
    **{name: _made(name) for name in FILES if name != "saved_model.pb"},
    "in_a_saved_model": lambda folder: saved_model(folder) / "saved_model.pb",
    "saved_model": saved_model,
    "for_ethos_u": for_ethos_u,
}
