"""The wheel of a release: a library of crt for each system, and no more than that."""

from __future__ import annotations

import ctypes
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

from pybuild import install
from tests.toolchains import ROOT, require_module
from tests.wheels import EPOCH, SHIPPED, call, copy_tree, distributions

# with an empty cache zig makes the C library of each system first
pytestmark = pytest.mark.timeout(6000)

LIBRARIES = "pybuild/_data/lib/"
# format, processor, and what else has to be there to load it
KINDS = {
    "linux-aarch64/libcrt.so": ("ELF", "ARM64", {"libc.so.6"}),
    "linux-x86_64/libcrt.so": ("ELF", "X86_64", {"libc.so.6"}),
    "macos-arm64/libcrt.dylib": ("MACHO", "ARM64", {"/usr/lib/libSystem.B.dylib"}),
    "macos-x86_64/libcrt.dylib": ("MACHO", "X86_64", {"/usr/lib/libSystem.B.dylib"}),
    "win-amd64/crt.dll": ("PE", "X86_64", {"KERNEL32.dll"}),
}
OWN = "@rpath/libcrt.dylib"  # the name that a library of macOS gives itself
WINDOWS_C = "api-ms-win-crt-"  # the C library, a part of Windows 10 and 11


@pytest.fixture(scope="module")
def libraries() -> dict[str, bytes]:
    for module in ("build", "mesonpy", "ziglang", "lief"):
        require_module(module)
    with zipfile.ZipFile(distributions().direct) as archive:
        return {
            name.removeprefix(LIBRARIES): archive.read(name)
            for name in archive.namelist()
            if name.startswith(LIBRARIES)
        }


def _parsed(data: bytes) -> Any:
    import lief

    lief.logging.disable()
    return lief.parse(data)


def _names(found: Any) -> set[str]:
    """Of crt, that others may use: functions and constants."""
    is_windows = found.format.name == "PE"
    symbols = found.get_export().entries if is_windows else found.exported_symbols
    names = {str(symbol.name).removeprefix("_") for symbol in symbols}
    return {name for name in names if name.startswith("crt_")}


@pytest.mark.slow
def test_there_is_one_for_each_system(libraries: dict[str, bytes]) -> None:
    assert set(libraries) == set(KINDS)
    assert distributions().direct.name.endswith("-py3-none-any.whl")


@pytest.mark.slow
@pytest.mark.parametrize("place", KINDS)
def test_each_is_what_its_system_loads(libraries: dict[str, bytes], place: str) -> None:
    found = _parsed(libraries[place])
    kind, processor, needed = KINDS[place]
    assert found.format.name == kind
    assert found.abstract.header.architecture.name == processor
    names = {str(getattr(item, "name", item)) for item in found.libraries} - {OWN}
    # nothing of Python: any version of it loads this
    assert {name for name in names if not name.startswith(WINDOWS_C)} == needed
    here = _names(_parsed(install.host_library().read_bytes()))
    assert len(here) > 50 and _names(found) == here


@pytest.mark.slow
@pytest.mark.parametrize("place", ["linux-aarch64/libcrt.so", "linux-x86_64/libcrt.so"])
def test_an_old_glibc_is_enough(libraries: dict[str, bytes], place: str) -> None:
    """2.17, as manylinux2014 has it."""
    versions = re.findall(rb"GLIBC_2\.(\d+)", libraries[place])
    assert versions and max(map(int, versions)) <= 17


@pytest.mark.slow
def test_macos_11_is_enough_and_arm_is_signed(libraries: dict[str, bytes]) -> None:
    for place in KINDS:
        if place.startswith("macos"):
            found = _parsed(libraries[place])
            assert found.build_version.minos == [11, 0, 0]
            assert found.has_code_signature or "arm64" not in place


@pytest.mark.slow
def test_the_same_sources_give_the_same_wheel(tmp_path: Path) -> None:
    """In another folder, at another time; zig's libraries included."""
    copy_tree(tmp_path / "second" / "tree", SHIPPED)
    command = [sys.executable, "-m", "build", "-w", "-n", "-C", "systems=all"]
    environment = {**os.environ, "SOURCE_DATE_EPOCH": EPOCH}
    call([*command, "-o", tmp_path, tmp_path / "second" / "tree"], tmp_path,
         environment)  # fmt: skip
    (second,) = tmp_path.glob("*.whl")
    first = distributions().direct
    assert first.name == second.name
    assert first.read_bytes() == second.read_bytes()


@pytest.mark.slow
def test_this_machine_takes_its_own(
    libraries: dict[str, bytes], tmp_path: Path
) -> None:
    place = f"{install.system()}/{install.host_library().name}"
    if place not in libraries:
        pytest.skip(f"no library for {place}")
    library = tmp_path / "a library"
    library.write_bytes(libraries[place])
    text = ctypes.CDLL(str(library)).crt_strerror
    text.restype = ctypes.c_char_p
    assert text(0) == b"no error"


def test_another_choice_of_systems_is_refused() -> None:
    code = "import crt_backend; crt_backend.build_wheel('x', {'systems': 'linux'})"
    require_module("mesonpy")
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT / "pybuild" / "_build",
        capture_output=True,
        text=True,
    )
    assert "systems=linux: 'this' and 'all' are known" in done.stderr
