"""docs/ecosystems.md: its commands are run where their tools are here; of the others,
what they name is there."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from pybuild import __version__
from tests.conftest import ROOT
from tests.ecosystems.platformio_core import install
from tests.ecosystems.use import STUBS, said
from tests.snippets import snippets
from tests.toolchains import require, require_module

PAGE = ROOT / "docs" / "ecosystems.md"
BLOCKS = [b for b in snippets(ROOT, PAGE) if b.said("run by")]
HERE = ("crt", "cmake", "ctest", "meson", "make")
# first words of commands for boards, or of tools that no index here has
ELSEWHERE = ("arduino-cli", "idf.py", "west", "cpackget", "cbuild", "pyocd",
             "openocd", "pio")  # fmt: skip
PROJECT = "project('firmware', 'c')\ndependency('digits', fallback: 'digits')\n"


def _commands(text: str) -> Iterator[list[list[str]]]:
    for line in text.splitlines():
        yield [shlex.split(part) for part in line.split(" && ")]


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: block.text.split()[6])
def test_three_lines(block: object, tmp_path: Path) -> None:
    text: str = block.text  # type: ignore[attr-defined]
    lines = list(_commands(text))
    assert len(lines) == 3
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    (tmp_path / "firmware").mkdir()
    (tmp_path / "firmware" / "meson.build").write_text(PROJECT)
    scripts = Path(sys.executable).parent
    path = f"{scripts}{os.pathsep}{os.environ['PATH']}"
    env = {"PATH": path, "CFLAGS": "-O0"}
    for number, words in enumerate(each for line in lines for each in line):
        assert words[0] in (*HERE, *ELSEWHERE)
        if words[0] == "crt":
            assert number == 0 and words[1] == "build"
        if words[0] == "meson":
            require_module("mesonbuild")
        is_native = words[0] == "pio" and words[-1] == "exec"
        if is_native:
            require_module("platformio")
            core = install(tmp_path / "core")
            words = [sys.executable, str(STUBS / "platformio" / "pio.py"), *words[1:]]
        if words[0] in HERE or is_native:
            if words[0] in ("cmake", "make", "ctest"):
                require(words[0])
            told = said(words, tmp_path, {**env, **(core if is_native else {})})
            assert told.strip()
        else:
            _names_what_is_there(words, tmp_path)


def _names_what_is_there(words: list[str], folder: Path) -> None:
    built = ("Arduino/", "components/", "modules/", "packs/")
    named = [word for word in words if word.startswith(built)]
    for word in named:
        assert (folder / word).exists(), word
    assert named or words[0] in ("west", "cbuild", "pyocd", "openocd", "pio")


def test_the_runtime_of_the_page_is_this_one() -> None:
    assert f"pybuild.crt.{__version__}.pack" in PAGE.read_text()
