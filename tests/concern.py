"""Which tests concern a source file or a room, the nearest first: read anew each time
from tests/near/watched.toml, what mutations by hand name, what files import and where
they lie. Of order.py: tests that watch it, test_order*.py, then by imports to it.
"""

from __future__ import annotations

import ast
import functools
import re
import tomllib
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TESTS = ROOT / "tests"
WATCHED = TESTS / "near" / "watched.toml"
# what a word may leave out: `plan` and `kernels/dsp` are rooms of pybuild
ABOVE = (ROOT, ROOT / "pybuild")
BESIDE = 3  # as far as a file of the folder that mirrors a room is at most
FAR = 99
# also those in scripts that are strings; parsing all files takes seconds
_IMPORT = re.compile(
    r"(?m)^[ \t]*((?:import|from)[ ][\w., ]+(?:\([^)]*\)|\*)?)[ ]*(?=#|;|$)"
)
MOST = 16  # test files: collecting all of them takes longer than running the nearest


@dataclass(frozen=True)
class Concern:
    """named  tests that watch them: `FILE::TEST`, or `FILE WORD` for `-k WORD`
    files  test files, the nearest first"""

    named: tuple[str, ...]
    files: tuple[Path, ...]

    @property
    def order(self) -> tuple[str, ...]:
        """For --nearest of tests/near/nearest.py."""
        files = (path.relative_to(ROOT).as_posix() for path in self.files)
        return (*self.named, *files)


def source(word: str) -> Path | None:
    """The source file or room that is meant, or a table that tests read; None for
    tests and all else."""
    for above in (Path.cwd(), *ABOVE):
        path = (above / word).resolve()
        if path.exists() and path.is_relative_to(ROOT):
            is_test = path.is_dir() or path.suffix == ".py"
            return None if is_test and path.is_relative_to(TESTS) else path
    return None


def concern(places: Iterable[Path]) -> Concern:
    """Of source files, and of all files in folders."""
    wanted = {file for place in places for file in _files(place)}
    if not wanted:
        return Concern((), ())
    named = _named(wanted)
    first = {ROOT / words.split()[0].partition("::")[0] for words in named}
    far = _distances(wanted)
    ranks = {
        test: 0.0 if test in first else _rank(test, wanted, far.get(test, FAR))
        for test in _files(TESTS)
        if test.name.startswith("test_") and test.suffix == ".py"
    }
    nearest = sorted((rank, test) for test, rank in ranks.items() if rank < FAR)
    return Concern(tuple(named), tuple(test for _, test in nearest[:MOST]))


def _files(place: Path) -> Iterator[Path]:
    for path in (place, *sorted(place.rglob("*"))):
        if path.is_file() and "__pycache__" not in path.parts:
            yield path


def _rank(test: Path, wanted: Iterable[Path], far: float) -> float:
    return min(_by_place(test, file, far) for file in wanted)


def _by_place(test: Path, file: Path, far: float) -> float:
    """tests/plan mirrors pybuild/plan, tests/plan/test_order_ties.py its order.py, as
    test_tflite_recurrent.py does any recurrent.py."""
    room = file.relative_to(ROOT).parent.parts
    room = room[1:] if room[:1] in (("pybuild",), ("tests",)) else room
    folder = test.relative_to(TESTS).parent.parts
    mirrors = bool(folder) and room[: len(folder)] == folder
    if f"_{file.stem}_" in f"{test.stem}_":
        far = min(far, 1)
    return min(far, BESIDE) - 0.5 if mirrors else far


def _named(files: Iterable[Path]) -> list[str]:
    """What the table of watched files and mutations of these files name."""
    from tests.mutate.handmade import entries

    wanted = {file.relative_to(ROOT).as_posix() for file in files}
    named: dict[str, None] = {}
    table = tomllib.loads(_text(WATCHED))
    for file in sorted(wanted & set(table)):
        named |= dict.fromkeys(table[file])
    for entry in entries():
        if entry["file"] in wanted:
            tests, _, rest = entry["tests"].partition(" -k ")
            key = rest.split()[0] if rest else ""
            places = (word for word in tests.split() if word.startswith("tests/"))
            named |= dict.fromkeys(f"{place} {key}".strip() for place in places)
    return list(named)


# ---- imports --------------------------------------------------------------


def _distances(wanted: set[Path]) -> dict[Path, int]:
    """The least number of imports from a file to one that is wanted. What is not Python
    is imported by those that have its name in a string."""
    importers = _importers(wanted)
    found = dict.fromkeys(wanted, 0)
    edge = list(wanted)
    while edge:
        beyond = {by for file in edge for by in importers[file]} - set(found)
        found |= dict.fromkeys(beyond, found[edge[0]] + 1)
        edge = list(beyond)
    return found


def _importers(wanted: Iterable[Path]) -> dict[Path, set[Path]]:
    others = {file.name: file for file in wanted if file.suffix != ".py"}
    modules = {
        _module(path): path
        for top in ("pybuild", "tests")
        for path in sorted((ROOT / top).rglob("*.py"))
    }
    found: dict[Path, set[Path]] = defaultdict(set)
    for module, path in modules.items():
        for name in _imports(module, path):
            there = modules.get(name) or modules.get(name.rpartition(".")[0])
            if there is not None:
                found[there].add(path)
        for name, other in others.items():
            if name in _text(path):
                found[other].add(path)
    return found


def _module(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts).removesuffix(".__init__")


@functools.cache
def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


@functools.cache
def _imports(module: str, path: Path) -> tuple[str, ...]:
    """Full names; of `from a import b` both could be meant: a.b."""
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    found: list[str] = []
    for statement in _IMPORT.findall(_text(path)):
        try:
            (node,) = ast.parse(statement.strip()).body
        except SyntaxError:  # prose
            continue
        if isinstance(node, ast.Import):
            found += (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) - node.level + 1]
            base = [*(above if node.level else ()), *filter(None, [node.module])]
            found += (".".join([*base, alias.name]) for alias in node.names)
    return tuple(found)
