"""Which tests run the function that is mutated: found once by coverage, then kept.

The nearest test files (tests/concern.py) are candidates. Each is run once without a
mutation, with coverage, and which functions it ran is kept in build/mutate by what the
file holds. Only those that run a function can notice that it is broken. Functions, not
lines: what is kept stays true when lines move. C has no map: its nearest tests run.
"""

from __future__ import annotations

import ast
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from tests import compiled
from tests.concern import concern
from tests.mutate.mutation import ROOT, Mutation
from tests.mutate.tree import NONE_COLLECTED, QUICK

KEPT = ROOT / "build" / "mutate"
MOST = 4  # test files that are run for a mutation, the nearest that run its function
LONGEST = 600.0  # seconds until the tests of a file count as failing
_CONFIG = """[run]
source = pybuild
patch = subprocess
parallel = true
data_file = {data}
"""


@dataclass(frozen=True)
class Ran:
    """What a test file ran, in which time, and whether its tests passed."""

    functions: dict[str, list[str]]
    seconds: float
    passed: bool

    def runs(self, file: str, function: str) -> bool:
        found = self.functions.get(file, [])
        return bool(found) if not function else function in found


def tests_of(mutation: Mutation) -> list[tuple[str, float]]:
    """Test files to run, and the seconds that each takes without the mutation. Files
    whose tests fail without it are left out."""
    if mutation.tests:
        return [(mutation.tests, 0.0)]
    near = concern([ROOT / mutation.file])
    files = [path.relative_to(ROOT).as_posix() for path in near.files]
    has_map = mutation.file.endswith(".py")
    found: list[tuple[str, float]] = []
    for file in files:
        ran = seen(file)
        runs = not has_map or ran.runs(mutation.file, mutation.function)
        if ran.passed and runs:
            found.append((file, ran.seconds))
        if len(found) == MOST:
            break
    return found


def order(mutation: Mutation) -> str:
    """For tests.near.quick_run: of what is dear, the tests that watch the place."""
    return "--near=" + "\n".join(concern([ROOT / mutation.file]).order)


def seen(test: str) -> Ran:
    """What the quick tests of a file run: kept, or found by running them now."""
    content = (ROOT / test).read_bytes()
    kept = KEPT / f"{hashlib.sha256(test.encode() + content).hexdigest()[:24]}.json"
    if kept.exists():
        return Ran(**json.loads(kept.read_text()))
    ran = _run(test)
    KEPT.mkdir(parents=True, exist_ok=True)
    part = kept.with_suffix(f".{os.getpid()}")
    part.write_text(json.dumps(asdict(ran)))
    part.replace(kept)
    return ran


def _run(test: str) -> Ran:
    with tempfile.TemporaryDirectory(prefix="covered-") as folder:
        config = Path(folder) / "coveragerc"
        config.write_text(_CONFIG.format(data=Path(folder) / "data"))
        env = {"CRT_COMPILED": str(compiled.folder() or ""), **os.environ}
        run = ["-m", "coverage", "run", f"--rcfile={config}", "-m", "pytest", "-q"]
        run += ["-n0", "-p", "no:cacheprovider", *QUICK, test]
        begin = time.monotonic()
        try:
            status = subprocess.run(
                [sys.executable, *run], cwd=ROOT, env=env, capture_output=True,
                timeout=LONGEST,
            ).returncode  # fmt: skip
        except subprocess.TimeoutExpired:
            return Ran({}, LONGEST, passed=False)
        seconds = time.monotonic() - begin
        return Ran(_functions(Path(folder)), seconds, status in (0, NONE_COLLECTED))


def _functions(folder: Path) -> dict[str, list[str]]:
    import coverage

    data = coverage.Coverage(config_file=str(folder / "coveragerc"))
    parts = [str(path) for path in folder.glob("data.*")]
    if not parts:
        return {}
    data.combine(parts, keep=True)
    lines = data.get_data()
    found = {}
    for name in lines.measured_files():
        ran = functions_with(Path(name).read_text(encoding="utf-8"), lines.lines(name))
        found[Path(name).relative_to(ROOT).as_posix()] = ran
    return found


def functions_with(source: str, lines: list[int] | None) -> list[str]:
    """Functions of which a line of the body is among these; "": one outside of all."""
    tree, ran = ast.parse(source), set(lines or ())
    found = [""] if ran else []
    waiting = [("", node) for node in ast.iter_child_nodes(tree)]
    for above, node in waiting:
        name = above
        if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef):
            name = f"{above}.{node.name}".lstrip(".")
            last = node.end_lineno or node.lineno
            if ran & set(range(node.body[0].lineno, last + 1)):
                found.append(name)
        waiting += [(name, inside) for inside in ast.iter_child_nodes(node)]
    return found
