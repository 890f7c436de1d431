"""Tests' own programs on simulated boards, with the start-up, console and linker script
that come with pybuild. Knows no model."""

from __future__ import annotations

import functools
import subprocess
import tempfile
from pathlib import Path

from pybuild.boards.firmware.build import ENTRIES, board_group, linker_script
from pybuild.boards.simulators.qemu import machine_options, program_options
from pybuild.boards.simulators.stand_ins import in_qemu
from pybuild.install import boards
from pybuild.targets.board import load_board
from pybuild.targets.core import CORES, Core
from pybuild.targets.toolchain import Toolchain, find_toolchain, missing_tools
from tests.boards.devices import CORES as BOARDS
from tests.toolchains import INCLUDE, absent, require, run

STACK = 4096  # bytes
HEADERS = ("-isystem", str(boards() / "common" / "libc"))


def chain(core: Core, kind: str = "gcc") -> Toolchain:
    return find_toolchain(kind, core.arch) or absent(missing_tools(kind, core.arch))


def compiler(core: Core, kind: str = "gcc") -> list[str]:
    """The compiler with the flags of the core; nothing of an operating system."""
    tools = chain(core, kind)
    return [*tools.command, *tools.compile_flags(core), *HEADERS]


@functools.cache
def _start(target: str) -> tuple[tempfile.TemporaryDirectory[str], list[Path]]:
    """Start-up, console and the little C library as objects, once for all tests."""
    core, board = CORES[target], in_qemu(load_board(BOARDS[target]))
    group = board_group(board)
    folder: tempfile.TemporaryDirectory[str] = tempfile.TemporaryDirectory()
    made = []
    for name, text in group.files.items():
        source = Path(folder.name) / name
        source.write_text(text)
        made.append(source.with_suffix(".o"))
        flags = ["-O2", f"-I{INCLUDE}", *group.flags]
        run([*compiler(core), *flags, "-c", source, "-o", made[-1]])
    return folder, made


def link_flags(target: str, folder: Path) -> list[str]:
    """After a program's own objects: the script, which is written, and all else."""
    core, board = CORES[target], in_qemu(load_board(BOARDS[target]))
    script = folder / "board.ld"
    script.write_text(linker_script(board, core, STACK))
    tools = chain(core)
    _, start = _start(target)
    entry = f"-Wl,--entry={ENTRIES[core.arch]}"
    return [*tools.link_flags(core, str(script)), entry,
            *map(str, start), *tools.libraries(core)]  # fmt: skip


def emulated(target: str, program: Path) -> str:
    """What the program prints; it must end well."""
    board = in_qemu(load_board(BOARDS[target]))
    qemu = require(f"qemu-system-{board.system}")
    command = [qemu, *machine_options(board), *program_options(board, program)]
    done = subprocess.run(
        command, cwd=program.parent, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
