"""What LLVM must leave as kernels are written: loads, sums, pointers."""

from __future__ import annotations

import re

import llvmlite.binding as binding
import pytest

from pybuild.emit.kernels import llvm
from pybuild.emit.kernels.llvm_declared import declarations
from pybuild.emit.llvm.object import machine_of
from pybuild.ir.loop import INT32, Func, load, offset
from pybuild.kernels.base.builder import Builder
from pybuild.kernels.base.intrin import DOT2, EVEN_BYTES, IN_ORDER
from pybuild.targets.llvm import LLVM

# a place is a register, or "r": whichever LLVM takes
PLACED = re.compile(r'asm "", "=(\S+),0"\((\S+) ')
ORDERED = re.compile(r'asm sideeffect "", "=r,0,~{memory}"')


def summed(sums: int, rolled: bool = True, inner: bool = False) -> Func:
    """A loop over words: each sum takes the product with one more of them."""
    k = Builder("summed")
    y = k.row("y", 0, INT32, writable=True)
    words = k.row("words", 1, INT32)
    x = k.let("x", words)
    totals = [k.let(f"total{n}", 0) for n in range(sums)]
    with k.loop("turn", k.arg("turns", 3), rolled=rolled):
        for n, total in enumerate(totals):
            k.assign(total, DOT2(load(x, n), EVEN_BYTES(load(x, n + 1)), total))
        if inner:
            with k.loop("more", 2):
                k.assign(totals[0], DOT2(load(x, 0), load(x, 1), totals[0]))
        k.assign(x, offset(x, sums))
    for n, total in enumerate(totals):
        k.store(y, n, total)
    return k.finish()


def printed(func: Func, target: str) -> str:
    return llvm.function(func, features=LLVM[target].has)


def test_each_sum_of_an_unrolled_loop_has_a_register_of_its_own() -> None:
    text = printed(summed(8), "cortex-m4")
    sums = [(f"{{r{n}}}", "i32") for n in range(4, 12)]
    assert PLACED.findall(text) == [*sums, ("r", "ptr")]
    # products and widened bytes, each in its place
    assert len(ORDERED.findall(text)) == 16


def test_more_sums_than_registers_are_left_to_llvm() -> None:
    assert PLACED.findall(printed(summed(9), "cortex-m4")) == [("r", "ptr")]


def test_what_a_loop_inside_needs_is_left_to_llvm() -> None:
    assert not PLACED.findall(printed(summed(2, inner=True), "cortex-m4"))


def test_loops_that_may_be_unrolled_are_left_to_llvm() -> None:
    assert not PLACED.findall(printed(summed(2, rolled=False), "cortex-m4"))


@pytest.mark.parametrize("target", ["cortex-m0", "cortex-m3"])
def test_pointers_step_as_written_where_nothing_is_summed_in_pairs(target: str) -> None:
    text = printed(summed(2), target)
    assert PLACED.findall(text) == [("r", "ptr")] and not ORDERED.findall(text)


@pytest.mark.parametrize("target", sorted(LLVM))
def test_products_are_added_where_kernels_say_so(target: str) -> None:
    k = Builder("added")
    y, x = k.row("y", 0, INT32, writable=True), k.row("x", 1, INT32)
    total = k.let("total", 0)
    with k.loop("turn", k.arg("turns", 3), rolled=True):
        for n in range(4):
            k.assign(total, total + load(x, n) * load(y, n))
    k.store(y, 0, total)
    each = len(ORDERED.findall(printed(k.finish(), target)))
    assert each == (4 if "order" in LLVM[target].keeps else 0)


@pytest.mark.parametrize("target", ["cortex-m55", "rv32imc"])
def test_vector_cores_and_risc_v_have_their_pointers_from_llvm(target: str) -> None:
    assert ("r", "ptr") not in PLACED.findall(printed(summed(2), target))


@pytest.mark.parametrize("target", sorted(LLVM))
def test_values_are_read_in_order_where_a_kernel_says_so(target: str) -> None:
    k = Builder("ordered")
    y = k.row("y", 0, INT32, writable=True)
    x = k.row("x", 1, INT32)
    k.store(y, 0, IN_ORDER(load(x, 0)) + load(x, 1))
    count = len(ORDERED.findall(printed(k.finish(), target)))
    assert count == ("order" in LLVM[target].keeps)


@pytest.mark.parametrize("target", sorted(LLVM))
def test_the_code_that_keeps_its_order_needs_no_assembler(target: str) -> None:
    """LLVM ends the process where a string of assembly is not empty."""
    func = printed(summed(8), target)
    text = func.replace("#0", "nounwind") + declarations(LLVM[target].has)
    assert set(re.findall(r'asm (?:sideeffect )?"([^"]*)"', text)) <= {""}
    machine = machine_of(LLVM[target])
    assert machine.emit_object(binding.parse_assembly(text))[:4] == b"\x7fELF"


@pytest.mark.parametrize("target", sorted(LLVM))
def test_words_beside_each_other_are_loaded_by_one_instruction(target: str) -> None:
    k = Builder("neighbours")
    y = k.row("y", 0, INT32, writable=True)
    x = k.row("x", 1, INT32)
    first, *others = (k.let(f"word{n}", load(x, n)) for n in (2, 4, 5, 7, 8))
    total = k.let("total", first)
    for value in others:
        k.assign(total, DOT2(value, value, total))
    k.store(y, 0, total)
    text = printed(k.finish(), target)
    both = re.findall(r"load volatile i64, ptr %\S+ align 4", text)
    pairs = target in ("cortex-m4", "cortex-m4f", "cortex-m7", "cortex-m33")
    assert len(both) == 2 * pairs
    machine = machine_of(LLVM[target])
    whole = text.replace("#0", "nounwind") + declarations(LLVM[target].has)
    code = machine.emit_assembly(binding.parse_assembly(whole))
    if pairs:
        assert len(re.findall(r"\bldrd\b.*#(?:16|28)\]", code)) == 2
