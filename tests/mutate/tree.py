"""Copies of the tree, with a mutation or without, and tests that run there."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests import compiled
from tests.mutate import loop_plugin
from tests.mutate.mutation import ROOT, Mutation

PASSED, NONE_COLLECTED = 0, 5
# what Python compiled is copied, too: only the file that is mutated is compiled anew
LEFT_OUT = (".git", ".venv", "build", ".*_cache")
# lines that are too long and places of mutations say nothing of what code does
HOUSE = ("--ignore=tests/house/test_mutations.py", "--ignore=tests/house/test_house.py")
# dear tests are left out, and LLVM leaves code as it was printed
QUICK = ("-p", "tests.near.quick_run", "-m", "not sweep")
LONGEST = 1800.0  # seconds of a run of tests, ten times what the dearest takes


@dataclass
class Tree:
    """A copy, and what a process needs to know of its mutation."""

    place: Path
    mutation: Mutation | None = None
    env: dict[str, str] = field(default_factory=dict)

    @property
    def is_changed(self) -> bool:
        """Whether something was: of loop IR only when its kernel was built."""
        if self.mutation is None or not self.mutation.is_loop:
            return True
        return (self.place.parent / "changed").exists()


@contextmanager
def mutated(mutation: Mutation | None) -> Iterator[Tree]:
    """A copy of the tree, as it is or with a mutation."""
    with tempfile.TemporaryDirectory(prefix="mutate-") as temporary:
        place = Path(temporary) / "tree"
        shutil.copytree(ROOT, place, ignore=shutil.ignore_patterns(*LEFT_OUT))
        tree = Tree(place, mutation)
        if mutation is not None and mutation.is_loop:
            tree.env = loop_plugin.environment(mutation, place.parent / "changed")
        elif mutation is not None:
            file = place / mutation.file
            file.write_bytes(mutation.applied(file.read_bytes()))
        yield tree


@dataclass(frozen=True)
class Outcome:
    """What pytest said, up to the first test that fails."""

    status: int
    said: str
    seconds: float

    @property
    def noticed(self) -> bool:
        """Whether a test failed, or the process did."""
        return self.status not in (PASSED, NONE_COLLECTED)

    @property
    def by(self) -> str:
        failed = re.search(r"(?m)^(?:FAILED|ERROR) (.+?)(?: - .*)?$", self.said)
        return failed[1] if failed else self.said.strip()[-200:]


def run(tree: Tree, *arguments: str, within: float = LONGEST) -> Outcome:
    """pytest, which ends when a test has failed or when time is over: that, too, is
    noticed, for a loop may have no end."""
    plugin = ["-p", "tests.mutate.loop_plugin"] if tree.env else []
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider"]
    env = {"CRT_COMPILED": str(compiled.folder() or ""), **os.environ, **tree.env}
    env.pop("PYTHONDONTWRITEBYTECODE", None)  # the next run takes what this compiled
    begin = time.monotonic()
    try:
        done = subprocess.run(
            [*command, *plugin, *HOUSE, *arguments], cwd=tree.place,
            capture_output=True, text=True, env=env, timeout=within,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return Outcome(-1, f"no end within {within:.0f} s", within)
    return Outcome(done.returncode, done.stdout, time.monotonic() - begin)
