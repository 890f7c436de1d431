"""Where crt's sources, headers and host library and the boards lie.

In an installed wheel they are in pybuild/_data; in a checkout they are the
repository's own folders, and the host library is compiled on first use.
Knows no model and no target.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

from pybuild.errors import BuildError

_DATA = Path(__file__).resolve().parent / "_data"
_ROOT = Path(__file__).resolve().parent.parent


def is_checkout() -> bool:
    """Whether this is a source tree, not an installed wheel."""
    return not _DATA.is_dir()


def _home() -> Path:
    return _ROOT if is_checkout() else _DATA


def crt_include() -> Path:
    """The folder to give to -I, so that crt/graph.h is found."""
    return _home() / "crt" / "include"


def crt_headers() -> tuple[Path, ...]:
    """Every header of crt, sorted by name."""
    return tuple(sorted((crt_include() / "crt").glob("*.h")))


def crt_sources() -> tuple[Path, ...]:
    """Every C file of crt, sorted by name."""
    return tuple(sorted((_home() / "crt" / "src").glob("*.c")))


def boards() -> Path:
    """The folder of the board descriptions."""
    return _home() / "boards"


def host_compiler() -> tuple[str, ...]:
    """The command of a C compiler for this machine; () where there is none.

    The environment's CC, else cc, gcc or clang, else the ziglang package.
    """
    chosen = os.environ.get("CC", "").split()
    if chosen and shutil.which(chosen[0]):
        return tuple(chosen)
    for name in ("cc", "gcc", "clang"):
        if shutil.which(name):
            return (name,)
    if importlib.util.find_spec("ziglang") is not None:
        return (sys.executable, "-m", "ziglang", "cc")
    return ()


@cache
def host_library() -> Path:
    """crt as a shared library of this machine.

    Errors  BuildError in a checkout without any C compiler
    """
    if not is_checkout():
        return _DATA / "libcrt.so"
    content = hashlib.sha256()
    for path in (*crt_headers(), *crt_sources()):
        content.update(path.read_bytes())
    library = _ROOT / "build" / "host" / content.hexdigest()[:16] / "libcrt.so"
    if not library.is_file():
        _compile(library)
    return library


def _compile(library: Path) -> None:
    compiler = host_compiler()
    if not compiler:
        raise BuildError(
            "crt",
            "there is no C compiler for the host's runtime library",
            "pip install ziglang, or install gcc",
        )
    library.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=library.parent) as folder:
        made = Path(folder) / library.name
        flags = ["-std=c99", "-O2", "-fPIC", "-shared", "-I", str(crt_include())]
        command = [*compiler, *flags, *map(str, crt_sources()), "-o", str(made)]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            raise BuildError("crt", f"{compiler[0]} failed: {done.stderr.strip()}")
        os.replace(made, library)
