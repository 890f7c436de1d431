"""The generated C on this machine: compiled into a shared library."""

from __future__ import annotations

import ctypes
import subprocess
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path

from pybuild.errors import BuildError
from pybuild.install import crt_include, crt_sources, host_compiler, host_library
from pybuild.run.compiled import Compiled

FLAGS = ("-std=c99", "-O3", "-march=native", "-ffp-contract=off", "-fPIC", "-shared")


def c_code(name: str, sources: Mapping[str, str]) -> Compiled:
    """A model compiled by the C compiler of this machine, for crt's host library.

    Errors  BuildError without a compiler, or with its message
    """
    library, folder = compiled_library(name, sources)
    return loaded(name, library, folder)


def compiled_library(
    name: str, sources: Mapping[str, str]
) -> tuple[Path, tempfile.TemporaryDirectory[str]]:
    """Generated C as a shared library that needs crt's, where that lies now, and the
    folder that it is in.

    Errors  BuildError without a compiler, or with its message
    """
    return _compiled(name, sources, [host_library()])


def shared_library(name: str, sources: Mapping[str, str]) -> bytes:
    """Generated C as a shared library that holds crt too, to be taken elsewhere.

    Errors  BuildError without a compiler, or with its message
    """
    library, _folder = _compiled(name, sources, crt_sources())
    return library.read_bytes()


def _compiled(
    name: str, sources: Mapping[str, str], crt: Iterable[Path]
) -> tuple[Path, tempfile.TemporaryDirectory[str]]:
    folder = tempfile.TemporaryDirectory(prefix="crt-")
    library = Path(folder.name) / f"{name}.so"
    for file, text in sources.items():
        (library.parent / file).write_text(text, encoding="utf-8")
    files = [str(library.parent / f) for f in sorted(sources) if f.endswith(".c")]
    compile_shared([*files, *map(str, crt)], [library.parent], library)
    return library, folder


def loaded(name: str, library: Path, keep: object) -> Compiled:
    """A model in a shared library that holds crt or needs it."""
    symbols = ctypes.CDLL(str(library))
    address = ctypes.addressof(ctypes.c_char.in_dll(symbols, f"{name}_model"))
    return Compiled(library, address, (symbols, keep))


def compile_shared(
    files: list[str], include: list[Path], library: Path, flags: tuple[str, ...] = FLAGS
) -> None:
    """C files to a shared library of this machine.

    Errors  BuildError without a compiler, or with its message
    """
    folders = [f"-I{path}" for path in (*include, crt_include())]
    command = [*_compiler(), *flags, *folders, *files, "-o", str(library)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise BuildError(command[0], f"cannot compile: {done.stderr.strip()}")


def _compiler() -> tuple[str, ...]:
    compiler = host_compiler()
    if not compiler:
        hint = "pip install ziglang, or use --backend llvm"
        raise BuildError("--backend c", "there is no C compiler", hint)
    return compiler
