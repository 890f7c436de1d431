"""Layers whose weights have 4 bits, two in a byte of flash: as numpy's through LLVM and
as C, and on emulated cores; where they lie so, and where they do not."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from pybuild.boards.bench import bench_on_board
from pybuild.boards.device import run_recorded
from pybuild.graph_builder import GraphBuilder
from pybuild.ir.graph import Graph
from pybuild.kernels import table
from pybuild.kernels.base.candidate import Candidate
from pybuild.kernels.layers.weights import WEIGHTS4
from pybuild.kernels.table import candidates
from pybuild.model import Model
from pybuild.ops.interpret import interpret
from pybuild.targets.target import TARGETS
from tests.boards.devices import CORES, device
from tests.kernels.few.sample import SOME, Some
from tests.kernels.kernel_bench import Job, given, run_c, run_llvm

# rows, columns and inputs of a window, outputs, pixels of a row: in one run of sums and
# in several, outputs that are no multiple of a block, a pixel left over, few pixels
WINDOWS = [
    (1, 1, 16, 8, 5), (1, 1, 32, 10, 4), (1, 1, 24, 5, 7), (3, 3, 8, 12, 7),
    (3, 3, 3, 8, 6), (3, 3, 16, 4, 3), (2, 2, 6, 13, 4), (5, 5, 2, 16, 5),
    (3, 3, 128, 4, 2),
]  # fmt: skip
# rows of the input, inputs, outputs
DENSE = [(1, 64, 16), (1, 40, 4), (1, 128, 18), (3, 64, 13), (1, 2048, 9), (1, 31, 6)]
TARGETS_OF = ("cortex-m0", "cortex-m3", "cortex-m4", "cortex-m55", "rv32imc")
Sizes = tuple[int, ...]


def graph(sizes: Sizes, least: int, groups: int = 1, bits: int = 4) -> Graph:
    """A convolution, or of three sizes a dense layer, with weights from `least` on."""
    net, quant = GraphBuilder("int4"), (0.05, 3)
    shape: Sizes
    chance = np.random.default_rng((*sizes, -least))
    if len(sizes) == 3:
        (rows, inputs, outs), shape = sizes, (sizes[2], sizes[1])
        x = net.input("x", (rows, inputs), "int8", quant=quant)
    else:
        *window, outs, width = sizes
        shape = (outs, *window)
        channels = window[2] * groups
        x = net.input("x", (1, 5, width, channels), "int8", quant=quant)
    weights = chance.integers(least, 1 << bits - 1, shape).astype(np.int8)
    weights.reshape(-1)[:2] = least, (1 << bits - 1) - 1
    w = net.constant("w", weights, (0.08, 0))
    bias = chance.integers(-900, 900, outs).astype(np.int32)
    b = net.constant("b", bias, (0.004, 0))
    y = (0.05 * float(np.sqrt(weights[0].size)), -5)
    if len(sizes) == 3:
        net.output(net.op("dense", x, w, b, quant=y), "y")
    else:
        edge = tuple(side // 2 for side in (*shape[1:3], *shape[1:3]))
        conv = net.op("conv2d", x, w, b, quant=y, pads=edge, groups=groups)
        net.output(conv, "y")
    return Model("int4", net.build(), "litert", "0" * 64).lower("litert")


def packed(made: Graph, target: str, optimise: str = "balanced") -> list[Candidate]:
    """The kernels with two weights in a byte."""
    (node,) = (n for n in made.nodes if n.op in ("conv2d", "dense"))
    found = candidates(node, made, TARGETS[target], optimise)
    return [c for c in found if c.constants and c.constants[0].role == WEIGHTS4]


@pytest.fixture
def any_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """Layers of few weights have such kernels, too."""
    monkeypatch.setattr(table, "_CODE", 0)


@SOME
@pytest.mark.parametrize("target", TARGETS_OF)
@pytest.mark.usefixtures("any_size")
def test_by_llvm_and_c(target: str, some: Some, tmp_path: Path) -> None:
    jobs = []
    graphs = [graph(s, low) for s in (*WINDOWS, *DENSE) for low in (-8, -7)]
    graphs.append(graph((3, 3, 8, 16, 6), -8, groups=2))
    for made in graphs:
        x = given(made)
        wanted = interpret(made, {"x": x})["y"]
        found = packed(made, target)
        assert found, made
        jobs += [Job(one, {"x": x}, {"y": wanted}) for one in found]
    fewer = some(jobs)
    for tried, results in (
        (jobs, run_llvm(jobs)), (fewer, run_c(fewer, tmp_path)),
    ):  # fmt: skip
        for job, result in zip(tried, results, strict=True):
            name = job.candidate.func.name if job.candidate.func else ""
            np.testing.assert_array_equal(result["y"], job.outputs["y"], name)


@pytest.mark.parametrize("emit", ["c", "obj"])
@pytest.mark.parametrize("sizes", [(3, 3, 16, 12, 5), (2, 256, 18)])
@pytest.mark.parametrize("target", ["cortex-m0", "cortex-m4", "cortex-m55"])
def test_on_a_core(target: str, sizes: Sizes, emit: str) -> None:
    for least in (-8, -7):
        made = graph(sizes, least)
        library = Model("int4", made, "litert", "0" * 64).build(
            name="int4", target=target, emit=emit
        )
        (step,) = (s for s in library.plan.steps if s.node.op in ("conv2d", "dense"))
        assert step.candidate.constants[0].role == WEIGHTS4
        x = {"x": given(made)}
        board = device(CORES[target], "gcc", core=target)
        found = run_recorded(board, library, x)
        np.testing.assert_array_equal(found["y"], interpret(made, x)["y"])


@pytest.mark.parametrize("target", TARGETS_OF)
def test_two_weights_are_a_byte(target: str) -> None:
    for sizes, count in (((3, 3, 16, 12, 5), 1728), ((1, 128, 16), 2048)):
        for one in packed(graph(sizes, -8), target):
            assert one.constants[0].array.nbytes == count // 2


@pytest.mark.parametrize("target", TARGETS_OF)
def test_where_they_are_bytes(target: str) -> None:
    """Where a weight has 5 bits, little flash is saved, or speed is what is asked."""
    assert packed(graph((1, 128, 16), -8), target)
    assert not packed(graph((1, 128, 16), -9), target)
    assert not packed(graph((1, 128, 16), -8, bits=5), target)
    assert not packed(graph((1, 64, 12), -8), target)
    assert not packed(graph((1, 128, 16), -8), target, "speed")


@pytest.mark.parametrize(
    ("target", "least", "most"),
    [("cortex-m4", -8, 1.2), ("cortex-m55", -7, 1.15)],
)
@pytest.mark.parametrize("sizes", [(3, 3, 16, 16, 8), (1, 256, 32)])
def test_instructions_beside_int8(
    target: str, least: int, most: float, sizes: Sizes
) -> None:
    """Those of the same layer with weights of a byte, times so many."""
    board = device(CORES[target], "gcc", core=target)
    counts = [
        bench_on_board(board, Model("int4", made, "litert", "0" * 64).build(
            name="int4", target=target
        )).instructions
        for made in (graph(sizes, least), graph(sizes, -127, bits=8))
    ]  # fmt: skip
    assert counts[0] <= most * counts[1], counts
