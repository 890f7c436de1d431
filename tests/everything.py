"""All tests, as `./dev test` runs them: python -m tests.everything [ARGS of pytest].

First those of the tree. Then those of tests/installed, in a folder outside it: with
the wheel of a release in each setting, and with the wheel of the sdist. With paths
among the arguments, only these. --all: those that take minutes, too.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

from tests import wheels
from tests.conftest import models_folder
from tests.wheels import ROOT, Setting

INSTALLED = ROOT / "tests" / "installed"
BESIDE = ("tests", "examples", "docs", "README.md", "pyproject.toml")
NONE_COLLECTED = 5
# one more than cores: some tests wait for a network or for what they started
PYTEST = ("-m", "pytest", "-q", "-n", "3", "--dist", "worksteal")


def say(text: str) -> None:
    print(f"dev: {text}", file=sys.stderr, flush=True)


def in_tree(arguments: list[str]) -> int:
    ignore = f"--ignore={INSTALLED}"
    return subprocess.run(
        [sys.executable, *PYTEST, ignore, *arguments], cwd=ROOT
    ).returncode


def with_wheel(setting: Setting, arguments: list[str]) -> int:
    """The tests of tests/installed, from a folder that has no source of the package."""
    made = wheels.distributions()
    wheel = made.wheel if setting.sdist else made.direct
    environment = wheels.environment(setting, wheel)
    env = wheels.variables(setting, environment)
    env["CRT_MODELS"] = str(models_folder())
    with tempfile.TemporaryDirectory(prefix="crt-installed-") as folder:
        wheels.copy_tree(Path(folder), BESIDE)
        python = environment / "bin" / "python"
        command = [python, *PYTEST, "-p", "no:cacheprovider", *arguments]
        return subprocess.run(command, cwd=folder, env=env).returncode


def _split(arguments: Iterable[str]) -> tuple[list[str], list[str], list[str]]:
    """Paths of the tree, paths of tests/installed, and all else."""
    tree, installed, rest = [], [], []
    for word in arguments:
        path = Path(word.split("::")[0]).absolute()
        if word.startswith("-") or not path.exists():
            rest.append(word)
        elif path.is_relative_to(INSTALLED):
            installed.append(str(Path(word).absolute().relative_to(ROOT)))
        else:
            tree.append(word)
    return tree, installed, rest


def main(arguments: list[str]) -> int:
    marks = ["-m", "not sweep"]
    if arguments[:1] == ["--all"]:
        marks, arguments = [], arguments[1:]
    tree, installed, rest = _split(arguments)
    rest = [*marks, *rest]
    both = not tree and not installed
    codes = []
    if tree or both:
        codes.append(in_tree([*rest, *tree]))
    for setting in wheels.SETTINGS if installed or both else ():
        say(f"tests of what is installed: {setting.name}")
        codes.append(with_wheel(setting, [*rest, *(installed or ["tests/installed"])]))
    if set(codes) == {NONE_COLLECTED}:
        return NONE_COLLECTED
    return max(code for code in codes if code != NONE_COLLECTED)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
