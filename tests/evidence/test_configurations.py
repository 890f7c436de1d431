"""Each switch of config.h and each pair: compiles clean, passes its C tests; where
unsigned numbers go below zero in crt, which clang's -fsanitize=integer counts."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path

import pytest

from tests.crt.test_crt import HERE, PROGRAMS
from tests.toolchains import INCLUDE, SOURCES, STRICT, absent, require, run, runtime

NAMES = sorted(
    re.findall(r"^ \* (CRT_NO_\w+)", (INCLUDE / "crt" / "config.h").read_text(), re.M)
)
# of headers that crt itself does not read: tests/perf/test_without_assembly.py
OF_KERNELS = "CRT_NO_ASM"
OWN = [name for name in NAMES if name != OF_KERNELS]
ALONE, PAIRS = [(name,) for name in OWN], [*combinations(OWN, 2)]
# of a pair every third of the programs runs; in all tests each
THIRD = 3
# file -> what a line there counts on: arithmetic modulo 2^32, as C99 6.2.5 has it
TURNS = ("hmac.c", "left shift")
WRAPS = {
    "array.c": "the distance of two addresses, whichever is lower",
    "crc.c": "while (bytes-- > 0)",
    "hmac.c": "SHA-256 adds modulo 2^32",
    "rpc.c": "numbers of calls without a key begin anew behind 2^32 - 1",
    "run.c": "rows above row 0 are huge numbers; operands are counted up to zero",
    "timing.c": "a counter of ticks that has gone round",
}


def test_the_switches_are_those_of_the_comment() -> None:
    used = {
        name
        for path in (*SOURCES, *(INCLUDE / "crt").glob("*.h"))
        for line in re.findall(r"^#if.*", path.read_text(), re.M)
        for name in re.findall(r"CRT_NO_\w+", line)
    }
    assert used == set(NAMES)


@pytest.mark.parametrize(
    "switches",
    [
        *ALONE,
        *(pytest.param(pair, marks=pytest.mark.sweep) for pair in PAIRS),
    ],
    ids="-".join,
)
def test_it_compiles_clean_with_clang(switches: tuple[str, ...]) -> None:
    """Pairs in each run by gcc, below."""
    told = [f"-D{name}" for name in switches]
    include = ["-I", INCLUDE]
    run([require("clang"), *STRICT, *told, *include, "-fsyntax-only", *SOURCES])


# @req config.h:CRT_NO_HOOK, config.h:CRT_NO_RPC, config.h:CRT_NO_NAMES
# @req config.h:CRT_NO_STRING_H
@pytest.mark.parametrize("switches", ALONE, ids="-".join)
def test_it_passes_its_tests(switches: tuple[str, ...], tmp_path: Path) -> None:
    _pass(switches, PROGRAMS, tmp_path)


@pytest.mark.parametrize(
    "turn", [0, *(pytest.param(n, marks=pytest.mark.sweep) for n in range(1, THIRD))]
)
@pytest.mark.parametrize("switches", PAIRS, ids="-".join)
def test_pairs_pass_its_tests(
    switches: tuple[str, str], turn: int, tmp_path: Path
) -> None:
    first = (PAIRS.index(switches) + turn) % THIRD
    _pass(switches, PROGRAMS[first::THIRD], tmp_path)


def _pass(switches: Sequence[str], programs: Sequence[str], folder: Path) -> None:
    gcc = require("gcc")
    flags = [*STRICT, *(f"-D{name}" for name in switches), f"-I{HERE}"]
    objects = runtime(gcc, *flags)
    for program in programs:
        made = folder / Path(program).stem
        run([gcc, *flags, "-I", INCLUDE, HERE / program, *objects, "-o", made])
        assert run([made]) == ""


def test_unsigned_numbers_wrap_where_it_is_meant(tmp_path: Path) -> None:
    clang = shutil.which("clang-19") or absent("there is no clang-19")
    checks = ["-std=c99", "-g", "-fsanitize=integer", "-I", INCLUDE]
    run([clang, *checks, "-c", *SOURCES], cwd=tmp_path)
    objects = sorted(tmp_path.glob("*.o"))
    said = ""
    for program in PROGRAMS:
        made = tmp_path / "test"
        run([clang, *checks, "-I", HERE, HERE / program, *objects, "-o", made])
        done = subprocess.run([made], capture_output=True, text=True)
        assert done.returncode == 0
        said += done.stderr
    found = re.findall(r"crt/src/(\w+\.c):\d+:\d+: runtime error: (.*)", said)
    assert {file for file, _ in found} == set(WRAPS)
    # SHA-256 turns words, whose upper bits a shift drops
    said_of = {what.split(":")[0] for file, what in found if (file, what[:10]) != TURNS}
    assert said_of == {"unsigned integer overflow"}
