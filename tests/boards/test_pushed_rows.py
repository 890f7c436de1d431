"""A network whose input comes in rows, in a board with little RAM: everything included,
bit by bit what this machine gives."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

import pybuild
from pybuild.boards.bench import BoardBench, bench_on_board
from pybuild.boards.check import check_on_board
from pybuild.boards.device import Device, firmware_of, pack_inputs
from pybuild.boards.simulators.simulator import FAULT
from pybuild.library import Library
from pybuild.targets.board import Memory
from pybuild.verify.samples import example_inputs
from tests.boards.devices import device
from tests.conftest import model_path
from tests.graphs.rows import model_of, two_inputs
from tests.toolchains import ROOT

RAM = 32 * 1024
DIGITS = ROOT / "examples" / "digits" / "digits_int8.tflite"


def with_32_kilobytes(path: Path) -> tuple[Device, Library]:
    board = device("mps2-an386", simulator="unicorn")
    small = dataclasses.replace(
        board.board, ram=Memory(board.board.ram.origin, RAM), memories={}
    )
    model = pybuild.load(path)
    made = model.build(target="cortex-m4", push=model.graph.inputs)
    return dataclasses.replace(board, board=small), made


def needs_every_byte(board: Device, made: Library) -> None:
    """Where the RAM ends a byte earlier, the first access there stops the program."""
    firmware, ram = firmware_of(board, made), board.board.ram
    less = dataclasses.replace(board.board, ram=Memory(ram.origin, ram.size - 1))
    inputs = {"crt.in": pack_inputs(made.plan, [example_inputs(made.plan.graph)])}
    outcome = board.simulator.run(dataclasses.replace(firmware, board=less), inputs)
    assert outcome.code == FAULT
    assert f"access of 0x{ram.origin + ram.size - 1:08X} at 0x" in outcome.said


def costs(board: Device, made: Library) -> BoardBench:
    """Checked, and what it takes."""
    path = f"{made.report.name}.test"
    done = check_on_board(board, made, path, count=2).result
    assert done.ok and done.samples == 2
    found = bench_on_board(board, made)
    assert [row.name for row in found.layers[:-1]] == [
        step.node.name for step in made.plan.steps if step.candidate.func is not None
    ]
    return found


def test_several_inputs_on_a_board() -> None:
    """Every call that takes a row is counted: a product takes an instruction."""
    board = device("mps2-an386", simulator="unicorn")
    model = model_of(two_inputs())
    found = costs(board, model.build(target="cortex-m4", push=["a", "b"]))
    assert sum(row.instructions for row in found.layers) == found.instructions
    assert all(row.instructions > row.macs for row in found.layers)
    assert 0 < found.ram.stack <= found.ram.stack_bound


@pytest.mark.sweep
@pytest.mark.parametrize("simulator", ["qemu", "unicorn"])
def test_digits_on_a_board(simulator: str) -> None:
    board = device("mps2-an386", simulator=simulator)
    costs(board, pybuild.load(DIGITS).build(target="cortex-m4", push=["image"]))


def test_a_byte_outside_stops_a_program() -> None:
    needs_every_byte(*with_32_kilobytes(DIGITS))


def test_vww_runs_in_32_kilobytes() -> None:
    """Stack and runtime too; one byte less stops it with the byte's address."""
    path = model_path("vww_int8.tflite")
    board, made = with_32_kilobytes(path)
    done = check_on_board(board, made, path, count=2)
    (tally,) = done.result.backends.values()
    assert done.result.ok and tally.elements > 0
    needs_every_byte(board, made)
