"""Says what measures: the processor, versions of packages, compilers, simulators."""

from __future__ import annotations

import functools
import importlib.metadata
import platform
import re
import shutil
import subprocess
from pathlib import Path

from pybuild.boards.simulators.qemu import find_qemu
from pybuild.targets.board import load_board
from pybuild.targets.toolchain import find_toolchain
from tests.conftest import ROOT

PACKAGES = ("numpy", "llvmlite", "onnx", "onnxruntime", "ai-edge-litert", "unicorn")
COMPILERS = (
    "gcc", "arm-none-eabi-gcc", "riscv64-unknown-elf-gcc", "xtensa-lx106-elf-gcc"
)  # fmt: skip
ABSENT = "absent"


def output(*command: str | Path) -> str:
    words = [str(word) for word in command]
    return subprocess.run(words, capture_output=True, text=True).stdout.strip()


def commit() -> str:
    found = output("git", "-C", ROOT, "rev-parse", "--short", "HEAD")
    folders = ("pybuild", "crt", "boards")
    changed = output("git", "-C", ROOT, "status", "--short", "-uno", "--", *folders)
    return f"{found} and changes on top" if changed else found


def processor() -> dict[str, str]:
    """The machine that seconds are of."""
    file = Path("/proc/cpuinfo")
    text = file.read_text() if file.exists() else ""
    found = re.search(r"^model name\s*: (.*)$", text, re.MULTILINE)
    return {
        "processor": found[1] if found else platform.processor(),
        "system": f"{platform.system()} {platform.machine()}",
    }


@functools.cache
def versions() -> dict[str, str]:
    """Of all that makes or runs code."""
    from llvmlite.binding import llvm_version_info

    found = {"Python": platform.python_version()}
    found |= {name: _package(name) for name in PACKAGES}
    found["LLVM"] = ".".join(map(str, llvm_version_info))
    for tool in COMPILERS:
        there = shutil.which(tool)
        found[tool] = output(tool, "-dumpfullversion") if there else ABSENT
    zig, qemu = find_toolchain("zig", "arm"), find_qemu(load_board("mps2-an386"))
    found["zig"] = zig.version if zig else ABSENT
    found["QEMU"] = qemu.name.removeprefix("QEMU ") if qemu else ABSENT
    return found


def _package(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return ABSENT
