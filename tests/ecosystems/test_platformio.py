"""Packages in PlatformIO: packed and built by pio, without its registry."""

from __future__ import annotations

import shutil
import sys
import tarfile
from pathlib import Path

import pytest

from tests.ecosystems.platformio_core import install
from tests.ecosystems.use import FIRST, SAID, SCORES, STUBS, TWO, TWO_SAY, of, said
from tests.toolchains import require_module

PIO = STUBS / "platformio"
PROJECT = "[env:native]\nplatform = native\nlib_extra_dirs = lib\n"


@pytest.fixture(scope="module")
def core(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment of a pio that has what it would install: SCons, `native`."""
    require_module("platformio")
    require_module("SCons")
    return install(tmp_path_factory.mktemp("pio"))


def _pio(core: dict[str, str], *words: object, cwd: Path) -> str:
    return said([sys.executable, PIO / "pio.py", *words], cwd, core)


@pytest.mark.parametrize("name", ["digits", "kws", "crt"])
def test_it_is_packed(
    packages: Path, core: dict[str, str], tmp_path: Path, name: str
) -> None:
    """pio finds no fault with library.json, and takes all files."""
    out = tmp_path / "made.tar.gz"
    _pio(core, "pkg", "pack", "-o", out, packages / name, cwd=tmp_path)
    with tarfile.open(out) as archive:
        held = set(archive.getnames())
    there = {
        str(p.relative_to(packages / name)) for p in (packages / name).rglob("*.c")
    }
    assert there <= held and "library.json" in held


def test_a_wrong_one_is_not_packed(
    packages: Path, core: dict[str, str], tmp_path: Path
) -> None:
    copy = shutil.copytree(packages / "digits", tmp_path / "copy")
    text = (copy / "library.json").read_text().replace('"MIT"', '"Mine"')
    (copy / "library.json").write_text(text)
    with pytest.raises(AssertionError, match="Invalid SPDX license"):
        _pio(core, "pkg", "pack", copy, cwd=tmp_path)


def test_the_example_runs(packages: Path, core: dict[str, str], tmp_path: Path) -> None:
    place = shutil.copytree(packages, tmp_path / "lib")
    example = place / "digits" / "examples" / "program"
    made = _pio(core, "run", "-t", "exec", cwd=example)
    assert SAID + SCORES in made


@pytest.mark.parametrize("first", FIRST)
def test_two_networks_share_one_runtime(
    packages: Path, core: dict[str, str], tmp_path: Path, first: str
) -> None:
    (tmp_path / "lib").symlink_to(packages)
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "main.c").write_text(of(first, TWO))
    (tmp_path / "platformio.ini").write_text(PROJECT)
    made = _pio(core, "run", "-t", "exec", cwd=tmp_path)
    assert of(first, TWO_SAY) in made and made.count("/libcrt.a") <= 3
