"""A report of layers and their times: table, CSV, JSON and back.

Knows rows of facts, no instance.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Self

from pybuild.executor.dump import DebugNode
from pybuild.records import dataclass

_COLUMNS = (
    "Name",
    "Duration (us)",
    "Percent",
    "Device",
    "Count",
    "Argument Shapes",
    "Op",
)


@dataclass(frozen=True)
class Report:
    """calls: one row a layer, the column's name -> a number or text"""

    calls: tuple[Mapping[str, Any], ...]
    configuration: Mapping[str, str]

    def __repr__(self) -> str:
        return f"Report({len(self.calls)} calls)"

    def table(
        self, sort: bool = True, aggregate: bool = True, col_sums: bool = True
    ) -> str:
        """sort: longest first; aggregate: one row for equal layers; col_sums: a sum"""
        rows = _aggregated(self.calls) if aggregate else list(self.calls)
        if sort:
            rows.sort(key=lambda row: -float(row["Duration (us)"]))
        if col_sums:
            rows.append(_sum(self.calls))
        texts = [
            _COLUMNS,
            *(tuple(_text(r.get(c, "")) for c in _COLUMNS) for r in rows),
        ]
        widths = [max(len(row[c]) for row in texts) for c in range(len(_COLUMNS))]
        lines = [
            "  ".join(f"{c:>{w}}" for c, w in zip(row, widths, strict=True)).rstrip()
            for row in texts
        ]
        facts = [f"{key}: {value}" for key, value in self.configuration.items()]
        return "\n".join([*lines, "", "Configuration", "-------------", *facts])

    def __str__(self) -> str:
        return self.table()

    def csv(self) -> str:
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(_COLUMNS)
        writer.writerows([row.get(c, "") for c in _COLUMNS] for row in self.calls)
        return out.getvalue()

    def json(self) -> str:
        facts = {"calls": list(self.calls), "configuration": dict(self.configuration)}
        return json.dumps(facts)

    @classmethod
    def from_json(cls, text: str) -> Self:
        facts = json.loads(text)
        return cls(tuple(facts["calls"]), facts["configuration"])


def profile_report(
    nodes: Sequence[DebugNode], seconds: Sequence[float], device: str
) -> Report:
    """seconds: of each node"""
    total = sum(seconds) or 1.0
    calls = [
        {
            "Name": node.name,
            "Op": node.op,
            "Duration (us)": spent * 1e6,
            "Percent": 100 * spent / total,
            "Count": 1,
            "Argument Shapes": ", ".join(
                f"{t.dtype.value}[{', '.join(map(str, t.shape))}]" for t in node.outputs
            ),
            "Device": device,
        }
        for node, spent in zip(nodes, seconds, strict=True)
        if node.step >= 0
    ]
    return Report(tuple(calls), {"Executor": "Graph"})


def _aggregated(calls: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    groups: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for row in calls:
        groups.setdefault((row["Op"], row["Argument Shapes"]), []).append(row)
    made = []
    for rows in groups.values():
        name = rows[0]["Name"] if len(rows) == 1 else f"{len(rows)} x {rows[0]['Op']}"
        made.append({**rows[0], **_sum(rows), "Name": name})
    return made


def _sum(rows: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    columns = ("Duration (us)", "Percent", "Count")
    there = list(rows)
    return {"Name": "Sum", **{c: sum(row[c] for row in there) for c in columns}}


def _text(value: object) -> str:
    return f"{value:,.2f}" if isinstance(value, float) else str(value)
