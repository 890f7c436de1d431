"""Firmware that serves a library to pybuild.rpc, built for a board.

Knows no line and no session.
"""

from __future__ import annotations

from pathlib import Path

from pybuild.boards.firmware.build import (
    Firmware,
    Group,
    board_flags,
    build,
    model_groups,
    sorted_files,
    texts,
)
from pybuild.host.build_facts import Library
from pybuild.install import boards, made_once
from pybuild.targets.board import Board
from pybuild.targets.toolchain import Toolchain, choose_toolchain


def server_firmware(
    library: Library, board: Board, toolchain: Toolchain, content: str
) -> Firmware:
    """The program; its frames are as long as the board's RAM lets them be.

    content  what it says that it serves
    Errors   BuildError with the compiler's words; LimitError where it does not fit
    """
    made = library.sources() if library.processor is None else library.compiled()
    sources, headers, objects = sorted_files(made)
    name = library.report.name
    headers["firmware_model.h"] = f"""\
/* firmware_model.h: made by pybuild: the model that server.c serves. */
#include "{name}.h"

#define MODEL_TABLES {name}_model
#define SERVER_CONTENT "{content}"
#define SERVER_BOARD "{board.name}"
#define SERVER_BYTES {_frame_bytes(board)}u
"""
    # weights are sent, so that the flash need not hold them
    sources = {n: t for n, t in sources.items() if n != f"{name}_params.c"}
    common = boards() / "common"
    groups = [
        *model_groups(sources),
        Group("server", texts([common / "server.c"]), board_flags(board)),
    ]
    return build(library, board, toolchain, board.core, "balanced",
                 groups, headers, objects)  # fmt: skip


def _frame_bytes(board: Board) -> int:
    """The number of data bytes in a frame; two frames are in RAM."""
    ram = board.ram.size
    return 128 if ram <= 16384 else 512 if ram <= 131072 else 1024


def server_file(library: Library, board: Board, content: str) -> Path:
    """The program as a file to be flashed, made once for each content.

    Errors  BuildError without a tool chain, or as server_firmware
    """

    def make(folder: Path) -> None:
        toolchain = choose_toolchain("auto", board.core)
        firmware = server_firmware(library, board, toolchain, content)
        (folder / name).write_bytes(firmware.path.read_bytes())

    name = f"{board.name}.elf"
    return made_once(f"{name} {content}".encode(), make) / name
