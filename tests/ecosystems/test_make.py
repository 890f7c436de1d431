"""Packages in make: their own Makefile, and NAME.mk in one of the user's."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.ecosystems.use import BOTH, SAID, SCORES, TWO, TWO_SAY, of, said
from tests.toolchains import require

PROJECT = """\
include lib/digits/digits.mk
include lib/floats/floats.mk
CPPFLAGS = $(digits_CPPFLAGS) $(floats_CPPFLAGS) $(crt_CPPFLAGS) -DCRT_WITH_SELFTEST
CFLAGS = -O0 $(crt_CFLAGS)
user: main.c $(digits_SOURCES) $(floats_SOURCES) $(crt_SOURCES)
	$(CC) $(CPPFLAGS) $(CFLAGS) -o $@ $^
"""


@pytest.mark.parametrize("first", BOTH)
def test_its_own_makefile(packages: Path, tmp_path: Path, first: str) -> None:
    require("make")
    words = ["make", "-s", "-C", packages / first, f"BUILD={tmp_path}", "CFLAGS=-O0"]
    told = said([*words, "test"])
    assert SAID + SCORES in told or "kws: self-test: no error\n" in told
    said([*words, "clean"])
    assert [*tmp_path.rglob("*")] == []


@pytest.mark.parametrize("flags", [("-mcpu=cortex-m4", "-mthumb")])
def test_for_another_core(
    packages: Path, tmp_path: Path, flags: tuple[str, ...]
) -> None:
    require("make")
    require("arm-none-eabi-gcc")
    words = ["make", "-s", "-C", packages / "digits", f"BUILD={tmp_path}"]
    said([*words, "CC=arm-none-eabi-gcc", f"CFLAGS=-O1 {' '.join(flags)}"])
    header = said(["readelf", "-h", tmp_path / "libdigits.a"])
    assert header.count("Machine:                           ARM") == 3


@pytest.mark.parametrize("first", BOTH)
def test_two_networks_share_one_runtime(
    packages: Path, tmp_path: Path, first: str
) -> None:
    """In a Makefile of the user's; crt.mk is taken in once."""
    require("make")
    (tmp_path / "lib").symlink_to(packages)
    (tmp_path / "Makefile").write_text(of(first, PROJECT))
    (tmp_path / "main.c").write_text(of(first, TWO))
    lines = said(["make"], tmp_path)
    assert said([tmp_path / "user"]) == of(first, TWO_SAY)
    assert lines.count("/crt/run.c") == 1
