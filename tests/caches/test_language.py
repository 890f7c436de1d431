"""A language model's step, whose caches are written where they lie: 300 steps beside a
plain numpy cache, cut off and continued, however a row is written; and what it costs.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

import pybuild
from pybuild.library import Library
from pybuild.model import Model
from tests.caches.language import SMALL, Numpy, Sizes, Step

# how a row is written, and whether rows are the first axis of a cache
SPELLINGS = (
    ("elements", True), ("elements", False), ("rows", True), ("tensor", False),
    ("tail", True), ("tail", False),
)  # fmt: skip
STEPS = 300


def model_of(folder: Path, sizes: Sizes, spelling: str, rows_first: bool) -> Model:
    path = folder / f"{spelling}_{int(rows_first)}.onnx"
    onnx.save(Step(sizes, spelling, rows_first).model(), path)
    return pybuild.load(path, state=sizes.state)


def assignments(library: Library) -> list[str]:
    """Steps that only move the bytes of a state."""
    moves = ("assign", "copy", "transpose")
    return [step.node.name for step in library.plan.steps if step.node.op in moves]


@pytest.mark.parametrize(("spelling", "rows_first"), SPELLINGS)
def test_steps_are_those_of_a_plain_cache(
    spelling: str, rows_first: bool, tmp_path: Path
) -> None:
    """Cut off every 37 steps: another instance continues from the saved state."""
    library = model_of(tmp_path, SMALL, spelling, rows_first).build()
    assert assignments(library) == []
    assert library.plan.arena_bytes < 1.5 * SMALL.cache_bytes
    plain, chance = Numpy(SMALL, tail=spelling == "tail"), np.random.default_rng(0)
    net = library.host("llvm")
    for step in range(STEPS):
        token, at = int(chance.integers(SMALL.words)), step % SMALL.window
        if step % 37 == 36:
            saved = net.save_state()
            net.run(token=np.array([5]), at=np.array([1]))
            net.close()
            net = library.host("llvm")
            net.restore_state(saved)
        made = net.run(token=np.array([token]), at=np.array([at]))["logits"]
        np.testing.assert_allclose(made, plain.step(token, at), 2e-4, 2e-4)
    net.close()
