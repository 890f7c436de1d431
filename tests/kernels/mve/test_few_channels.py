"""Pixels of less than a vector, read where they lie, and windows whose rows have 8 to
15 bytes: as numpy's through LLVM and as C, and on an emulated Cortex-M55, where rows
are written over those that they are made of."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest

from pybuild.boards.device import run_recorded
from pybuild.dtype import Array
from pybuild.graph_builder import GraphBuilder
from pybuild.ir.graph import Graph
from pybuild.kernels.base.candidate import Candidate
from pybuild.kernels.table import candidates
from pybuild.model import Model
from pybuild.ops.interpret import interpret
from pybuild.targets.target import TARGETS
from tests.boards.devices import device
from tests.kernels.kernel_bench import Job, given, run_c, run_llvm

# channels, outputs, sides of a window, padding: of pixels, of rows in a window, and of
# columns, those outside too
LAYERS = [
    *((c, 4, 1, 0) for c in (1, 4, 7, 8, 9, 15, 16)),
    (11, 9, 1, 0),
    *((c, 4, 3, 1) for c in (3, 5)),
    *((c, 4, 2, 1) for c in (4, 5, 7, 8, 15)),
    # vectors of padding of which the last reaches back: of a column, of a window's row
    (20, 4, 3, 1),
    (2, 4, 9, 4),
]
# channels of layers of one tap, one behind the other: longer rows, and shorter ones
CHAIN = (8, 16, 8, 11, 40, 15, 15, 3, 9)


def _weights(seed: int | tuple[int, ...], *shape: int) -> Array:
    return np.random.default_rng(seed).integers(-127, 128, shape).astype(np.int8)


def graph(layer: tuple[int, int, int, int], width: int) -> Graph:
    channels, outs, side, pad = layer
    net, quant = GraphBuilder("few"), (0.05, 3)
    x = net.input("x", (1, 5, width, channels), "int8", quant=quant)
    w = _weights((5, *layer), outs, side, side, channels)
    y = net.op("conv2d", x, net.constant("w", w, (0.01, 0)), quant=(0.1, -5),
               pads=(pad,) * 4)  # fmt: skip
    net.output(y, "y")
    return Model("few", net.build(), "litert", "0" * 64).lower("litert")


def chain(width: int) -> Graph:
    """Windows of 3x3 and between them layers of one tap, a row after the other."""
    net, quant = GraphBuilder("chain"), (0.05, 3)
    x = net.input("x", (1, 9, width, CHAIN[0]), "int8", quant=quant)
    for number, (channels, outs) in enumerate(itertools.pairwise(CHAIN)):
        wide = net.constant(f"a{number}", _weights(number, 3, 3, channels), (0.01, 0))
        x = net.op("depthwise_conv2d", x, wide, quant=quant, pads=(1, 1, 1, 1))
        one = net.constant(
            f"b{number}", _weights(number, outs, 1, 1, channels), (0.01, 0)
        )
        x = net.op("conv2d", x, one, quant=quant)
    net.output(x, "y")
    return Model("chain", net.build(), "litert", "0" * 64).lower("litert")


def kernels(made: Graph) -> list[Candidate]:
    (node,) = (n for n in made.nodes if n.op == "conv2d")
    found = candidates(node, made, TARGETS["cortex-m55"])
    return [c for c in found if c.func and c.func.name.startswith("conv2d_mve")]


def test_by_llvm_and_c(tmp_path: Path) -> None:
    jobs = []
    for layer in LAYERS:
        made = graph(layer, 4 + layer[1] % 4)
        x = given(made)
        wanted = interpret(made, {"x": x})["y"]
        found = kernels(made)
        assert found or layer[0] < 4, layer
        for one in found:
            assert one.scratch == 0 or layer[0] >= 16 or layer[2] > 1, one
            jobs.append(Job(one, {"x": x}, {"y": wanted}))
    for results in (run_llvm(jobs), run_c(jobs, tmp_path)):
        for job, result in zip(jobs, results, strict=True):
            name = job.candidate.func.name if job.candidate.func else ""
            np.testing.assert_array_equal(result["y"], job.outputs["y"], name)


@pytest.mark.parametrize("emit", ["c", "obj"])
@pytest.mark.parametrize("layer", [(11, 9, 1, 0), (3, 4, 3, 1)])
def test_on_a_core(layer: tuple[int, int, int, int], emit: str) -> None:
    _run(graph(layer, 5), emit)


@pytest.mark.parametrize("emit", ["c", "obj"])
@pytest.mark.parametrize("width", [7])
def test_rows_are_written_over(width: int, emit: str) -> None:
    _run(chain(width), emit, over=True)


def _run(made: Graph, emit: str, over: bool = False) -> None:
    library = Model("few", made, "litert", "0" * 64).build(
        name="few", target="cortex-m55", emit=emit
    )
    if over:
        steps = [s.candidate for s in library.plan.steps if s.node.op == "conv2d"]
        found = [s for s in steps if s.func and "pointwise_by1" in s.func.name]
        assert any(s.func and s.func.in_place and not s.scratch for s in found)
    x = {"x": given(made)}
    seen = run_recorded(device("mps3-an547", "gcc"), library, x)
    np.testing.assert_array_equal(seen["y"], interpret(made, x)["y"])
