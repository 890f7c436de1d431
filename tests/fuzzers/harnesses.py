"""Readers of pybuild as functions of bytes: BuildError is all that they may raise.

Knows no fuzzer. Checksums are made true here, or are not looked at, so that a changed
byte is what the reader meets.
"""

from __future__ import annotations

import contextlib
import functools
import io
import json
import re
import tempfile
import tomllib
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import pybuild
from pybuild.errors import BuildError
from pybuild.files.write import leads_out
from pybuild.front.file import read_front
from pybuild.frontends import graphjson
from pybuild.params.blob import read_blob, write_blob
from pybuild.params.files import read_arrays
from pybuild.params.image_read import read_image
from pybuild.project.read import read_project
from tests.params.images import arrays, sealed
from tests.params.images import seeds as image_seeds
from tests.toolchains import ROOT

EXPORTED = ROOT / "tests" / "exported"
MOST_SEED = 16000  # bytes of a file that is taken as it is


@dataclass(frozen=True)
class PythonReader:
    """read: raises BuildError or nothing; files: globs of what its coverage counts;
    more: seeds that take long to make, for who writes the stored corpora.
    """

    read: Callable[[bytes], object]
    seeds: Callable[[], list[bytes]]
    files: tuple[str, ...]
    more: Callable[[], list[bytes]] = list


def _files(pattern: str) -> list[bytes]:
    found = sorted((*EXPORTED.rglob(pattern), *(ROOT / "examples").rglob(pattern)))
    return [f.read_bytes() for f in found if f.stat().st_size <= MOST_SEED]


# ---- models --------------------------------------------------------------------


def _load(data: bytes) -> None:
    pybuild.load(data)


def _tflite_cases() -> list[bytes]:
    """A small file of each operator and type."""
    from tests.frontends.tflite.draws import all_cases, drawn

    return [drawn(*key).bytes() for key in all_cases(1)]


def _onnx_cases() -> list[bytes]:
    """Those that onnx has for its own operators."""
    from tests.frontends.onnx.cases import cases

    made = [case.model for case in cases() if case.model is not None]
    return [model.SerializeToString() for model in made if model.ByteSize() < 2000]


@contextlib.contextmanager
def _without_checksums() -> Iterator[None]:
    """Of the entries of zip files: changed bytes are what the reader shall meet."""
    kept = zipfile.ZipExtFile._update_crc
    zipfile.ZipExtFile._update_crc = lambda self, data: None
    try:
        yield
    finally:
        zipfile.ZipExtFile._update_crc = kept


def _stored(data: bytes) -> bytes:
    """An archive with its entries as they are, for a fuzzer to change."""
    made = io.BytesIO()
    with (
        zipfile.ZipFile(io.BytesIO(data)) as archive,
        zipfile.ZipFile(made, "w") as plain,
    ):
        for name in archive.namelist():
            content = archive.read(name)
            if "/models/" in name:
                short = json.dumps(json.loads(content), separators=(",", ":"))
                content = short.encode()
            plain.writestr(zipfile.ZipInfo(name), content)
    return made.getvalue()


def _load_pt2(data: bytes) -> None:
    with _without_checksums():
        pybuild.load(data)


def _pt2_seeds() -> list[bytes]:
    found = [p.read_bytes() for p in sorted((EXPORTED / "pt2").glob("*.pt2"))]
    stored = [one for one in map(_stored, found) if len(one) <= MOST_SEED]
    return [min(found, key=len), *stored]


def _load_json(data: bytes) -> None:
    graphjson.load("net.json", data, None)


def _json_seeds() -> list[bytes]:
    from tests.fuzz import documents

    return [json.dumps(one).encode() for one in documents()]


# ---- parameters ----------------------------------------------------------------


def _read_blob(data: bytes) -> None:
    made = read_blob(data)
    assert sum(array.nbytes for array in made.values()) <= len(data)


def _blob_seeds() -> list[bytes]:
    return [write_blob(arrays()), write_blob({}), write_blob({"w": [1.0, 2.0]})]


def _read_image(data: bytes) -> None:
    """With a true checksum, where there is room for one."""
    read_image(sealed(data) if len(data) >= 16 and data[0] % 8 else data)
    image = read_image(sealed(data) if len(data) >= 16 else data)
    image.parameters()
    for entry in image.entries:
        image.value(entry.name)


def _read_npz(data: bytes) -> None:
    with _without_checksums():
        read_arrays(data, "w.npz")


def _npz_seeds() -> list[bytes]:
    plain, packed = io.BytesIO(), io.BytesIO()
    values = {"a": np.arange(4), "b": np.float32(1), "c": np.arange(3, dtype=">i2")}
    np.savez(plain, **values)
    np.savez_compressed(packed, text=np.array(["a"]), **values)
    return [plain.getvalue(), packed.getvalue()]


# ---- files that people write ----------------------------------------------------


@functools.cache
def _folder() -> Path:
    made = tempfile.TemporaryDirectory(prefix="crt-")
    _KEPT.append(made)
    return Path(made.name)


_KEPT: list[tempfile.TemporaryDirectory[str]] = []


