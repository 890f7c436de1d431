"""Processor cores as compilers and simulators name them: facts, no choices.

Knows no board and runs nothing.
"""

from __future__ import annotations

import re
from dataclasses import replace

from pybuild.records import dataclass


@dataclass(frozen=True)
class Core:
    """A core with its real units; without them a bare name lacks FPU or DSP.

    arch     "arm" (Thumb), "riscv", "avr"; "riscv-linux", whose programs an operating
             system runs; "xtensa", whose compilers are of one core each:
             "xtensa-esp32" is the name of another
    target   the name in TARGETS whose kernels run on it
    runs     the cores whose code it runs too
    gcc      flags; also those of clang, after `clang`
    clang    the target
    zig      target and -mcpu
    unicorn  the simulator's model of it, or of one that runs its code; "" for none
    library  GNU C's flags of the core whose run-time library is taken; (): its own
    least    compilers that know it from a version on: kind and version
    """

    name: str
    arch: str
    target: str
    runs: tuple[str, ...]
    gcc: tuple[str, ...]
    clang: str
    zig: tuple[str, str]
    unicorn: str = ""
    library: tuple[str, ...] = ()
    least: tuple[tuple[str, int], ...] = ()

    def knows(self, kind: str, version: str) -> bool:
        """True if the compiler of this kind and version has the core's instructions."""
        first = re.match(r"\d+", version)
        return int(first[0] if first else 0) >= dict(self.least).get(kind, 0)


# the names of GNU C by architecture
GCC = {
    "arm": "arm-none-eabi-gcc",
    "riscv": "riscv64-unknown-elf-gcc",
    "riscv-linux": "riscv64-linux-gnu-gcc",
    "xtensa": "xtensa-lx106-elf-gcc",
    "xtensa-esp32": "xtensa-esp32-elf-gcc",
    "xtensa-esp32s2": "xtensa-esp32s2-elf-gcc",
    "xtensa-esp32s3": "xtensa-esp32s3-elf-gcc",
    "avr": "avr-gcc",
}
_M = "-mthumb"
_HARD = "-mfloat-abi=hard"
_EABI, _EABIHF = "thumb-freestanding-eabi", "thumb-freestanding-eabihf"
_RV32IMC = ("rv32im", "rv32i", "rv32emc", "rv32ec")  # it runs these, too
_NONE = ("", "")  # zig does not compile for it


def _riscv(
    isa: str, target: str, runs: tuple[str, ...], zig: str, library: str = ""
) -> Core:
    """isa: as in -march; what is beyond the letters is not in the GNU C's libraries."""
    abi = "ilp32e" if isa.startswith("rv32e") else "ilp32"
    flags = ("-misa-spec=2.2", f"-march={isa}", f"-mabi={abi}")
    known = (flags[0], f"-march={library}", flags[2]) if library else ()
    machine = ("riscv32-freestanding-none", f"generic_rv32{zig}")
    return Core(isa, "riscv", target, runs, flags, "riscv32-unknown-elf", machine,
                "" if library else "SIFIVE_E31", known)  # fmt: skip


# whose C has the intrinsics of riscv_vector.h 1.0
_VECTORS = (("gcc", 14), ("clang", 17))


def _riscv_vectors(isa: str, abi: str, zig: str, library: str) -> Core:
    """A core with vectors, of 128 bits at least, as V has; isa: as in -march; library:
    what it has without them, of which GNU C before 14 has a run-time library, too."""
    runs = ("rv32imc", *_RV32IMC, *(("rv32imc_zve32x",) if zig == "+v" else ()))
    flags = (f"-march={isa}_zvl128b", f"-mabi={abi}")
    known = ("-misa-spec=2.2", f"-march={library}", flags[1])
    machine = ("riscv32-freestanding-none", f"generic_rv32+m+c+zicsr{zig}+zvl128b")
    return Core(isa, "riscv", isa, runs, flags, "riscv32-unknown-elf", machine,
                library=known, least=_VECTORS)  # fmt: skip


