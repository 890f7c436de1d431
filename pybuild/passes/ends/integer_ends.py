"""Inputs that are only quantised, and outputs that are only integers made real, as
these integers: what `--boundary int8` makes of a net that is quantised here."""

from __future__ import annotations

from dataclasses import replace

from pybuild.ir.graph import Graph
from pybuild.passes.edit import renamed


def integer_ends(graph: Graph) -> Graph:
    """The graph without the steps at its ends; the same, if it has none."""
    users, makers = graph.consumers(), graph.producers()
    names: dict[str, str] = {}
    gone = set()
    for name in graph.inputs:
        if [node.op for node in users[name]] == ["quantize"]:
            (node,) = users[name]
            if node.output not in graph.outputs:
                names[node.output] = name
                gone.add(node.output)
    for name in graph.outputs:
        maker = makers.get(name)
        if maker is None or maker.op != "dequantize" or users[name]:
            continue
        (source,) = maker.inputs
        if source in makers and source not in {*names, *graph.outputs}:
            names[source] = name
            gone.add(name)
    if not names:
        return graph
    rest = tuple(node for node in graph.nodes if node.output not in gone)
    tensors = {n: t for n, t in graph.tensors.items() if n not in names.values()}
    return renamed(replace(graph, nodes=rest, tensors=tensors), names)
