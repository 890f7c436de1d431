"""A language model's step, whose caches are written where they lie: 300 steps beside a
plain numpy cache, cut off and continued, however a row is written; and what it costs.
"""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace as Sample
from unittest import mock

import numpy as np
import onnx
import pytest

import pybuild
from pybuild.boards import bench
from pybuild.boards.device import program_of, run_samples
from pybuild.dtype import Array
from pybuild.library import Library
from pybuild.model import Model
from pybuild.verify.check import check
from tests.boards.devices import CORES, device
from tests.caches.language import SMALL, Numpy, Sizes, Step, long_window

# how a row is written, and whether rows are the first axis of a cache
SPELLINGS = (
    ("elements", True), ("elements", False), ("rows", True), ("tensor", False),
    ("tail", True), ("tail", False), ("flat", True),
)  # fmt: skip
STEPS = 300


def model_of(
    folder: Path, sizes: Sizes, spelling: str, rows_first: bool, repeated: bool = False
) -> Model:
    path = folder / f"{spelling}_{int(rows_first)}.onnx"
    onnx.save(Step(sizes, spelling, rows_first, repeated).model(), path)
    return pybuild.load(path, state=sizes.state)


def moves(library: Library) -> list[str]:
    """Steps that only move the bytes of a state."""
    steps = library.plan.steps
    ops = ("assign", "copy", "transpose", "slice")
    return [step.node.name for step in steps if step.node.op in ops]


def inputs_of(sizes: Sizes) -> list[dict[str, Array]]:
    """Tokens by a seed, positions round and round the window."""
    tokens = np.random.default_rng(0).integers(sizes.words, size=STEPS)
    return [
        {"token": np.array([token]), "at": np.array([step % sizes.window])}
        for step, token in enumerate(tokens)
    ]


def wanted(sizes: Sizes, spelling: str) -> list[Array]:
    """The logits of each step with plain caches."""
    plain = Numpy(sizes, tail=spelling == "tail")
    steps = inputs_of(sizes)
    return [plain.step(int(step["token"][0]), int(step["at"][0])) for step in steps]


@pytest.mark.parametrize(("spelling", "rows_first"), SPELLINGS)
def test_steps_are_those_of_a_plain_cache(
    spelling: str, rows_first: bool, tmp_path: Path
) -> None:
    """Cut off every 37 steps: another instance continues from the saved state."""
    library = model_of(tmp_path, SMALL, spelling, rows_first).build()
    assert moves(library) == []
    assert library.plan.arena_bytes < 1.5 * SMALL.cache_bytes
    wants, given = wanted(SMALL, spelling), inputs_of(SMALL)
    net = library.host("c" if spelling in ("rows", "tail") else "llvm")
    for step, (one, want) in enumerate(zip(given, wants, strict=True)):
        if step % 37 == 36:
            saved = net.save_state()
            net.run(**given[0])
            net.close()
            net = library.host("llvm")
            net.restore_state(saved)
        np.testing.assert_allclose(net.run(**one)["logits"], want, 2e-4, 2e-4)
    net.close()


@pytest.mark.parametrize(
    ("core", "spelling", "rows_first"),
    [("cortex-m4", "rows", True), ("cortex-m55", "tail", False)],
)
def test_steps_on_a_core(
    core: str, spelling: str, rows_first: bool, tmp_path: Path
) -> None:
    library = model_of(tmp_path, SMALL, spelling, rows_first).build(target=core)
    made = run_samples(device(CORES[core]), library, inputs_of(SMALL))
    for one, want in zip(made, wanted(SMALL, spelling), strict=True):
        np.testing.assert_allclose(one["logits"], want, 2e-4, 2e-4)


def test_check_feeds_states_as_the_file_has_them(tmp_path: Path) -> None:
    """ONNX Runtime reads caches in the file's order, and a window without new rows."""
    model = model_of(tmp_path, SMALL, "elements", True)
    assert check(model.path, model.build(), ["llvm"], samples=2, per_layer=True).ok
    path = tmp_path / "window.onnx"
    onnx.save(long_window(), path)
    model = pybuild.load(path, state={"old": "next"})
    library = model.build()
    assert [step.node.op for step in library.plan.steps].count("shift") == 1
    assert check(path, library, ["llvm"], samples=2).ok


@pytest.mark.parametrize("rows_first", [True, False])
def test_heads_that_share_keys_and_values_are_rows_of_one_product(
    rows_first: bool, tmp_path: Path
) -> None:
    """A file repeats both for each head: nothing copies them, nothing else changes."""
    library = model_of(tmp_path, SMALL, "elements", rows_first, True).build()
    plain = model_of(tmp_path, SMALL, "elements", rows_first).build()
    assert library.plan.arena_bytes <= plain.plan.arena_bytes
    for one in (library, plain):
        assert sum(step.node.op == "attention" for step in one.plan.steps) == 2
    assert len(library.plan.steps) == len(plain.plan.steps)
    net, wants = library.host("llvm"), wanted(SMALL, "elements")
    for given, want in zip(inputs_of(SMALL)[:40], wants, strict=False):
        np.testing.assert_allclose(net.run(**given)["logits"], want, 2e-4, 2e-4)
    net.close()


# instructions of a step on a Cortex-M4 with gcc 12.2; while it read the whole window:
# 1,864,685, 1,949,165 and 2,201,285; with copies of the caches 2,958,715 at the end
BY_POSITION = {0: 981_316, 64: 1_232_196, 255: 1_980_916}


def test_a_step_takes_the_cache_and_time_by_its_position(tmp_path: Path) -> None:
    """On a Cortex-M4; with copies 697,908 bytes."""
    sizes = Sizes()
    library = model_of(tmp_path, sizes, "elements", True).build(target="cortex-m4")
    assert library.plan.arena_bytes <= 1.01 * sizes.cache_bytes
    board = device(CORES["cortex-m4"])
    program = program_of(board, library)
    for at, most in BY_POSITION.items():
        given = {"token": np.array([7]), "at": np.array([at])}
        with mock.patch.object(bench, "sample", return_value=Sample(inputs=given)):
            found = bench.bench_program(board, program)
        assert found.instructions < 1.005 * most
