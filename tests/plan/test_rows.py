"""Layers in lock step: the same bits as with whole tensors, in rings that suffice."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from pybuild.dtype import Array
from pybuild.host.native import Net
from pybuild.host.trace import recorded
from pybuild.ir.graph import Graph
from pybuild.library import Library
from pybuild.plan import choice
from pybuild.plan.buffers.offsets import BlockOffset
from pybuild.plan.buffers.sharing import Block
from pybuild.plan.plan import Plan
from pybuild.plan.regions import block_offsets as planner
from pybuild.plan.regions.regions import Region, Wishes
from pybuild.plan.schedule.partition import Cut, Cuts
from pybuild.verify.samples import sample
from tests.graphs.rows import model_of, row_graphs

GAP = 16  # bytes of canary before and behind each block


def quick(examples: int) -> settings:
    checks = [HealthCheck.too_slow, HealthCheck.data_too_large]
    return settings(
        max_examples=examples,
        derandomize=True,
        suppress_health_check=checks,
    )


def inputs_of(graph: Graph) -> dict[str, Array]:
    return dict(sample(graph, "uniform", (0, 0)).inputs)


def outputs_of(library: Library, backend: str = "llvm", poison: int = 0) -> list[Array]:
    net = library.host(backend)
    net.arena[:] = poison
    net.run(**inputs_of(library.plan.graph))
    return all_of(net)


def all_of(net: Net) -> list[Array]:
    return [net.get_output(i).copy() for i in range(len(net.plan.graph.outputs))]


def must_equal(found: Sequence[Array], wanted: Sequence[Array]) -> None:
    for a, b in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(a, b)


@contextmanager
def apart() -> Iterator[None]:
    """Plans in which no two blocks share memory, with gaps between them."""

    def place(
        blocks: Sequence[Block], devices: Mapping[str, int], wishes: Wishes
    ) -> tuple[tuple[Region, ...], dict[str, BlockOffset]]:
        if wishes.pieces:  # they would lie over each other
            return (Region(0, 1 << 40, 0, ()),), {}
        at, block_offsets = 0, {}
        for block in blocks:
            block_offsets[block.name] = BlockOffset(0, at + GAP, block)
            at = -(-(at + GAP + block.bytes) // 4) * 4
        return (Region(0, at + GAP, at, ()),), block_offsets

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(planner, "place_regions", place)
        yield


def gaps_of(plan: Plan) -> list[tuple[int, int]]:
    """What lies between the blocks of a plan that was placed apart."""
    assert plan.occupied is not None
    places = plan.occupied.block_offsets.values()
    spans = sorted((one.at, one.at + one.block.bytes) for one in places)
    starts, ends = zip(*spans, strict=True)
    return [*zip((0, *ends), (*starts, plan.arena_bytes), strict=True)]


def run_between_canaries(library: Library) -> Net:
    net, gaps = library.host("llvm"), gaps_of(library.plan)
    assert sum(end - start for start, end in gaps) >= GAP * len(gaps)
    net.arena[:] = 0xA5
    net.run(**inputs_of(library.plan.graph))
    for start, end in gaps:
        assert (np.asarray(net.arena[start:end]) == 0xA5).all(), (start, end)
    return net


@contextmanager
def cut_anyhow(seed: int) -> Iterator[None]:
    """Plans whose stages are as long as chance has them, whatever they cost."""

    def least(cuts: Cuts, most_cost: float, most: int) -> tuple[int, list[Cut]]:
        chance, at, found = np.random.default_rng(seed), 0, []
        while at < len(cuts.nodes):
            size = int(chance.integers(1, len(cuts.bases[at]) + 1))
            options = cuts.alone if size == 1 else cuts.joined
            made = [chance.choice(np.arange(len(o))) for o in options[at : at + size]]
            chosen = [o[i] for o, i in zip(options[at : at + size], made, strict=True)]
            found.append(Cut(at, tuple(chosen)))
            at += size
        return 0, found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Cuts, "least", least)
        patch.setattr(choice._Tries, "comes_to", lambda *_: 1.0)
        patch.setattr(choice, "_MOST_FINE", 0)
        patch.setattr(choice._Tries, "is_large", lambda *_: False)
        yield


def must_be_alike(graph: Graph) -> None:
    """Whole and by rows; in stages of any length, with room between the blocks."""
    model = model_of(graph)
    wanted = outputs_of(model.build(plan="whole"))
    must_equal(outputs_of(model.build(plan="rows"), poison=0x80), wanted)
    with cut_anyhow(len(graph.nodes)), apart():
        net = run_between_canaries(model.build(plan="rows"))
    must_equal(all_of(net), wanted)


@quick(12)
@given(row_graphs("int8"))
def test_integers_are_equal(graph: Graph) -> None:
    must_be_alike(graph)


@quick(4)
@given(row_graphs("float32"))
def test_floats_are_equal(graph: Graph) -> None:
    must_be_alike(graph)


@pytest.mark.sweep
@settings(quick(300))
@given(row_graphs("int8"))
def test_many_integers_are_equal(graph: Graph) -> None:
    must_be_alike(graph)


@quick(2)
@given(row_graphs("int8"))
def test_printed_c_is_equal(graph: Graph) -> None:
    with cut_anyhow(0):
        by_rows = model_of(graph).build(plan="rows")
    must_equal(outputs_of(by_rows, "c"), outputs_of(by_rows, "llvm"))


@quick(4)
@given(row_graphs("int8"))
def test_every_row_passes_the_hook(graph: Graph) -> None:
    model, given_inputs = model_of(graph), inputs_of(graph)
    with cut_anyhow(1):
        found = [
            recorded(model.build(plan=form).host("llvm"), given_inputs)
            for form in ("whole", "rows")
        ]
    assert found[0].keys() == found[1].keys()
    must_equal([found[1][n] for n in found[0]], list(found[0].values()))
