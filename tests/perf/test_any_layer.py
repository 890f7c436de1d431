"""Any layer: a sample of those that `./dev bench` measures makes what LiteRT makes, on
emulated cores, and takes no more instructions than its class may."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import pytest
from _pytest.mark import ParameterSet

from tests.perf.any_layer import CORES, FAR, is_above, reason
from tests.perf.layers import CLASSES, far_apart, layer
from tests.perf.measure import EMITS, is_plain, measured, model

# of each class that has a ceiling
SAMPLE = (1, 3, 5, 12, 14, 16, 17, 19, 24, 31, 33, 44)
TAPS = "weights of -128: a word holds two taps of one channel, not of two"
FEW = "16 inputs: ends and calls are a good part of all"
APART = "stride 2: each column is widened, and half of them are shared"
SMALL = "a third or more of the window stands on padding, and is computed like all else"
# above their ceiling, and why
M4 = {1: FEW, 3: APART, 12: TAPS}
M55 = {1: FEW, 33: SMALL}
ABOVE = dict(zip(CORES, (M4, M55), strict=True))
# of which gcc's code is measured in each run: a layer of each class on each core
BY_C = {"cortex-m4": (1, 3, 5, 16), "cortex-m55": (12, 14, 17, 44)}


T = TypeVar("T")


def mostly(always: Sequence[T], others: Sequence[T]) -> list[ParameterSet]:
    """Those of `always` in each run, the others with them in all tests."""
    rest = [pytest.param(other, marks=pytest.mark.sweep) for other in others]
    return [*map(pytest.param, always), *rest]


def test_the_sample_has_every_class() -> None:
    assert {layer(seed).kind for seed in range(12)} == {*CLASSES}
    assert {layer(seed).kind for seed in SAMPLE} == {*CLASSES[:-1]}


@pytest.mark.parametrize("core", CORES)
@pytest.mark.parametrize("seed", SAMPLE)
def test_a_layer_is_right_and_fast(seed: int, core: str) -> None:
    found = measured(layer(seed), core, "obj")
    said = f"{found.made.words}: {found.per_mac:.2f} by {found.kernels}"
    assert found.unequal == 0, said
    assert is_above(found) == (seed in ABOVE[core]), said
    assert reason(found) or not is_above(found), said


EACH = [(seed, core) for seed in SAMPLE for core in CORES]
ALWAYS = [(seed, core) for seed, core in EACH if seed in BY_C[core]]
OTHERS = [way for way in EACH if way not in ALWAYS]


@pytest.mark.parametrize("way", mostly(ALWAYS, OTHERS), ids=str)
def test_a_layer_is_right_by_gcc(way: tuple[int, str]) -> None:
    seed, core = way
    found = measured(layer(seed), core, "c")
    assert found.unequal == 0, found.made.words


@pytest.mark.parametrize("seed", mostly([65, 97, 251], [1, 45, 169, 177]))
def test_gcc_keeps_up_with_llvm(seed: int) -> None:
    """Of few inputs it kept their patch on the stack for all channels, and weights of
    short rows; of weights of -128 it loaded each word by itself; of sums that end by
    their sign it read the ends of all channels first."""
    by_c, by_llvm = (measured(layer(seed), "cortex-m4", emit) for emit in EMITS)
    assert by_c.unequal == by_llvm.unequal == 0
    assert by_c.per_mac < 1.1 * by_llvm.per_mac, by_c.kernels


@pytest.mark.parametrize("seed", mostly([109], [19, 235]))
def test_gcc_keeps_up_with_llvm_on_vectors(seed: int) -> None:
    """It computed the address of each vector of weights that is further from their
    pointer than a load reaches: 1.10 to 1.12 times as many instructions."""
    by_c, by_llvm = (measured(layer(seed), "cortex-m55", emit) for emit in EMITS)
    assert by_c.unequal == by_llvm.unequal == 0
    assert by_c.per_mac < 1.06 * by_llvm.per_mac, by_c.kernels


@pytest.mark.parametrize("seed", [64, 147, 243])
def test_a_small_depthwise_layer_has_a_kernel_of_pairs(seed: int) -> None:
    made = layer(seed)
    library = model(made).build(target="cortex-m4", rounding=made.rounding)
    steps = [s.candidate.func for s in library.plan.steps]
    assert not is_plain(tuple(func.name for func in steps if func is not None))


@pytest.mark.parametrize("emit", EMITS)
def test_the_last_turn_of_a_loop_on_vectors(emit: str) -> None:
    """LLVM 22.1 summed lanes behind the seventh row, where a vector has four."""
    found = measured(far_apart(), "cortex-m55", emit)
    assert found.unequal == 0, found.kernels


@pytest.mark.parametrize("seed", mostly([15, 16, 55, 148], [4, 195, 220, 275]))
def test_layers_on_vectors_take_what_their_price_says(seed: int) -> None:
    """Vectors of one window share its address; an end by the rule is several
    instructions; of two windows that are gathered one needs an address."""
    found = measured(layer(seed), "cortex-m55", "obj")
    assert found.unequal == 0
    assert abs(found.estimate / found.instructions - 1) <= FAR, found.kernels


@pytest.mark.parametrize("seed", mostly([188, 191, 242, 281], [236, 277, 296]))
def test_layers_of_one_factor_take_what_their_price_says(seed: int) -> None:
    """Of the factor of a whole layer LLVM saw the sign, and made three instructions of
    each high product."""
    found = measured(layer(seed), "cortex-m4", "obj")
    assert found.unequal == 0 and "_joint" in found.kernels[0]
    assert abs(found.estimate / found.instructions - 1) <= FAR, found.kernels


@pytest.mark.parametrize(
    "way", mostly([(15, "c"), (75, "obj")], [(15, "obj"), (75, "c")]), ids=str
)
def test_eight_pixels_on_a_core(way: tuple[int, str]) -> None:
    """A row of seven; one of twelve, of channels that no four divides. Both have sums
    that end halfway below zero."""
    found = measured(layer(way[0]), "cortex-m55", way[1])
    assert "_eight" in found.kernels[-1] and found.unequal == 0


PLANES = [(seed, emit) for seed in (40, 51, 117, 172, 183, 249) for emit in EMITS]
ALWAYS_PLANES = [(40, "obj"), (51, "c"), (117, "obj"), (172, "c"), (172, "obj")]
OTHER_PLANES = [way for way in PLANES if way not in ALWAYS_PLANES]


@pytest.mark.parametrize("way", mostly(ALWAYS_PLANES, OTHER_PLANES), ids=str)
def test_planes_of_int16_on_a_core(way: tuple[int, str]) -> None:
    """Depthwise 3x3, 5x5 and 7x7 of int16, of rows of two to twelve pixels; they
    take what their price says."""
    found = measured(layer(way[0]), "cortex-m55", way[1])
    assert "_planes_" in found.kernels[-1] and found.unequal == 0
    if way[1] == "obj":
        assert abs(found.estimate / found.instructions - 1) <= FAR, found.kernels


@pytest.mark.parametrize("emit", mostly(["obj"], ["c"]))
def test_sums_that_are_shifted_beyond_what_narrows_them(emit: str) -> None:
    """By 18: the instruction that narrows shifts by 16 at most, and LLVM ended."""
    found = measured(layer(152), "cortex-m55", emit)
    assert "_joint_shift18" in found.kernels[0] and found.unequal == 0


def test_loads_that_widen_have_the_registers_that_they_can() -> None:
    """Layers of int16 whose addresses gcc once put where no such load finds them: its
    assembler refused the file."""
    for seed in (95, 271):
        made = measured(layer(seed), "cortex-m55", "c")
        assert any("_s16_" in name for name in made.kernels) and made.unequal == 0
