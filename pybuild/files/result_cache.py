"""Results that took long, kept by the hash of all that they are made of, in the user's
cache: CRT_CACHE names another folder, and "off" keeps nothing.

What cannot be read or written there is made anew, and nobody is told.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

from pybuild.files.read import read_bytes
from pybuild.files.write import write_bytes
from pybuild.install import boards, cache_folder, crt_include, crt_sources

VARIABLE = "CRT_CACHE"
# files that stay, the newest; of a model of 10 MB each, half a gigabyte
_MOST = 64
_LARGEST = 1 << 28  # bytes of one
# of other packages, those whose arithmetic or code goes into a result
_PACKAGES = ("flatbuffers", "llvmlite", "numpy", "onnx", "tflite")
_ELSEWHERE = ("_data/", "_build/")  # of a wheel, and of a checkout alone
_HOME = Path(__file__).resolve().parents[1]


def files_below(path: Path) -> Iterator[tuple[str, Path]]:
    """The files of a folder by their names in it; of a file, itself."""
    if not path.is_dir():
        yield "", path
        return
    for file in sorted(path.rglob("*")):
        if file.is_file():
            yield file.relative_to(path).as_posix(), file


@functools.cache
def tool_digest() -> str:
    """The hash of pybuild, crt, the boards, and the packages that they use."""
    whole = hashlib.sha256(read_bytes(_HOME / "VERSION"))
    roots = (_HOME, crt_include(), *crt_sources(), boards())
    for root in roots:
        for name, file in files_below(root):
            if file.suffix != ".pyc" and not name.startswith(_ELSEWHERE):
                whole.update(f"\0{name}\0".encode() + read_bytes(file, _LARGEST))
    versions = {name: _version(name) for name in _PACKAGES}
    whole.update(json.dumps(versions).encode())
    return whole.hexdigest()


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return ""


def load_result(name: str) -> bytes | None:
    """The bytes that were kept under a name; None: there are none."""
    try:
        folder = _folder()
        if folder is None:
            return None
        data = read_bytes(folder / name, _LARGEST)
        os.utime(folder / name)
    except OSError:
        return None
    return data


def store_result(name: str, data: bytes) -> None:
    """Keeps the bytes under a name; what was used longest ago goes."""
    try:
        folder = _folder()
        if folder is None or len(data) > _LARGEST:
            return
        folder.mkdir(parents=True, exist_ok=True)
        write_bytes(folder / name, [data])
        there = sorted(folder.iterdir(), key=lambda path: -path.stat().st_mtime)
        for path in there[_MOST:]:
            path.unlink(missing_ok=True)
    except OSError:
        return


def _folder() -> Path | None:
    chosen = os.environ.get(VARIABLE, "")
    if chosen:
        return None if chosen == "off" else Path(chosen)
    return cache_folder() / "results"
