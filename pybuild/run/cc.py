"""The generated C on this machine: compiled, with crt, into a shared library."""

from __future__ import annotations

import ctypes
import subprocess
import tempfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from pybuild.errors import BuildError
from pybuild.install import crt_include, crt_sources, host_compiler
from pybuild.run.compiled import Compiled

FLAGS = ("-std=c99", "-O3", "-march=native", "-ffp-contract=off", "-fPIC", "-shared")


def c_code(name: str, sources: Mapping[str, str]) -> Compiled:
    """A model compiled, with crt, by the C compiler of this machine.

    Errors  BuildError without a compiler, or with its message
    """
    library, folder = compiled_library(name, sources)
    return loaded(name, library, folder)


def compiled_library(
    name: str, sources: Mapping[str, str]
) -> tuple[Path, tempfile.TemporaryDirectory[str]]:
    """Generated C with crt as a shared library, and the folder that it needs.

    Errors  BuildError without a compiler, or with its message
    """
    folder = tempfile.TemporaryDirectory(prefix="crt-")
    library = Path(folder.name) / f"{name}.so"
    compile_model(sources, library)
    return library, folder


def compile_model(sources: Mapping[str, str], library: Path) -> None:
    """A model's C files and crt to a shared library; sources lie beside it."""
    for file, text in sources.items():
        (library.parent / file).write_text(text, encoding="utf-8")
    files = [str(library.parent / f) for f in sorted(sources) if f.endswith(".c")]
    runtime = _runtime(_compiler())
    objects = sorted(map(str, Path(runtime.name).glob("*.o")))
    compile_shared([*files, *objects], [library.parent], library)


def shared_library(name: str, sources: Mapping[str, str]) -> bytes:
    """The same as bytes."""
    library, _folder = compiled_library(name, sources)
    return library.read_bytes()


def loaded(name: str, library: Path, keep: object) -> Compiled:
    """A model in a shared library that holds crt too."""
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
    _compile([*_compiler(), *flags, *folders, *files, "-o", str(library)])


@cache
def _runtime(compiler: tuple[str, ...]) -> tempfile.TemporaryDirectory[str]:
    """A folder with crt as objects: all models of a process are linked with them."""
    folder = tempfile.TemporaryDirectory(prefix="crt-")
    sources = map(str, crt_sources())
    flags = (*FLAGS[:-1], f"-I{crt_include()}", "-c")
    _compile([*compiler, *flags, *sources], Path(folder.name))
    return folder


def _compiler() -> tuple[str, ...]:
    compiler = host_compiler()
    if not compiler:
        hint = "pip install ziglang, or use --backend llvm"
        raise BuildError("--backend c", "there is no C compiler", hint)
    return compiler


def _compile(command: list[str], folder: Path | None = None) -> None:
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder)
    if done.returncode != 0:
        raise BuildError(command[0], f"cannot compile: {done.stderr.strip()}")
