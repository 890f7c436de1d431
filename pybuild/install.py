"""The places of crt's sources, headers and host library and of the boards; the name of
such a library on this machine; and compilation on first use.

In an installed wheel they are in pybuild/_data, in a checkout in the repository's
own folders. Knows no model and no target.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import platform
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

from pybuild.errors import BuildError, Lines

_DATA = Path(__file__).resolve().parent / "_data"
_ROOT = Path(__file__).resolve().parent.parent
_SYSTEMS = {"darwin": "macos", "linux": "linux", "win32": "win"}
_LIBRARIES = {"darwin": "libcrt.dylib", "win32": "crt.dll"}
# of objects for a shared library; of the library; for all instructions of this machine
OBJECT_FLAGS = () if sys.platform == "win32" else ("-fPIC",)
SHARED_FLAGS = (*OBJECT_FLAGS, "-shared")
_IS_ARM = platform.machine() in ("aarch64", "arm64", "ARM64")
NATIVE_FLAGS = ("-mcpu=native",) if _IS_ARM else ("-march=native",)


def is_checkout() -> bool:
    """True if this is a source tree, not an installed wheel."""
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


def licence_text() -> str:
    """The licence of crt and pybuild: Apache-2.0."""
    if is_checkout():
        return (_ROOT / "LICENSE").read_text(encoding="utf-8")
    from importlib import metadata  # a tenth of what `crt inspect` imports

    # of a distribution, whose files are UTF-8
    read = metadata.distribution("pybuild-crt").read_text
    text = read("licenses/LICENSE")
    return text or "Apache-2.0: https://www.apache.org/licenses/LICENSE-2.0\n"


def boards() -> Path:
    """The folder of the board descriptions."""
    return _home() / "boards"


def host_compiler() -> tuple[str, ...]:
    """The command of a C compiler for this machine; () where there is none.

    The environment's CC, else cc, gcc or clang, else the ziglang package. On Windows
    gcc: clang there writes libraries that show nothing unless each function says so.
    """
    chosen = os.environ.get("CC", "").split()
    if chosen and shutil.which(chosen[0]):
        return tuple(chosen)
    for name in ("gcc",) if sys.platform == "win32" else ("cc", "gcc", "clang"):
        if shutil.which(name):
            return (name,)
    if importlib.util.find_spec("ziglang") is not None:
        return (sys.executable, "-m", "ziglang", "cc")
    return ()


def called(
    command: Sequence[str], folder: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """Runs a command to its end; the result has its output, in whatever encoding."""
    return subprocess.run(
        command, cwd=folder, capture_output=True, encoding="utf-8", errors="replace"
    )


def system() -> str:
    """The system of this Python, such as linux-aarch64, macos-arm64 or win-amd64."""
    name = _SYSTEMS.get(sys.platform, sys.platform)
    if sys.platform == "win32":  # the machine may emulate what this Python is made for
        return sysconfig.get_platform()
    bits = "" if sys.maxsize > 1 << 32 else "-32"
    return f"{name}-{platform.machine()}{bits}"


def temporary_folder(place: Path | None = None) -> tempfile.TemporaryDirectory[str]:
    """A temporary folder that is deleted with the object; files that Windows has in use
    stay."""
    is_windows = sys.platform == "win32"
    return tempfile.TemporaryDirectory(
        prefix="crt-", dir=place, ignore_cleanup_errors=is_windows
    )


def cache_folder() -> Path:
    """The folder for compiled files and results: the checkout's build folder, or the
    user's cache.

    Errors  OSError for a user without a home
    """
    if is_checkout():
        return _ROOT / "build" / "host"
    chosen = "LOCALAPPDATA" if sys.platform == "win32" else "XDG_CACHE_HOME"
    caches = "Library/Caches" if sys.platform == "darwin" else ".cache"
    place = os.environ.get(chosen, "")
    return (Path(place) if place else _home_of_user() / caches) / "pybuild-crt"


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
    name = hashlib.sha256(system().encode() + content).hexdigest()[:16]
    try:
        folder = cache_folder()
        if (folder / name).is_dir():
            return folder / name
        folder.mkdir(parents=True, exist_ok=True)
        temporary = temporary_folder(folder)
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
        folder = temporary_folder()
        make(Path(folder.name))
        _of_this_process[name] = folder
    return Path(_of_this_process[name].name)


@cache
def host_library() -> Path:
    """crt as a shared library of this machine: the wheel's, or compiled on first use.

    Errors  BuildError without either of a library for this system and a C compiler
    """
    name = _LIBRARIES.get(sys.platform, "libcrt.so")
    carried = _DATA / "lib" / system() / name
    if carried.is_file():
        return carried
    compiler = host_compiler()
    if not compiler:
        what = f"there is no C compiler, and no library of crt for {system()}"
        raise BuildError("crt", what, "pip install ziglang, or install gcc")
    flags = ("-std=c99", "-O2", *SHARED_FLAGS)
    content = repr((compiler, flags)).encode()
    content += b"".join(p.read_bytes() for p in (*crt_headers(), *crt_sources()))

    def make(folder: Path) -> None:
        files = map(str, crt_sources())
        call = [*compiler, *flags, f"-I{crt_include()}", *files]
        done = called([*call, "-o", str(folder / name)])
        if done.returncode != 0:
            said = Lines(f"{compiler[0]} failed: {done.stderr.strip()}")
            raise BuildError("crt", said)

    return made_once(content, make) / name
