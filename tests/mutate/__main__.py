"""Breaks the code in one place at a time; some test must notice each.

python -m tests.mutate [NAME...]: copies the tree, applies a mutation, runs the
tests that watch that place. Exit status 1 if a mutation survives. NAME: of a mutation,
of a list (ecosystems), or of its file (board).
--quick-sample N [SEED]: which share of N mutations `./dev test --quick` notices.
"""

from __future__ import annotations

import importlib
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain, zip_longest
from pathlib import Path

from tests import compiled

ROOT = Path(__file__).resolve().parent.parent
NONE_COLLECTED = 5
# what Python compiled is copied, too: only the file that is mutated is compiled anew
LEFT_OUT = (".git", ".venv", "build", ".*_cache")


SHARE = 0.9  # of a sample that the quick tests notice at least
# that each mutation finds its place says nothing of the code
QUICK = ("-p", "tests.near.quick_run", "-m", "not sweep",
         "--ignore=tests/house/test_mutations.py")  # fmt: skip
SURVIVED, CAUGHT = "SURVIVED", "caught  "


@dataclass(frozen=True)
class Mutation:
    """`old` becomes `new`, once, in `file`; `tests` must then fail."""

    name: str
    file: str
    old: str
    new: str
    tests: str


def _listed() -> Iterator[tuple[str, tuple[Mutation, ...]]]:
    """Every tuple in tests/mutations/, and what it is called."""
    for path in sorted((ROOT / "tests" / "mutations").rglob("*.py")):
        room = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        listed = importlib.import_module(room)
        for name, value in vars(listed).items():
            if name.isupper() and not name.startswith("_") and type(value) is tuple:
                yield f"{room}.{name}", tuple(Mutation(*words) for words in value)


LISTS = dict(_listed())
MUTATIONS = tuple(chain(*LISTS.values()))


@contextmanager
def _mutated(mutation: Mutation | None) -> Iterator[Path]:
    """A copy of the tree, as it is or with a mutation."""
    with tempfile.TemporaryDirectory(prefix="mutate-") as temporary:
        tree = Path(temporary) / "tree"
        shutil.copytree(ROOT, tree, ignore=shutil.ignore_patterns(*LEFT_OUT))
        if mutation is not None:
            _apply(mutation, tree / mutation.file)
        yield tree


def _run(tree: Path, *arguments: str) -> tuple[int, str]:
    """pytest's status and what it said, up to the first test that fails."""
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider"]
    env = {"CRT_COMPILED": str(compiled.folder() or ""), **os.environ}
    env.pop("PYTHONDONTWRITEBYTECODE", None)  # the next run takes what this compiled
    done = subprocess.run(
        [*command, *arguments], cwd=tree, capture_output=True, text=True, env=env
    )
    return done.returncode, done.stdout


def passes(tests: str, mutation: Mutation | None = None) -> bool:
    """Whether the tests pass in a copy of the tree, mutated or as it is."""
    with _mutated(mutation) as tree:
        return _run(tree, *tests.split())[0] == 0


def _apply(mutation: Mutation, file: Path) -> None:
    text = file.read_text()
    if text.count(mutation.old) != 1:
        raise SystemExit(f"{mutation.name}: its place in {mutation.file} is gone")
    file.write_text(text.replace(mutation.old, mutation.new))


# ---- what the quick tests notice --------------------------------------------


def drawn(number: int, seed: int) -> list[Mutation]:
    """So many mutations: one of each list in turn, the lists and theirs shuffled."""
    chance = random.Random(seed)
    lists = [chance.sample(values, len(values)) for values in LISTS.values()]
    chance.shuffle(lists)
    found = [m for turn in zip_longest(*lists) for m in turn if m is not None]
    return found[:number]


def _noticed_by(mutation: Mutation, tree: Path) -> tuple[str, str]:
    """The quick test that fails in a tree with the mutation, and what was near; "" if
    none does. What watches the place is first, then what is near, then all."""
    from tests.concern import concern

    near = concern([ROOT / mutation.file], without=mutation.name)
    files = [path.relative_to(ROOT).as_posix() for path in near.files]
    order = "--near=" + "\n".join(near.order)
    for some in (mutation.tests.split(), ["-n2", order, *files], ["-n2"]):
        status, said = _run(tree, *QUICK, *some)
        if status not in (0, NONE_COLLECTED):
            failed = re.search(r"(?m)^(?:FAILED|ERROR) (.+?)(?: - .*)?$", said)
            return failed[1] if failed else said[-300:], order
    return "", order


def quick_sample(number: int, seed: int = 0) -> int:
    """Says of each mutation whether the quick tests notice it; 1 if too few are. What
    fails without a mutation, too, has noticed nothing."""
    count = 0
    with _mutated(None) as as_it_is:
        for mutation in (sample := drawn(number, seed)):
            with _mutated(mutation) as tree:
                by, near = _noticed_by(mutation, tree)
            if by and _run(as_it_is, *QUICK, near, by)[0] != 0:
                print(f"without a mutation, too: {by}", flush=True)
                return 1
            count += bool(by)
            print(f"{CAUGHT if by else SURVIVED}  {mutation.name}  {by}", flush=True)
    print(f"{count} of {len(sample)} are caught by the quick tests")
    return 0 if count >= SHARE * len(sample) else 1


def chosen(names: list[str]) -> list[Mutation]:
    """Those of these names, lists and files; all without a name."""
    return [
        m for label, values in LISTS.items() for m in values
        if not names or {m.name, *label.lower().split(".")[-2:]} & {*names}
    ]  # fmt: skip


def main(names: list[str]) -> int:
    if names[:1] == ["--quick-sample"]:
        return quick_sample(*map(int, names[1:]))
    taken = chosen(names)
    if not taken:
        print(f"there is no mutation and no list {' '.join(names)}")
        return 1
    watching = sorted({test for m in taken for test in m.tests.split()})
    if not passes(" ".join(watching)):
        print("the tests fail without a mutation: nothing can be said")
        return 1
    left = 0
    for mutation in taken:
        alive = passes(mutation.tests, mutation)
        left += alive
        print(f"{SURVIVED if alive else CAUGHT}  {mutation.name}", flush=True)
    print(f"{len(taken) - left} passed, {left} failed")
    return 1 if left else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
