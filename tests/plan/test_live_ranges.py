"""Rows written over rows that are done with: the same bits, and no row is written over
before it has been read for the last time."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pybuild.graph_builder import GraphBuilder
from pybuild.ir.graph import Graph
from pybuild.kernels.base.candidate import RowAccess
from pybuild.plan.memory.live_ranges import Piece
from pybuild.plan.memory.row_offsets import interlaced
from pybuild.plan.plan import Plan, Step
from pybuild.plan.schedule.lock_step import band_times
from tests.graphs.rows import model_of, row_graphs
from tests.plan.test_rows import (
    all_of,
    cut_anyhow,
    inputs_of,
    must_equal,
    outputs_of,
    quick,
)

How = tuple[str, str]
_HOW = st.tuples(
    st.sampled_from(["rows", "whole", "anyhow"]), st.sampled_from(["size", "speed"])
)


class _Memory:
    """The arena by what each of its bytes holds: a row of a tensor, or nothing."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.holds = np.zeros(plan.arena_bytes, np.int64)
        self.numbers: dict[tuple[str, int], int] = {}

    def number(self, name: str, row: int) -> int:
        return self.numbers.setdefault((name, row), len(self.numbers) + 1)

    def span(self, access: RowAccess, row: int) -> slice:
        place = self.plan.places[access.tensor]
        ring = self.plan.rings.get(access.tensor)
        slot, pitch = row, access.row_bytes
        if ring is not None:
            slot, pitch = row % ring.rows, ring.pitch
        at = place.home + slot * pitch
        return slice(at, at + access.row_bytes)

    def rows(self, access: RowAccess, band: int) -> range:
        first = band * access.stride - access.pad
        last = min(first + access.window, access.rows)
        return range(max(first, 0), last)

    def give(self) -> None:
        """Every input, as its first reader sees it."""
        for step in self.plan.steps:
            for access in step.candidate.inputs:
                if access.tensor in self.plan.graph.inputs:
                    for row in range(access.rows):
                        self.write(access, row)

    def write(self, access: RowAccess, row: int) -> None:
        self.holds[self.span(access, row)] = self.number(access.tensor, row)

    def compute(self, step: Step, band: int) -> None:
        """All that a band reads must be there; then what it writes is."""
        candidate = step.candidate
        for access in candidate.inputs:
            for row in self.rows(access, band):
                found = self.holds[self.span(access, row)]
                wanted = self.number(access.tensor, row)
                assert (found == wanted).all(), (step.node.name, band, row)
        if candidate.scratch:
            self.holds[step.scratch_at : step.scratch_at + candidate.scratch] = -1
        for access in candidate.outputs:
            for row in self.rows(access, band):
                self.write(access, row)


def must_be_there(plan: Plan) -> None:
    """All rows that are read, for plans of tensors that all readers see alike."""
    memory = _Memory(plan)
    memory.give()
    for stage in plan.stages:
        steps = plan.steps[stage.first : stage.end]
        bands = [step.candidate.bands for step in steps]
        order = sorted(
            (time, number, band)
            for number, times in enumerate(band_times(bands, stage.links))
            for band, time in enumerate(times)
        )
        for _, number, band in order:
            memory.compute(steps[number], band)


def is_alike(plan: Plan) -> bool:
    """Whether rows mean the same to all, so that they can be told apart by number."""
    made = {a.tensor for step in plan.steps for a in step.candidate.outputs}
    made |= {*plan.graph.inputs}
    forms: dict[str, set[tuple[int, int]]] = {}
    for step in plan.steps:
        for access in (*step.candidate.outputs, *step.candidate.inputs):
            view = access.tensor not in made
            if view or access.ring or step.candidate.images > 1:
                return False
            forms.setdefault(access.tensor, set()).add((access.rows, access.row_bytes))
    return all(len(each) == 1 for each in forms.values())


def must_be_alike(graph: Graph, how: How, backend: str = "llvm") -> None:
    model, (plan, optimise) = model_of(graph), how
    wanted = outputs_of(model.build(plan="whole"))
    if plan == "anyhow":
        with cut_anyhow(len(graph.nodes)):
            made = model.build(input="consumable", optimise=optimise)
    else:
        made = model.build(input="consumable", plan=plan, optimise=optimise)
    for poison in (0x80, 0x7F):
        must_equal(outputs_of(made, backend, poison), wanted)
    if is_alike(made.plan):
        must_be_there(made.plan)


@quick(4)
@given(row_graphs("int8"), _HOW)
def test_inputs_written_over_give_the_same_bits(graph: Graph, how: How) -> None:
    must_be_alike(graph, how)


