"""The folder of a sweep: builds by their keys, each whole or not at all; over them the
table and the page.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pybuild.files.parse import parse_json
from pybuild.files.read import MIB, read_bytes
from pybuild.files.shape import problems_of
from pybuild.html.page import SWEEP, page, report_beside, scripts_beside
from pybuild.package.folder import write_file
from pybuild.sweeps.build import Made, plain_problems
from pybuild.sweeps.job import Job

TABLE, PAGE, BUILDS = "sweep.jsonl", "sweep.html", "builds"
# of the table and the page: one more whenever a key goes or means something else
SCHEMA = 1
# the figures of a row of which nothing is known
NOTHING: dict[str, Any] = dict.fromkeys((
    "target", "board", "ram", "flash", "code", "instructions", "cycles", "macs",
    "accuracy", "error", "command",
))  # fmt: skip
_NUMBER = {"anyOf": [{"type": "null"}, {"type": "number", "minimum": 0}]}
_TEXT = {"anyOf": [{"type": "null"}, {"type": "string"}]}
_TEXTS = ("target", "board", "command")
_FIGURES: dict[str, Any] = {
    **{name: _TEXT if name in _TEXTS else _NUMBER for name in NOTHING},
    "warnings": {"type": "array", "items": {"type": "string"}},
}
_PROBLEM = {
    "type": "object",
    "properties": {name: {"type": "string"} for name in ("where", "what", "hint")},
    "required": ["where", "what", "hint"],
    "additionalProperties": False,
}
# of a build that an earlier sweep has left, or a stranger
_ENTRY: dict[str, Any] = {
    "type": "object",
    "properties": {
        "key": {"type": "string"},
        "figures": {
            "type": "object", "properties": _FIGURES, "additionalProperties": False,
        },
        "problems": {"type": "array", "items": _PROBLEM},
        "limit": {"type": "boolean"},
        "report": _TEXT,
    },
    "required": ["key", "figures", "problems", "limit", "report"],
    "additionalProperties": False,
}  # fmt: skip


class Store:
    """Errors  BuildError for a folder that cannot be written"""

    def __init__(self, folder: Path) -> None:
        self.folder, self.builds = folder, folder / BUILDS
        for name, text in scripts_beside().items():
            if not (self.builds / name).exists():
                write_file(self.builds / name, text)

    def entry(self, key: str) -> dict[str, Any] | None:
        """The stored result of a build by an earlier sweep; None if there is none that
        can be read."""
        try:
            found = parse_json(read_bytes(self.builds / f"{key}.json", MIB))
        except (OSError, ValueError):
            return None
        if problems_of(key, found, _ENTRY) or found["key"] != key:
            return None
        report = found["report"]
        if report not in (None, f"{BUILDS}/{key}.html"):
            return None
        there = report is None or (self.folder / report).is_file()
        return found if there else None

    def keep(self, job: Job, made: Made) -> dict[str, Any]:
        """The entry of a build; its page first, for an entry promises one."""
        report = f"{BUILDS}/{job.key}.html" if made.report is not None else None
        found = {
            "key": job.key,
            "figures": dict(made.figures),
            "problems": plain_problems(made),
            "limit": made.limit,
            "report": report,
        }
        if report is not None:
            assert made.report is not None
            text = report_beside(job.name, made.report)
            write_file(self.folder / report, text)
        if made.kept:
            write_file(self.builds / f"{job.key}.json", json.dumps(found) + "\n")
        return found

    def write(self, title: str, rows: Sequence[Mapping[str, Any]]) -> None:
        """The table, a row a line, and the page."""
        lines = (json.dumps(row, ensure_ascii=True) + "\n" for row in rows)
        write_file(self.folder / TABLE, "".join(lines))
        data = {"schema": SCHEMA, "title": title, "rows": list(rows)}
        write_file(self.folder / PAGE, page(title, data, SWEEP))
