"""The files of a board for a firmware project: C, linker script, Meson file.

Paths in the cross file are relative to it; nothing names this machine.
"""

from __future__ import annotations

from collections.abc import Sequence

from pybuild.boards.firmware.build import (
    ENTRIES,
    board_flags,
    board_group,
    linker_script,
    second_group,
)
from pybuild.install import boards
from pybuild.targets.board import Board
from pybuild.targets.core import linkable_with
from pybuild.targets.toolchain import Toolchain

# bytes that the linker script keeps free for each core, to be changed by hand
STACK, SECOND_STACK = 2048, 1024
_CPUS = {"arm": "arm", "riscv": "riscv32", "xtensa": "xtensa"}


def board_files(board: Board, toolchain: Toolchain) -> dict[str, str]:
    """File name -> text, <board>.ini among them: meson setup --cross-file."""
    common = boards() / "common"
    sources = board_group(board).files
    second = second_group(board).files if board.second else {}
    headers = [
        common / "board.h",
        *([common / "second.h"] if second else []),
        *sorted((common / "uart").glob("*.h")),
    ]
    files = {
        path.relative_to(common).as_posix(): path.read_text(encoding="utf-8")
        for path in (*headers, *sorted((common / "libc").glob("*.h")))
    }
    return {
        **sources,
        **second,
        **files,
        "link.ld": linker_script(
            board, board.core, STACK, SECOND_STACK if second else 0
        ),
        f"{board.name}.ini": _cross_file(board, toolchain, sorted(sources)),
    }


def _cross_file(board: Board, toolchain: Toolchain, sources: Sequence[str]) -> str:
    core = board.core
    facts = [f for f in board_flags(board) if not f.startswith("-I")]
    flags = [*toolchain.compile_flags(core), *facts, "-DCRT_WITH_SELFTEST"]
    here = "@DIRNAME@"
    flags += [f"-I{here}", "-isystem", f"{here}/libc"]
    link = [*toolchain.link_flags(core, f"{here}/link.ld")]
    link += [f"-Wl,--entry={ENTRIES[core.arch]}", *toolchain.libraries(core)]
    return f"""\
# {board.name}: {board.title}, for {toolchain.name}; made by pybuild.
[binaries]
c = {_list(_named(toolchain))}
ar = {_list(_archiver(toolchain))}

[built-in options]
c_args = {_list([f for f in flags if f != "-std=c99"])}
c_link_args = {_list(link)}
b_staticpic = false
b_pie = false
optimization = '2'

[properties]
skip_sanity_check = true
crt_board_sources = {_list([f"{here}/{name}" for name in sources])}
{_second_part(board, toolchain)}
[host_machine]
system = 'none'
cpu_family = '{_CPUS[core.arch]}'
cpu = '{core.name}'
endian = 'little'
"""


def _second_part(board: Board, toolchain: Toolchain) -> str:
    """The part of the cross file's properties that a project needs for the second
    core."""
    if board.second is None:
        return ""
    names = [f"@DIRNAME@/{name}" for name in sorted(second_group(board).files)]
    machine = toolchain.machine(linkable_with(board.second, board.core))
    return f"""\
# the second core as a device of crt, and how to compile the kernels of that device
crt_second_sources = {_list(names)}
crt_second_args = {_list(machine)}
"""


def _list(words: Sequence[str]) -> str:
    return "[" + ", ".join(f"'{word}'" for word in words) + "]"


def _named(toolchain: Toolchain) -> list[str]:
    """The compiler by its name on the path, not by where it is here."""
    match toolchain.kind:
        case "zig":
            return ["python3", "-m", "ziglang", "cc"]
        case _:
            return [toolchain.name]


def _archiver(toolchain: Toolchain) -> list[str]:
    match toolchain.kind:
        case "zig":
            return ["python3", "-m", "ziglang", "ar"]
        case "clang":
            return ["llvm-ar"]
        case _:
            return [toolchain.name.replace("-gcc", "-ar")]
