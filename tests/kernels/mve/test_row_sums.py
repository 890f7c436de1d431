"""Sums of a whole image that take its rows as they come, on vectors of four channels
or two in a word: as numpy's through LLVM and as C, and on an emulated Cortex-M55 or M4.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pybuild.boards.device import run_recorded
from pybuild.dtype import Array, DType
from pybuild.graph_builder import GraphBuilder
from pybuild.ir.graph import Graph
from pybuild.kernels.base.candidate import Candidate, RowAccess
from pybuild.kernels.table import candidates
from pybuild.model import Model
from pybuild.ops.interpret import interpret
from pybuild.targets.target import TARGETS
from tests.boards.devices import device
from tests.kernels.kernel_bench import Job, run_c, run_llvm

OPS = ("mean", "avg_pool2d", "max_pool2d")
# of pixels and channels: one vector, several, and what no four divides
SHAPES = ((1, 6, 5, 4), (1, 3, 1, 20), (1, 4, 7, 64), (1, 4, 3, 10))
# as many pixels of -128 as a sum of 16 bits holds, and one more
LONG = ((1, 2, 255, 4), (1, 2, 256, 4))


def graph(op: str, shape: tuple[int, ...], kind: str, first: bool = False) -> Graph:
    """All pixels of each channel; first: of what a layer of 32 channels makes."""
    net, quant = GraphBuilder("sums"), (0.05, 0 if kind == "int16" else 3)
    x = net.input("x", shape, kind, quant=quant)
    if first:
        w = values((32, 1, 1, shape[3]), "int8")
        x = net.op("conv2d", x, net.constant("w", w, (0.01, 0)), quant=quant)
    attrs: dict[str, Any] = {"kernel": shape[1:3]}
    if op == "mean":
        attrs = {"axes": (1, 2), "keepdims": True, "quant": quant}
    net.output(net.op(op, x, **attrs), "y")
    return Model("sums", net.build(), "litert", "0" * 64).lower("litert")


def values(shape: tuple[int, ...], kind: str) -> Array:
    dtype = DType(kind)
    chance = np.random.default_rng((9, *shape))
    made = chance.integers(dtype.low, dtype.high + 1, shape)
    made[0, :, :, 0] = dtype.low
    return made.astype(dtype.numpy)


def row_step(op: str, shape: tuple[int, ...], kind: str, core: str) -> Candidate:
    """Of the layer's kernels, that which adds a row."""
    made = graph(op, shape, kind)
    (node,) = (n for n in made.nodes if n.op == op)
    found = candidates(node, made, TARGETS[core])
    (one,) = [c for c in found if c.finish is not None]
    return one


def _job(op: str, shape: tuple[int, ...], kind: str, core: str) -> tuple[Job, Array]:
    step = row_step(op, shape, kind, core)
    row = values(shape, kind)[0, 1]
    row[:, 1] = row.max() if kind == "int16" else 127
    before = np.arange(shape[3], dtype=np.int32) * 37 - 100
    add = np.max if op == "max_pool2d" else np.sum
    both = np.concatenate([before[None], row.astype(np.int32)])
    wanted = add(both, axis=0).astype(np.int32)
    rows = [
        RowAccess(name, 1, size, 1, 0)
        for name, size in (
            ("sums", wanted.nbytes),
            ("x", row.nbytes),
            ("before", before.nbytes),
        )
    ]
    made = Candidate(step.func, step.args, tuple(rows[:1]), tuple(rows[1:]))
    arrays = {"x": row, "before": before}
    return Job(made, arrays, {"sums": wanted}, in_place=1), wanted


def _added(core: str, folder: Path) -> list[tuple[str, tuple[int, ...], str, str]]:
    """Adds a row of each form by both printers; which kernel each has."""
    jobs, wanted = [], []
    named: list[tuple[str, tuple[int, ...], str, str]] = []
    for op in OPS:
        for shape in (*SHAPES, *LONG):
            for kind in ("int8", "int16"):
                job, want = _job(op, shape, kind, core)
                func = job.candidate.func
                assert func is not None
                named.append((op, shape, kind, func.name))
                jobs.append(job)
                wanted.append(want)
    for results in (run_llvm(jobs), run_c(jobs, folder)):
        for name, result, want in zip(named, results, wanted, strict=True):
            np.testing.assert_array_equal(result["sums"], want, str(name))
    return named


def test_a_row_is_added_by_llvm_and_c(tmp_path: Path) -> None:
    for _, shape, _, name in _added("cortex-m55", tmp_path):
        assert name.endswith("_row_mve") == (shape[3] % 4 == 0)


def test_a_row_is_added_in_pairs(tmp_path: Path) -> None:
    for op, shape, kind, name in _added("cortex-m4", tmp_path):
        words = kind == "int8" and shape[3] % 4 == 0 and shape[2] <= 255
        assert name.endswith("_row_dsp") == (words and op != "max_pool2d")


def test_a_row_is_added_on_vectors_of_any_length(tmp_path: Path) -> None:
    for op, _, kind, name in _added("rv32imcv", tmp_path):
        assert (name == "row_sums_rvv") == (kind == "int8" and op != "max_pool2d")


@pytest.mark.parametrize("emit", ["c", "obj"])
@pytest.mark.parametrize(
    ("core", "board", "op"),
    [("cortex-m55", "mps3-an547", op) for op in OPS]
    + [("cortex-m4", "mps2-an386", op) for op in OPS[:2]],
)
def test_on_a_core(core: str, board: str, op: str, emit: str) -> None:
    made = graph(op, (1, 25, 9, 4), "int8", first=True)
    model = Model("sums", made, "litert", "0" * 64)
    library = model.build(name="sums", target=core, emit=emit, optimise="ram")
    names = [s.candidate.func.name for s in library.plan.steps if s.candidate.func]
    assert any(name.endswith(("_row_mve", "_row_dsp")) for name in names), names
    given = {"x": values((1, 25, 9, 4), "int8")}
    found = run_recorded(device(board, "gcc"), library, given)
    np.testing.assert_array_equal(found["y"], interpret(made, given)["y"])
