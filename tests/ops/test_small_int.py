"""An int of 16 bits: operator cases and a network on an ATmega2560 in simavr, and that
no shift is of an int; Xtensa: operator cases on an LX106 in QEMU."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import pytest

import pybuild
from pybuild.install import crt_include, crt_sources
from pybuild.targets.core import CORES
from tests.boards.devices import DIGITS
from tests.boards.programs import compiler, emulated, link_flags
from tests.ops.cases import cases
from tests.ops.suite import Files, _code, _main, c_name
from tests.toolchains import ROOT, STRICT, require, run

MCU = "atmega2560"
FLAGS = ("-mmcu=" + MCU, "-std=c99", "-Os", "-ffunction-sections", "-fdata-sections",
         "-Wl,--gc-sections", "-DCRT_WITH_SELFTEST")  # fmt: skip
ROUNDINGS = ("litert", "onnx")
# those that an int of 16 bits has spoilt, and one of each family
OFTEN = (
    "eltwise_add_far_apart_scales_int8_litert",
    "eltwise_sub_equal_scales_ties_int8_onnx",
)


def _all() -> dict[str, tuple[object, str]]:
    made = {}
    for case in cases():
        for rounding in ROUNDINGS:
            if case.is_changed_by(rounding):
                made[c_name(case, rounding)] = (case, rounding)
    return made


ALL = _all()


def _families() -> list[str]:
    """The first case of each file."""
    seen: dict[str, str] = {}
    for name in ALL:
        seen.setdefault(name.split("_")[0], name)
    return [*seen.values()]


def _written(name: str, folder: Path) -> Files:
    case, rounding = ALL[name]
    files = _code(case, rounding, "generic", alone=True)  # type: ignore[arg-type]
    for file, text in files.items():
        (folder / file).write_text(text)
    return files


def _on_avr(sources: Sequence[object], folder: Path, *flags: str) -> str:
    compiler, simulator = require("avr-gcc"), require("simavr")
    program = folder / "program.elf"
    include = [f"-I{crt_include()}", f"-I{folder}", f"-I{ROOT / 'tests' / 'ops'}"]
    run([compiler, *FLAGS, *flags, *include, *sources, *_runtime(), "-o", program])
    return run([simulator, "-m", MCU, "-f", "16000000", program])


def _runtime() -> list[Path]:
    needed = ("array", "copy", "crc", "error", "graph")
    needed += ("lockstep", "push", "run", "state")
    return [path for path in crt_sources() if path.stem in needed]


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(n, marks=() if n in OFTEN else pytest.mark.sweep)
        for n in (*OFTEN, *_families())
    ],
)
def test_a_case_where_int_has_16_bits(name: str, tmp_path: Path) -> None:
    files = _written(name, tmp_path)
    main = tmp_path / "main.c"
    main.write_text(f'#include "{name}.h"\n#include "avr_main.h"\n')
    arena = f"-DCASE_ARENA={name.upper()}_ARENA_BYTES"
    sources = [tmp_path / f for f in files if f.endswith(".c")]
    said = _on_avr([*sources, main], tmp_path, f"-DCASE={name}", arena)
    if "too large" not in said:
        assert "passed" in said


def test_a_network_on_an_atmega2560(tmp_path: Path) -> None:
    """Its constants are copied to RAM, of which there are 8 KB."""
    made = pybuild.load(DIGITS).build(target="avr", name="digits")
    for file, text in made.files().items():
        if "/" not in file and file.endswith((".c", ".h")):
            (tmp_path / file).write_text(str(text))
    main = tmp_path / "main.c"
    main.write_text('#include "digits.h"\n#include "avr_main.h"\n')
    sources = sorted(tmp_path.glob("*.c"))
    arena = "-DCASE_ARENA=DIGITS_ARENA_BYTES"
    assert "passed" in _on_avr(sources, tmp_path, "-DCASE=digits", arena)


def test_crt_compiles_where_int_has_16_bits(tmp_path: Path) -> None:
    gcc = require("avr-gcc")
    flags = ["-mmcu=" + MCU, "-std=c99", "-Os", "-Wall", "-Wextra", "-Werror"]
    run([gcc, *flags, f"-I{crt_include()}", "-c", *_runtime()], tmp_path)


_INT = re.compile(r"(?<![\w)])\d+u? << ")


def test_no_shift_is_of_an_int() -> None:
    """1 << 20 has 16 bits there; (int32_t)1 << 20 has not."""
    paths = [*crt_sources(), *sorted((ROOT / "tests" / "golden").glob("*.[ch]"))]
    found = {p.name: _INT.findall(p.read_text()) for p in paths}
    assert {name: shifts for name, shifts in found.items() if shifts} == {}


def test_cases_on_an_lx106(tmp_path: Path) -> None:
    """One of each family, in one program."""
    require("xtensa-lx106-elf-gcc")
    names = [*OFTEN, *_families()]
    units = []
    for name in names:
        files = _written(name, tmp_path)
        units.append(tmp_path / f"unit_{name}.c")
        parts = (f'#include "{f}"\n' for f in files if f.endswith(".c"))
        units[-1].write_text("".join(parts))
    main, image = tmp_path / "main.c", tmp_path / "suite.elf"
    main.write_text(_main(names))
    core = CORES["xtensa-lx106"]
    flags = [*STRICT, "-O2", "-DCRT_WITH_SELFTEST", "-Wno-conversion"]
    include = [f"-I{crt_include()}", f"-I{tmp_path}"]
    run([*compiler(core), *flags, *include, *units, main, *crt_sources(),
         *link_flags(core.name, tmp_path), "-o", image])  # fmt: skip
    said = emulated(core.name, image)
    assert said.split() == [str(len(names)), "passed,", "0", "failed"]
