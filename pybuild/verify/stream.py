"""A stream against its whole window: what a check feeds and compares."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from pybuild.dtype import Array
from pybuild.ir.graph import Graph
from pybuild.passes.state import zeros

if TYPE_CHECKING:
    from pybuild.host.native import Net


def newest(graph: Graph, values: Mapping[str, Array]) -> dict[str, Array]:
    """The rows that the last run gives, taken from values of the whole window."""
    found = dict(values)
    for name, window in graph.windows.items():
        if name in found:
            rows = graph.tensor(name).shape[window.axis]
            every = np.arange(window.rows - rows, window.rows)
            found[name] = found[name].take(every, window.axis)
    return found


def feed(net: Net, graph: Graph, inputs: Mapping[str, Array]) -> None:
    """Runs until all frames of whole windows were given; what was before is zero."""
    for run in range(graph.warm_runs):
        left = graph.warm_runs - run
        now = {}
        for name, value in inputs.items():
            window, tensor = graph.windows.get(name), graph.tensor(name)
            if window is None:
                now[name] = value
                continue
            count = tensor.shape[window.axis]
            first = window.rows - left * count
            rows = value.take(range(max(first, 0), first + count), window.axis)
            before = zeros(tensor).take(range(max(-first, 0)), window.axis)
            now[name] = np.concatenate((before, rows), window.axis)
        net.run(**now)
