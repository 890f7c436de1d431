"""Any operator: of each that `./dev bench` measures one layer makes what LiteRT makes,
on emulated cores, and takes no more instructions than its operator may."""

from __future__ import annotations

import pytest

from tests.perf.any_operator import CORES, has_ceiling, is_above
from tests.perf.measure import measured
from tests.perf.operators import KINDS, Operator, operator


def sample(kind: str) -> Operator:
    """The first that has a ceiling."""
    drawn = (operator(kind, seed) for seed in range(8))
    return next(made for made in drawn if has_ceiling(made))


def test_layers_are_of_their_seeds() -> None:
    for kind in KINDS:
        assert operator(kind, 1) == operator(kind, 1) != operator(kind, 2)


# each operator is counted on a core in each run, on both in all tests
WAYS = [
    pytest.param(kind, core, marks=pytest.mark.sweep if (n + m) % 2 else ())
    for n, kind in enumerate(KINDS)
    for m, core in enumerate(CORES)
]


@pytest.mark.parametrize(
    ("kind", "core"), WAYS, ids=lambda word: word.replace(" ", "_")
)
def test_an_operator_is_right_and_fast(kind: str, core: str) -> None:
    found = measured(sample(kind), core, "obj")
    said = f"{found.made.words}: {found.per_mac:.2f} by {found.kernels}"
    assert found.unequal == 0, said
    assert not is_above(found), said


# of what has vectors, or pairs, of its own: the core that gcc makes it for in each run
BY_C = {
    "add": "cortex-m55",
    "add int16": "cortex-m4",
    "mul int16": "cortex-m55",
    "prelu": "cortex-m55",
    "average pool": "cortex-m4",
}
GCC = [
    pytest.param(kind, core, marks=() if core == always else pytest.mark.sweep)
    for kind, always in BY_C.items()
    for core in CORES
]


@pytest.mark.parametrize(("kind", "core"), GCC, ids=lambda word: word.replace(" ", "_"))
def test_gcc_makes_the_same(kind: str, core: str) -> None:
    found = measured(sample(kind), core, "c")
    assert found.unequal == 0, found.kernels
