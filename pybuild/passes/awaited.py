"""Makes parameters of inputs that kernels pack, for weights that arrive after the
build.

`dense(x, w)` of a graph that has no value of w: w is then a parameter of zeros, which
stand for what is loaded later.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from pybuild.ir.graph import Graph
from pybuild.ops.base.signatures import SIGNATURES
from pybuild.ops.shape import MOVING


def with_awaited(graph: Graph) -> Graph:
    """The graph, every input whose values some kernel packs a parameter of zeros."""
    names = awaited(graph)
    zeros = {
        name: np.zeros(graph.tensor(name).shape, graph.tensor(name).dtype.numpy)
        for name in names
    }
    return replace(
        graph,
        inputs=tuple(name for name in graph.inputs if name not in zeros),
        constants={**graph.constants, **zeros},
        parameters={**graph.parameters, **{name: name for name in names}},
        lazy=tuple(name for name in graph.lazy if name not in zeros),
        homes={n: d for n, d in graph.homes.items() if n not in zeros},
    )


def awaited(graph: Graph) -> list[str]:
    """Inputs that nodes want packed, also behind what only moves their elements."""
    producers = graph.producers()
    found = set()
    for node in graph.nodes:
        for position in SIGNATURES[node.op].packed:
            name = node.inputs[position] if position < len(node.inputs) else ""
            while name in producers and producers[name].op in MOVING:
                name = producers[name].inputs[0]
            found.add(name)
    return [name for name in graph.inputs if name in found]
