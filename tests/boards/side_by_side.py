"""Layers that are tested together on a board: one graph, one program."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

import pybuild
from pybuild.boards.device import Device, run_recorded
from pybuild.dtype import Array
from pybuild.ir.graph import Graph, verify
from pybuild.model import Model
from tests.kernels.kernel_cases import Case


def beside(cases: Mapping[str, Case]) -> Graph:
    """All layers side by side, each with an input and an output of its own."""
    nodes, tensors, constants = [], {}, {}
    inputs, outputs = [], []
    for mark, one in cases.items():
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


def built(cases: Mapping[str, Case], target: str, emit: str) -> pybuild.Library:
    """As they are: their rules of rounding are there already."""
    graph = beside(cases)
    lowered = {("litert", (), "planned"): graph}
    model = Model("layers.test", graph, "litert", "0" * 64, _lowered=lowered)
    # at other settings such small layers share one kernel of fewer instructions
    return model.build(name="layers", target=target, emit=emit, optimise="speed")


def must_equal_numpy(
    board: Device, library: pybuild.Library, cases: Mapping[str, Case]
) -> None:
    """Every output on the board."""
    given: dict[str, Array] = {}
    for mark, one in cases.items():
        given |= {mark + name: one.arrays[name] for name in one.graph.inputs}
    found = run_recorded(board, library, given)
    for mark, one in cases.items():
        np.testing.assert_array_equal(found[mark + "y"], one.expected(), mark)
