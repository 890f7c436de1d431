"""Layers of few products whose output channels are done two at a time: little code. As
numpy's through LLVM and as C, and in a net on an emulated Cortex-M4."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from pybuild.boards.device import run_recorded
from pybuild.graph_builder import GraphBuilder
from pybuild.ir.graph import Graph, Tensor
from pybuild.kernels.base.candidate import Candidate
from pybuild.kernels.table import candidates
from pybuild.model import Model
from pybuild.ops.interpret import interpret
from pybuild.targets.target import TARGETS
from tests.boards.devices import CORES, device
from tests.kernels.dsp.made_convolution import Convolution, graph
from tests.kernels.kernel_bench import (
    given,
    jobs_of,
    must_be_equal,
    run_c,
    run_llvm,
)

LAYERS = (
    Convolution(3, 28, 32),
    Convolution(1, 40, 10),
    Convolution(3, 44, 7),
    Convolution(3, 60, 2),
    Convolution(3, 12, 5, side=3),
    Convolution(2, 10, 6, side=3, least=-128),
    Convolution(2, 16, 12, side=3, groups=2),
    Convolution(1, 64, 9, least=-128),
    Convolution(1, 1200, 10),
    Convolution(2, 20, 6, apart=30.0),
    Convolution(2, 24, 3, apart=900.0),
)


def by_pairs(made: Graph) -> list[Candidate]:
    (node,) = (n for n in made.nodes if n.op == "conv2d")
    found = candidates(node, made, TARGETS["cortex-m4"])
    return [c for c in found if c.func and c.func.name.endswith("_pairs")]


def test_by_llvm_and_c(tmp_path: Path) -> None:
    jobs = []
    for one in LAYERS:
        made = graph(one)
        x = given(made)
        wanted = interpret(made, {"x": x})["y"]
        assert len(np.unique(wanted)) >= 2, one
        found = by_pairs(made)
        assert found, one
        jobs += jobs_of(found, x, wanted)
    must_be_equal(jobs, run_llvm)
    must_be_equal(jobs, lambda jobs: run_c(jobs, tmp_path))


def test_which_layers() -> None:
    forms = ("direct", "odd", "apart", "grouped", "padded", "runs", "rounded")
    names = {c.func.name for one in LAYERS for c in by_pairs(graph(one)) if c.func}
    assert all(any(f"_{form}_" in name for name in names) for form in forms), names
    assert by_pairs(graph(Convolution(4, 32, 32)))
    assert not by_pairs(graph(Convolution(5, 32, 32)))


@pytest.mark.parametrize("emit", ["c", "obj"])
def test_a_small_layer_behind_a_large_one(emit: str) -> None:
    net, chance = GraphBuilder("head"), np.random.default_rng(5)

    def weights(name: str, *shape: int) -> Tensor:
        values = chance.integers(-127, 128, shape).astype(np.int8)
        return net.constant(name, values, (0.01, 0))

    x = net.input("x", (1, 12, 12, 32), "int8", quant=(0.05, 7))
    w, head = weights("w", 32, 3, 3, 32), weights("head", 40, 288)
    y = net.op("conv2d", x, w, quant=(0.6, 3), pads=(1, 1, 1, 1))
    y = net.op("max_pool2d", y, kernel=(4, 4), strides=(4, 4), pads=(0,) * 4)
    y = net.op("dense", net.op("reshape", y, shape=(1, 288)), head, quant=(2.5, -4))
    net.output(y, "y")
    model = Model("head", net.build(), "litert", "0" * 64)
    library = model.build(name="head", target="cortex-m4", emit=emit)
    names = [s.candidate.func.name for s in library.plan.steps if s.candidate.func]
    assert names[-1].endswith("_pairs"), names
    values = {"x": given(model.graph)}
    found = run_recorded(device(CORES["cortex-m4"], "gcc"), library, values)
    wanted = interpret(model.lower("litert"), values)["y"]
    np.testing.assert_array_equal(found["y"], wanted)
