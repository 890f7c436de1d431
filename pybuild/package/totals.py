"""What a build needs in sum: the one place that adds bytes and instructions up, so
that every verb and page shows the same numbers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from pybuild.package.report import Report
from pybuild.records import dataclass

# bytes beside those of the model, kws and ad measured on each core: crt, start-up and
# console 3.3 to 4.8 KB; stack and data 0.3 to 0.7
CODE, STACK = 5120, 1024


@dataclass(frozen=True)
class Totals:
    """ram           bytes: arena, instance and unpacked weights; exact
    flash         bytes: weights, tables and code
    code          bytes of kernels, as estimated
    instructions  of one inference, as estimated
    """

    ram: int
    flash: int
    code: int
    instructions: int


def totals(report: Report) -> Totals:
    """The sums of a build."""
    return totals_of({
        "ram": asdict(report.ram),
        "flash": asdict(report.flash),
        "code": [{"bytes": piece.bytes} for piece in report.code],
        "kernels": [{"instructions": row.instructions} for row in report.kernels],
    })  # fmt: skip


def totals_of(facts: Mapping[str, Any]) -> Totals:
    """The same, of a report.json."""
    ram, flash = facts["ram"], facts["flash"]
    code = sum(row["bytes"] for row in facts["code"])
    return Totals(
        ram=ram["arena"] + ram["instance"] + ram["unpacked"],
        flash=flash["weights"] + flash["tables"] + code,
        code=code,
        instructions=sum(row["instructions"] for row in facts["kernels"]),
    )
