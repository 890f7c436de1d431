"""Every byte that a step reads is the one that was written for it: plans of random
graphs, run on memory that knows of each byte whose it is. No kernel is compiled.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given

from pybuild.errors import BuildError
from pybuild.ir.graph import Graph
from pybuild.kernels.base.candidate import RowAccess
from pybuild.library import Library
from pybuild.plan.buffers.sharing import find_views
from pybuild.plan.plan import Step
from pybuild.plan.schedule.stages import Stage
from tests.graphs.rows import model_of, narrowing, row_graphs, tiny
from tests.plan.test_rows import quick

WAYS: tuple[dict[str, Any], ...] = (
    {},
    {"input": "keep"},
    {"input": "consumable"},
    {"plan": "whole"},
    {"push": ["x"]},
)
LITTLE: tuple[dict[str, Any], ...] = (
    {"optimise": "size"},
    {"optimise": "size", "target": "cortex-m4"},
    {"optimise": "size", "plan": "whole"},
)
NOBODY, COUNTS = -1, -2


class Memory:
    """The arena and lazy tensors; of each byte, whose it is."""

    def __init__(self, library: Library) -> None:
        self.plan = library.plan
        self.graph = self.plan.graph
        self.views = find_views(self.graph)
        self.bytes = {
            n: np.full(r.bytes, NOBODY) for n, r in enumerate(self.plan.regions)
        }
        self.lazy = {
            n: np.full(self.graph.tensor(n).bytes, NOBODY) for n in self.plan.lazy
        }
        self.first: dict[str, int] = {}
        self.size = 0

    def whose(self, access: RowAccess, row: int) -> np.ndarray:
        """A number of each byte of a row, of all views of the tensor alike."""
        name, at = access.tensor, 0
        if name in self.graph.tensors:
            view = self.views.of(name)
            name, at = view.root, view.at
        if name not in self.first:
            self.first[name] = self.size
            self.size += 1 << 32
        start = self.first[name] + at + row * access.row_bytes
        return np.arange(start, start + access.row_bytes)

    def where(self, access: RowAccess, row: int) -> np.ndarray:
        """The bytes of a row, to be read or written."""
        place = self.plan.places[access.tensor]
        ring = self.plan.rings.get(access.tensor)
        if place.region >= 0:
            memory, at = self.bytes[place.region], place.home
        else:
            memory, at = self.lazy[place.buffer], place.at
        pitch = ring.pitch if ring else access.row_bytes
        at += row % (ring.rows if ring else access.rows) * pitch
        found = memory[at : at + access.row_bytes]
        assert len(found) == access.row_bytes, f"{access.tensor}: row {row} is outside"
        return found

    def write(self, access: RowAccess, band: int) -> None:
        for row in rows_of(access, band):
            self.where(access, row)[:] = self.whose(access, row)

    def read(self, access: RowAccess, band: int) -> None:
        for row in rows_of(access, band):
            same = self.where(access, row) == self.whose(access, row)
            assert same.all(), f"{access.tensor}: row {row} is not there"

    def run(self, step: Step, band: int) -> None:
        """One band."""
        candidate = step.candidate
        for access in candidate.inputs:
            self.read(access, band)
        if candidate.scratch:
            at = step.scratch_at
            used = self.bytes[step.scratch_region][at : at + candidate.scratch]
            assert len(used) == candidate.scratch
            used[:] = NOBODY
        for access in candidate.outputs:
            self.write(access, band)


def rows_of(access: RowAccess, band: int) -> Iterator[int]:
    first = band * access.stride - access.pad
    return (r for r in range(first, first + access.window) if 0 <= r < access.rows)


def in_lockstep(stage: Stage, steps: tuple[Step, ...]) -> Iterator[tuple[Step, int]]:
    """Steps and bands as crt/lockstep.c takes them: each as late as readers allow."""
    done = [0] * (len(steps) + 1)

    def make(step: int) -> Iterator[tuple[Step, int]]:
        while missing := [
            link.maker
            for link in stage.links
            if link.reader == step
            and done[link.maker] * link.made
            < min(done[step] * link.stride + link.ahead, link.rows)
        ]:
            yield from make(missing[0])
        yield steps[step - 1], done[step]
        done[step] += 1

    for last in range(len(steps), 0, -1):
        while done[last] < steps[last - 1].candidate.bands:
            yield from make(last)


def check(library: Library) -> None:
    """Runs the plan on such a memory; then all outputs must be there."""
    memory, plan = Memory(library), library.plan
    graph = plan.graph
    if any(step.candidate.images != 1 for step in plan.steps):
        return
    for name in set(graph.inputs) - plan.pushed:
        memory.write(all_of(graph, name), 0)
    for stage in plan.stages:
        steps = plan.steps[stage.first : stage.end]
        if stage.links:
            counters = memory.bytes[0][plan.counters :][: 2 * len(steps)]
            counters[:] = COUNTS
            for step, band in in_lockstep(stage, steps):
                memory.run(step, band)
                assert (counters == COUNTS).all(), "a counter is overwritten"
            continue
        for step in steps:
            for band in range(step.candidate.bands):
                memory.run(step, band)
    for name in graph.outputs:
        memory.read(all_of(graph, name), 0)


def all_of(graph: Graph, name: str) -> RowAccess:
    return RowAccess(name, 1, graph.tensor(name).bytes)


def built(graph: Graph, how: dict[str, Any]) -> Library | None:
    try:
        return model_of(graph).build(**how)
    except BuildError as error:
        assert "is not read row by row" in str(error)
        return None


def is_kept(graph: Graph, ways: Sequence[dict[str, Any]]) -> None:
    for how in ways:
        library = built(graph, how)
        if library is not None:
            check(library)


@given(row_graphs())
@example(narrowing())
@example(tiny())
@quick(10)
def test_rows_are_there_until_they_are_read(graph: Graph) -> None:
    is_kept(graph, WAYS)


@pytest.mark.sweep
@given(row_graphs())
@quick(1000)
def test_many_rows_are_there_until_they_are_read(graph: Graph) -> None:
    is_kept(graph, WAYS)


@pytest.mark.sweep
@given(row_graphs())
@quick(200)
def test_blocks_that_moved_are_there_too(graph: Graph) -> None:
    is_kept(graph, LITTLE)
