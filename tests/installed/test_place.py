"""What is tested is the wheel: no file of the checkout can be imported."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

import pybuild
from pybuild import install

pytestmark = pytest.mark.everywhere

SETTING = os.environ["CRT_SETTING"]
WHERE = "import pybuild, sys; print(pybuild.__file__, *sys.path, sep='\\n')"


def _is_source(folder: Path) -> bool:
    return (folder / "pybuild" / "_build").exists() or (folder / "meson.build").exists()


def test_pybuild_is_what_was_installed() -> None:
    assert Path(str(pybuild.__file__)).absolute().is_relative_to(sys.prefix)
    assert not install.is_checkout()
    assert importlib.metadata.version("pybuild-crt") == pybuild.__version__


def test_the_source_tree_cannot_be_found() -> None:
    assert not [path for path in sys.path if _is_source(Path(path))]
    here = Path.cwd()
    assert not [path for path in (here, *here.parents) if _is_source(path)]
    done = subprocess.run(
        [sys.executable, "-c", WHERE], capture_output=True, text=True, check=True
    )
    module, *path = done.stdout.splitlines()
    assert module == str(Path(str(pybuild.__file__)).absolute())
    assert not [place for place in path if _is_source(Path(place))]


def test_the_command_is_the_wheel_s() -> None:
    command = shutil.which("crt")
    assert command is not None and Path(command).is_relative_to(sys.prefix)
    said = subprocess.check_output(["crt", "--version"], text=True)
    assert pybuild.__version__ in said


def test_the_compiler_is_the_setting_s() -> None:
    found = install.host_compiler()
    zig = importlib.util.find_spec("ziglang") is not None
    if SETTING == "none":
        assert found == () and not zig
        with pytest.raises(OSError, match="no network"):
            socket.getaddrinfo("localhost.invalid", 80)
    elif SETTING == "zig":
        assert found == (sys.executable, "-m", "ziglang", "cc")
        assert not [name for name in ("cc", "gcc", "clang") if shutil.which(name)]
    else:
        assert found in (("cc",), ("gcc",), ("clang",)) and not zig
