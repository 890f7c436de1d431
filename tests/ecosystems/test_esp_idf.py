"""Packages as components of ESP-IDF: by its component manager, and by its rules in
CMake with a project() that stands in for its own (tests/ecosystems/esp_idf).
"""

from __future__ import annotations

import shutil
import sys
import tarfile
from pathlib import Path

import pytest

from tests.ecosystems.kconfig import settings
from tests.ecosystems.use import SAID, SCORES, STUBS, TWO, TWO_SAY, of, said
from tests.toolchains import require, require_module

COMPOTE = [sys.executable, "-m", "idf_component_manager"]
NAMES = ("crt", "digits", "floats", "kws")
LESS = "CONFIG_CRT_HOOK=n\nCONFIG_CRT_NAMES=n\n"
STUB = {"IDF_PATH": str(STUBS / "esp_idf")}


def _compote(*words: object, cwd: Path) -> str:
    require_module("idf_component_manager")
    return said([*COMPOTE, *words], cwd, {"IDF_TOOLS_PATH": str(cwd)})


@pytest.mark.parametrize("name", ["digits", "kws", "crt"])
def test_component_manager(packages: Path, tmp_path: Path, name: str) -> None:
    """It finds no fault, and packs all files; a wrong version is one."""
    copy = shutil.copytree(packages / name, tmp_path / name)
    _compote("manifest", "lint", cwd=copy)
    dest = tmp_path / "dist"
    _compote("component", "pack", "--name", name, "--dest-dir", dest, cwd=copy)
    packed = next(dest.glob(f"{name}_*.tgz"))
    with tarfile.open(packed) as archive:
        held = {Path(path).as_posix() for path in archive.getnames()}
    there = {str(p.relative_to(copy)) for p in copy.rglob("*.c")}
    assert there <= held and {"CMakeLists.txt", "idf_component.yml"} <= held
    manifest = copy / "idf_component.yml"
    manifest.write_text(manifest.read_text().replace('version: "', 'version: "x'))
    with pytest.raises(AssertionError, match="version"):
        _compote("manifest", "lint", cwd=copy)


def _build(project: Path, packages: Path, defaults: str) -> Path:
    kconfigs = [packages / name / "Kconfig" for name in NAMES]
    config = settings(kconfigs, defaults, project / "sdkconfig.cmake")
    build = project / "b"
    words = ["-S", project, "-B", build, f"-DSDKCONFIG={config}"]
    said([require("cmake"), *words], env=STUB)
    said(["cmake", "--build", build, "-j2"])
    return build


def test_the_example_runs(packages: Path, tmp_path: Path) -> None:
    """Its sdkconfig.defaults switches the self-test on."""
    place = shutil.copytree(packages, tmp_path / "components")
    example = place / "digits" / "examples" / "esp_idf"
    build = _build(example, place, (example / "sdkconfig.defaults").read_text())
    assert said([build / "digits_selftest"]) == SAID + SCORES


@pytest.mark.parametrize(
    ("first", "more"), [("digits", ""), ("kws", ""), ("digits", LESS)]
)
def test_two_networks_share_one_runtime(
    packages: Path, tmp_path: Path, first: str, more: str
) -> None:
    (tmp_path / "main").mkdir()
    register = f'idf_component_register(SRCS "main.c" REQUIRES {first} floats)\n'
    (tmp_path / "main" / "CMakeLists.txt").write_text(register)
    text = of(first, TWO).replace("int main(void)", "void app_main(void)")
    text = text.replace("    return error != CRT_OK || second != CRT_OK;\n", "")
    (tmp_path / "main" / "main.c").write_text(text)
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.16)\n"
        f'set(EXTRA_COMPONENT_DIRS "{packages}")\n'
        "include($ENV{IDF_PATH}/tools/cmake/project.cmake)\nproject(two)\n"
    )
    tests = "CONFIG_CRT_MODEL_DIGITS_SELFTEST=y\nCONFIG_CRT_MODEL_FLOATS_SELFTEST=y\n"
    build = _build(tmp_path, packages, of(first, tests) + more)
    assert said([build / "two"]) == of(first, TWO_SAY)
    library = next(build.rglob("lib__idf_crt.a"))
    hooked = "crt_graph_set_hook" in said([require("nm"), library])
    assert hooked == (not more)
