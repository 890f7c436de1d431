"""Every board: the same bits as this machine, counts that two simulators agree on,
stack within its bound, and the plain example, which prints its self-test."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

from pybuild.boards.bench import RUNTIME, BoardBench, bench_on_board
from pybuild.boards.check import check_on_board
from pybuild.boards.device import firmware_of, pack_inputs, run_recorded
from pybuild.boards.firmware.build import example_firmware
from pybuild.boards.simulators.count import count_plan
from pybuild.boards.simulators.simulator import must_succeed
from pybuild.boards.simulators.timings import TIMINGS
from pybuild.errors import BuildError, LimitError
from pybuild.host.trace import recorded
from pybuild.targets.board import board_names, load_board
from pybuild.targets.facts import Memory
from pybuild.verify.samples import example_inputs
from tests.boards.devices import DIGITS, FLOATS, device, has_unicorn, library

BOARDS = tuple(name for name in board_names() if load_board(name).machine)
CHAINS = ("gcc", "zig", "clang")
WITH_FLOATS = ("microbit", "mps2-an386", "mps3-an547", "riscv32-virt")
# the boards that each tool chain always builds for; zig builds its run-time library
# for each core on first use
ALWAYS = {
    "gcc": ("microbit", "mps2-an386", "mps3-an547", "riscv32-virt"),
    "zig": ("microbit",),
    "clang": ("riscv32-virt",),
}
SOME = [
    pytest.param(
        board, chain, marks=[] if board in ALWAYS[chain] else [pytest.mark.sweep]
    )
    for board in ALWAYS["gcc"]
    for chain in CHAINS
]


def test_there_are_at_least_eleven_machines() -> None:
    assert len(BOARDS) >= 11
    assert {name for names in ALWAYS.values() for name in names} <= set(BOARDS)


@pytest.mark.parametrize("name", BOARDS)
def test_the_same_bits_as_here(name: str) -> None:
    board = device(name)
    done = check_on_board(board, library(DIGITS, board), DIGITS, count=9)
    assert done.result.ok
    (tally,) = done.result.backends.values()
    assert tally.elements == 90 and tally.unequal == 0


@pytest.mark.parametrize(("name", "chain"), SOME)
def test_every_tensor_by_every_tool_chain(name: str, chain: str) -> None:
    board = device(name, chain)
    done = check_on_board(board, library(DIGITS, board), DIGITS, 2, per_layer=True)
    assert done.result.ok
    assert done.result.tensors == 5
    assert board.toolchain.version in str(done.to_json())


def test_a_difference_names_its_layer() -> None:
    """The board has another image than this machine: its weights were changed."""
    board = device("mps2-an386")
    known = library(DIGITS, board)
    array = known.tables.constants
    spoilt = [c for c in array if c.symbol.endswith("pointwise_weights")]
    assert len(spoilt) == 1
    wrong = dataclasses.replace(spoilt[0], array=spoilt[0].array + np.int8(1))
    tables = dataclasses.replace(
        known.tables, constants=tuple(wrong if c is spoilt[0] else c for c in array)
    )
    other = _Spoilt(known, dataclasses.replace(known, tables=tables).sources())
    done = check_on_board(board, other, DIGITS, count=3)  # type: ignore[arg-type]
    (tally,) = done.result.backends.values()
    assert not done.result.ok and tally.first_layer == "pointwise"


class _Spoilt:
    """A build whose C files are another's."""

    def __init__(self, real: object, sources: dict[str, str]) -> None:
        self._real = real
        self._sources = sources

    def __getattr__(self, name: str) -> object:
        return getattr(self._real, name)

    def sources(self) -> dict[str, str]:
        return self._sources


@pytest.mark.parametrize("name", ["mps2-an386", "riscv32-virt"])
def test_floats_are_near(name: str) -> None:
    board = device(name)
    assert check_on_board(board, library(FLOATS, board), FLOATS, 5).result.ok


# ---- counts -------------------------------------------------------------------


def bench(name: str, chain: str, simulator: str = "auto") -> BoardBench:
    board = device(name, chain, simulator)
    return bench_on_board(board, library(DIGITS, board))


@pytest.mark.parametrize("name", [b for b in BOARDS if has_unicorn(b)])
def test_both_simulators_count_alike(name: str) -> None:
    first, second = bench(name, "gcc", "qemu"), bench(name, "gcc", "unicorn")
    assert first.layers == second.layers
    assert first.ram == second.ram


