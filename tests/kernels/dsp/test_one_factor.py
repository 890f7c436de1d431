"""Layers with one scale: their factor is the layer's, and a channel has four bytes in
flash beside its weights. As numpy's through LLVM and as C, and on emulated cores."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from pybuild.boards.device import run_recorded
from pybuild.graph_builder import GraphBuilder
from pybuild.ir.graph import Graph, Quant
from pybuild.kernels.base.candidate import Candidate
from pybuild.kernels.table import candidates
from pybuild.model import Model
from pybuild.ops.interpret import interpret
from pybuild.targets.target import TARGETS
from tests.boards.devices import CORES, device
from tests.kernels.few.sample import SOME, Some
from tests.kernels.kernel_bench import Job, given, run_c, run_llvm

TARGET = ("cortex-m4", "cortex-m55")


@dataclass(frozen=True)
class Made:
    """A layer: its outputs, the side of its window, its channels; the least weight, a
    clamp, and whether each channel has a scale of its own."""

    outs: int
    side: int = 1
    channels: int = 16
    least: int = -127
    clamp: tuple[float | None, float | None] = (None, None)
    dense: bool = False
    each: bool = False


LAYERS = (
    Made(8), Made(7, 3, 8), Made(8, 3, 8, -128), Made(6, 1, 24, clamp=(0.0, None)),
    Made(9, 1, 20, clamp=(-1.0, 2.0)), Made(16, dense=True, channels=40),
    Made(5, dense=True), Made(1), Made(3), Made(8, each=True),
    Made(8, 1, 64, clamp=(0.0, None), each=True),
    Made(12, 3, 8, clamp=(0.0, None), each=True),
)  # fmt: skip


def graph(made: Made) -> Graph:
    net, quant = GraphBuilder("one"), (0.05, -4)
    chance = np.random.default_rng((11, LAYERS.index(made)))
    shape: tuple[int, ...] = (2, made.channels)
    wide: tuple[int, ...] = (made.outs, made.channels)
    if not made.dense:
        shape = (1, 6, 7, made.channels)
        wide = (made.outs, made.side, made.side, made.channels)
    x = net.input("x", shape, "int8", quant=quant)
    values = chance.integers(made.least, 128, wide).astype(np.int8)
    values.reshape(-1)[5] = made.least
    scales: tuple[float, ...] = (0.01,)
    if made.each:
        scales = tuple(0.01 * (1 + n / 7) for n in range(made.outs))
    axis = 0 if made.each else None
    w = net.constant("w", values, Quant(scales, (0,) * len(scales), axis))
    bias = chance.integers(-4000, 4000, made.outs).astype(np.int32)
    op = "dense" if made.dense else "conv2d"
    low, high = made.clamp
    y = net.op(op, x, w, net.constant("b", bias), quant=(0.4, -5), clamp=(low, high))
    net.output(y, "y")
    return Model("one", net.build(), "litert", "0" * 64).lower("litert")


def kernels(one: Graph, target: str) -> list[Candidate]:
    (node,) = (n for n in one.nodes if n.op in ("conv2d", "dense"))
    found = candidates(node, one, TARGETS[target])
    family = "_mve" if target == "cortex-m55" else "_dsp"
    return [c for c in found if c.func and family in c.func.name and c.constants]


@pytest.mark.parametrize("target", TARGET)
@SOME
def test_by_llvm_and_c(some: Some, target: str, tmp_path: Path) -> None:
    jobs, joint = [], 0
    for made in LAYERS:
        one = graph(made)
        x = given(one)
        wanted = interpret(one, {"x": x})["y"]
        for kernel in kernels(one, target):
            assert kernel.func is not None
            jobs.append(Job(kernel, {"x": x}, {"y": wanted}))
            assert not (made.each and "_joint" in kernel.func.name)
            if "_joint" in kernel.func.name:
                channels = made.outs + -made.outs % (4 if "mve" in target else 2)
                joint += kernel.constants[1].array.nbytes <= 4 * channels + 8
    assert joint >= 6
    fewer = some(jobs)
    for tried, results in (
        (jobs, run_llvm(jobs)), (fewer, run_c(fewer, tmp_path)),
    ):  # fmt: skip
        for job, result in zip(tried, results, strict=True):
            name = job.candidate.func.name if job.candidate.func else ""
            np.testing.assert_array_equal(result["y"], job.outputs["y"], name)


@pytest.mark.parametrize("emit", ["c", "obj"])
@pytest.mark.parametrize("target", TARGET)
@pytest.mark.parametrize("made", [LAYERS[1], LAYERS[5]])
def test_on_a_core(made: Made, target: str, emit: str) -> None:
    one = graph(made)
    library = Model("one", one, "litert", "0" * 64).build(
        name="one", target=target, emit=emit
    )
    names = [s.candidate.func.name for s in library.plan.steps if s.candidate.func]
    assert any("_joint" in name for name in names), names
    x = {"x": given(one)}
    found = run_recorded(device(CORES[target], "gcc"), library, x)
    np.testing.assert_array_equal(found["y"], interpret(one, x)["y"])
