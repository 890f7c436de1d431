"""Layers with kernels on vectors on the Cortex-M55 of mps3-an547: the same bits as
numpy's, by C of every compiler and as an object of LLVM."""

from __future__ import annotations

import functools
from dataclasses import replace

import numpy as np
import pytest

import pybuild
from pybuild.boards.device import run_recorded
from pybuild.dtype import Array, DType
from pybuild.ir.graph import Graph, verify
from pybuild.model import Model
from tests.boards.devices import device
from tests.kernels.kernel_cases import Case, case, tensor
from tests.kernels.vector_layers import OPERATORS, OTHERS, layer

WAYS = [
    ("gcc", "c"),
    ("gcc", "obj"),
    pytest.param("clang", "c", marks=pytest.mark.sweep),
    pytest.param("zig", "c", marks=pytest.mark.sweep),
    pytest.param("zig", "obj", marks=pytest.mark.sweep),
]
# between them: every epilogue, edge, remainder and form of copying
SEEDS = range(9)


def _cases() -> list[tuple[str, Case]]:
    seeds = dict.fromkeys(OPERATORS, SEEDS) | dict.fromkeys(OTHERS, SEEDS[:5])
    made = [(f"{op}{n}_", layer(op, n)) for op in seeds for n in seeds[op]]
    return made + [(f"matmul{depth}_", _product(depth)) for depth in (8, 17, 32)]


def _product(depth: int) -> Case:
    a = tensor((2, 5, depth), DType.INT8, 0.02, 3)
    b = tensor((2, depth, 3), DType.INT8, 0.03, -7)
    y = tensor((), DType.INT8, 0.025 * depth**0.5, -9)
    return case("matmul", (a, b), y, rounding="even")


def _graph() -> Graph:
    """All layers side by side, each with an input and an output of its own."""
    nodes, tensors, constants = [], {}, {}
    inputs, outputs = [], []
    for mark, one in _cases():
        for name, each in one.graph.tensors.items():
            tensors[mark + name] = replace(each, name=mark + name)
        constants |= {mark + n: a for n, a in one.graph.constants.items()}
        names = tuple(mark + n for n in one.node.inputs)
        nodes.append(
            replace(one.node, name=mark + "layer", inputs=names, outputs=(mark + "y",))
        )
        inputs += [mark + name for name in one.graph.inputs]
        outputs.append(mark + "y")
    made = Graph("layers", "layers.test", tuple(nodes), tensors, tuple(inputs),
                 tuple(outputs), constants)  # fmt: skip
    verify(made)
    return made


@functools.cache
def _library(emit: str) -> pybuild.Library:
    # as it is: its rules of rounding are there already
    lowered = {("litert", (), "planned"): _graph()}
    model = Model("layers.test", _graph(), "litert", "0" * 64, _lowered=lowered)
    # at other settings such small layers share one kernel without vectors
    return model.build(name="layers", target="cortex-m55", emit=emit, optimise="speed")


@pytest.mark.parametrize(("chain", "emit"), WAYS)
def test_random_layers(chain: str, emit: str) -> None:
    board, library = device("mps3-an547", chain), _library(emit)
    kernels = [s.candidate.func.name for s in library.plan.steps if s.candidate.func]
    assert sum("matmul_s8_mve" in name for name in kernels) == 3
    assert sum("mve" in name for name in kernels) > len(kernels) * 2 // 3
    given: dict[str, Array] = {}
    wanted: dict[str, Array] = {}
    for mark, one in _cases():
        given |= {mark + name: one.arrays[name] for name in one.graph.inputs}
        wanted[mark + "y"] = one.expected()
    found = run_recorded(board, library, given)
    for name, want in wanted.items():
        np.testing.assert_array_equal(found[name], want, name)
