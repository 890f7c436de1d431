"""Firmware in QEMU: one process a run, files by semihosting, counts by our plugin."""

from __future__ import annotations

import functools
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from pybuild.errors import BuildError
from pybuild.run.board.count import (
    CountPlan,
    Counts,
    counter_library,
    counts_of,
    plan_fields,
)
from pybuild.run.board.firmware import Firmware
from pybuild.run.board.simulator import TIMEOUT, Files, Outcome
from pybuild.targets.board import Board

_PACKAGES = {"arm": "qemu-system-arm", "riscv32": "qemu-system-misc"}


class Qemu:
    """qemu-system-<system> of this machine."""

    def __init__(self, system: str, path: str) -> None:
        self.path = path
        self.name = f"QEMU {_version(path)}"

    def run(
        self, firmware: Firmware, files: Files, plan: CountPlan | None = None
    ) -> Outcome:
        with tempfile.TemporaryDirectory(prefix="crt-") as folder:
            root = Path(folder)
            for name, data in files.items():
                (root / name).write_bytes(data)
            command = [self.path, *machine_options(firmware.board)]
            command += ["-kernel", str(firmware.path)]
            if plan is not None:
                command += ["-plugin", _plugin(plan)]
            done = _finished(command, root, firmware.board)
            made = {p.name: p.read_bytes() for p in root.iterdir() if p.is_file()}
        counts = None
        if plan is not None:
            counts = _counts(made.pop("crt.counts", b""), firmware.second)
        said = done.stderr.decode(errors="replace").strip()
        if done.returncode < 0 or (plan is not None and counts is None):
            raise BuildError(self.name, f"ended with {done.returncode}: {said}")
        console = done.stdout.decode(errors="replace")
        return Outcome(done.returncode, console, made, counts, said)


def machine_options(board: Board) -> list[str]:
    return [
        "-M", board.machine, "-display", "none", "-monitor", "none",
        "-serial", "stdio", *board.arguments,
        "-semihosting-config", "enable=on,target=native",
    ]  # fmt: skip


def _finished(
    command: list[str], root: Path, board: Board
) -> subprocess.CompletedProcess[bytes]:
    try:
        return subprocess.run(
            command, cwd=root, stdin=subprocess.DEVNULL, capture_output=True,
            timeout=TIMEOUT,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        what = f"has not ended after {TIMEOUT:g} seconds"
        raise BuildError(board.name, what) from None


def _plugin(plan: CountPlan) -> str:
    library = str(counter_library("qemu_count.c")).replace(",", ",,")
    fields = (f"{name}={value}" for name, value in plan_fields(plan).items())
    return ",".join([library, *fields])


def _counts(text: bytes, second: bool) -> Counts | None:
    """Wall, then the runtime and each step of one core, and of the other."""
    wall, *numbers = [int(line) for line in text.split()] or [0]
    half = len(numbers) // 2
    cores = [(own[0], own[1:]) for own in (numbers[:half], numbers[half:]) if own]
    return counts_of(wall, cores, second) if cores else None


@functools.cache
def _version(path: str) -> str:
    said = subprocess.run([path, "--version"], capture_output=True, text=True).stdout
    found = re.search(r"version (\S+)", said)
    return found[1] if found else "of unknown version"


def find_qemu(board: Board) -> Qemu | None:
    """QEMU with this board's processor, if it is here."""
    path = shutil.which(f"qemu-system-{board.system}")
    return Qemu(board.system, path) if path else None


def qemu_package(board: Board) -> str:
    return f"apt-get install {_PACKAGES[board.system]}"
