"""Breaks the code in one place at a time; some test must notice each.

python -m tests.mutate [NAME...]: copies the tree, applies a mutation, runs the
tests that watch that place. Exit status 1 if a mutation survives.
"""

from __future__ import annotations

import importlib
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LEFT_OUT = (".git", ".venv", "build", "__pycache__", ".*_cache")


@dataclass(frozen=True)
class Mutation:
    """`old` becomes `new`, once, in `file`; `tests` must then fail."""

    name: str
    file: str
    old: str
    new: str
    tests: str


def _listed() -> Iterator[Mutation]:
    """Of every tuple in tests/mutations/."""
    root = Path(__file__).parent.parent
    for path in sorted((root / "tests" / "mutations").rglob("*.py")):
        name = ".".join(path.relative_to(root).with_suffix("").parts)
        listed = importlib.import_module(name)
        for name, value in vars(listed).items():
            if name.isupper() and not name.startswith("_") and type(value) is tuple:
                yield from (Mutation(*words) for words in value)


MUTATIONS = tuple(_listed())


def passes(tests: str, mutation: Mutation | None = None) -> bool:
    """Whether the tests pass in a copy of the tree, mutated or as it is."""
    with tempfile.TemporaryDirectory(prefix="mutate-") as temporary:
        tree = Path(temporary) / "tree"
        shutil.copytree(ROOT, tree, ignore=shutil.ignore_patterns(*LEFT_OUT))
        if mutation is not None:
            _apply(mutation, tree / mutation.file)
        command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider"]
        done = subprocess.run([*command, *tests.split()], cwd=tree, capture_output=True)
        return done.returncode == 0


def _apply(mutation: Mutation, file: Path) -> None:
    text = file.read_text()
    if text.count(mutation.old) != 1:
        raise SystemExit(f"{mutation.name}: its place in {mutation.file} is gone")
    file.write_text(text.replace(mutation.old, mutation.new))


def main(names: list[str]) -> int:
    chosen = [m for m in MUTATIONS if not names or m.name in names]
    watching = sorted({test for m in chosen for test in m.tests.split()})
    if not passes(" ".join(watching)):
        print("the tests fail without a mutation: nothing can be said")
        return 1
    left = 0
    for mutation in chosen:
        alive = passes(mutation.tests, mutation)
        left += alive
        print(f"{'SURVIVED' if alive else 'caught  '}  {mutation.name}", flush=True)
    print(f"{len(chosen) - left} passed, {left} failed")
    return 1 if left else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
