"""Convolutions whose pairs of taps are all written out, where usually they are turns of
a loop. As numpy's through LLVM and as C, and in a net on an emulated Cortex-M4."""

from __future__ import annotations

import itertools
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
from tests.kernels.dsp.made_convolution import Convolution, graph
from tests.kernels.few.sample import SOME, Some
from tests.kernels.kernel_bench import (
    given,
    jobs_of,
    must_be_equal,
    run_c,
    run_llvm,
)

# with how many pairs of taps they have
LAYERS = (
    (Convolution(4, 64, 16), 32),
    (Convolution(5, 64, 16), 32),
    (Convolution(3, 64, 7, apart=900.0), 32),
    (Convolution(3, 56, 10, least=-128), 28),
    (Convolution(1, 64, 12), 32),
    (Convolution(3, 128, 12, groups=2), 32),
    (Convolution(2, 40, 6), 20),
    (Convolution(3, 6, 8, side=3), 30),
)
# of 16, 24 and 40 pairs two turns, three and five; and a single output channel
SHORT = (
    Convolution(3, 32, 8),
    Convolution(3, 48, 8),
    Convolution(3, 80, 8),
    Convolution(3, 64, 1),
)
# a net: the row of five leaves a pixel over, windows leave the row
NET = (64, 48, 64, 12)


def long(made: Graph) -> list[Candidate]:
    (node,) = (n for n in made.nodes if n.op == "conv2d")
    found = candidates(node, made, TARGETS["cortex-m4"])
    return [c for c in found if c.func and "_long" in c.func.name]


@SOME
def test_by_llvm_and_c(some: Some, tmp_path: Path) -> None:
    jobs = []
    for one, pairs in LAYERS:
        made = graph(one)
        x = given(made)
        wanted = interpret(made, {"x": x})["y"]
        assert len(np.unique(wanted)) >= 2, one
        found = long(made)
        names = [c.func.name for c in found if c.func]
        assert names and all(f"_long{pairs}" in name for name in names), one
        jobs += jobs_of(found, x, wanted)
    must_be_equal(jobs, run_llvm)
    must_be_equal(some(jobs), lambda jobs: run_c(jobs, tmp_path))


def test_which_layers() -> None:
    assert not any(long(graph(one)) for one in SHORT)


@pytest.mark.parametrize("emit", ["c", "obj"])
def test_layers_one_behind_the_other(emit: str) -> None:
    net, chance = GraphBuilder("long"), np.random.default_rng(3)
    y = net.input("x", (1, 6, 5, NET[0]), "int8", quant=(0.05, 7))
    for number, (inputs, outputs) in enumerate(itertools.pairwise(NET)):
        side = 1 if inputs == 64 else 3
        values = chance.integers(-127, 128, (outputs, side, side, inputs))
        w = net.constant(f"w{number}", values.astype(np.int8), (0.01, 0))
        quant = (0.05 if number else 0.4, 7)
        y = net.op("conv2d", y, w, quant=quant, pads=(side // 2,) * 4)
    net.output(y, "y")
    model = Model("long", net.build(), "litert", "0" * 64)
    library = model.build(target="cortex-m4", optimise="speed", emit=emit)
    names = [s.candidate.func.name for s in library.plan.steps if s.candidate.func]
    assert sum("_long32" in name for name in names) == 2, names
    values = {"x": given(model.graph)}
    found = run_recorded(device(CORES["cortex-m4"], "gcc"), library, values)
    wanted = interpret(model.lower("litert"), values)["y"]
    assert len(np.unique(wanted)) > 30
    np.testing.assert_array_equal(found["y"], wanted)
