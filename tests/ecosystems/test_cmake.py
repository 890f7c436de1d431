"""Packages in CMake: found, fetched, as folders; and the flags that compilers get."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.ecosystems.use import FIRST, SAID, SCORES, TWO, TWO_SAY, of, said
from tests.toolchains import require

FIND = "find_package(digits 1.0 REQUIRED)\nfind_package(floats REQUIRED)\n"
FOLDERS = "add_subdirectory(lib/digits)\nadd_subdirectory(lib/floats)\n"
FETCH = """\
include(FetchContent)
FetchContent_Declare(digits SOURCE_DIR "${CMAKE_SOURCE_DIR}/lib/digits")
FetchContent_Declare(floats SOURCE_DIR "${CMAKE_SOURCE_DIR}/lib/floats")
FetchContent_MakeAvailable(digits floats)
"""
TESTS = ["-DDIGITS_SELFTEST=ON", "-DFLOATS_SELFTEST=ON"]


def _build(source: Path, build: Path, *words: object) -> None:
    said([require("cmake"), "-S", source, "-B", build, *words], env={"CFLAGS": "-O0"})
    said(["cmake", "--build", build, "-j2"])


def _project(folder: Path, packages: Path, how: str, first: str = "digits") -> Path:
    folder.mkdir()
    (folder / "lib").symlink_to(packages)
    (folder / "main.c").write_text(of(first, TWO))
    (folder / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.16)\nproject(user C)\n"
        f"{of(first, how)}add_executable(user main.c)\n"
        f"target_link_libraries(user {first}::{first} floats::floats)\n"
    )
    return folder


@pytest.mark.parametrize("first", FIRST)
def test_alone_tested_and_installed(packages: Path, tmp_path: Path, first: str) -> None:
    """ctest runs the example; two installed packages find one crt."""
    prefix = tmp_path / "prefix"
    for name in (first, "floats"):
        build = tmp_path / name
        _build(packages / name, build, f"-DCMAKE_INSTALL_PREFIX={prefix}")
        assert "100% tests passed" in said(["ctest"], cwd=build)
        said(["cmake", "--install", build])
    told = said([tmp_path / first / f"{first}_example"])
    assert told == SAID + SCORES or told.startswith("kws: self-test: no error\n")
    assert len(list(prefix.rglob("libcrt.a"))) == 1
    user = _project(tmp_path / "user", packages, FIND, first)
    _build(user, tmp_path / "b", f"-DCMAKE_PREFIX_PATH={prefix}")
    assert said([tmp_path / "b" / "user"]) == of(first, TWO_SAY)


@pytest.mark.parametrize("first", FIRST)
@pytest.mark.parametrize("how", [FOLDERS, FETCH], ids=["folders", "fetched"])
def test_two_networks_share_one_runtime(
    packages: Path, tmp_path: Path, how: str, first: str
) -> None:
    user = _project(tmp_path / "user", packages, how, first)
    _build(user, tmp_path / "b", *(of(first, word) for word in TESTS))
    assert said([tmp_path / "b" / "user"]) == of(first, TWO_SAY)
    assert len(list((tmp_path / "b").rglob("libcrt.a"))) == 1


def test_without_hook_and_names(packages: Path, tmp_path: Path) -> None:
    """Options of crt hold for the networks, too; the self-test stays as it is."""
    require("strings")
    user = _project(tmp_path / "user", packages, FOLDERS)
    _build(user, tmp_path / "b", *TESTS, "-DCRT_HOOK=OFF", "-DCRT_NAMES=OFF")
    assert said([tmp_path / "b" / "user"]) == TWO_SAY
    digits = next((tmp_path / "b").rglob("libdigits.a"))
    assert not {"image", "digits"} & {*said(["strings", digits]).split("\n")}
    runtime = next((tmp_path / "b").rglob("libcrt.a"))
    assert "crt_graph_set_hook" not in said([require("nm"), runtime])


NONE = "found-NOTFOUND"  # as CMake says that there is none
COMPILERS = {
    "GNU": "-ffp-contract=off", "Clang": "-ffp-contract=off",
    "AppleClang": "-ffp-contract=off", "ARMClang": "-ffp-contract=off",
    "MSVC": "/fp:strict", "IAR": NONE, "TI": NONE, "ARMCC": NONE,
}  # fmt: skip


def test_flags_that_compilers_know_and_no_others(
    packages: Path, tmp_path: Path
) -> None:
    """IAR's option is asked for: the compiler here, which is not IAR's, refuses it."""
    lines = [
        "cmake_minimum_required(VERSION 3.16)", "project(flags C)",
        f'include("{packages}/crt/cmake/crtLanguage.cmake")',
    ]  # fmt: skip
    for name in COMPILERS:
        lines += [
            f"set(CMAKE_C_COMPILER_ID {name})", f"add_library(t{name} INTERFACE)",
            f"add_library({name} STATIC main.c)", f"crt_language({name})",
            f"get_target_property(found {name} COMPILE_OPTIONS)",
            f'file(APPEND "${{CMAKE_BINARY_DIR}}/found" "{name} ${{found}}\\n")',
        ]  # fmt: skip
    (tmp_path / "CMakeLists.txt").write_text("\n".join(lines))
    (tmp_path / "main.c").write_text("")
    said([require("cmake"), "-S", tmp_path, "-B", tmp_path / "b"])
    found = (tmp_path / "b" / "found").read_text().splitlines()
    assert dict(line.split(" ") for line in found) == COMPILERS
