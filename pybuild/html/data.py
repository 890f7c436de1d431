"""The data of a build's page, as JSON: its report, and values that are computed only
for the page.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from itertools import pairwise
from typing import Any, Protocol

from pybuild.errors import BuildError
from pybuild.html.samples import SampleFacts
from pybuild.ir.graph import Graph, Node
from pybuild.options.table import BuildOptions
from pybuild.package.curve import Point
from pybuild.package.provenance import Origin
from pybuild.package.report import Report
from pybuild.package.totals import CODE, STACK, totals_of
from pybuild.plan.plan import Plan
from pybuild.targets.board import board_names, load_board
from pybuild.targets.chip import all_chips

# of the page's data: one more whenever a key goes or means something else
SCHEMA = 1
# layers of a graph of which other plans are computed
_MOST = 1000


class Built(Protocol):
    """The interface that a page needs; library.py's Library has it."""

    @property
    def plan(self) -> Plan: ...
    @property
    def options(self) -> BuildOptions: ...
    @property
    def model(self) -> Origin: ...
    @property
    def report(self) -> Report: ...
    @property
    def advised(self) -> Report: ...
    def again(self, **changed: Any) -> Built: ...
    def least_arena(self) -> int | None: ...
    def ram_curve(self) -> tuple[Point, ...]: ...
    def ram_point(self) -> Point: ...
    def ram_bound(self) -> int: ...


def of_report(report: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    """report: as report.json has it; more: plans, other, passes, measured, samples."""
    keys = ("plans", "other", "passes", "measured", "samples")
    return {
        "schema": SCHEMA,
        "report": report,
        "chips": _chips(report),
        **{key: more.get(key) for key in keys},
    }


def _chips(report: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The chips that run this build's code, and what of it each has room for: with the
    runtime and a stack, as `crt fit` adds them."""
    whole = totals_of(report)
    ram, flash = whole.ram + STACK, whole.flash + CODE
    target = report["target"]
    chips = [c for c in all_chips() if target in (c.core.target, "generic")]
    return [
        {"chip": c.name, "ram": c.ram.size - ram, "flash": c.flash.size - flash}
        for c in chips
        if c.core.arch != "avr"  # whose constants are in RAM, too
    ]


def of_library(
    library: Built,
    measured: Any = None,
    samples: SampleFacts | None = None,
    plans: bool = True,
) -> dict[str, Any]:
    """measured: what a board counted, as `crt bench --on BOARD --json`; plans: others
    are computed, too.
    """
    few = plans and len(library.plan.graph.nodes) <= _MOST
    return of_report(
        library.advised.to_json(),
        plans=_plans(library) if few else None,
        other=_other(library) if few else None,
        passes=_passes(library),
        measured=measured,
        samples=None if samples is None else asdict(samples),
    )


def _plans(library: Built) -> dict[str, Any] | None:
    """The plans to choose from; None if there is no choice: rows are pushed, or memory
    is in regions."""
    if library.least_arena() is None or library.plan.graph.is_placed:
        return None
    return {
        "points": [asdict(point) for point in library.ram_curve()],
        "chosen": asdict(library.ram_point()),
        "bound": library.ram_bound(),
        "boards": {name: load_board(name).ram.size for name in board_names()},
    }


def _other(library: Built) -> dict[str, Any] | None:
    """The plan that holds tensors whole beside one by rows, and the other way round."""
    locked = any(stage.links for stage in library.plan.stages)
    wanted = "whole" if locked else "rows"
    if library.plan.pushed or (not locked and library.options.plan == "rows"):
        return None
    try:
        made = library.again(plan=wanted, ram_limit=None)
    except BuildError:
        return None
    memory = made.report.to_json()["memory"]
    title = "--plan whole" if locked else "--plan rows"
    return {"title": title, "ram": asdict(made.report.ram), "memory": memory}


def _passes(library: Built) -> list[dict[str, Any]]:
    graphs = library.model.after_each_pass(library.options)
    found = []
    for (_, before), (name, after) in pairwise(graphs):
        gone, made = _changed(before, after)
        found.append(
            {"pass": name, "nodes": len(after.nodes), "gone": gone, "made": made}
        )
    return found


def _changed(before: Graph, after: Graph) -> tuple[list[Any], list[Any]]:
    """Nodes by what they make."""
    old, new = _by_output(before.nodes), _by_output(after.nodes)
    gone = [_row(n, before) for key, n in old.items() if key not in new]
    made = [_row(n, after) for key, n in new.items() if key not in old]
    return gone, made


def _by_output(nodes: Sequence[Node]) -> dict[tuple[str, ...], Node]:
    return {(node.op, *node.outputs): node for node in nodes}


def _row(node: Node, graph: Graph) -> dict[str, str]:
    return {"name": graph.called(node), "op": node.op}
