"""Recognises the format of a model by its bytes; for unsupported formats, explains how
to convert. Looks at first bytes and at names in archives, knows no front end.
"""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path, PurePath

from pybuild.errors import BuildError
from pybuild.records import dataclass

TFLITE, ONNX, JSON = "TensorFlow Lite", "ONNX", "graph JSON"
PT2 = "torch.export"
SUFFIXES = {".tflite": TFLITE, ".onnx": ONNX, ".json": JSON, ".pt2": PT2}
# options of how a file is read, which not every format has
_ONLY = {
    "input-value": (ONNX, TFLITE), "bound": (ONNX,), "max-turns": (TFLITE,),
    "hybrid": (TFLITE, ONNX, PT2), "signature": (TFLITE,),
}  # fmt: skip
_ANY = "give .tflite, .onnx, .pt2 or graph .json"

# how to go on; {name} and {stem} are the file's, {folder} where it lies
_KERAS = (
    'python -c "import keras; keras.models.load_model({name!r})'
    ".export('{stem}.onnx', format='onnx')\""
)
_SAVED_MODEL = (
    'python -c "import tensorflow as tf; c = tf.lite.TFLiteConverter'
    ".from_saved_model({folder!r}); open('{stem}.tflite', 'wb')"
    '.write(c.convert())"'
)
_GRAPH_DEF = (
    "python -m tf2onnx.convert --graphdef {name} --output {stem}.onnx "
    "--inputs INPUT:0 --outputs OUTPUT:0"
)
_TORCH = (
    "in Python, make the model, load this file into it, then "
    "torch.onnx.export(model, (example_input,), '{stem}.onnx', dynamo=True)"
)
_TORCH_SCRIPT = (
    "torch.onnx.export(torch.jit.load({name!r}), (example_input,), '{stem}.onnx', "
    "dynamo=False)"
)
_TORCH_2 = "torch.export.save(torch.export.load({name!r}), {name!r}), by a newer torch"
_SOURCE = "export the network that it was made from as .onnx or .tflite"


@dataclass(frozen=True)
class Foreign:
    """An unsupported format: how to recognise it, its name, and how to convert from
    it."""

    told: Callable[[bytes], bool]
    what: str
    hint: str


def _starts(*first: bytes) -> Callable[[bytes], bool]:
    return lambda data: data.startswith(first)


def _is_page(data: bytes) -> bool:
    head = data[:1024].lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    return head.startswith((b"<!doctype html", b"<html", b"<head"))


def _zipped(*names: str) -> Callable[[bytes], bool]:
    """Return True for a zip archive that contains a file of one of these names, in any
    folder."""

    def told(data: bytes) -> bool:
        there = {PurePath(name).name for name in _members(data)}
        return not there.isdisjoint(names)

    return told


def _members(data: bytes) -> list[str]:
    """Return the names of files in a zip archive; [] if it is damaged or no archive."""
    if not data.startswith(b"PK\x03\x04"):
        return []
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            return archive.namelist()
    except (zipfile.BadZipFile, ValueError, OSError, NotImplementedError):
        return []


def _is_npz(data: bytes) -> bool:
    names = _members(data)
    return bool(names) and all(name.endswith(".npy") for name in names)


def _is_safetensors(data: bytes) -> bool:
    size = int.from_bytes(data[:8], "little")
    return data[8:9] == b"{" and 2 <= size <= len(data) - 8


def _is_saved_model(data: bytes) -> bool:
    """schema_version and meta_graphs, nothing else."""
    return _fields(data) == {(1, 0), (2, 2)}


def _is_core_ml(data: bytes) -> bool:
    """specificationVersion, description, and one of the kinds of models."""
    found = _fields(data)
    kinds = any(200 <= number <= 3000 for number, _ in found)
    return {(1, 0), (2, 2)} <= found and kinds


def _is_graph_def(data: bytes) -> bool:
    """Nodes, each with a name first; library and versions."""
    found = _fields(data)
    inner = re.match(rb"\x0a(?s:.){1,3}\x0a", data) is not None
    return inner and (1, 2) in found and found <= {(1, 2), (2, 2), (3, 0), (4, 2)}


def _is_onnx(data: bytes) -> bool:
    """A graph, beside fields that a ModelProto has."""
    found = _fields(data)
    return (7, 2) in found and all(number <= 25 for number, _ in found)


def _fields(data: bytes) -> set[tuple[int, int]]:
    """Return (number, wire type) of the outermost fields of a protobuf message; empty
    if it is not one."""
    found: set[tuple[int, int]] = set()
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        number, wire = key >> 3, key & 7
        if number < 1 or at < 0 or wire not in (0, 1, 2, 5):
            return set()
        if wire in (0, 2):
            value, at = _varint(data, at)
            at = -1 if at < 0 else at + (value if wire == 2 else 0)
        else:
            at += 8 if wire == 1 else 4
        if at < 0 or at > len(data):
            return set()
        found.add((number, wire))
    return found


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """Return a varint and the position after it, -1 if there is no valid one."""
    value = 0
    for shift, byte in enumerate(data[at : at + 10]):
        value |= (byte & 0x7F) << (7 * shift)
        if byte < 0x80:
            return value, at + shift + 1
    return 0, -1


