"""Links objects with crt for a core, by GNU ld or by lld. Knows no simulator."""

from __future__ import annotations

import concurrent.futures
import functools
import tempfile
from collections.abc import Mapping
from pathlib import Path

from pybuild.targets.core import CORES as KNOWN
from pybuild.targets.llvm import LLVM
from tests.boards.programs import chain, compiler
from tests.toolchains import INCLUDE, SOURCES, STRICT, run

HERE = Path(__file__).resolve().parent
LINKERS = {"gnu": "gcc", "lld": "zig"}
# those that LLVM has a code of its own for; a core that GNU C may be too old for links
# with zig alone: tests/kernels/rvv
CORES = {
    name: core
    for name, core in KNOWN.items()
    if core.target == name in LLVM and not core.least
}


@functools.cache
def _common(
    target: str, linker: str, flags: tuple[str, ...]
) -> tuple[tempfile.TemporaryDirectory[str], list[Path]]:
    """crt and runner.c as objects, once for all tests."""
    folder: tempfile.TemporaryDirectory[str] = tempfile.TemporaryDirectory()
    command = [*compiler(CORES[target], LINKERS[linker]), *STRICT, "-O2", *flags]
    command += ["-DCRT_NO_STRING_H", f"-I{INCLUDE}", "-c"]
    sources = [*SOURCES, HERE / "runner.c"]
    made = [Path(folder.name) / f"{source.stem}.o" for source in sources]
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        jobs = zip(sources, made, strict=True)
        list(pool.map(lambda job: run([*command, job[0], "-o", job[1]]), jobs))
    return folder, made


def linked(
    folder: Path, target: str, linker: str, objects: Mapping[str, bytes], *more: str
) -> Path:
    """An image of all models, `NAME_model` for each name, and runner.c.

    more  flags to compile crt with
    """
    image = folder / f"{target}-{linker}.elf"
    core = CORES[target]
    tools = chain(core, LINKERS[linker])
    fatal = ["-Wl,--fatal-warnings"] if linker == "gnu" else []
    _, common = _common(target, linker, more)
    run([*tools.command, *tools.link_flags(core, str(HERE / "image.ld")), *fatal,
         *common, *written(folder, objects), *tools.libraries(core),
         "-o", image])  # fmt: skip
    return image


def written(folder: Path, objects: Mapping[str, bytes]) -> list[Path]:
    """The objects as files."""
    for name, content in objects.items():
        (folder / f"{name}.o").write_bytes(content)
    return [folder / f"{name}.o" for name in objects]
