"""Convolutions whose pairs of taps no usual turn divides: turns of 5, 6 or 7 pairs
leave none over, so that no weight is a filler. As numpy's through LLVM and as C, and on
an emulated Cortex-M4."""

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
from tests.boards.devices import CORES, device
from tests.kernels.kernel_bench import Job, given, run_c, run_llvm

OUTS = 6
# side and channels of a window, and the pairs of a turn that its taps are a number of
WINDOWS = {
    (1, 12): 6, (1, 20): 5, (1, 28): 7, (1, 60): 6, (1, 108): 6, (1, 100): 5, (3, 4): 6,
    (3, 3): 5, (3, 12): 6, (1, 84): 6,
}  # fmt: skip


def graph(window: tuple[int, int], width: int = 5) -> Graph:
    side, channels = window
    net, quant = GraphBuilder("turns"), (0.05, 7)
    x = net.input("x", (1, 4, width, channels), "int8", quant=quant)
    chance = np.random.default_rng((13, *window))
    values = chance.integers(-127, 128, (OUTS, side, side, channels)).astype(np.int8)
    w = net.constant("w", values, (0.01, 0))
    pads = (side - 1, side - 1, 0, 0)
    net.output(net.op("conv2d", x, w, quant=(0.4, -5), pads=pads), "y")
    return Model("turns", net.build(), "litert", "0" * 64).lower("litert")


def kernels(made: Graph, turn: int) -> list[Candidate]:
    (node,) = (n for n in made.nodes if n.op == "conv2d")
    found = candidates(node, made, TARGETS["cortex-m4"])
    named = [(c, c.func.name.split("_")) for c in found if c.func]
    return [c for c, name in named if "dsp" in name and f"by{turn}" in name]


def test_by_llvm_and_c(tmp_path: Path) -> None:
    jobs = []
    for (side, channels), turn in WINDOWS.items():
        made = graph((side, channels))
        x = given(made)
        wanted = interpret(made, {"x": x})["y"]
        found = kernels(made, turn)
        assert found, (side, channels)
        for one in found:
            jobs.append(Job(one, {"x": x}, {"y": wanted}))
            if side == 1:
                assert one.constants[0].array.nbytes == OUTS * channels, channels
    for results in (run_llvm(jobs), run_c(jobs, tmp_path)):
        for job, result in zip(jobs, results, strict=True):
            name = job.candidate.func.name if job.candidate.func else ""
            np.testing.assert_array_equal(result["y"], job.outputs["y"], name)


@pytest.mark.parametrize("emit", ["c", "obj"])
def test_on_a_core(emit: str) -> None:
    made = graph((1, 60), 24)
    library = Model("turns", made, "litert", "0" * 64).build(
        name="turns", target="cortex-m4", emit=emit
    )
    names = [s.candidate.func.name for s in library.plan.steps if s.candidate.func]
    assert any("_by6" in name for name in names), names
    x = {"x": given(made)}
    found = run_recorded(device(CORES["cortex-m4"], "gcc"), library, x)
    np.testing.assert_array_equal(found["y"], interpret(made, x)["y"])
