"""Convolutions whose windows end with eight bytes or fewer behind whole vectors: as
numpy's through LLVM and as C, and on an emulated Cortex-M55; no weight is a filler that
need not be."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from pybuild.boards.device import run_recorded
from pybuild.graph_builder import GraphBuilder
from pybuild.ir.graph import Graph
from pybuild.kernels.base.candidate import Candidate
from pybuild.kernels.table import candidates
from pybuild.model import Model
from pybuild.ops.interpret import interpret
from pybuild.targets.target import TARGETS
from tests.boards.devices import device
from tests.kernels.few.sample import SOME, Some
from tests.kernels.kernel_bench import Job, given, run_c, run_llvm

OUTS = 8
# rows, columns and channels of a window, and the bytes of a channel's weights: written
# out and in a loop, from the row and from a patch, with fillers and without
WINDOWS = {
    (1, 1, 16): 16, (1, 1, 19): 24, (1, 1, 24): 24, (1, 1, 25): 32, (1, 1, 56): 56,
    (1, 1, 68): 72, (1, 1, 72): 72, (1, 1, 75): 80, (1, 1, 8): 8, (3, 3, 2): 24,
    (3, 3, 8): 72, (2, 2, 17): 72, (5, 4, 2): 40,
}  # fmt: skip


def graph(window: tuple[int, int, int], width: int = 7) -> Graph:
    *sides, channels = window
    net, quant = GraphBuilder("half"), (0.05, 3)
    x = net.input("x", (1, 6, width, channels), "int8", quant=quant)
    chance = np.random.default_rng((5, *window))
    made = chance.integers(-127, 128, (OUTS, *sides, channels)).astype(np.int8)
    made[:, -1, -1, -1] = 127  # what is behind it counts, if it is read
    w = net.constant("w", made, (0.01, 0))
    net.output(net.op("conv2d", x, w, quant=(0.4, -5)), "y")
    return Model("half", net.build(), "litert", "0" * 64).lower("litert")


def kernels(made: Graph) -> list[Candidate]:
    (node,) = (n for n in made.nodes if n.op == "conv2d")
    found = candidates(node, made, TARGETS["cortex-m55"])
    return [c for c in found if c.func and c.func.name.startswith("conv2d_mve")]


@SOME
def test_by_llvm_and_c(some: Some, tmp_path: Path) -> None:
    jobs = []
    for window, size in WINDOWS.items():
        made = graph(window)
        x = given(made)
        wanted = interpret(made, {"x": x})["y"]
        for one in kernels(made):
            assert one.constants[0].array.nbytes == OUTS * size, window
            assert one.func is not None
            assert ("_half" in one.func.name) == (size % 16 == 8), one.func.name
            jobs.append(Job(one, {"x": x}, {"y": wanted}))
    assert len(jobs) > len(WINDOWS)
    fewer = some(jobs)
    for tried, results in (
        (jobs, run_llvm(jobs)), (fewer, run_c(fewer, tmp_path)),
    ):  # fmt: skip
        for job, result in zip(tried, results, strict=True):
            name = job.candidate.func.name if job.candidate.func else ""
            np.testing.assert_array_equal(result["y"], job.outputs["y"], name)


@pytest.mark.parametrize("emit", ["c", "obj"])
@pytest.mark.parametrize("window", [(1, 1, 19), (1, 1, 72), (3, 3, 8)])
def test_on_a_core(window: tuple[int, int, int], emit: str) -> None:
    made = graph(window)
    library = Model("half", made, "litert", "0" * 64).build(
        name="half", target="cortex-m55", emit=emit
    )
    names = [s.candidate.func.name for s in library.plan.steps if s.candidate.func]
    assert any("_half" in name for name in names), names
    x = {"x": given(made)}
    found = run_recorded(device("mps3-an547", "gcc"), library, x)
    np.testing.assert_array_equal(found["y"], interpret(made, x)["y"])
