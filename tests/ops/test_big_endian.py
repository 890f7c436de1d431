"""Operator cases on s390x in QEMU, a core that stores the high byte first: they give
what they give here, or are refused, for kernels of another core read words."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from pybuild.install import crt_include
from tests.ops.suite import Files, _code, _main
from tests.ops.test_small_int import ALL, OFTEN, _families
from tests.toolchains import SOURCES, require, run

GCC, QEMU = "s390x-linux-gnu-gcc", "qemu-s390x-static"
FLAGS = ("-std=c99", "-ffp-contract=off", "-fexcess-precision=fast",
         "-ffunction-sections", "-Wl,--gc-sections", "-static")  # fmt: skip
HEADER = '#include "crt/little.h"'


def _written(names: Sequence[str], target: str, folder: Path) -> dict[str, Files]:
    made = {}
    for name in names:
        case, rounding = ALL[name]
        alone = target == "generic"
        files = _code(case, rounding, target, alone)  # type: ignore[arg-type]
        for file, text in files.items():
            (folder / file).write_text(text)
        made[name] = files
    return made


def _ran(made: dict[str, Files], names: Sequence[str], folder: Path) -> str:
    units = [folder / f for name in names for f in made[name] if f.endswith(".c")]
    (folder / "main.c").write_text(_main([*names]))
    crt = [path for path in SOURCES if path.stem != "params"]
    include = [f"-I{crt_include()}", f"-I{folder}", "-DCRT_WITH_SELFTEST"]
    program = folder / "program"
    files = [folder / "main.c", *units, *crt]
    run([require(GCC), *FLAGS, *include, *files, "-o", program])
    return run([require(QEMU), program])


@pytest.mark.parametrize(
    "names",
    [
        pytest.param((*OFTEN, *_families()), id="families"),
        pytest.param((*ALL,), id="all", marks=pytest.mark.sweep),
    ],
)
def test_cases_give_what_they_give_here(names: Sequence[str], tmp_path: Path) -> None:
    made = _written(names, "generic", tmp_path)
    assert _ran(made, names, tmp_path) == f"{len(names)} passed, 0 failed\n"


@pytest.mark.parametrize(
    "names",
    [
        pytest.param((*OFTEN, *_families()), id="families"),
        pytest.param((*ALL,), id="all", marks=pytest.mark.sweep),
    ],
)
def test_words_are_refused(names: Sequence[str], tmp_path: Path) -> None:
    """Of kernels for a Cortex-M4: each that is accepted gives the right numbers."""
    made = _written(names, "cortex-m4", tmp_path)
    refused = [name for name, files in made.items() if HEADER in files[f"{name}.c"]]
    assert refused
    for name in refused[:2]:
        words = [require(GCC), f"-I{crt_include()}", "-fsyntax-only", f"{name}.c"]
        done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode != 0 and "words are little-endian here" in done.stderr
    others = [name for name in names if name not in refused]
    assert _ran(made, others, tmp_path) == f"{len(others)} passed, 0 failed\n"
