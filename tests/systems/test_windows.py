"""Windows by Wine: crt.dll of the wheel and a generated tree run there.

Wine is not Windows, and Debian has no Python for it: what Python does with the library
(ctypes, cffi, llvmlite) is not run here.
"""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.systems.trees import TARGETS, compile_tree
from tests.toolchains import absent, require, run
from tests.wheels import distributions

LOADER = """\
#include <stdio.h>
#include <windows.h>

int main(int argc, char **argv)
{
    HMODULE crt = LoadLibraryA(argc > 1 ? argv[1] : "");
    const char *(*text)(int) = NULL;
    FARPROC found = crt ? GetProcAddress(crt, "crt_strerror") : NULL;

    if (!found || !GetProcAddress(crt, "crt_accelerator"))
        return 1;
    *(FARPROC *)&text = found;
    printf("%s", text(0));
    return 0;
}
"""


@pytest.fixture(scope="module")
def prefix(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """An environment in which Wine has made its folders."""
    wine = require("wine")
    env = {**os.environ, "WINEDEBUG": "-all"}
    env["WINEPREFIX"] = str(tmp_path_factory.mktemp("wine"))
    if subprocess.run([wine, "cmd", "/c", "ver"], env=env).returncode != 0:
        absent("wine does not start")
    return env


def _said(program: Path, *arguments: str, env: dict[str, str]) -> str:
    command = ["wine", str(program), *arguments]
    done = subprocess.run(command, env=env, capture_output=True, cwd=program.parent)
    assert done.returncode == 0, done.stderr
    return done.stdout.decode().replace("\r\n", "\n")


@pytest.mark.sweep
def test_the_library_of_the_wheel_is_loaded(
    tmp_path: Path, prefix: dict[str, str]
) -> None:
    with zipfile.ZipFile(distributions().direct) as archive:
        data = archive.read("pybuild/_data/lib/win-amd64/crt.dll")
    (tmp_path / "crt.dll").write_bytes(data)
    (tmp_path / "loader.c").write_text(LOADER)
    zig = [sys.executable, "-m", "ziglang", "cc", "-target", TARGETS["win-amd64"]]
    run([*zig, "loader.c", "-o", "loader.exe"], tmp_path)
    assert _said(tmp_path / "loader.exe", "crt.dll", env=prefix) == "no error"


@pytest.mark.sweep
def test_a_tree_passes_its_self_test(tmp_path: Path, prefix: dict[str, str]) -> None:
    program = compile_tree("win-amd64", tmp_path)
    assert "digits: self-test: no error" in _said(program, env=prefix)
