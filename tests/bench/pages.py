"""Which tables stand on which page of the benchmarks, and how a page begins."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.bench import (
    board_costs,
    camera_costs,
    cmsis_nn,
    costs,
    example_costs,
    flash_costs,
    keyword_costs,
    large_graphs,
    layer_costs,
    quantising,
    remote_costs,
    sharing,
    transform_costs,
    values,
)
from tests.bench.costs import Table
from tests.conftest import ROOT
from tests.fieldnets import field_costs
from tests.frontends.onnx import table as onnx_table
from tests.perf import any_layer, any_operator

DOCS = ROOT / "docs"
Measure = Callable[[], Table]


@dataclass(frozen=True)
class Page:
    """The page docs/benchmarks-NAME.md; says: what is on it, in a sentence."""

    name: str
    title: str
    says: str
    tables: tuple[Measure, ...]

    @property
    def path(self) -> Path:
        return DOCS / f"benchmarks-{self.name}.md"

    def text(self, commit: str, made: Sequence[Table]) -> str:
        parts = [
            f"# Benchmarks: {self.title}",
            f"{self.says}\nWritten by `./dev bench` of commit {commit}, as all pages "
            "of [benchmarks.md](benchmarks.md).",
            *(table.markdown().rstrip() for table in made),
        ]
        return "\n\n".join(parts) + "\n"


PAGES = (
    Page(
        "boards", "instructions on boards",
        "What an inference takes on simulated boards, counted to the instruction.",
        (
            board_costs.on_boards, board_costs.asked_of_boards,
            board_costs.by_rows_on_boards, board_costs.beside_silicon,
            board_costs.fastest_on_boards, board_costs.smallest_on_boards,
            board_costs.floats_on_boards, field_costs.instructions,
            example_costs.examples, keyword_costs.heard, keyword_costs.costs,
            keyword_costs.over_time, camera_costs.seen, camera_costs.costs,
            transform_costs.transforms,
        ),
    ),
    Page(
        "layers", "single layers",
        "What one layer takes, of each operator and of each shape.",
        (
            cmsis_nn.every_layer,
            layer_costs.single_layers, layer_costs.on_vectors,
            layer_costs.without_products,
            any_layer.any_layer, any_layer.above_ceilings, any_layer.furthest,
            any_layer.estimates, any_operator.any_operator,
        ),
    ),
    Page(
        "memory", "RAM and flash",
        "Bytes that a network takes.",
        (
            costs.memory, flash_costs.flash, costs.by_rows, costs.text,
            field_costs.rows_on_every_core, field_costs.person_ram,
            sharing.compression, sharing.shared,
        ),
    ),
    Page(
        "values", "equal values",
        "Whether results are those of LiteRT and ONNX Runtime, or how far from them.",
        (
            values.integers, values.rounds_twice, values.floats, values.qdq,
            values.qdq_checked, field_costs.equal, values.digits,
            quantising.quantised, quantising.real_ones, onnx_table.measured,
        ),
    ),
    Page(
        "seconds", "seconds",
        "What builds and runs take on one machine, by the clock.",
        (
            costs.waiting, costs.planner, field_costs.seconds, large_graphs.measured,
            large_graphs.growth, costs.speed, sharing.overhead, remote_costs.remote,
            remote_costs.bytes_of_an_inference, remote_costs.faults,
        ),
    ),
)  # fmt: skip
# what a clock measures: nothing may run beside it
CLOCKED = {
    costs.waiting, costs.planner, costs.speed, field_costs.seconds,
    large_graphs.measured, large_graphs.growth, sharing.compression, sharing.overhead,
    remote_costs.remote, remote_costs.faults, quantising.real_ones,
}  # fmt: skip
# what asks the store for each of its figures, and uses all processors itself
COUNTED = {
    *PAGES[0].tables[:8], keyword_costs.costs, keyword_costs.over_time,
    camera_costs.costs, *PAGES[1].tables,
}  # fmt: skip


def sections(page: str) -> dict[str, list[list[str]]]:
    """The rows of each table of a page, by its title, as text."""
    found = {}
    for part in re.split(r"^## ", page, flags=re.MULTILINE)[1:]:
        title, _, rest = part.partition("\n")
        lines = [line for line in rest.splitlines() if line.startswith("| ")]
        found[title] = [_cells(line) for line in lines[2:]]
    return found


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line[1:].rstrip("|").split("|")]
