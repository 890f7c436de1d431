"""Which lines and branches of a reader inputs reach, by coverage.py.

python -m tests.fuzzers.reached READER FOLDER: counts of the inputs of a folder, as
JSON. In a process of its own: what is imported before is not counted. With LEAST as
third word the names of inputs, of which each reaches something that no shorter one did.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path

from tests.fuzzers.outcome import Reach
from tests.toolchains import ROOT

LEAST = "least"


def reach(name: str, inputs: Path) -> Reach:
    told = json.loads(_told(name, inputs))
    return Reach(tuple(told["lines"]), tuple(told["branches"]))


def least(name: str, inputs: Path) -> list[bytes]:
    """As few of the inputs as reach what all of them do."""
    return [
        (inputs / one).read_bytes() for one in json.loads(_told(name, inputs, LEAST))
    ]


def _told(name: str, inputs: Path, *more: str) -> str:
    command = [sys.executable, "-m", "tests.fuzzers.reached", name, str(inputs), *more]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def main(words: list[str]) -> None:
    import coverage

    name, folder, *more = words
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as temporary:
        counter = coverage.Coverage(
            data_file=None, branch=True, source_pkgs=["pybuild"], config_file=False,
            messages=False,
        )  # fmt: skip
        counter.start()
        from pybuild.errors import BuildError
        from tests.fuzzers.harnesses import READERS

        reader = READERS[name]
        kept: list[str] = []
        seen = 0
        for path in sorted(Path(folder).iterdir(), key=lambda p: (p.stat().st_size, p)):
            with contextlib.suppress(BuildError):
                reader.read(path.read_bytes())
            if more:
                now = sum(_arcs(counter))
                kept += [path.name] * (now > seen)
                seen = now
        counter.stop()
        if more:
            print(json.dumps(kept))
            return
        report = Path(temporary) / "report.json"
        counter.json_report(
            outfile=str(report), include=[f"{ROOT}/{one}" for one in reader.files]
        )
        totals = json.loads(report.read_text())["totals"]
    lines = totals["covered_lines"], totals["num_statements"]
    branches = totals["covered_branches"], totals["num_branches"]
    print(json.dumps({"lines": lines, "branches": branches}))


def _arcs(counter: object) -> Iterator[int]:
    """How many pairs of lines were gone through, of each file."""
    data = counter.get_data()  # type: ignore[attr-defined]
    for file in data.measured_files():
        yield len(data.arcs(file) or ())


if __name__ == "__main__":
    main(sys.argv[1:])
