"""A right float model is not called wrong for its roundings, nor a wrong one right."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import pybuild
from pybuild.boards import check as on_boards
from pybuild.dtype import Array
from pybuild.ir.graph import Graph
from pybuild.verify import check as checking
from pybuild.verify.check import CheckResult, check
from pybuild.verify.reference import Reference, reference


def sine_of_sums(inputs: int) -> Graph:
    rng = np.random.default_rng(0)
    b = pybuild.GraphBuilder("sines")
    x = b.input("x", (4, inputs))
    w = b.constant("w", rng.normal(size=(64, inputs)).astype(np.float32))
    made = b.op("dense", x, w)
    b.output(b.op("map", made, fn="sin"), "y")
    return b.build()


def moved(by: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """The reference's values are this far from its own."""

    def other(kind: str, path: object, graph: Graph, *more: object) -> Reference:
        known = reference("numpy", "sines", graph)

        def run(inputs: Mapping[str, Array]) -> dict[str, Array]:
            found = known.run(inputs)
            return {**found, "y": np.asarray(found["y"] + np.float32(by))}

        return replace(known, run=run)

    monkeypatch.setattr(checking, "reference", other)


def checked(graph: Graph, seed: int = 0) -> CheckResult:
    return check("sines", pybuild.build(graph), ("llvm",), "numpy", 2, seed=seed)


def test_roundings_of_a_long_sum_are_no_difference() -> None:
    made = checked(sine_of_sums(1024))
    assert made.ok and made.backends["llvm"].mismatches == 0
    assert any("roundings between layers" in note for note in made.notes)
    assert 1e-5 < made.backends["llvm"].max_abs < 1e-2  # what it is, all the same


def test_what_is_more_is_a_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = sine_of_sums(1024)
    moved(0.02, monkeypatch)
    made = checked(graph)
    assert not made.ok and made.backends["llvm"].mismatches > 0
    assert not any("roundings" in note for note in made.notes)


@pytest.mark.parametrize("seed", range(6))
def test_a_wide_sum_that_cancels_is_no_difference(seed: int) -> None:
    assert checked(sine_of_sums(64), seed).ok


@pytest.mark.parametrize("by", [0.0, 0.02])
def test_a_board_s_machine_is_compared_with_the_reference(
    by: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A board that gives what this machine gives is not right for that alone."""
    library = pybuild.build(sine_of_sums(16))
    device: Any = SimpleNamespace(
        board=SimpleNamespace(name="any"), toolchain="gcc",
        simulator=SimpleNamespace(name="none"),
    )  # fmt: skip
    program = SimpleNamespace(library=library, fit=None)
    monkeypatch.setattr(on_boards, "program_of", lambda *given: program)
    monkeypatch.setattr(
        on_boards, "run_program",
        lambda device, program, given: on_boards.on_host(library, given, False),
    )  # fmt: skip
    alone = on_boards.check_on_board(device, library, "sines", 2).result
    assert alone.ok and alone.wide is not None
    moved(by, monkeypatch)
    both = on_boards.check_on_board(device, library, "sines", 2, ref="numpy").result
    assert both.ok == (by == 0) and both.wide is not None
    assert both.backends["any"].good
    assert both.backends["this machine"].good == (by == 0)
    assert both.reference.startswith("this machine, and that against numpy")
