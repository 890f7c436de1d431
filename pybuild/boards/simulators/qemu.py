"""Firmware in QEMU: one process a run, files by semihosting, counts by our plugin."""

from __future__ import annotations

import functools
import os
import re
import shutil
import subprocess
from pathlib import Path

from pybuild.boards.firmware.build import Firmware
from pybuild.boards.simulators.count import (
    Costs,
    CountPlan,
    Counts,
    costs_of,
    counts_of,
    plan_fields,
)
from pybuild.boards.simulators.plugin import counting_plugin, why_not
from pybuild.boards.simulators.process import tied
from pybuild.boards.simulators.simulator import TIMEOUT, Files, Outcome
from pybuild.boards.simulators.stand_ins import qemu_system
from pybuild.errors import BuildError
from pybuild.install import called, temporary_folder
from pybuild.targets.board import Board

_PACKAGES = {
    "arm": "qemu-system-arm",
    "riscv32": "qemu-system-misc",
    "xtensa": "qemu-system-misc",
    "avr": "qemu-system-misc",
}

_COSTS = "crt.costs"  # for the plugin


class Qemu:
    """qemu-system-<system> of this machine."""

    def __init__(self, system: str, path: str) -> None:
        self.path = path
        self.name = f"QEMU {_version(path)}"

    @property
    def cannot_count(self) -> str:
        """Why it counts no instructions, by trying; "" where it does."""
        return why_not(self.path)

    def run(
        self, firmware: Firmware, files: Files, plan: CountPlan | None = None
    ) -> Outcome:
        with temporary_folder() as folder:
            root = Path(folder)
            for name, data in files.items():
                (root / name).write_bytes(data)
            command = [self.path, *machine_options(firmware.board)]
            command += program_options(firmware.board, firmware.path)
            known = costs_of(firmware) if plan is not None else None
            if known is not None:
                (root / _COSTS).write_bytes(known.of)
            if plan is not None:
                command += ["-plugin", _plugin(self.path, plan, known)]
            done = _finished(command, root, firmware.board)
            tried = f"tried: {' '.join(command)}"
            made = {p.name: p.read_bytes() for p in root.iterdir() if p.is_file()}
            made.pop(_COSTS, None)
        counts = None
        if plan is not None:
            said_counts = made.pop("crt.counts", b"")
            counts = _counts(said_counts, 1 + firmware.second, known is not None)
        said = done.stderr.decode(errors="replace").strip()
        if done.returncode < 0 or (plan is not None and counts is None):
            raise BuildError(self.name, f"ended with {done.returncode}: {said}", tried)
        console = done.stdout.decode(errors="replace")
        return Outcome(done.returncode, console, made, counts, said)


def machine_options(board: Board) -> list[str]:
    return [
        "-M", board.machine, "-display", "none", "-monitor", "none",
        "-serial", "stdio", *board.arguments,
        "-semihosting-config", "enable=on,target=native",
    ]  # fmt: skip


def program_options(board: Board, program: Path) -> list[str]:
    """The options that make the machine start a program: QEMU for Xtensa loads no
    kernel."""
    if board.system != "xtensa":
        return ["-kernel", str(program)]
    path = str(program).replace(",", ",,")
    return ["-device", f"loader,file={path},cpu-num=0"]


def _finished(
    command: list[str], root: Path, board: Board
) -> subprocess.CompletedProcess[bytes]:
    there, here = os.pipe()
    try:
        return subprocess.run(
            tied(command), cwd=root, stdin=there, capture_output=True, timeout=TIMEOUT
        )
    except subprocess.TimeoutExpired:
        what = f"did not end within {TIMEOUT:g} seconds"
        raise BuildError(board.name, what, f"tried: {' '.join(command)}") from None
    finally:
        os.close(there)
        os.close(here)


def _plugin(qemu: str, plan: CountPlan, known: Costs | None) -> str:
    library = str(counting_plugin(qemu)).replace(",", ",,")
    given = plan_fields(plan)
    if known is not None:
        given |= {"costs_at": known.at, "costs_bytes": known.bytes}
        given |= {"costs_taken": known.taken}
    fields = (f"{name}={value}" for name, value in given.items())
    return ",".join([library, *fields])


def _counts(text: bytes, used: int, timed: bool) -> Counts | None:
    """Wall, then of each core the runtime and each step, and their cycles."""
    wall, *numbers = [int(line) for line in text.split()] or [0]
    size = len(numbers) // 4
    first, clock, other, others = (numbers[i * size : (i + 1) * size] for i in range(4))
    cores = [(own[0], own[1:]) for own in (first, other) if own]
    cycles = [clock, others] if timed else None
    return counts_of(wall, cores, used, cycles) if cores else None


@functools.cache
def _version(path: str) -> str:
    said = called([path, "--version"]).stdout
    found = re.search(r"version (\S+)", said)
    return found[1] if found else "of unknown version"


def find_qemu(board: Board) -> Qemu | None:
    """QEMU with this board's processor, if it is here."""
    system = qemu_system(board)
    path = shutil.which(f"qemu-system-{system}") if system else None
    return Qemu(system, path) if path else None


def qemu_package(board: Board) -> str:
    """ "" where it has no such core."""
    system = qemu_system(board)
    return f"apt-get install {_PACKAGES[system]}" if system else ""
