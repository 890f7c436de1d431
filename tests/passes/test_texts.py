"""Passes, text in and text out: a file a case, in the folder of its pass.

A file has a graph, a line of dashes, and the graph after the pass. To add one, write
the first graph; the test prints the second.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from pybuild.ir.graph import Graph
from pybuild.ir.graph_text import parse, text
from pybuild.passes.activation import fuse_activation
from pybuild.passes.batch_norm import fuse_batch_norm
from pybuild.passes.dead import remove_dead
from pybuild.passes.fold import fold_constants
from pybuild.passes.lookups.rows import slice_known_rows
from pybuild.passes.moves.reshape import merge_reshapes, sink_reshapes
from pybuild.passes.moves.transposes import fold_transposes
from pybuild.passes.noop import remove_noops
from pybuild.passes.pad import fuse_pad
from pybuild.passes.products.heads import share_heads
from tests.passes.passes_graph import after

HERE = Path(__file__).parent
PASSES: dict[str, Callable[[Graph], Graph]] = {
    "fold_constants": fold_constants,
    "fold_transposes": fold_transposes,
    "fuse_activation": fuse_activation,
    "fuse_batch_norm": fuse_batch_norm,
    "fuse_pad": fuse_pad,
    "merge_reshapes": merge_reshapes,
    "remove_dead": remove_dead,
    "remove_noops": remove_noops,
    "share_heads": share_heads,
    "sink_reshapes": sink_reshapes,
    "slice_known_rows": slice_known_rows,
}
CASES = sorted(HERE.glob("*/*.txt"))


@pytest.mark.parametrize("case", CASES, ids=lambda p: f"{p.parent.name}/{p.stem}")
def test_a_pass(case: Path) -> None:
    given, _, wanted = case.read_text().partition("---\n")
    made = text(after(PASSES[case.parent.name], parse(given), 1e-6))
    assert made == wanted, f"{case.name} is after the pass:\n{made}"


def test_every_pass_of_the_table_has_a_case() -> None:
    assert {case.parent.name for case in CASES} == set(PASSES)
