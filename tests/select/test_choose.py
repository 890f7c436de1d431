"""Which kernels a model gets: estimates from the loop IR, and steps that gain."""

from __future__ import annotations

from dataclasses import replace

import pytest

import pybuild
from pybuild.ir.loop import INT8, INT32, const, equal, load, minimum
from pybuild.kernels.base.builder import Builder
from pybuild.kernels.base.candidate import Candidate
from pybuild.kernels.base.specialise import specialise
from pybuild.plan import choice
from pybuild.plan.make import make_plan
from pybuild.plan.plan import Plan
from pybuild.select.choose import Option, Weighed, chosen, options_of
from pybuild.select.core_prices import PRICES
from pybuild.select.devices import offers
from pybuild.select.prices import price
from pybuild.targets.target import TARGETS
from tests.boards.devices import DIGITS

M4 = TARGETS["cortex-m4"]
TABLE = PRICES["cortex-m4"]


def candidate(k: Builder, images: int = 1, bands: int = 1) -> Candidate:
    func = k.finish()
    return Candidate(func, tuple(k.values), (), (), images=images, bands=bands)


def copies(count: int, bands: int = 1) -> Candidate:
    """Of `count` bytes."""
    k = Builder("copies")
    y, x = k.row("y", 0, INT8, writable=True), k.row("x", 1, INT8)
    with k.loop("i", k.arg("count", count)) as i:
        k.store(y, i, load(x, i))
    return candidate(k, bands=bands)


def test_loops_turn_as_often_as_arguments_say() -> None:
    """Two rows, one argument and the call; then a load, a store and the turn each."""
    each = TABLE.load + TABLE.store + TABLE.turn
    once = TABLE.call + 1 + 2 * TABLE.load
    for count in (1, 10, 1000):
        assert price(copies(count), M4).instructions == once + count * each
        own = price(specialise(copies(count)), M4).instructions
        assert own < price(copies(count), M4).instructions
    five = price(copies(10, bands=5), M4).instructions
    assert five == 5 * price(copies(10), M4).instructions


def test_code_counts_once() -> None:
    assert price(copies(3), M4).kernel == price(copies(300), M4).kernel > 40


def test_what_is_left_over_counts_at_the_end_only() -> None:
    """11 pixels by fours: the last turn has three."""

    def blocks(width: int) -> int:
        k = Builder("blocks")
        y = k.row("y", 0, INT32, writable=True)
        with k.loop("ox", k.arg("width", width), 0, 4) as ox:
            count = k.let("count", minimum(ox * -1 + width, 4))
            with k.loop("i", count) as i:
                k.store(y, ox + i, load(y, i))
        return price(candidate(k), M4).instructions

    assert blocks(9) < blocks(10) < blocks(11) < blocks(12)


def test_tests_are_decided_at_both_ends() -> None:
    """One turn of 100 is dear, first or last."""

    def edges(dear: int) -> int:
        k = Builder("edges")
        y = k.row("y", 0, INT32, writable=True)
        with k.loop("row", 100) as row:
            with k.when(equal(row, dear)), k.loop("i", 1000) as i:
                k.store(y, i, const(0))
            with k.otherwise():
                k.store(y, row, const(1))
        return price(candidate(k), M4).instructions

    assert edges(0) == edges(99) > 2 * edges(7)


def option(kernel: str, instructions: int, **pieces: int) -> Option:
    return Option(kernel, instructions, {kernel: 100, **pieces})


def kernels(layers: dict[str, list[Option]], optimise: str) -> dict[str, str]:
    found = chosen({k: tuple(v) for k, v in layers.items()}, optimise)
    return {layer: o.kernel for layer, o in found.items()}


def test_size_shares_up_to_its_limit() -> None:
    layers = {
        "a": [option("own a", 100), option("both", 130)],
        "b": [option("own b", 100), option("both", 130)],
    }
    assert kernels(layers, "size") == {"a": "both", "b": "both"}
    assert kernels(layers, "speed") == {"a": "own a", "b": "own b"}
    layers["b"][1] = option("both", 171)
    assert kernels(layers, "size") == {"a": "own a", "b": "own b"}


def test_balanced_weighs_bytes() -> None:
    """1 KB for 1 % of the instructions; not for 3 %."""
    for more, expected in ((10_000, "slow"), (30_000, "fast")):
        layers = {
            "hot": [option("hot", 900_000)],
            "cold": [option("fast", 100_000, big=1024), option("slow", 100_000 + more)],
        }
        assert kernels(layers, "balanced")["cold"] == expected
        assert kernels(layers, "speed")["cold"] == "fast"


def test_functions_that_others_call_are_free() -> None:
    layers = {
        "a": [option("a", 100, dot=5000)],
        "b": [option("b", 100, dot=5000), option("small", 110)],
    }
    assert kernels(layers, "balanced")["b"] == "b"