CORES = {
    core.name: core
    for core in (
        Core(
            "cortex-m0", "arm", "cortex-m0", (),
            (_M, "-mcpu=cortex-m0"),
            "thumbv6m-none-eabi", (_EABI, "cortex_m0"), "CORTEX_M0",
        ),
        Core(
            "cortex-m0plus", "arm", "cortex-m0", ("cortex-m0",),
            (_M, "-mcpu=cortex-m0plus"),
            "thumbv6m-none-eabi", (_EABI, "cortex_m0plus"), "CORTEX_M0",
        ),
        Core(
            "cortex-m23", "arm", "cortex-m0", ("cortex-m0", "cortex-m0plus"),
            (_M, "-mcpu=cortex-m23"),
            "thumbv8m.base-none-eabi", (_EABI, "cortex_m23"), "CORTEX_M33",
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
        # no GNU C of Debian 12 knows these; their instructions are those of the M55
        *(
            Core(
                name, "arm", "cortex-m55",
                ("cortex-m0", "cortex-m3", "cortex-m4", "cortex-m7", "cortex-m33",
                 "cortex-m55"),
                (_M, "-mcpu=cortex-m55", _HARD), "thumbv8.1m.main-none-eabihf",
                (_EABIHF, f"{name.replace('-', '_')}+mve_fp+fp_armv8d16"),
            )
            for name in ("cortex-m52", "cortex-m85")
        ),
        _riscv("rv32imc", "rv32imc", _RV32IMC, "+m+c+zicsr"),
        _riscv("rv32im", "rv32imc", ("rv32i",), "+m+zicsr"),
        _riscv("rv32imac", "rv32imc", ("rv32imc", *_RV32IMC), "+m+a+c+zicsr"),
        # with Zbs, too, GNU C 12 fails in its own code
        _riscv(
            "rv32imac_zba_zbb", "rv32imc", ("rv32imac", "rv32imc", *_RV32IMC),
            "+m+a+c+zicsr+zba+zbb", "rv32imac",
        ),
        _riscv("rv32i", "rv32ec", (), "+zicsr"),
        _riscv("rv32ec", "rv32ec", (), "+e+c+zicsr"),
        _riscv("rv32emc", "rv32ec", ("rv32ec",), "+e+m+c+zicsr"),
        # V has doubles, which it takes in registers of its own
        _riscv_vectors("rv32imcv", "ilp32d", "+v", "rv32imafdc"),
        _riscv_vectors("rv32imc_zve32x", "ilp32", "+zve32x", "rv32imc"),
        # application cores, whose programs run on Linux
        Core(
            "rv64gcv", "riscv-linux", "rv64gcv", (), ("-march=rv64gcv", "-mabi=lp64d"),
            "riscv64-linux-gnu", ("riscv64-linux-musl", "generic_rv64+m+a+f+d+c+v"),
            least=_VECTORS,
        ),
        Core("xtensa-lx106", "xtensa", "xtensa", (), (), "", _NONE),
        *(
            Core(n, f"xtensa-{n}", kernels, (), ("-mlongcalls",), "", _NONE)
            for n, kernels in (
                ("esp32", "esp32"), ("esp32s2", "xtensa"), ("esp32s3", "esp32"),
            )
        ),
        Core("avr", "avr", "generic", (), ("-mmcu=atmega2560",), "", _NONE),
    )
}  # fmt: skip


def linkable_with(core: Core, other: Core) -> Core:
    """`core`, with functions called as `other` calls them: code of both can be in one
    program. Its FPU is used all the same."""
    if _HARD not in core.gcc or _HARD in other.gcc:
        return core
    flags = tuple("-mfloat-abi=softfp" if f == _HARD else f for f in core.gcc)
    clang, (_, cpu) = core.clang.removesuffix("hf"), core.zig
    return replace(core, gcc=flags, clang=clang, zig=(_EABI, cpu))
