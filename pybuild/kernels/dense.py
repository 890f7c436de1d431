"""Fully connected layers: a pointwise convolution whose pixels are the batch."""

from __future__ import annotations

from pybuild.graph import Graph, Node
from pybuild.kernels.candidate import Candidate, whole
from pybuild.kernels.conv import families, plain, weighted
from pybuild.kernels.window import Window
from pybuild.targets.target import Target


def dense(node: Node, graph: Graph, target: Target, optimise: str) -> list[Candidate]:
    """The candidates for a dense node.

    Errors  BuildError if the int32 accumulator could overflow
    """
    x, w = graph.tensor(node.inputs[0]), graph.tensor(node.inputs[1])
    y = graph.tensor(node.output)
    outputs, inputs = w.shape
    batch = x.size // inputs
    window = Window(batch, batch, inputs, outputs, 1, 1)
    layer, tables = weighted(node, graph, window, target)
    rows = (whole(y), whole(x))
    found = plain(layer, rows, tables, (1, 1), target)
    for family in families(optimise):
        found += family.candidates(node, graph, target, window, rows, (1, 1))
    return found
