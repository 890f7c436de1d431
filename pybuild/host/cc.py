"""The generated C on this machine: compiled into a shared library."""

from __future__ import annotations

import _ctypes
import ctypes
import sys
import tempfile
import weakref
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

from pybuild.errors import BuildError, Lines
from pybuild.host.compiled_model import Compiled
from pybuild.install import (
    NATIVE_FLAGS,
    OBJECT_FLAGS,
    SHARED_FLAGS,
    called,
    crt_headers,
    crt_include,
    crt_sources,
    host_compiler,
    host_library,
    made_once,
    temporary_folder,
)

FLAGS = ("-std=c99", "-O3", *NATIVE_FLAGS, "-ffp-contract=off", *SHARED_FLAGS)
_RUNTIME_FLAGS = ("-std=c99", "-O2", *OBJECT_FLAGS)


def c_code(name: str, sources: Mapping[str, str]) -> Compiled:
    """A model compiled by the C compiler of this machine.

    Errors  BuildError without a compiler, or with its message
    """
    library, folder = compiled_library(name, sources)
    return loaded(name, library, folder)


def compiled_library(
    name: str, sources: Mapping[str, str]
) -> tuple[Path, tempfile.TemporaryDirectory[str]]:
    """Generated C as a shared library, and the folder that it is in. It holds crt, too:
    a library that needs another one is found differently on every system.

    Errors  BuildError without a compiler, or with its message
    """
    runtime = _runtime(_compiler())
    folder = temporary_folder()
    library = Path(folder.name) / f"{name}.so"
    for file, text in sources.items():
        (library.parent / file).write_bytes(text.encode())
    files = [str(library.parent / f) for f in sorted(sources) if f.endswith(".c")]
    compile_shared([*files, *map(str, runtime)], [library.parent], library)
    return library, folder


def shared_library(name: str, sources: Mapping[str, str]) -> bytes:
    """Generated C as a shared library, to be taken elsewhere.

    Errors  BuildError without a compiler, or with its message
    """
    library, _folder = compiled_library(name, sources)
    return library.read_bytes()


def loaded(name: str, library: Path, keep: object) -> Compiled:
    """A model in a shared library.

    Errors  BuildError where this machine cannot load it
    """
    there = Opened(name, library, keep)
    return Compiled(host_library(), there.address(f"{name}_model"), there)


class Opened:
    """A shared library in this process, until this object is gone.

    keep    what goes after it: the folder that it is in
    Errors  BuildError where it cannot be loaded
    """

    def __init__(self, where: str, library: Path, keep: object) -> None:
        self.symbols = _opened(where, library)
        # a list: what it holds goes only when the library is closed
        last = weakref.finalize(self, _close, self.symbols, [keep])
        last.atexit = False  # at the end of the process nothing is closed

    def address(self, name: str) -> int:
        """The address of a symbol.

        Errors  ValueError for a name that it has not
        """
        return ctypes.addressof(ctypes.c_char.in_dll(self.symbols, name))


def _close(symbols: ctypes.CDLL, keep: list[object]) -> None:
    handle = symbols._handle
    if sys.platform == "win32":
        _ctypes.FreeLibrary(handle)
    else:
        _ctypes.dlclose(handle)
    keep.clear()


def _opened(where: str, library: Path) -> ctypes.CDLL:
    try:
        return ctypes.CDLL(str(library))
    except OSError as error:
        hint = (
            "compiled C is loaded from the folder for temporary files (TMPDIR), which "
            "must allow programs, and it must define each function it calls"
        )
        what = f"the compiled C cannot be loaded: {error}"
        raise BuildError(where, what, hint) from None


@cache
def _runtime(compiler: tuple[str, ...]) -> tuple[Path, ...]:
    """crt as object files, each compiled by a call of its own, as zig wants it."""
    files = crt_sources()
    command = (*compiler, *_RUNTIME_FLAGS, f"-I{crt_include()}")
    content = repr((compiler, _RUNTIME_FLAGS)).encode()
    content += b"".join(path.read_bytes() for path in (*crt_headers(), *files))

    def make(folder: Path) -> None:
        def compile_one(file: Path) -> None:
            object_ = str(folder / f"{file.stem}.o")
            _call((*command, "-c", str(file), "-o", object_))

        with ThreadPoolExecutor() as pool:
            list(pool.map(compile_one, files))

    folder = made_once(content, make)
    return tuple(folder / f"{file.stem}.o" for file in files)


def compile_shared(
    files: list[str], include: list[Path], library: Path, flags: tuple[str, ...] = FLAGS
) -> None:
    """C files to a shared library of this machine.

    Errors  BuildError without a compiler, or with its message
    """
    folders = [f"-I{path}" for path in (*include, crt_include())]
    _call((*_compiler(), *flags, *folders, *files, "-o", str(library)))


def _call(command: tuple[str, ...]) -> None:
    done = called(command)
    if done.returncode != 0:
        said = Lines(f"cannot compile: {done.stderr.strip()}")
        raise BuildError(command[0], said)


def _compiler() -> tuple[str, ...]:
    compiler = host_compiler()
    if not compiler:
        hint = "pip install ziglang, or use --backend llvm"
        raise BuildError("--backend c", "there is no C compiler", hint)
    return compiler
