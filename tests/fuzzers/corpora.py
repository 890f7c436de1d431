"""Stored inputs of each reader, one compressed file each; knows no reader.

A corpus is what a fuzzer goes on from: few inputs that reach all that was reached.
"""

from __future__ import annotations

import hashlib
import io
import lzma
import tarfile
from collections.abc import Iterable
from pathlib import Path

HERE = Path(__file__).resolve().parent
STORED = HERE / "corpora"
DICTIONARIES = HERE / "dictionaries"
_AS = {"crtp": "image", "model": "image"}  # readers that have the words of another


def stored(name: str) -> list[bytes]:
    """The inputs of a reader, the shortest first; none where nothing is stored."""
    path = STORED / f"{name}.tar.xz"
    if not path.exists():
        return []
    with tarfile.open(path) as archive:
        files = [archive.extractfile(one) for one in archive.getmembers()]
        return [file.read() for file in files if file is not None]


def store(name: str, inputs: Iterable[bytes]) -> None:
    """Writes them; the same inputs give the same bytes."""
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for data in sorted(set(inputs), key=lambda one: (len(one), one)):
            entry = tarfile.TarInfo(called(data))
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    packed = lzma.compress(made.getvalue(), preset=9 | lzma.PRESET_EXTREME)
    (STORED / f"{name}.tar.xz").write_bytes(packed)


def called(data: bytes) -> str:
    """The name of an input: a hash, as libFuzzer has it."""
    return hashlib.sha1(data).hexdigest()


def put(folder: Path, inputs: Iterable[bytes]) -> Path:
    """Inputs as the files of a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for data in inputs:
        (folder / called(data)).write_bytes(data)
    return folder


def inputs_in(folder: Path) -> list[bytes]:
    return [path.read_bytes() for path in sorted(folder.iterdir())]


def dictionary(name: str) -> list[str]:
    """The option that names the words of a reader; none where it has no file."""
    path = DICTIONARIES / f"{_AS.get(name, name)}.dict"
    return [f"-dict={path}"] if path.exists() else []