def _read_project(data: bytes) -> None:
    """As crt.toml; where the first byte is odd as pyproject.toml."""
    name = "pyproject.toml" if data[:1] and data[0] % 2 else "crt.toml"
    path = _folder() / name
    path.write_bytes(data[1:])
    read_project(path)


def _project_seeds() -> list[bytes]:
    page = (ROOT / "docs" / "project-file.md").read_text()
    texts = re.findall(r"^```toml\n(.*?)^```", page, re.M | re.S)
    within = [re.sub(r"^\[", "[tool.crt.", text, flags=re.M) for text in texts]
    made = [b"\0" + text.encode() for text in texts]
    return made + [b"\1" + text.encode() for text in within]


def _read_front(data: bytes) -> None:
    """TOML; where the first byte is odd JSON."""
    path = _folder() / ("front.json" if data[:1] and data[0] % 2 else "front.toml")
    path.write_bytes(data[1:])
    read_front(path)


def _front_seeds() -> list[bytes]:
    texts = [p.read_bytes() for p in sorted((ROOT / "examples").glob("*/front.toml"))]
    as_json = [json.dumps(tomllib.loads(text.decode())).encode() for text in texts]
    return [*(b"\0" + one for one in texts), *(b"\1" + one for one in as_json)]


# ---- trees of strangers -----------------------------------------------------------


def _tree_with(name: str, data: bytes) -> Path:
    folder = _folder() / "tree"
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(data)
    return folder


def _read_report(data: bytes) -> None:
    """As what is drawn, and as what a tree is made again of, but for the building."""
    from pybuild.cli.report import report_of_folder
    from pybuild.rebuild import facts_of

    folder = _tree_with("report.json", data)
    with contextlib.suppress(BuildError):
        report_of_folder(folder)
    facts_of(folder)


@functools.cache
def _report_seeds() -> list[bytes]:
    from tests.attacks.documents import recipe, report

    short = json.dumps(report(), separators=(",", ":"))
    return [json.dumps(recipe()).encode(), short.encode()]


def _read_list(data: bytes) -> None:
    from pybuild.package.folder import list_of

    folder = _tree_with("crt/files.sha256", data)
    for name in list_of(folder):
        assert not leads_out(folder, name)


def _list_seeds() -> list[bytes]:
    line = f"{'0' * 64}  crt/src/run.c\n"
    return [line.encode(), (line + line.replace("run.c", "x")).encode()]


def _read_entry(data: bytes) -> None:
    """What a sweep left of a build; of others it knows nothing, and refuses none."""
    from pybuild.sweeps.store import BUILDS, Store

    folder = _tree_with(f"{BUILDS}/k.json", data)
    if Store(folder).entry("k") is None:
        raise BuildError("k", "is not a build")


def _entry_seeds() -> list[bytes]:
    from tests.attacks.documents import ENTRY

    return [json.dumps(ENTRY).encode()]


def _read_board(data: bytes) -> None:
    """A chip and a board, with a NUL between."""
    from tests.attacks.damaged import load_board

    chip, _, board = data.partition(b"\0")
    load_board(_folder() / "board", board, chip)


def _board_seeds() -> list[bytes]:
    from tests.attacks.damaged import as_toml
    from tests.attacks.documents import BOARD, CHIP

    return [as_toml(CHIP) + b"\0" + as_toml(BOARD)]


READERS = {
    "tflite": PythonReader(
        _load, lambda: _files("*.tflite"), ("pybuild/frontends/tflite/*",),
        _tflite_cases,
    ),
    "onnx": PythonReader(
        _load, lambda: _files("*.onnx"), ("pybuild/frontends/onnx/*",), _onnx_cases
    ),
    "pt2": PythonReader(_load_pt2, _pt2_seeds, ("pybuild/frontends/torch/*",)),
    "graph-json": PythonReader(
        _load_json, _json_seeds, ("pybuild/frontends/graphjson/*",)
    ),
    "params": PythonReader(_read_blob, _blob_seeds, ("pybuild/params/blob.py",)),
    "crtp": PythonReader(
        _read_image, image_seeds,
        ("pybuild/params/image_read.py", "pybuild/params/image.py"),
    ),
    "npz": PythonReader(_read_npz, _npz_seeds, ("pybuild/params/files.py",)),
    "crt-toml": PythonReader(
        _read_project, _project_seeds,
        ("pybuild/project/read.py", "pybuild/project/lines.py"),
    ),
    "front": PythonReader(
        _read_front, _front_seeds, ("pybuild/front/file.py", "pybuild/front/typed.py")
    ),
    "report": PythonReader(
        _read_report, _report_seeds,
        ("pybuild/package/recipe_shape.py", "pybuild/files/shape.py"),
    ),
    "sha256": PythonReader(_read_list, _list_seeds, ("pybuild/package/folder.py",)),
    "sweep": PythonReader(_read_entry, _entry_seeds, ("pybuild/sweeps/store.py",)),
    "board": PythonReader(
        _read_board, _board_seeds,
        ("pybuild/targets/board.py", "pybuild/targets/chip.py",
         "pybuild/targets/facts.py"),
    ),
}  # fmt: skip