def test_kernels_of_one_name_are_told_apart() -> None:
    offers = {"a": [specialise(copies(3))], "b": [specialise(copies(4))]}
    offers["c"] = [specialise(copies(3))]
    found = options_of(offers, dict.fromkeys(offers, M4))
    names = [found[layer][0].kernel for layer in "abc"]
    assert names == ["copies", "copies (2)", "copies"]


def test_what_spares_bytes_is_a_last_choice() -> None:
    """However few instructions it takes; if there is nothing else it is taken."""
    slow, fast = copies(100), replace(copies(10), spare=True)
    for found, wanted in (((slow, fast), 0), ((fast,), 0), ((fast, slow), 1)):
        options = options_of({"a": found}, {"a": M4})
        assert chosen(options, "balanced")["a"] is options["a"][wanted]


def test_the_report_says_what_and_why() -> None:
    library = pybuild.load(DIGITS).build(
        target="cortex-m4", optimise="size", plan="whole"
    )
    facts = library.report.to_json()
    assert facts["optimise"] == "size"
    rows = {row["layer"]: row for row in facts["kernels"]}
    assert set(rows) <= {layer["name"] for layer in facts["layers"]}
    for row in rows.values():
        assert list(row) == [
            "layer", "kernel", "instructions", "bytes", "reason", "alternatives",
            "output", "why",
        ]  # fmt: skip
        fastest = min(
            [row["instructions"], *(a["instructions"] for a in row["alternatives"])]
        )
        if row["reason"] in ("the fastest", "the only one"):
            assert row["instructions"] == fastest
        else:
            assert row["reason"].startswith("saves ") and row["instructions"] > fastest
    assert any(row["reason"].startswith("saves ") for row in rows.values())


def test_in_rows_prices_choose_among_kernels_that_need_no_more_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # rows are dearer than whole tensors at such prices
    monkeypatch.setattr(choice, "by_rows", lambda plan: False)
    graph = pybuild.load(DIGITS).lower()
    found = offers(graph, [M4], "balanced")
    # as if what is slow were fast: else prices say what costs had said
    options = {
        layer: tuple(
            replace(option, instructions=other.instructions)
            for option, other in zip(known, reversed(known), strict=True)
        )
        for layer, known in options_of(found, dict.fromkeys(found, M4)).items()
    }
    weighed = Weighed(options, "balanced")

    def plan(by: Weighed | None) -> Plan:
        offered = lambda node, _: found[node.output]  # noqa: E731
        return make_plan(graph, offered, rows=True, weighed=by)

    plain, priced = plan(None), plan(weighed)
    assert priced.arena_bytes <= plain.arena_bytes
    assert [s.node for s in priced.steps] == [s.node for s in plain.steps]
    assert any(len(stage.links) > 0 for stage in priced.stages)
    for stage in priced.stages:
        steps = slice(stage.first, stage.end)
        room = max(step.candidate.scratch for step in plain.steps[steps])
        for was, now in zip(plain.steps[steps], priced.steps[steps], strict=True):
            assert now.candidate.scratch <= room
            assert now.candidate.in_place == was.candidate.in_place
            if stage.links:
                assert now.candidate.inputs == was.candidate.inputs
                assert now.candidate.outputs == was.candidate.outputs
            assert (now.scratch_at >= 0) == (now.candidate.scratch > 0)
    funcs = [[step.candidate.func for step in p.steps] for p in (plain, priced)]
    assert funcs[0] != funcs[1]


def test_for_size_kernels_take_memory_that_only_other_stages_need() -> None:
    """The dense layer's stage has no working memory, and little code needs 1 KB, but
    for the kernel of pairs of outputs, which is left out here."""
    graph = pybuild.load(DIGITS).lower()
    found = {
        layer: [c for c in made if c.func and not c.func.name.endswith("_pairs")]
        for layer, made in offers(graph, [M4], "size").items()
    }
    options = options_of(found, dict.fromkeys(found, M4))

    def plan(optimise: str, limit: int | None) -> Plan:
        offered = lambda node, _: found[node.output]  # noqa: E731
        weighed = Weighed(options, optimise)
        return make_plan(
            graph, offered, False, limit, rows=True, weighed=weighed, optimise=optimise
        )

    roomy, fast = plan("size", 3000), plan("balanced", 3000)
    # below the limit speed may take more
    assert (roomy.arena_bytes, fast.arena_bytes) == (1568, 1920)
    ends = [p.steps[-1].candidate for p in (fast, roomy)]
    assert [end.scratch for end in ends] == [0, 1024]
    at = roomy.steps[-1].scratch_at
    assert at >= 0 and at % 4 == 0 and at + 1024 <= roomy.arena_bytes
    tight = plan("size", None)
    assert tight.arena_bytes == 880 and tight.steps[-1].candidate.scratch == 0
