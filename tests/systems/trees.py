"""The tree of the digits, compiled by zig for another system; used by these tests."""

from __future__ import annotations

import sys
from pathlib import Path

import pybuild
from tests.toolchains import ROOT, require_module, run

DIGITS = ROOT / "examples" / "digits"
MODEL = DIGITS / "digits_int8.tflite"
TARGETS = {
    "linux-aarch64": "aarch64-linux-musl",
    "macos-arm64": "aarch64-macos.11.0",
    "macos-x86_64": "x86_64-macos.11.0",
    "win-amd64": "x86_64-windows-gnu",
}
FLAGS = ("-std=c99", "-O2", "-ffp-contract=off", "-DCRT_WITH_SELFTEST")
STRICT = ("-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-pedantic", "-Werror")


def compile_tree(system: str, folder: Path) -> Path:
    """A program that runs the self-test; strict warnings are errors."""
    require_module("ziglang")
    pybuild.load(MODEL).build(folder / "tree", name="digits")
    zig = [sys.executable, "-m", "ziglang", "cc", "-target", TARGETS[system]]
    static = ["-static"] if "linux" in system else []
    places = ["*.c", "crt/src/*.c", "example/main.c"]
    files = [path for place in places for path in (folder / "tree").glob(place)]
    include = [f"-I{folder / 'tree'}", f"-I{folder / 'tree' / 'crt' / 'include'}"]
    program = folder / f"digits-{system}.exe"
    run([*zig, *static, *FLAGS, *STRICT, *include, *sorted(files), "-o", program])
    return program
