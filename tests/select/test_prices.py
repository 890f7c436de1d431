"""What the cost model says of loops: pointers beyond the registers, halves of words."""

from __future__ import annotations

import functools

import pytest

import pybuild
from pybuild.ir.graph import Graph
from pybuild.ir.loop import INT32, Func, load, offset
from pybuild.kernels.base.builder import Builder
from pybuild.kernels.base.candidate import Candidate
from pybuild.kernels.base.intrin import HIGH_HALVES, IN_ORDER, LOW_HALVES
from pybuild.select.core_prices import PRICES
from pybuild.select.devices import offers
from pybuild.select.prices import _price, price
from pybuild.select.seen import decisive
from pybuild.targets.target import TARGETS
from tests.bench.large_graphs import unlike_layers

TURNS = 100


def _cost(pointers: int, core: str = "cortex-m4", halves: bool = False) -> int:
    """Of a loop that adds what so many pointers have, or puts halves together."""
    k = Builder(f"sum{pointers}{halves}")
    y = k.row("y", 0, INT32, writable=True)
    rows = [k.row(f"x{i}", i + 1, INT32) for i in range(pointers)]
    with k.loop("i", k.arg("n", TURNS)) as i:
        total = k.let("total", 0)
        for at, row in enumerate(rows):
            value = load(row, i)
            both = (LOW_HALVES, HIGH_HALVES)[at % 2]
            k.assign(total, both(total, value) if halves else total + value)
        k.store(y, i, total)
    made = Candidate(k.finish(), (TURNS,), (), ())
    return price(made, TARGETS[core]).instructions


def test_a_pointer_beyond_the_registers_is_loaded_each_turn() -> None:
    held = PRICES["cortex-m4"].pointers
    more = _cost(held) - _cost(held - 1)
    beyond = _cost(held + 1) - _cost(held)
    assert beyond - more == TURNS
    assert _cost(held + 1, "rv32imc") - _cost(held, "rv32imc") == more


def _sums(count: int, turns: int, core: str = "cortex-m4") -> int:
    """Of a loop that goes on with so many sums, and the pointer that they read by."""
    k = Builder(f"sums{count}_{turns}")
    y, x = k.row("y", 0, INT32, writable=True), k.row("x", 1, INT32)
    sums = [k.let(f"sum{i}", 0) for i in range(count)]
    at = k.let("at", x)
    with k.loop("i", k.arg("n", turns)):
        for i, total in enumerate(sums):
            k.assign(total, total + load(at, i))
        k.assign(at, offset(at, count))
    for i, total in enumerate(sums):
        k.store(y, i, total)
    made = Candidate(k.finish(), (turns,), (), ())
    return price(made, TARGETS[core]).instructions


def test_of_a_loop_whose_sums_fill_the_registers_the_counter_is_in_memory() -> None:
    held = PRICES["cortex-m4"].carried

    def beyond(turns: int, core: str = "cortex-m4") -> float:
        """What one more than they hold takes in a turn, beside what any other does."""
        few, all_, more = (_sums(held + n, turns, core) for n in (-2, -1, 0))
        return (more - all_ - (all_ - few)) / turns

    assert beyond(TURNS) == pytest.approx(4, abs=0.02)
    assert abs(beyond(1)) < 2  # no loop
    assert beyond(TURNS, "rv32imc") == pytest.approx(0, abs=0.02)


def test_halves_are_put_together_in_one_instruction() -> None:
    assert _cost(6, halves=True) == _cost(6)
    assert _cost(6, "cortex-m3", halves=True) > _cost(6, "cortex-m3")


@pytest.mark.parametrize("core", ["cortex-m0", "cortex-m3", "rv32imc"])
def test_that_loads_keep_their_order_is_no_instruction(core: str) -> None:
    def cost(ordered: bool) -> int:
        k = Builder(f"ordered{ordered}")
        y, x = k.row("y", 0, INT32, writable=True), k.row("x", 1, INT32)
        with k.loop("i", k.arg("n", TURNS)) as i:
            value = load(x, i)
            k.store(y, i, IN_ORDER(value) if ordered else value)
        made = Candidate(k.finish(), (TURNS,), (), ())
        return price(made, TARGETS[core]).instructions

    assert cost(True) == cost(False)


@pytest.mark.parametrize("core", ["generic", "cortex-m0", "cortex-m4", "cortex-m55"])
def test_arguments_that_decide_nothing_change_no_price(core: str) -> None:
    """Of every kernel that could compute unlike layers."""
    target, changed = TARGETS[core], 0
    for options in offers(_unlike(), [target]).values():
        for one in options:
            if not isinstance(one.func, Func):
                continue
            kept = decisive(one)
            assert _price(one.func, one.args, target, one.rare) == _price(
                one.func, kept, target, one.rare
            )
            changed += kept != one.args
    assert changed


def test_layers_that_differ_in_a_factor_have_one_price() -> None:
    """Each layer here has one of its own: prices are found for a quarter of what could
    compute them, and were for half when a factor told them apart."""
    found = offers(_unlike(), [TARGETS["cortex-m4"]]).values()
    every = [one for options in found for one in options]
    _price.cache_clear()
    for one in every:
        price(one, TARGETS["cortex-m4"])
    assert 0 < _price.cache_info().misses < len(every) / 3


@functools.cache
def _unlike() -> Graph:
    return pybuild.load(unlike_layers(60)).lower()
