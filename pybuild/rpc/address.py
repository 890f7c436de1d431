"""From "qemu:mps2-an386" or "serial:/dev/ttyUSB0,921600" to a board."""

from __future__ import annotations

import functools
import os
from typing import Any, cast

from pybuild.boards.device import choose_simulator
from pybuild.boards.firmware.server import server_firmware
from pybuild.boards.simulators.qemu import Qemu
from pybuild.boards.simulators.stand_ins import simulation
from pybuild.errors import BuildError, UsageError
from pybuild.host.source import Portable
from pybuild.rpc.key import OPTION, key_from
from pybuild.rpc.line import Line, SerialLine, tcp_line
from pybuild.rpc.remote import Remote, Simulated, Wired
from pybuild.rpc.simulator import QemuLine, UnicornLine
from pybuild.targets.board import Board, load_board
from pybuild.targets.toolchain import choose_toolchain

_FORMS = "qemu:BOARD, unicorn:BOARD, serial:PORT,BAUD or tcp:HOST:PORT"
_BAUD = 115200
_PATIENCE = {"qemu": 30.0, "unicorn": 30.0, "serial": 5.0, "tcp": 5.0}


def _no_console(board: Board) -> tuple[str, str]:
    """The message for a board whose console calls cannot reach, and what works
    instead."""
    wired = "connect the board: serial:PORT,BAUD"
    if simulation(board) == "facts only":
        return f"{board.name} is not simulated", wired
    what = f"the console of {board.name} is not simulated, only its core: calls have "
    hint = f"crt run, check and bench with --on {board.name}; or {wired}"
    return f"{what}no line to it", hint


def connect(
    where: str,
    library: Portable | None = None,
    patience: float | None = None,
    toolchain: str = "auto",
    key_file: str | os.PathLike[str] | None = None,
) -> Remote:
    """A board, simulated or real.

    where      qemu:BOARD, unicorn:BOARD, serial:PORT,BAUD, tcp:HOST:PORT
    library    what it must serve; a simulator is built and started with it at once,
               None: when the first module is made
    patience   seconds without an answer after which a call is given up; runs get more
    toolchain  of a simulator's firmware: auto, gcc, zig, clang
    key_file   64 hexadecimal digits, the key of the board's firmware: nobody else is
               taken for it, or served by it; None: the file that the environment
               variable CRT_KEY_FILE names, or no key
    Errors     BuildError; RemoteError where the line or the board is not there, or it
               has no or another key
    """
    kind, _, rest = where.partition(":")
    if kind not in _PATIENCE or not rest:
        raise UsageError(where, "is not a place of a board", f"give {_FORMS}")
    limit = _PATIENCE[kind] if patience is None else patience
    if kind in ("qemu", "unicorn"):
        if key_file is not None:
            what = f"is for a board at the end of a line, not for {where}"
            raise UsageError(OPTION, what, "leave it out")
        facts = load_board(rest)
        if not facts.machine:
            raise BuildError(where, *_no_console(facts))
        start = functools.partial(_started, where, kind, facts, toolchain)
        remote: Remote = Simulated(where, facts, limit, start)
    else:
        key = key_from(key_file)  # before the line is opened
        remote = Wired(where, _line(where, kind, rest), limit, key)
    if library is not None:
        try:
            remote.serve(library)
        except Exception:
            remote.close()
            raise
    return remote


def _line(where: str, kind: str, rest: str) -> Line:
    """The line to the address.

    Errors  BuildError for what is not a number
    """
    split = "," if kind == "serial" else ":"
    place, _, number = rest.rpartition(split) if split in rest else (rest, "", "")
    if not number and kind == "serial":
        number = str(_BAUD)
    if not number.isdigit() or not place:
        raise UsageError(where, f"'{number}' is not a number", f"give {_FORMS}")
    if kind == "serial":
        return SerialLine(where, place, int(number))
    return tcp_line(where, place, int(number))


def _started(
    where: str, kind: str, board: Board, chain: str, library: Any, content: str
) -> Line:
    """A simulator with this library's firmware."""
    machine = choose_simulator(board, kind)
    toolchain = choose_toolchain(chain, board.core)
    firmware = server_firmware(library, board, toolchain, content)
    if kind == "qemu":
        return QemuLine(where, cast(Qemu, machine), firmware)
    return UnicornLine(where, firmware)
