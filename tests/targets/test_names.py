"""Names of processors: each gives kernels and flags, and its code compiles and runs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import pybuild
from pybuild.boards.check import check_on_board
from pybuild.boards.device import open_device
from pybuild.emit.llvm.object import object_file
from pybuild.errors import BuildError
from pybuild.install import crt_include
from pybuild.targets.core import CORES, GCC
from pybuild.targets.llvm import llvm_named
from pybuild.targets.names import OTHERS, core_named, hint_for, target_named
from pybuild.targets.target import TARGETS
from tests.boards.devices import DIGITS
from tests.toolchains import STRICT, require, run

# what people type, the target whose kernels they get, and a flag of its compiler
TYPED = [
    ("cortex-m0plus", "cortex-m0", "-mcpu=cortex-m0plus"),
    ("cortex-m0+", "cortex-m0", "-mcpu=cortex-m0plus"),
    ("cortex-m23", "cortex-m0", "-mcpu=cortex-m23"),
    ("cortex-m4f", "cortex-m4", "-mfpu=fpv4-sp-d16"),
    ("cortex-m33-nodsp", "cortex-m3", "-mcpu=cortex-m33+nodsp+nofp"),
    ("cortex-m85", "cortex-m55", "-mcpu=cortex-m55"),
    ("rv32imac", "rv32imc", "-march=rv32imac"),
    ("hazard3", "rv32imc", "-march=rv32imac_zba_zbb"),
    ("rv32imac_zicsr_zifencei_zba_zbb_zbs_zbkb", "rv32imc", "-march=rv32imac_zba_zbb"),
    ("rv32ec", "rv32ec", "-mabi=ilp32e"),
    ("esp32", "esp32", "-mlongcalls"),
    ("esp32s2", "xtensa", "-mlongcalls"),
    ("esp32s3", "esp32", "-mlongcalls"),
    ("avr", "generic", "-mmcu=atmega2560"),
    ("nrf51822", "cortex-m0", "-mcpu=cortex-m0"),
]


@pytest.mark.parametrize(("name", "target", "flag"), TYPED)
def test_a_name_is_kernels_and_flags(name: str, target: str, flag: str) -> None:
    assert target_named(name) is TARGETS[target]
    assert flag in core_named(name).gcc
    made = pybuild.load(DIGITS).build(target=name)
    assert made.options.target == name
    core = core_named(name)
    assert f"make CC={GCC[core.arch]} " in str(made.files()["Makefile"])
    assert flag in str(made.files()["Makefile"])


@pytest.mark.parametrize(
    ("isa", "core"),
    [("rv32ima_zicsr_zifencei_zba_zbb_zbs_zbkb_zca_zcb_zcmp", "rv32imac_zba_zbb"),
     ("rv32imafc_zicsr", "rv32imac"), ("rv32gc", "rv32imac"), ("rv32ima", "rv32im"),
     ("rv32gcv", "rv32imcv"), ("rv32imc_zve32x_zvl256b", "rv32imc_zve32x"),
     ("rv32imc_zve32x_zvl64b", "rv32imc"), ("rv32emac_zicsr", "rv32emc")],
)  # fmt: skip
def test_what_gcc_takes_as_march_is_the_nearest_core(isa: str, core: str) -> None:
    """It has no instruction that the named one lacks."""
    assert core_named(isa) is CORES[core]


@pytest.mark.parametrize("name", ["rv32", "rv32c", "rv32imcx", "rv64gc", "rv32e"])
def test_no_core_is_guessed(name: str) -> None:
    with pytest.raises(BuildError, match="is not a core"):
        core_named(name)


def test_each_name_has_a_core_that_has_kernels() -> None:
    assert set(OTHERS.values()) <= set(CORES)
    assert not set(OTHERS) & {*CORES, *TARGETS}
    for core in CORES.values():
        assert core.target in TARGETS and core.arch in GCC


def test_the_hint_names_all() -> None:
    for name in (*CORES, *TARGETS, *OTHERS):
        assert f" {name}" in hint_for("z80")
    with pytest.raises(BuildError, match="did you mean 'cortex-m0plus'"):
        target_named("cortexm0plus")


def _compiles(name: str) -> bool:
    return core_named(name).arch in ("arm", "riscv", "xtensa")


@pytest.mark.parametrize("name", [n for n in CORES if _compiles(n)])
def test_its_compiler_takes_the_kernels(name: str, tmp_path: Path) -> None:
    core = core_named(name)
    compiler = require(GCC[core.arch])
    for file, text in pybuild.load(DIGITS).build(target=name).sources().items():
        (tmp_path / file).write_text(str(text))
    flags = (*core.gcc, *STRICT, "-O2", "-ffreestanding", "-DCRT_NO_STRING_H")
    sources = sorted(str(p) for p in tmp_path.glob("*.c"))
    run([compiler, *flags, f"-I{crt_include()}", "-c", *sources], tmp_path)


def test_an_object_for_the_core_that_was_named() -> None:
    made = pybuild.load(DIGITS).build(target="cortex-m23", emit="obj")
    whole, plain = (
        object_file(made.tables, llvm_named(name), "balanced")
        for name in ("cortex-m23", "cortex-m0")
    )
    assert made.compiled()[f"{made.report.name}.o"] == whole != plain
    with pytest.raises(BuildError, match="not made for the target 'esp32'"):
        llvm_named("esp32")


# a board whose core runs the code of another, and that
RUNS = [
    ("riscv32-virt", "rv32ec"),
    pytest.param("riscv32-virt", "rv32emc", marks=pytest.mark.sweep),
    pytest.param("riscv32-virt", "rv32i", marks=pytest.mark.sweep),
    ("riscv32-virt", "rv32im"),
]


@pytest.mark.parametrize(("board", "core"), RUNS)
def test_its_code_runs(board: str, core: str) -> None:
    require(GCC["riscv"])
    device = open_device(board, "gcc", core=core)
    made = pybuild.load(DIGITS).build(target=core)
    done = check_on_board(device, made, DIGITS, 2)
    assert done.result.ok
    assert replace(device.core, runs=()).name == core