FOREIGN = (
    Foreign(_starts(b"version https://git-lfs"), "is a pointer of git-lfs, not the "
            "model", "git lfs pull, in the folder that it lies in"),
    Foreign(_is_page, "is a web page, not the model",
            "download the file itself, not the page that shows it"),
    Foreign(_zipped("serialized_exported_program.json"),
            "is a program of torch.export (.pt2) as torch wrote it before 2.8",
            _TORCH_2),
    Foreign(_zipped("constants.pkl"), "is a TorchScript model", _TORCH_SCRIPT),
    Foreign(_zipped("data.pkl"), "is what torch.save writes (.pt, .pth)", _TORCH),
    Foreign(_starts(b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05"),
            "is a pickle, as old versions of torch.save write (.pt, .pth)", _TORCH),
    Foreign(_zipped("model.weights.h5"), "is a Keras model (.keras)", _KERAS),
    Foreign(_starts(b"\x89HDF\r\n\x1a\n"), "is an HDF5 file, as Keras writes (.h5)",
            _KERAS),
    Foreign(_is_npz, "holds arrays (.npz), not a model", _ANY),
    Foreign(_starts(b"\x93NUMPY"), "holds an array (.npy), not a model", _ANY),
    Foreign(_starts(b"PK\x03\x04"), "is a zip archive",
            "unzip it, and give the .tflite, .onnx or graph .json in it"),
    Foreign(_starts(b"\x1f\x8b"), "is compressed with gzip",
            "unpack it first: gunzip -c {name} > {stem}"),
    Foreign(_starts(b"BZh", b"\xfd7zXZ", b"(\xb5/\xfd", b"7z\xbc\xaf"), "is packed",
            "unpack it first"),
    Foreign(_starts(b"GGUF"), "is a GGUF file: weights of a language model", _SOURCE),
    Foreign(_is_safetensors, "is a safetensors file: weights without a network",
            _TORCH),
    Foreign(_is_saved_model, "is part of a SavedModel of TensorFlow", _SAVED_MODEL),
    Foreign(_is_core_ml, "is a Core ML model (.mlmodel)", _SOURCE),
    Foreign(_is_graph_def, "is a frozen graph of TensorFlow (.pb)", _GRAPH_DEF),
)  # fmt: skip


def format_of(data: bytes, where: str) -> str:
    """TFLITE, ONNX, PT2 or JSON.

    where   the file's path as the user gave it; "" if unknown
    Errors  BuildError for every other format, saying how to get one of these
    """
    name, suffix = PurePath(where).name, PurePath(where).suffix.lower()
    if not data:
        raise BuildError(name, "is empty", "export or download it again")
    if data[4:8] == b"TFL3":
        return TFLITE
    if _zipped("archive_format")(data):
        return PT2
    for one in FOREIGN:
        if one.told(data):
            raise BuildError(name, one.what, _filled(one.hint, where))
    if _is_onnx(data):
        return ONNX
    if data[:1024].lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{"):
        return JSON
    if suffix in SUFFIXES:
        return SUFFIXES[suffix]  # which is damaged: its front end says how
    what = (
        f"files '{suffix}' are not read"
        if suffix
        else "is not in a supported model format"
    )
    raise BuildError(name, what, _ANY)


def refuse_folder(path: Path) -> None:
    """Raise an error for a folder given in place of a model file.

    Errors  BuildError for a folder that is a model of another format
    """
    if (path / "saved_model.pb").is_file():
        hint = _filled(_SAVED_MODEL, str(path / "saved_model.pb"))
        raise BuildError(path.name, "is a SavedModel of TensorFlow", hint)
    if path.suffix == ".mlpackage":
        raise BuildError(path.name, "is a Core ML model", _SOURCE)


def _filled(hint: str, where: str) -> str:
    path = PurePath(where)
    saved = path.name == "saved_model.pb"
    folder = str(path.parent)
    stem = PurePath(folder).name if saved else path.stem
    return hint.format(name=path.name, stem=stem or "model", folder=folder)


def must_suit(kind: str, options: Mapping[str, object]) -> None:
    """Check that the given options apply to this format.

    Errors  BuildError for an option that only files of other formats have

    options  the options that the user set
    """
    for word, asked in options.items():
        if asked and kind not in _ONLY[word]:
            names = sorted(s for s, format in SUFFIXES.items() if format in _ONLY[word])
            raise BuildError(f"--{word}", f"is for {' and '.join(names)} files only")
