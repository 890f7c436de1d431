"""A board with little RAM gets a plan that fits it, without an option; what that plan
costs is said, and where none fits, what is large."""

from __future__ import annotations

import functools
import json
import re
from dataclasses import replace

import numpy as np
import pytest

import pybuild
from pybuild.boards.bench import BoardBench, bench_on_board
from pybuild.boards.check import check_on_board
from pybuild.boards.device import Device, firmware_of, program_of, run_samples
from pybuild.cli import main
from pybuild.cli.boards import show_fit
from pybuild.errors import LimitError
from pybuild.host.lazy_buffers import bind_lazy
from pybuild.package.curve import Fit, Point, fit
from pybuild.verify.samples import example_inputs
from tests.boards.devices import DIGITS, device, library
from tests.conftest import model_path

CORE = "cortex-m4"


@functools.cache
def roomy() -> BoardBench:
    board = device("mps2-an386")
    return bench_on_board(board, library(DIGITS, board))


def tight(less: int) -> Device:
    """A made board that has so many bytes less than the digits' plan takes."""
    ram, board = roomy().ram, device("mps2-an386")
    size = ram.arena + ram.instance + ram.data + ram.program - less
    small = replace(board.board.ram, size=size)
    return replace(board, board=replace(board.board, ram=small))


def test_a_roomy_board_takes_the_plan_as_it_is() -> None:
    board = device("mps2-an386")
    made = program_of(board, library(DIGITS, board))
    assert made.library is library(DIGITS, board)
    assert made.fit is None and roomy().fit is None
    assert "ram_fit" not in roomy().to_json()


@pytest.mark.parametrize("less", [300, 600])
def test_the_fastest_plan_that_fits_is_taken(less: int) -> None:
    board, before = tight(less), roomy()
    known = library(DIGITS, board)
    with pytest.raises(LimitError, match="more RAM than mps2-an386 has"):
        firmware_of(board, known)
    result = bench_on_board(board, known)
    ram, told = result.ram, result.fit
    assert told is not None
    assert ram.arena + ram.instance + ram.data + ram.program <= board.board.ram.size
    assert ram.arena <= told.limit < before.ram.arena
    assert (told.before, told.arena) == (before.ram.arena, ram.arena)
    again = known.again(ram_limit=told.limit)
    assert again.plan.arena_bytes == ram.arena
    assert result.instructions > before.instructions
    saved = (told.before - told.arena) / 1024
    assert told.more == pytest.approx(told.per_kb * saved)
    assert told.next_arena < ram.arena
    assert result.to_json()["ram_fit"]["limit"] == told.limit


def test_its_bits_are_the_same() -> None:
    board = tight(300)
    known = library(DIGITS, board)
    for per_layer in (False, True):
        done = check_on_board(board, known, DIGITS, 2, per_layer)
        assert done.result.ok and done.fit is not None
    inputs = example_inputs(known.plan.graph)
    (found,) = run_samples(board, known, [inputs])
    net = bind_lazy(known.host())
    for name, value in net(**inputs).items():
        np.testing.assert_array_equal(found[name], value)


def test_where_none_fits_it_is_said_what_is_large() -> None:
    board = tight(1000)
    with pytest.raises(LimitError) as caught:
        program_of(board, library(DIGITS, board))
    least = library(DIGITS, board).least_arena()
    text = rf"the arena has \d+ bytes, of which the smallest plan needs {least}; "
    text += r"beside it \d+ of stack, \d+ of data, 48 of them the instance\. Hint: a "
    assert re.search(text, str(caught.value)), str(caught.value)
    assert caught.value.exit_code == 3


@pytest.mark.parametrize("option", [{"plan": "whole"}, {"ram_limit": 1424}])
def test_what_the_user_asked_for_is_kept(option: dict[str, object]) -> None:
    made = pybuild.load(DIGITS).build(target=CORE, **option)  # type: ignore[arg-type]
    with pytest.raises(LimitError, match="more RAM than mps2-an386 has") as caught:
        program_of(tight(300), made)
    assert ("Hint: it fits with --ram-limit " in str(caught.value)) == (
        "ram_limit" in option
    )


POINTS = (Point(1048, 1.5), Point(2072, 1.2), Point(5144, 1.05), Point(9000, 1.0))


@pytest.mark.parametrize(
    ("arenas", "more", "per_kb", "after"),
    [
        ((5096, 2024), 0.142857, 0.047619, (1000, 0.25)),
        ((5096, 1000), 0.428571, 0.107143, (0, 0.0)),
    ],
)
def test_what_a_kilobyte_costs(
    arenas: tuple[int, int], more: float, per_kb: float, after: tuple[int, float]
) -> None:
    told = fit("microbit", 4096, 2048, arenas, 48, POINTS)
    assert (told.more, told.per_kb) == pytest.approx((more, per_kb), rel=1e-4)
    assert (told.next_arena, told.next_per_kb) == pytest.approx(after, rel=1e-4)


def test_the_line_that_people_read(capsys: pytest.CaptureFixture[str]) -> None:
    show_fit(Fit("microbit", 8192, 7680, 16128, 5060, 0.127, 0.01175, 4000, 0.02))
    assert capsys.readouterr().out == (
        "plan   for a board of 8,192 bytes, --ram-limit 7680: arena 5,060 instead of "
        "16,128 bytes: +12.7 % instructions, by estimate, 1.18 % a KB; the next "
        "smaller is 4,000, 2.00 % a KB\n"
    )
    show_fit(None)
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("board", ["stm32vldiscovery", "microbit"])
def test_kws_fits_a_small_board_without_an_option(
    board: str, capsys: pytest.CaptureFixture[str]
) -> None:
    device(board)
    model = str(model_path("kws_int8.tflite"))
    assert main(["check", model, "--on", board, "--samples", "1", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert "ram_fit" not in facts


def test_a_check_says_what_the_plan_that_fits_costs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    board = tight(300)
    monkeypatch.setattr("pybuild.boards.device.open_device", lambda *_, **__: board)
    words = ["check", str(DIGITS), "--on", "mps2-an386", "--samples", "1", "--json"]
    assert main(words) == 0
    told = json.loads(capsys.readouterr().out)["ram_fit"]
    assert told["arena"] <= told["limit"] < told["before"] == roomy().ram.arena
