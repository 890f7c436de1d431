"""Links objects with crt for a core, by GNU ld or by lld. Knows no simulator."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.toolchains import INCLUDE, SOURCES, STRICT, require, require_module, run

HERE = Path(__file__).resolve().parent
COMMON = ["-O2", "-ffp-contract=off", "-ffunction-sections", "-fdata-sections"]
LINKERS = ("gnu", "lld")


@dataclass(frozen=True)
class Core:
    """How compilers are told of a target of pybuild."""

    name: str
    gcc: tuple[str, ...]
    zig: tuple[str, ...]


def _arm(name: str, cpu: str, mcpu: str, fpu: str = "") -> Core:
    floats = ("-mfloat-abi=hard", f"-mfpu={fpu}") if fpu else ("-mfloat-abi=soft",)
    environment = "eabihf" if fpu else "eabi"
    gcc = ("arm-none-eabi-gcc", f"-mcpu={cpu}", "-mthumb", *floats)
    return Core(name, gcc, (f"thumb-freestanding-{environment}", mcpu))


CORES = {
    core.name: core
    for core in (
        _arm("cortex-m0", "cortex-m0", "cortex_m0"),
        _arm("cortex-m3", "cortex-m3", "cortex_m3"),
        _arm("cortex-m4", "cortex-m4", "cortex_m4+vfp4d16sp", "fpv4-sp-d16"),
        _arm("cortex-m7", "cortex-m7", "cortex_m7+fp_armv8d16sp", "fpv5-sp-d16"),
        _arm(
            "cortex-m33", "cortex-m33", "cortex_m33+fp_armv8d16sp+dsp", "fpv5-sp-d16"
        ),
        _arm("cortex-m55", "cortex-m55", "cortex_m55+mve_fp+fp_armv8d16", "auto"),
        Core(
            "rv32imc",
            ("riscv64-unknown-elf-gcc", "-march=rv32imc", "-misa-spec=2.2",
             "-mabi=ilp32"),
            ("riscv32-freestanding", "generic_rv32+m+c+zicsr"),
        ),
    )
}  # fmt: skip


def compiler(core: Core, linker: str) -> list[str]:
    """The C compiler that links with GNU ld or with lld."""
    if linker == "gnu":
        require(core.gcc[0])
        return [*core.gcc, "-ffreestanding"]
    require_module("ziglang")
    target, mcpu = core.zig
    zig = [sys.executable, "-m", "ziglang", "cc", "-target", target, f"-mcpu={mcpu}"]
    return [*zig, "-fhosted", "-fno-sanitize=undefined", "-fno-unwind-tables"]


def linked(
    folder: Path, core: Core, linker: str, objects: Mapping[str, bytes], *more: str
) -> Path:
    """An image of all models, `NAME_model` for each name, and runner.c."""
    image = folder / f"{core.name}-{linker}.elf"
    script = [f"-T{HERE / 'image.ld'}", "-Wl,--gc-sections", *more]
    if linker == "gnu":
        script += ["-nostdlib", "-lgcc", "-Wl,--fatal-warnings"]
    run([*compiler(core, linker), *STRICT, *COMMON, "-DCRT_NO_STRING_H", f"-I{INCLUDE}",
         *SOURCES, HERE / "runner.c", *written(folder, objects), *script,
         "-o", image])  # fmt: skip
    return image


def written(folder: Path, objects: Mapping[str, bytes]) -> list[Path]:
    """The objects as files."""
    for name, content in objects.items():
        (folder / f"{name}.o").write_bytes(content)
    return [folder / f"{name}.o" for name in objects]
