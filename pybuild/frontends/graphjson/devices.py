"""Checks that every node of a graph JSON file reads tensors of its own device.

Copies between devices are nodes of the file: functions named __copy. Inputs and
parameters that several devices read need none: they are placed on all of them.
"""

from __future__ import annotations

from collections.abc import Iterator

from pybuild.errors import Problem
from pybuild.ir.graph import Graph


def uncopied(graph: Graph) -> Iterator[Problem]:
    """Yield the nodes that read another device's memory and are not copies."""
    at, crossings = graph.locations(), graph.crossings()
    for node in graph.nodes:
        if node.output in crossings:
            continue
        for name in node.inputs:
            if name in graph.inputs:
                continue
            if at.get(name, node.device) != node.device:
                what = f"is on device {node.device}, but reads '{name}', "
                what += f"which is on device {at[name]}"
                hint = 'put a node with func_name "__copy" between them'
                yield Problem(graph.where(node), what, hint)
