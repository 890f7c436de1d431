"""Packages in Meson's subprojects/, as folders and as archives, nothing downloaded."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import pybuild
from tests.conftest import ROOT
from tests.ecosystems.use import FIRST, TWO, TWO_SAY, of, said
from tests.toolchains import require_module

MESON = [sys.executable, "-m", "mesonbuild.mesonmain"]
PROJECT = """\
project('user', 'c')
digits = dependency('digits', fallback: 'digits')
floats = dependency('floats', fallback: 'floats')
executable('user', 'main.c', dependencies: [digits, floats])
"""


def _setup(project: Path, *words: str) -> str:
    require_module("mesonbuild")
    build = project / "b"
    command = [*MESON, "setup", "--wrap-mode=nodownload", "-Doptimization=0"]
    told = said([*command, *words, build, project])
    said([*MESON, "compile", "-C", build])
    return told


@pytest.mark.parametrize("first", FIRST)
def test_two_networks_share_one_runtime(
    packages: Path, tmp_path: Path, first: str
) -> None:
    (tmp_path / "subprojects").symlink_to(packages)
    (tmp_path / "meson.build").write_text(of(first, PROJECT))
    (tmp_path / "main.c").write_text(of(first, TWO))
    words = [f"-D{first}:example=enabled", "-Dfloats:selftest=enabled"]
    told = _setup(tmp_path, *words, "-Dcrt:names=false", "-Dcrt:hook=false")
    assert said([tmp_path / "b" / "user"]) == of(first, TWO_SAY)
    assert f"{first} self-test" in said([*MESON, "test", "-C", tmp_path / "b"])
    assert told.count("Project name: crt\n") == 1
    assert len(list((tmp_path / "b").rglob("libcrt.a"))) == 1


def test_from_archives(tmp_path: Path) -> None:
    """The .wrap files, with the archives where Meson looks for them."""
    model = pybuild.load(ROOT / "examples" / "digits" / "digits_int8.tflite")
    subprojects = tmp_path / "subprojects"
    library = model.build(name="digits")
    library.write_packages(subprojects, package="meson", archive=True)
    (subprojects / "packagefiles").mkdir()
    for archive in subprojects.glob("*.tar.gz"):
        archive.rename(subprojects / "packagefiles" / archive.name)
    (tmp_path / "meson.build").write_text(
        "project('user', 'c')\ndependency('digits', version: '>= 1.0')\n"
    )
    _setup(tmp_path, "-Ddigits:example=enabled")
    assert "digits self-test" in said([*MESON, "test", "-C", tmp_path / "b"])