@pytest.mark.parametrize(("name", "chain"), SOME)
def test_counts_and_sizes(name: str, chain: str) -> None:
    result = bench(name, chain)
    assert sum(row.instructions for row in result.layers) == result.instructions
    *layers, runtime = result.layers
    assert runtime.name == RUNTIME and 0 < runtime.instructions < 20_000
    assert [row.name for row in layers] == [
        "conv", "depthwise", "pointwise", "pool", "scores",
    ]  # fmt: skip
    for row in layers:
        assert row.instructions > max(row.macs // 8, 100)
        known = result.device.core.name in TIMINGS
        assert (row.cycles is not None) == known
        assert not known or row.instructions < row.cycles < 2 * row.instructions
    ram = result.ram
    assert 0 < ram.stack <= ram.stack_bound <= ram.program < 1024
    assert ram.arena == library(DIGITS, result.device).plan.arena_bytes
    assert 0 <= ram.data < 64
    assert (result.sections.data, result.sections.bss) == (0, 0)
    flash = result.flash
    assert flash.weights >= 3000 and min(dataclasses.astuple(flash)) > 500
    assert (
        result.sections.text + result.sections.rodata
        == flash.runtime + flash.kernels + flash.tables + flash.weights
    )


def test_an_instruction_more_is_counted() -> None:
    """Exact means exact: a nop in each kernel call shows, in that layer alone."""
    board = device("mps2-an386", "gcc", "qemu")
    known = library(DIGITS, board)
    sources = known.sources()
    func = known.plan.steps[3].candidate.func
    assert func is not None and func.name.startswith("max_pool")
    kernel = f"static void {func.name}(void *const *p, const int32_t *a)\n{{\n"
    text = sources["digits_int8.c"]
    assert kernel in text
    nop = kernel + '    __asm__ volatile("nop");\n'
    sources["digits_int8.c"] = text.replace(kernel, nop)
    plain = bench_on_board(board, known)
    more = bench_on_board(board, _Spoilt(known, sources))  # type: ignore[arg-type]
    change = {
        row.name: row.instructions - old.instructions
        for row, old in zip(more.layers, plain.layers, strict=True)
    }
    bands = known.plan.steps[3].candidate.bands
    assert change.pop("pool") == bands
    assert set(change.values()) == {0}


# ---- limits -------------------------------------------------------------------


def test_digits_fit_the_microbit() -> None:
    for chain in ("gcc", "zig"):
        ram = bench("microbit", chain).ram
        assert ram.arena + ram.instance + ram.data + ram.program <= 16 * 1024


def test_too_little_ram_is_an_error_of_the_build() -> None:
    board = device("microbit")
    small = dataclasses.replace(board.board, ram=Memory(0x20000000, 1200))
    tight = dataclasses.replace(board, board=small)
    with pytest.raises(LimitError) as caught:
        firmware_of(tight, library(DIGITS, board))
    text = str(caught.value)
    assert text.startswith("digits_int8.tflite: needs ")
    assert "more RAM than microbit has, 1200; alive at the peak: '" in text


def test_too_little_flash_is_an_error_of_the_build() -> None:
    board = device("microbit")
    small = dataclasses.replace(board.board, flash=Memory(0, 4096))
    tight = dataclasses.replace(board, board=small)
    with pytest.raises(LimitError, match="more FLASH than microbit has, 4096; largest"):
        firmware_of(tight, library(DIGITS, board))


def test_ram_beyond_the_board_s_is_a_fault() -> None:
    """A program for more RAM than there is: stopped at the first wrong access."""
    board = device("mps2-an385", "gcc", "unicorn")
    program = firmware_of(board, library(DIGITS, board))
    little = dataclasses.replace(board.board, ram=Memory(0x20000000, 16 * 1024))
    wrong = dataclasses.replace(program, board=little)
    with pytest.raises(BuildError, match=r"processor faulted.*at 0x[0-9A-F]{8}, board"):
        must_succeed(board.simulator.run(wrong, {}), wrong)


def test_a_stack_that_overflows_is_seen() -> None:
    """An inference that needs more stack than the linker could know of."""
    board = device("microbit", "gcc", "unicorn")
    known = library(DIGITS, board)
    sources = known.sources()
    kernel = "static void max_pool_s8_2x2(void *const *p, const int32_t *a)\n{\n"
    deep = "    volatile uint8_t deep[15360];\n    deep[0] = 1;\n    (void)deep[0];\n"
    text = sources["digits_int8.c"].replace(kernel, kernel + deep)
    sources["digits_int8.c"] = text
    with pytest.raises(LimitError, match="more RAM than microbit has"):
        firmware_of(board, _Spoilt(known, sources))  # type: ignore[arg-type]


# ---- programs -----------------------------------------------------------------


# floats always on a core of each family
PRINTED = [("int8", name) for name in BOARDS] + [
    pytest.param(
        "float32", name, marks=[] if name in WITH_FLOATS else pytest.mark.sweep
    )
    for name in BOARDS
]


@pytest.mark.parametrize(("kind", "name"), PRINTED)
def test_the_example_prints_its_self_test(kind: str, name: str) -> None:
    model = DIGITS if kind == "int8" else FLOATS
    board = device(name)
    if model is FLOATS and name == "stm32vldiscovery":
        pytest.skip("its arena of floats does not fit 8 KB")
    known = library(model, board)
    program = example_firmware(known, board.board, board.toolchain)
    done = board.simulator.run(program, {})
    assert done.code == 0
    first, second = done.console.splitlines()
    assert first == f"{known.name}: self-test: no error"
    net = known.host()
    want = net(**example_inputs(known.plan.graph))["scores"].reshape(-1)
    net.close()
    have = np.array([float(word) for word in second.split()[1:]])
    assert second.startswith("scores: ") and np.allclose(have, want, atol=1e-4)


def test_unicorn_has_the_console_too() -> None:
    for name in ("microbit", "netduinoplus2", "riscv32-virt", "sifive-e"):
        board = device(name, "gcc", "unicorn")
        known = library(DIGITS, board)
        program = example_firmware(known, board.board, board.toolchain)
        said = board.simulator.run(program, {}).console
        assert said.startswith("digits_int8: self-test: no error\nscores: "), name


TICKS = """
#include "crt/port.h"
#include <stdio.h>

int main(void)
{
    uint32_t before = crt_port_ticks();
    uint32_t now = before;

    while (now - before < 1000u)
        now = crt_port_ticks();
    printf("%u %d %s %c %05d|%x%%\\n", now - before < 100000000u, -12, "text", 'c',
           -34, 0xbeefu);
    return crt_port_get() == -1 ? 7 : 8;
}
"""


class _Main(_Spoilt):
    """A build whose example is another program."""

    def files(self) -> dict[str, str]:
        real: Any = self._real
        return {**real.files(), "example/main.c": TICKS}


# @req crt_port_init, crt_port_put, crt_port_get, crt_port_ticks, crt_port_exit
@pytest.mark.parametrize("name", ["mps2-an386", "microbit", "riscv32-virt", "sifive-e"])
def test_ticks_console_and_exit_code(name: str) -> None:
    board = device(name, "gcc", "qemu")
    known: Any = _Main(library(DIGITS, board), {})
    program = example_firmware(known, board.board, board.toolchain)
    done = board.simulator.run(program, {})
    assert (done.console, done.code) == ("1 -12 text c -0034|beef%\n", 7)


def test_the_record_is_what_steps_write() -> None:
    board = device("mps2-an386")
    known = library(DIGITS, board)
    inputs = example_inputs(known.plan.graph)
    net = known.host()
    want = recorded(net, inputs)
    net.close()
    have = run_recorded(board, known, inputs)
    assert len(have) == len(known.plan.steps)
    for name, value in have.items():
        assert np.array_equal(value, want[name]), name


def test_a_missing_file_is_said() -> None:
    board = device("mps2-an386", "gcc", "unicorn")
    program = firmware_of(board, library(DIGITS, board))
    with pytest.raises(BuildError, match="could not read or write a file"):
        must_succeed(board.simulator.run(program, {}), program)


def test_of_several_inferences_the_last_is_counted() -> None:
    board = device("mps2-an386", "gcc", "unicorn")
    known = library(DIGITS, board)
    program = firmware_of(board, known)
    plan = count_plan(program, len(known.plan.steps))
    inputs = example_inputs(known.plan.graph)
    seen = []
    for runs in (1, 2, 3):
        given = {"crt.in": pack_inputs(known.plan, runs * [inputs])}
        counts = board.simulator.run(program, given, plan).counts
        assert counts is not None
        seen.append(counts)
    assert seen[1] == seen[2]
    assert seen[0].steps == seen[1].steps and seen[0].runtime >= seen[1].runtime
