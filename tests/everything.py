"""All tests, as `./dev test` runs them: python -m tests.everything [ARGS of pytest].
First those of the tree, then those of tests/installed with wheels, outside of it. With
paths of tests: these; of source files or rooms: what concerns them (tests/concern.py).
--quick: what concerns the files that git says changed, then all but those that
tests/quick.toml names. --all: those of minutes, too.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

from tests import compiled, wheels
from tests.concern import concern, source
from tests.conftest import models_folder
from tests.near.examples import ALL
from tests.wheels import ROOT, Setting

INSTALLED = ROOT / "tests" / "installed"
BESIDE = ("tests", "examples", "docs", "README.md", "pyproject.toml")
NONE_COLLECTED = 5
# one more than cores: some tests wait for a network or for what they started
PYTEST = ("-m", "pytest", "-q", "-n", "3", "--dist", "worksteal")
# in order, and no test begins later than these seconds
NEAR = ("--dist", "load", "--maxschedchunk", "1")
NEAR += ("-p", "tests.near.nearest", "--within")
SECONDS = 30
# all of the tree without --all; a file by its name is optimised for as a whole
SAMPLED = ("-p", "tests.near.sampled")
FEW = 12  # changed files
VALUED = {"-c", "-k", "-m", "-n", "-o", "-p", "-W", "--dist", "--durations"}


def say(text: str) -> None:
    print(f"dev: {text}", file=sys.stderr, flush=True)


def in_tree(arguments: list[str]) -> int:
    ignore = f"--ignore={INSTALLED}"
    return subprocess.run(
        [sys.executable, *PYTEST, ignore, *arguments], cwd=ROOT
    ).returncode


def quick(arguments: list[str]) -> int:
    near = "\n".join(concern(changed()).order)
    command = [*PYTEST, "-p", "tests.near.quick_run", f"--near={near}", *arguments]
    return subprocess.run([sys.executable, *command], cwd=ROOT).returncode


def changed() -> list[Path]:
    """Source files that are not as in the last commit; if all are, those of it. None
    without git, and none where so many changed that nothing is near."""
    for words in (("diff", "--name-only", "HEAD"), ("diff", "--name-only", "HEAD~1")):
        try:
            command = ["git", *words, "--", "pybuild", "crt", "boards"]
            done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
        except OSError:
            return []
        if names := done.stdout.split():
            break
    there = [ROOT / name for name in names if (ROOT / name).is_file()]
    return there if len(there) <= FEW else []


def near(places: list[Path], arguments: list[str]) -> int:
    """The tests that concern these files and rooms, the nearest first."""
    found = concern(places)
    files = [path.relative_to(ROOT).as_posix() for path in found.files]
    if not files:
        say("no test is near: ./dev test --quick")
        return NONE_COLLECTED
    say(f"tests for {SECONDS} seconds, the nearest first: {' '.join(files)}")
    order = "\n".join(found.order)
    command = [*PYTEST, *NEAR, str(SECONDS), f"--nearest={order}", *arguments]
    return subprocess.run([sys.executable, *command, *files], cwd=ROOT).returncode


def with_wheel(setting: Setting, arguments: list[str]) -> int:
    """The tests of tests/installed, from a folder that has no source of the package."""
    made = wheels.distributions()
    wheel = made.wheel if setting.sdist else made.direct
    environment = wheels.environment(setting, wheel)
    env = wheels.variables(setting, environment)
    env["CRT_MODELS"] = str(models_folder())
    env["CRT_COMPILED"] = str(compiled.folder() or "")
    with tempfile.TemporaryDirectory(prefix="crt-installed-") as folder:
        wheels.copy_tree(Path(folder), BESIDE)
        python = environment / "bin" / "python"
        command = [python, *PYTEST, "-p", "no:cacheprovider", *arguments]
        return subprocess.run(command, cwd=folder, env=env).returncode


def _split(
    arguments: Iterable[str],
) -> tuple[list[str], list[str], list[Path], list[str]]:
    """Tests of the tree, tests of tests/installed, source files, and all else."""
    tree, installed, places, rest = [], [], [], []
    before = ""
    for word in arguments:
        path = Path(word.split("::")[0]).absolute()
        is_option = word.startswith("-") or before in VALUED
        before = word
        if not is_option and (place := source(word)):
            places.append(place)
        elif is_option or not path.exists():
            rest.append(word)
        elif path.is_relative_to(INSTALLED):
            installed.append(str(Path(word).absolute().relative_to(ROOT)))
        else:
            tree.append(word)
    return tree, installed, places, rest


def main(arguments: list[str]) -> int:
    # hundreds of processes import the same modules
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    marks = ["-m", "not sweep"]
    if arguments[:1] == ["--all"]:
        marks, arguments = [], arguments[1:]
        os.environ[ALL] = "1"
    if arguments[:1] == ["--quick"]:
        return quick([*marks, *arguments[1:]])
    tree, installed, places, rest = _split(arguments)
    rest = [*marks, *rest]
    both = not tree and not installed and not places
    codes = []
    if places:
        codes.append(near(places, rest))
    if tree or both:
        sampled = SAMPLED if both and marks else ()
        codes.append(in_tree([*sampled, *rest, *tree]))
    for setting in wheels.SETTINGS if installed or both else ():
        say(f"tests of what is installed: {setting.name}")
        codes.append(with_wheel(setting, [*rest, *(installed or ["tests/installed"])]))
    if set(codes) == {NONE_COLLECTED}:
        return NONE_COLLECTED
    return max(code for code in codes if code != NONE_COLLECTED)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
