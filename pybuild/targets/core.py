"""Processor cores as compilers and simulators name them: facts, no choices.

Knows no board and runs nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from pybuild.errors import BuildError, fitting


@dataclass(frozen=True)
class Core:
    """A core with its real units; without them a bare name lacks FPU or DSP.

    arch     "arm" (Thumb) or "riscv"
    target   the name in TARGETS whose kernels run on it
    runs     the cores whose code it runs too
    gcc      flags; also those of clang, after `clang`
    clang    the target
    zig      target and -mcpu
    unicorn  the simulator's model of it, "" for none
    """

    name: str
    arch: str
    target: str
    runs: tuple[str, ...]
    gcc: tuple[str, ...]
    clang: str
    zig: tuple[str, str]
    unicorn: str = ""


# the names of GNU C by architecture
GCC = {"arm": "arm-none-eabi-gcc", "riscv": "riscv64-unknown-elf-gcc"}
_M = "-mthumb"
_HARD = "-mfloat-abi=hard"
_EABI, _EABIHF = "thumb-freestanding-eabi", "thumb-freestanding-eabihf"
_RV32 = ("-march=rv32imc", "-mabi=ilp32")

CORES = {
    core.name: core
    for core in (
        Core(
            "cortex-m0", "arm", "cortex-m0", (),
            (_M, "-mcpu=cortex-m0"),
            "thumbv6m-none-eabi", (_EABI, "cortex_m0"), "CORTEX_M0",
        ),
        Core(
            "cortex-m3", "arm", "cortex-m3", ("cortex-m0",),
            (_M, "-mcpu=cortex-m3"),
            "thumbv7m-none-eabi", (_EABI, "cortex_m3"), "CORTEX_M3",
        ),
        Core(
            "cortex-m4", "arm", "cortex-m4", ("cortex-m0", "cortex-m3"),
            (_M, "-mcpu=cortex-m4", _HARD, "-mfpu=fpv4-sp-d16"),
            "thumbv7em-none-eabihf", (_EABIHF, "cortex_m4+vfp4d16sp"), "CORTEX_M4",
        ),
        Core(
            "cortex-m7", "arm", "cortex-m7", ("cortex-m0", "cortex-m3", "cortex-m4"),
            (_M, "-mcpu=cortex-m7", _HARD, "-mfpu=fpv5-sp-d16"),
            "thumbv7em-none-eabihf", (_EABIHF, "cortex_m7+fp_armv8d16sp"), "CORTEX_M7",
        ),
        Core(
            "cortex-m33", "arm", "cortex-m33",
            ("cortex-m0", "cortex-m3", "cortex-m4", "cortex-m33-nodsp"),
            (_M, "-mcpu=cortex-m33", _HARD, "-mfpu=fpv5-sp-d16"),
            "thumbv8m.main-none-eabihf",
            (_EABIHF, "cortex_m33+fp_armv8d16sp+dsp"), "CORTEX_M33",
        ),
        Core(
            "cortex-m33-nodsp", "arm", "cortex-m3", ("cortex-m0", "cortex-m3"),
            (_M, "-mcpu=cortex-m33+nodsp+nofp"),
            "thumbv8m.main-none-eabi", (_EABI, "cortex_m33-dsp"), "CORTEX_M33",
        ),
        Core(
            "cortex-m55", "arm", "cortex-m55",
            ("cortex-m0", "cortex-m3", "cortex-m4", "cortex-m7", "cortex-m33"),
            (_M, "-mcpu=cortex-m55", _HARD),
            "thumbv8.1m.main-none-eabihf", (_EABIHF, "cortex_m55+mve_fp+fp_armv8d16"),
        ),
        Core(
            "rv32imc", "riscv", "rv32imc", (),
            ("-misa-spec=2.2", *_RV32),
            "riscv32-unknown-elf",
            ("riscv32-freestanding-none", "generic_rv32+m+c+zicsr"), "SIFIVE_E31",
        ),
    )
}  # fmt: skip


def core_named(name: str) -> Core:
    """The core of that name.

    Errors  BuildError listing the known ones
    """
    if name not in CORES:
        raise BuildError("--target", f"'{name}' is no core", fitting(name, CORES))
    return CORES[name]


def linkable_with(core: Core, other: Core) -> Core:
    """`core`, with functions called as `other` calls them: code of both can be in one
    program. Its FPU is used all the same."""
    if _HARD not in core.gcc or _HARD in other.gcc:
        return core
    flags = tuple("-mfloat-abi=softfp" if f == _HARD else f for f in core.gcc)
    clang, (_, cpu) = core.clang.removesuffix("hf"), core.zig
    return replace(core, gcc=flags, clang=clang, zig=(_EABI, cpu))