@pytest.mark.sweep
@quick(300)
@given(row_graphs("int8"), _HOW)
def test_many_such_integers_are_equal_bits(graph: Graph, how: How) -> None:
    must_be_alike(graph, how)


@pytest.mark.sweep
@quick(100)
@given(row_graphs("float32"), _HOW)
def test_many_such_floats_are_equal_bits(graph: Graph, how: How) -> None:
    must_be_alike(graph, how)


@quick(1)
@given(row_graphs("int8"))
def test_printed_c_writes_over_inputs_too(graph: Graph) -> None:
    must_be_alike(graph, ("rows", "size"), "c")


def test_a_convolution_follows_its_input_by_two_rows() -> None:
    """3x3 over 8 rows of 48 bytes: row r of y lies where row r - 2 of x was."""
    net = GraphBuilder("rows")
    x = net.input("x", (1, 8, 4, 3), "float32")
    w = np.random.default_rng(0).normal(0, 0.3, (3, 3, 3, 3)).astype(np.float32)
    net.output(net.op("conv2d", x, net.constant("w", w), pads=(1, 1, 1, 1)))
    model = model_of(net.build())
    plans = {
        word: model.build(input=word, plan="whole").plan
        for word in ("consumable", "reuse", "keep")
    }
    scratch = plans["keep"].steps[0].candidate.scratch
    assert plans["consumable"].arena_bytes == 8 * 48 + 2 * 48 + scratch
    assert plans["reuse"].arena_bytes == 2 * 8 * 48 + scratch
    assert model.build().plan.arena_bytes == 8 * 48 + 2 * 48 + scratch
    assert [*plans["consumable"].consumed] == ["x"] and not plans["keep"].consumed
    must_be_there(plans["consumable"])


def test_a_slot_is_taken_until_its_row_has_been_read() -> None:
    """Rows of the output, longer, lie over slots of the ring that the same layer reads:
    not those that it writes as it reads them for the last time."""
    chance, net = np.random.default_rng(1), GraphBuilder("slots")
    x = net.input("x", (1, 6, 3, 2), "float32", lazy=True)
    for name, shape in (("w", (2, 1, 1, 2)), ("v", (8, 3, 1, 2))):
        values = chance.normal(0, 0.3, shape).astype(np.float32)
        x = net.op("conv2d", x, net.constant(name, values))
    net.output(x)
    model, found = model_of(net.build()), []
    given = inputs_of(model.graph)["x"]
    for plan in ("whole", "rows"):
        with cut_anyhow(0):
            made = model.build(plan=plan)
        host = made.host()
        host.arena[:] = 0x80
        host.bind_input("x", given)
        host.run()
        found.append(all_of(host))
    assert [ring.rows for ring in made.plan.rings.values()] == [3]
    assert made.plan.arena_bytes == 4 * 8 * 12 + 76
    must_equal(*found)


def test_blocks_in_pieces_never_meet() -> None:
    """Of random ones: what is alive together lies apart, and some lie over others."""
    chance, whole, found = random.Random(3), 0, 0
    for _ in range(10):
        blocks = [_block(chance) for _ in range(chance.randint(1, 9))]
        layout = interlaced(blocks, 4)
        must_lie_apart(blocks, layout.offsets)
        assert all(at % 4 == 0 for at in layout.offsets)
        ends = [at + b[-1].end for at, b in zip(layout.offsets, blocks, strict=True)]
        assert layout.lower_bound <= layout.bytes and max(ends) <= layout.bytes
        whole += sum(-(-block[-1].end // 4) * 4 for block in blocks)
        found += layout.bytes
    assert found < 0.8 * whole


def test_the_search_ends_where_nothing_shorter_can_be() -> None:
    """And no earlier: pieces may begin where others end, not only every four bytes."""
    drawn = (
        [(0, 7, 2), (7, 15, 4)],
        [(0, 17, 1), (17, 22, 4), (22, 25, 4)],
        [(0, 25, 4)],
    )
    blocks = [[Piece(*piece) for piece in block] for block in drawn]
    layout = interlaced(blocks, 4)
    assert (layout.bytes, layout.lower_bound) == (44, 44)


def _block(chance: random.Random) -> list[Piece]:
    ends = sorted(chance.sample(range(1, 60), chance.randint(1, 6)))
    return [
        Piece(at, end, 1 << chance.randrange(12) | 1 << chance.randrange(12))
        for at, end in zip([0, *ends], ends, strict=False)
    ]


def must_lie_apart(blocks: list[list[Piece]], offsets: tuple[int, ...]) -> None:
    for time in range(12):
        taken = np.zeros(1000, np.int64)
        for at, block in zip(offsets, blocks, strict=True):
            for piece in block:
                if piece.when >> time & 1:
                    taken[at + piece.at : at + piece.end] += 1
        assert taken.max() <= 1
