"""Layers with kernels on RISC-V's vectors, in QEMU: one program gives the bits of numpy
with registers of 128, 256 and 512 bits, by C and as an object of LLVM."""

from __future__ import annotations

import functools
import re
from dataclasses import replace

import pytest

import pybuild
from pybuild.boards.device import Device
from pybuild.boards.simulators.stand_ins import rv32_vectors
from pybuild.cli import main
from tests.boards.devices import device
from tests.boards.side_by_side import built, must_equal_numpy
from tests.kernels.kernel_cases import Case
from tests.kernels.rvv.rvv_cases import halves, others
from tests.kernels.rvv.rvv_jobs import wide_layer
from tests.kernels.vector_layers import PLAIN, layer
from tests.toolchains import ROOT, require_module

BITS = (128, 256, 512)
OPERATORS = ("conv2d", "depthwise_conv2d", "dense")


@functools.cache
def _cases(seeds: range) -> dict[str, Case]:
    found = {f"{op}{n}_": layer(op, n) for op in OPERATORS for n in seeds}
    found |= {f"{op}{n}_": layer(op, n) for op in PLAIN for n in seeds[::2]}
    found |= {f"grouped{n}_": layer("grouped", n) for n in seeds[:2]}
    more = [*halves(range(0, 3 * len(seeds), 3)), *others(seeds[:4])]
    found |= {f"other{n}_": one for n, one in enumerate(more)}
    return found | {f"wide{n}_": wide_layer(n) for n in seeds}


@functools.cache
def _library(core: str, emit: str, seeds: range) -> pybuild.Library:
    return built(_cases(seeds), core, emit)


def _with_registers(board: Device, bits: int) -> Device:
    """The same machine with longer registers: nothing of the program depends on it."""
    arguments = rv32_vectors(bits).arguments
    return replace(board, board=replace(board.board, arguments=arguments))


@pytest.mark.parametrize("bits", BITS)
@pytest.mark.parametrize("emit", ["c", "obj"])
def test_random_layers(emit: str, bits: int) -> None:
    seeds = range(6)
    library = _library("rv32imcv", emit, seeds)
    kernels = [s.candidate.func.name for s in library.plan.steps if s.candidate.func]
    assert sum("rvv" in name for name in kernels) > len(kernels) * 2 // 3
    board = _with_registers(device("riscv32-virt-v", "zig"), bits)
    must_equal_numpy(board, library, _cases(seeds))


def test_the_command_of_the_page(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    text = (ROOT / "docs" / "riscv-vectors.md").read_text()
    (words,) = re.findall(r"^crt (check .*)$", text, re.MULTILINE)
    monkeypatch.chdir(ROOT)
    require_module("ziglang")
    assert main(words.split()) == 0
    assert capsys.readouterr().out.rstrip().endswith("equal")


def test_a_core_without_floats_in_vectors() -> None:
    """Zve32x has no instruction on floats, and none on words of 64 bits."""
    board = device("riscv32-virt-v", "zig", core="rv32imc_zve32x")
    library = _library("rv32imc_zve32x", "c", range(2))
    must_equal_numpy(board, library, _cases(range(2)))
