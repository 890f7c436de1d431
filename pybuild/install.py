"""Where crt's sources, headers and host library and the boards lie, and what is
compiled on first use.

In an installed wheel they are in pybuild/_data; in a checkout they are the
repository's own folders, and the host library is compiled on first use.
Knows no model and no target.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
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


def _kept() -> Path:
    """Where compiled things are kept: the checkout's build folder, or the user's cache.

    Errors  OSError for a user without a home
    """
    if is_checkout():
        return _ROOT / "build" / "host"
    home = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(home) if home else _home_of_user() / ".cache") / "pybuild-crt"


def _home_of_user() -> Path:
    try:
        return Path.home()
    except RuntimeError as error:
        raise OSError(str(error)) from None


def made_once(content: bytes, make: Callable[[Path], None]) -> Path:
    """The folder that `make` fills, made again only for another `content`.

    It is in the checkout's build folder or the user's cache; where that cannot be
    written, in a temporary folder that lasts as long as this process. Two processes
    may make the same at once.
    """
    machine = f"{sys.platform} {platform.machine()}".encode()
    name = hashlib.sha256(machine + content).hexdigest()[:16]
    try:
        folder = _kept()
        if (folder / name).is_dir():
            return folder / name
        folder.mkdir(parents=True, exist_ok=True)
        temporary = tempfile.TemporaryDirectory(dir=folder)
    except OSError:
        return _made_for_this_process(name, make)
    with temporary as new:
        made = Path(new) / "made"
        made.mkdir()
        make(made)
        try:
            made.rename(folder / name)
        except OSError:  # another process was first
            if not (folder / name).is_dir():
                raise
    return folder / name


_of_this_process: dict[str, tempfile.TemporaryDirectory[str]] = {}


def _made_for_this_process(name: str, make: Callable[[Path], None]) -> Path:
    if name not in _of_this_process:
        folder = tempfile.TemporaryDirectory(prefix="crt-")
        make(Path(folder.name))
        _of_this_process[name] = folder
    return Path(_of_this_process[name].name)


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
