"""--optimise ram: never more RAM than `balanced` takes, at up to twice the
instructions, and the same bits."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from hypothesis import given

import pybuild
from pybuild.boards.bench import bench_on_board
from pybuild.boards.check import check_on_board
from pybuild.library import Library
from pybuild.model import Model
from tests.boards.devices import CORES, DIGITS, device
from tests.conftest import model_path
from tests.graphs.mobile_net import chain
from tests.graphs.rows import model_of, row_graphs
from tests.plan.test_rows import must_equal, outputs_of, quick

TARGETS = ("generic", "cortex-m0", "cortex-m4", "cortex-m55", "rv32imc")
ALWAYS = (("ic", "cortex-m4"), ("ad", "cortex-m4"))
PAIRS = [
    (network, target)
    if (network == "kws" and target != "cortex-m4") or (network, target) in ALWAYS
    else pytest.param(network, target, marks=pytest.mark.sweep)
    for network in ("kws", "vww", "ic", "ad")
    for target in TARGETS
]


def pair(model: Model, **options: Any) -> tuple[Library, Library]:
    made = partial(model.build, name="pair", **options)
    return made(optimise="ram"), made(optimise="balanced")


def times(library: Library, other: Library) -> float:
    """Instructions of the kernels, as estimated, times those of another library."""

    def total(one: Library) -> int:
        return sum(
            c.images * c.bands + c.cost for c in (s.candidate for s in one.plan.steps)
        )

    return total(library) / total(other)


@quick(3)
@given(row_graphs("int8"))
def test_bits_are_the_same_in_no_more_ram(graph: Any) -> None:
    model = model_of(graph)
    for target in ("cortex-m3", "cortex-m4"):
        for plan in ("rows", "whole"):
            little, usual = pair(model, target=target, plan=plan)
            assert little.plan.arena_bytes <= usual.plan.arena_bytes
            must_equal(outputs_of(little, poison=0x80), outputs_of(usual))


@quick(2)
@given(row_graphs("int8"))
def test_printed_c_is_equal(graph: Any) -> None:
    little, _ = pair(model_of(graph), target="cortex-m4")
    must_equal(outputs_of(little, "c"), outputs_of(little, "llvm"))


@pytest.mark.parametrize(("network", "target"), PAIRS)
def test_networks_take_no_more_ram(network: str, target: str) -> None:
    model = pybuild.load(model_path(f"{network}_int8.tflite"))
    little, usual = pair(model, target=target)
    whole = model.build(target=target, plan="whole")
    assert little.plan.arena_bytes <= usual.plan.arena_bytes
    assert times(little, whole) <= 2.1  # each call of a kernel counts for a little


def test_a_plan_of_hardly_more_bytes_is_taken_if_it_is_faster() -> None:
    """4 bytes would cost kws on a Cortex-M0 four tenths of all instructions."""
    model = pybuild.load(model_path("kws_int8.tflite"))
    little, usual = pair(model, target="cortex-m0")
    least = little.least_arena()
    assert least is not None and least < little.plan.arena_bytes <= 1.01 * least
    assert times(little, usual) < 1.1


@pytest.mark.parametrize(
    "options",
    [
        {"push": ["image"]},
        {"regions": ["fast=512:fast", "sram=64K"]},
        {"input": "consumable"},
        pytest.param({"input": "keep"}, marks=pytest.mark.sweep),
        {"target": {0: "cortex-m4", 1: "cortex-m4"}, "place": {"conv2d": 1}},
        {"compress": "lz4-layer"},
        pytest.param({"plan": "whole"}, marks=pytest.mark.sweep),
    ],
    ids=lambda options: "-".join(options),
)
def test_with_other_options(options: dict[str, Any]) -> None:
    model = pybuild.load(DIGITS)
    little, usual = pair(model, **{"target": "cortex-m4", **options})
    assert little.plan.arena_bytes <= usual.plan.arena_bytes
    assert little.report.optimise == "ram"
    if "push" not in options:
        must_equal(outputs_of(little), outputs_of(usual))


def test_whole_tensors_have_kernels_of_less_scratch() -> None:
    model = pybuild.load(model_path("ad_int8.tflite"))
    little, usual = pair(model, target="cortex-m4", plan="whole")
    assert little.plan.arena_bytes < usual.plan.arena_bytes
    assert times(little, usual) < 2
    must_equal(outputs_of(little), outputs_of(usual))


def test_images_of_several_models() -> None:
    models = {"a": pybuild.load(DIGITS), "b": model_of(chain(6))}
    images = [
        pybuild.build_image(models, target="cortex-m3", optimise=word)
        for word in ("ram", "balanced")
    ]
    sizes = [image.report.ram.arena for image in images]
    assert sizes[0] <= sizes[1]


@pytest.mark.parametrize(
    ("network", "core"),
    [
        ("kws", "cortex-m3"),
        pytest.param("vww", "cortex-m4", marks=pytest.mark.sweep),
        pytest.param("ic", "cortex-m0", marks=pytest.mark.sweep),
        pytest.param("ad", "rv32imc", marks=pytest.mark.sweep),
    ],
)
def test_on_a_core_it_is_at_most_twice_the_instructions(
    network: str, core: str
) -> None:
    path = model_path(f"{network}_int8.tflite")
    board = device(CORES[core], core=core if core == "cortex-m0" else "")
    model = pybuild.load(path)
    little, fast = (model.build(target=core, **how) for how in (
        {"optimise": "ram"}, {"plan": "whole"}))  # fmt: skip
    assert check_on_board(board, little, path, count=1).result.ok
    costs = [bench_on_board(board, one) for one in (little, fast)]
    assert costs[0].instructions <= 2 * costs[1].instructions
    assert costs[0].ram.arena <= costs[1].ram.arena
