"""Every test that docs/graph-executor.md names is there."""

from __future__ import annotations

import re
from pathlib import Path

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
