"""Every test that docs/graph-executor.md names is there, and its Python runs."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "graph-executor.md").read_text()


def test_each_row_names_a_test_that_there_is() -> None:
    rows = [line for line in PAGE.splitlines() if line.startswith("| ")]
    named = re.findall(r"^\|.*\| `(test_\w+)` \|$", PAGE, re.MULTILINE)
    table = rows[rows.index("| behaviour | TVM | ours | test |") + 1 :]
    assert len(named) == len(table) > 60
    there: set[str] = set()
    for path in (ROOT / "tests").rglob("test_*.py"):
        there |= set(re.findall(r"^def (test_\w+)", path.read_text(), re.MULTILINE))
    assert sorted(set(named) - there) == []


def test_the_script_of_the_page_runs() -> None:
    (block,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    (ROOT / "build").mkdir(exist_ok=True)
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", block + "assert scores.shape == (1, 10)\n"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=env)
    assert done.returncode == 0, done.stderr
    assert "mean (ms)" in done.stdout


@pytest.mark.parametrize("block", re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL))
def test_the_commands_of_the_page_run(block: str) -> None:
    for line in block.splitlines():
        verb, *words = shlex.split(line)
        assert verb == "crt"
        command = [sys.executable, "-m", "pybuild.cli", *words]
        done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
        assert done.returncode == 0, done.stderr
