"""The tools that tests ask for, and what happens where one is absent.

A test without its tool is skipped with the reason; with CRT_REQUIRE=1 (CI) it
fails instead, so that nothing is left out unseen.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import NoReturn

import pytest

from pybuild.install import crt_headers, made_once

ROOT = Path(__file__).resolve().parent.parent
INCLUDE = ROOT / "crt" / "include"
SOURCES = tuple(sorted((ROOT / "crt" / "src").glob("*.c")))
STRICT = tuple(
    ["-std=c99", "-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-pedantic", "-Werror"]
)

# what is undefined ends in a trap: calls that tell what it was take as long to compile
# as all else; gcc's checks of memory are calls: in line they take half as long again
_CHECKS = ("-g1", "-fsanitize=address,undefined", "-fsanitize-undefined-trap-on-error")
SANITIZE = {
    "gcc": (*_CHECKS, "--param", "asan-instrumentation-with-call-threshold=0"),
    "clang": _CHECKS,
}


def absent(reason: str) -> NoReturn:
    """Skips the test, or fails it where everything must be there."""
    if os.environ.get("CRT_REQUIRE") == "1":
        pytest.fail(f"CRT_REQUIRE=1 and {reason}")
    pytest.skip(reason)


def require(tool: str) -> str:
    """The path of a program."""
    return shutil.which(tool) or absent(f"there is no {tool} on this machine")


def require_module(name: str) -> None:
    """A Python package, such as a reference interpreter, that may be absent."""
    if importlib.util.find_spec(name) is None:
        absent(f"the Python package {name} is not installed")


def completed(
    words: Sequence[object],
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
) -> subprocess.CompletedProcess[str]:
    """A program that succeeded, with nothing of a make that started the tests."""
    plain = {k: v for k, v in os.environ.items() if k not in ("MAKEFLAGS", "MAKELEVEL")}
    made = subprocess.run(
        [str(word) for word in words],
        cwd=cwd, capture_output=True, text=True, env={**plain, **(env or {})},
    )  # fmt: skip
    assert made.returncode == 0, made.stdout + made.stderr
    return made


def run(command: Sequence[object], cwd: Path | None = None) -> str:
    """Runs a program that must succeed; what it printed on both streams."""
    words = [str(word) for word in command]
    done = subprocess.run(
        words, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    assert done.returncode == 0, f"{' '.join(words)}\n{done.stdout}"
    return done.stdout


@cache
def runtime(compiler: str, *flags: str) -> tuple[Path, ...]:
    """crt's objects, compiled once for what they are made of, by whichever test."""
    command = [compiler, *flags, f"-I{INCLUDE}", "-c", *map(str, SOURCES)]
    content = repr((command, run([compiler, "--version"]))).encode()
    content += b"".join(path.read_bytes() for path in (*crt_headers(), *SOURCES))
    folder = made_once(content, lambda made: print(run(command, made), end=""))
    return tuple(sorted(folder.glob("*.o")))


def links(compiler: str, flags: Sequence[str], folder: Path) -> bool:
    """Whether a compiler can link with these flags (a sanitizer's run time)."""
    source = folder / "links.c"
    source.write_text("int main(void) { return 0; }\n")
    command = [compiler, *flags, str(source), "-o", str(folder / "links")]
    return subprocess.run(command, capture_output=True).returncode == 0
