"""Trees with objects as programs for QEMU's boards. Knows no model."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

from tests.objects.images import CORES
from tests.toolchains import ROOT, require, run

START = ROOT / "tests" / "boards"
OPTIONS = ["-display", "none", "-monitor", "none", "-serial", "null",
           "-semihosting-config", "enable=on,target=native"]  # fmt: skip


@dataclass(frozen=True)
class Board:
    """A machine of QEMU that runs the code of a target; flash and RAM: origin and
    length for a linker script."""

    target: str
    machine: str
    flash: str = "ORIGIN = 0x00000000, LENGTH = 4M"
    ram: str = "ORIGIN = 0x20000000, LENGTH = 4M"


BOARDS = {
    board.target: board
    for board in (
        Board("cortex-m0", "mps2-an385"),
        Board("cortex-m3", "mps2-an385"),
        Board("cortex-m4", "mps2-an386"),
        Board("cortex-m7", "mps2-an500"),
        Board(
            "cortex-m33",
            "mps2-an505",
            "ORIGIN = 0x10000000, LENGTH = 4M",
            "ORIGIN = 0x38000000, LENGTH = 2M",
        ),
        Board(
            "cortex-m55",
            "mps3-an547",
            "ORIGIN = 0x00000000, LENGTH = 512K",
            "ORIGIN = 0x30000000, LENGTH = 512K",
        ),
    )
}


def link_flags(board: Board, folder: Path) -> list[str]:
    """Linker script, compiled start-up, and semihosting instead of a system."""
    script, start = folder / "board.ld", folder / "start.o"
    text = (START / "mps2.ld").read_text()
    plain = Board("", "")
    for old, new in ((plain.flash, board.flash), (plain.ram, board.ram)):
        assert text.count(old) == 1
        text = text.replace(old, new)
    script.write_text(text)
    gcc = CORES[board.target].gcc
    require(gcc[0])
    run([*gcc, "-c", "-O1", START / "mps2_start.c", "-o", start])
    libraries = ["-nostartfiles", "--specs=rdimon.specs", "-Wl,--gc-sections"]
    return [f"-T{script}", *libraries, "-Wl,--fatal-warnings", str(start)]


def emulated(board: Board, program: Path) -> str:
    """What the program prints; it must end well."""
    qemu = require("qemu-system-arm")
    command = [qemu, "-M", board.machine, *OPTIONS, "-kernel", str(program)]
    done = subprocess.run(
        command, cwd=program.parent, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
