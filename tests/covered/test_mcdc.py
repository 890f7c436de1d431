"""MC/DC of crt is 100 %: each condition decides alone in some test of tests/crt."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.covered.mcdc import measured
from tests.crt.test_crt import HERE, PROGRAMS
from tests.toolchains import INCLUDE, SOURCES, absent


@pytest.fixture(autouse=True)
def clang() -> None:
    if shutil.which("clang-19") is None or shutil.which("llvm-cov-19") is None:
        absent("there is no clang-19 with llvm-19")


def test_each_condition_decides_alone(tmp_path: Path) -> None:
    programs = [HERE / name for name in PROGRAMS]
    shown = measured(SOURCES, programs, (INCLUDE, HERE), tmp_path)
    assert {file for file, *_ in shown} >= {"graph.c", "params.c", "rpc.c", "slots.h"}
    assert len(shown) > 200
    assert [place for place, alone in shown.items() if not alone] == []


def test_a_condition_that_never_decides_is_found(tmp_path: Path) -> None:
    source, program = tmp_path / "a.c", tmp_path / "run.c"
    source.write_text("int both(int a, int b) { return a && b; }\n")
    program.write_text(
        "int both(int a, int b);\nint main(void) { return both(0, 1) + !both(1, 1); }\n"
    )
    shown = measured([source], [program], (tmp_path,), tmp_path)
    assert shown == {("a.c", 1, 33, 1): True, ("a.c", 1, 33, 2): False}
