"""What the tests of boards share: builds, devices, and what this machine lacks."""

from __future__ import annotations

import functools
from pathlib import Path

import pybuild
from pybuild.boards.device import Device, open_device
from pybuild.errors import BuildError
from pybuild.targets.board import load_board
from tests.toolchains import ROOT, absent

DIGITS = ROOT / "examples" / "digits" / "digits_int8.tflite"
FLOATS = ROOT / "examples" / "digits" / "digits_f32.onnx"
# one board for each core
CORES = {
    "cortex-m3": "mps2-an385",
    "cortex-m4": "mps2-an386",
    "cortex-m7": "mps2-an500",
    "cortex-m33": "mps2-an505",
    "cortex-m33-nodsp": "mps2-an521",
    "cortex-m55": "mps3-an547",
    "rv32imc": "riscv32-virt",
    "xtensa-lx106": "esp8266-nodemcu",
    "cortex-m0": "mps2-an385",  # which runs its code, and has room for all models
}


@functools.cache
def built(path: Path, target: str) -> pybuild.Library:
    return pybuild.load(path).build(target=target)


def device(
    board: str, toolchain: str = "gcc", simulator: str = "auto", core: str = ""
) -> Device:
    """A board, or the test is skipped for want of a tool; a core that the usual
    compiler may be too old for gets one that knows it."""
    if toolchain == "gcc" and load_board(board).core.least:
        toolchain = "auto"
    try:
        return open_device(board, toolchain, simulator, core)
    except BuildError as error:
        if error.problems[0].what.startswith("there is no"):
            absent(str(error))
        raise


def library(path: Path, device: Device) -> pybuild.Library:
    """A model with the kernels of a device's core."""
    return built(path, device.core.target)


def has_unicorn(board: str) -> bool:
    return bool(load_board(board).core.unicorn)
