"""A network whose input comes in rows, in a board with little RAM: everything included,
bit by bit what this machine gives."""

from __future__ import annotations

import dataclasses

import pybuild
from pybuild.run.board.check import check_on_board
from pybuild.run.board.device import firmware_of, pack_inputs
from pybuild.run.board.simulator import FAULT
from pybuild.run.samples import example_inputs
from pybuild.targets.board import Memory
from tests.boards.devices import device
from tests.conftest import model_path

RAM = 32 * 1024


def test_vww_runs_in_32_kilobytes() -> None:
    """Stack and runtime too; with a page less, the first access there stops it."""
    path = model_path("vww_int8.tflite")
    board = device("mps2-an386", simulator="unicorn")
    origin = board.board.ram.origin
    small = dataclasses.replace(board.board, ram=Memory(origin, RAM), memories={})
    board = dataclasses.replace(board, board=small)
    model = pybuild.load(path)
    made = model.build(target="cortex-m4", push=model.graph.inputs)
    done = check_on_board(board, made, path, count=2)
    (tally,) = done.result.backends.values()
    assert done.result.ok and tally.elements > 0
    firmware = firmware_of(board, made)
    less = dataclasses.replace(small, ram=Memory(origin, RAM - 4096))
    short = dataclasses.replace(firmware, board=less)
    inputs = {"crt.in": pack_inputs(made.plan, [example_inputs(made.plan.graph)])}
    outcome = board.simulator.run(short, inputs)
    assert outcome.code == FAULT and "at 0x" in outcome.said
