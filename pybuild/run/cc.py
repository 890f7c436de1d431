"""The generated C on this machine: compiled, with crt, into a shared library."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from pybuild.errors import BuildError
from pybuild.install import crt_include, crt_sources, host_compiler
from pybuild.plan.plan import Plan
from pybuild.run.devices import Device
from pybuild.run.native import Net

FLAGS = ("-std=c99", "-O3", "-march=native", "-ffp-contract=off", "-fPIC", "-shared")


def compiled_net(
    plan: Plan,
    name: str,
    sources: Mapping[str, str],
    devices: Sequence[Device] = (),
) -> Net:
    """An instance of a model compiled by the C compiler of this machine.

    Errors  BuildError without a compiler, or with its message
    """
    library, folder = compiled_library(name, sources)
    return Net.load(plan, library, name, folder, devices)


def compiled_library(
    name: str, sources: Mapping[str, str]
) -> tuple[Path, tempfile.TemporaryDirectory[str]]:
    """Generated C with crt as a shared library, and the folder that it needs.

    Errors  BuildError without a compiler, or with its message
    """
    folder = tempfile.TemporaryDirectory(prefix="crt-")
    root = Path(folder.name)
    for file, text in sources.items():
        (root / file).write_text(text, encoding="utf-8")
    library = root / f"{name}.so"
    files = [str(root / f) for f in sorted(sources) if f.endswith(".c")]
    compile_shared([*files, *map(str, crt_sources())], [root], library)
    return library, folder


def compile_shared(
    files: list[str], include: list[Path], library: Path, flags: tuple[str, ...] = FLAGS
) -> None:
    """C files to a shared library of this machine.

    Errors  BuildError without a compiler, or with its message
    """
    compiler = host_compiler()
    if not compiler:
        hint = "pip install ziglang, or use --backend llvm"
        raise BuildError("--backend c", "there is no C compiler", hint)
    folders = [f"-I{path}" for path in (*include, crt_include())]
    command = [*compiler, *flags, *folders, *files, "-o", str(library)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise BuildError(compiler[0], f"cannot compile: {done.stderr.strip()}")
