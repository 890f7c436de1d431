"""Nets of the field: a sample of those that `./dev bench` measures makes what LiteRT
makes, at no more instructions and bytes than asked for."""

from __future__ import annotations

import numpy as np
import pytest

import pybuild
from pybuild.host.abi import CrtError
from pybuild.select.prices import price
from pybuild.targets.target import TARGETS
from tests.fieldnets import measure, nets
from tests.fieldnets.field_costs import PERSON_RAM, person_arena

# times the instructions of whole tensors that rows may take, where they spare bytes
MOST = 1.10

SMALL = ("resnet_8", "ds_cnn", "unet_64", "mobilenet_v2_0.35_96", "stream")


@pytest.mark.parametrize("name", SMALL)
def test_every_tensor_is_litert_s_by_both_back_ends(name: str) -> None:
    seen = measure.checked(name, 1)
    assert {t.unequal for t in seen.backends.values()} == {0}
    assert all(t.elements > 10_000 for t in seen.backends.values())


@pytest.mark.parametrize(
    ("name", "core"),
    [
        ("mobilenet_v1_0.5_96", "cortex-m4"),
        ("mobilenet_v1_0.25_96", "cortex-m55"),
        pytest.param("squeezenet_128", "cortex-m55", marks=pytest.mark.sweep),
    ],
)
def test_a_net_keeps_to_what_is_asked(name: str, core: str) -> None:
    seen = measure.on_core(name, core, "obj")
    assert seen.unequal == 0 and seen.aim is not None
    assert seen.per_mac <= seen.aim


@pytest.mark.parametrize(
    "name",
    [
        "mobilenet_v1_0.25_96",
        pytest.param("mobilenet_v1_0.5_96", marks=pytest.mark.sweep),
        pytest.param("resnet_32", marks=pytest.mark.sweep),
    ],
)
def test_rows_take_hardly_more_ram_on_any_core(name: str) -> None:
    seen = measure.ram_of_cores(name)
    ratios = {core: n / seen["generic"] for core, n in seen.items()}
    assert {c: n for c, n in ratios.items() if n > measure.RAM_RATIO} == {}
    whole = measure.ram(name, "generic", plan="whole")
    assert seen["generic"] < whole


# bytes that rows of vectors may take beside those of one pixel after the other
PIECES = 1_536


@pytest.mark.parametrize("name", ["person_detect", "mobilenet_v2_0.35_96"])
def test_depthwise_rows_of_vectors_take_hardly_more_ram(name: str) -> None:
    """In pieces, where whole rows would take more; instructions hardly grow."""
    seen = {core: measure.ram(name, core) for core in ("generic", "cortex-m55")}
    assert seen["cortex-m55"] - seen["generic"] <= PIECES
    steps = [s.candidate for s in measure.built(name, "cortex-m55").plan.steps]
    assert any(candidate.spare for candidate in steps)


def test_people_are_found_in_little_ram() -> None:
    for core, how, most in PERSON_RAM[:4]:
        assert person_arena(core, how) <= most


def test_float32_is_quantised_as_it_is_read() -> None:
    """Beside the image of float32 there is no whole one of int8."""
    image, row = 4 * 96 * 96, 96
    assert person_arena("cortex-m4", "reuse", True) <= image + 2 * row
    seen = measure.checked("person_detect", 1, floats=True)
    assert {t.unequal for t in seen.backends.values()} == {0}
    net = pybuild.load(nets.net("person_detect", True).file).build().host()
    net.run(given=np.zeros((1, 96, 96, 1), np.float32))
    with pytest.raises(CrtError, match="INPUT_CONSUMED"):
        net.run()


def test_what_the_caller_keeps_is_not_in_the_arena() -> None:
    """Floats that are bound are quantised as they are read: beside them there is no
    more than a consumable input of int8 may have, three rows of int8, and scratch of
    kernels that only this plan takes: far from the image's 9,216 bytes."""
    for core, how, most in PERSON_RAM[6:]:
        bound, floats = (person_arena(core, how, one) for one in (False, True))
        assert how == "bound" and floats <= most
        assert bound <= floats <= bound + 3 * 96 + 8 + 512


def test_pushed_rows_keep_vector_kernels() -> None:
    """Rows that are pushed to a Cortex-M55 cost no more than rows may beside an image
    that lies there: no byte is saved by plain kernels."""
    model, core = measure.loaded("person_detect"), "cortex-m55"
    whole = model.build(name="net", target=core, input="keep")
    rows = model.build(name="net", target=core, push=model.graph.inputs)
    assert rows.report.ram.arena < 0.65 * whole.report.ram.arena
    spent = [
        sum(price(step.candidate, TARGETS[core]).instructions for step in plan.steps)
        for plan in (rows.plan, whole.plan)
    ]
    assert spent[0] <= MOST * spent[1]


def test_nets_are_made_from_seeds() -> None:
    first = nets.net("resnet_8").file
    nets.net.cache_clear()
    assert nets.net("resnet_8").file == first
