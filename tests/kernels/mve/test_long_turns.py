"""A single pixel of many inputs: eight or four vectors in a turn of the loop over them.
As numpy's through LLVM and as C, and in a net on an emulated Cortex-M55."""

from __future__ import annotations

import itertools
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
from pybuild.verify.samples import sample
from tests.boards.devices import CORES, device
from tests.kernels.kernel_bench import (
    given,
    jobs_of,
    must_be_equal,
    run_c,
    run_llvm,
)


@dataclass(frozen=True)
class Long:
    """A fully connected layer, and how many vectors it has in a turn.

    apart  of the scales of its output channels: so far no end has one factor for all
    """

    inputs: int
    outputs: int
    turn: int
    elem: str = "int8"
    apart: float = 1.0


LAYERS = (
    Long(128, 8, 8),
    Long(640, 10, 8, apart=30.0),
    Long(64 * 3, 7, 4),
    Long(64 * 5, 3, 4),
    # a last vector of eight bytes, and one that reaches back
    Long(128 + 8, 6, 8, apart=900.0),
    Long(64 + 11, 9, 4),
    Long(64, 12, 8, elem="int16"),
    Long(96 + 3, 5, 4, elem="int16"),
)
# of five vectors and of nine every turn leaves some over; of four there is no loop
SHORT = (Long(80, 8, 1), Long(64, 8, 1), Long(16 * 9, 4, 1))


def graph(one: Long) -> Graph:
    net, chance = GraphBuilder("long"), np.random.default_rng(one.inputs)
    zero = 7 if one.elem == "int8" else 0
    x = net.input("x", (1, one.inputs), one.elem, quant=(0.05, zero))
    values = chance.integers(-127, 128, (one.outputs, one.inputs)).astype(np.int8)
    scales = np.geomspace(0.0002, 0.0002 * one.apart, one.outputs).tolist()
    w = net.constant("w", values, Quant(tuple(scales), (0,) * one.outputs, 0))
    y = net.op("dense", x, w, quant=(0.02 * one.apart, -zero))
    net.output(y, "y")
    return Model("long", net.build(), "litert", "0" * 64).lower("litert")


def kernels(made: Graph) -> list[Candidate]:
    (node,) = (n for n in made.nodes if n.op == "dense")
    found = candidates(node, made, TARGETS["cortex-m55"])
    return [c for c in found if c.func and c.func.name.startswith("dense_mve")]


def test_by_llvm_and_c(tmp_path: Path) -> None:
    jobs = []
    for one in LAYERS:
        made = graph(one)
        x = sample(made, "uniform", (0, 0)).inputs["x"]
        wanted = interpret(made, {"x": x})["y"]
        assert len(np.unique(wanted)) >= 3, one
        found = kernels(made)
        names = [c.func.name for c in found if c.func]
        assert len(names) == 2 and f"_in{one.turn}" in names[0], (one, names)
        assert "_in" not in names[1], (one, names)
        jobs += jobs_of(found, x, wanted)
    must_be_equal(jobs, run_llvm)
    must_be_equal(jobs, lambda jobs: run_c(jobs, tmp_path))


@pytest.mark.parametrize("one", SHORT)
def test_where_no_turn_leaves_none_over_there_is_one_kernel(one: Long) -> None:
    (found,) = kernels(graph(one))
    assert found.func and "_in" not in found.func.name


@pytest.mark.parametrize("emit", ["c", "obj"])
def test_layers_one_behind_the_other(emit: str) -> None:
    net, chance = GraphBuilder("long"), np.random.default_rng(4)
    y = net.input("x", (1, 128), "int8", quant=(0.05, 3))
    for inputs, outputs in itertools.pairwise((128, 75, 320, 136, 9)):
        values = chance.integers(-127, 128, (outputs, inputs)).astype(np.int8)
        w = net.constant(f"w{inputs}", values, (0.002, 0))
        y = net.op("dense", y, w, quant=(0.05 * inputs**0.5 / 8, 3))
    net.output(y, "y")
    model = Model("long", net.build(), "litert", "0" * 64)
    library = model.build(target="cortex-m55", optimise="speed", emit=emit)
    names = [s.candidate.func.name for s in library.plan.steps if s.candidate.func]
    assert sum("_in8_" in name or "_in4_" in name for name in names) == 4, names
    values = {"x": given(model.graph)}
    found = run_recorded(device(CORES["cortex-m55"], "gcc"), library, values)
    wanted = interpret(model.lower("litert"), values)["y"]
    np.testing.assert_array_equal(found["y"], wanted)
