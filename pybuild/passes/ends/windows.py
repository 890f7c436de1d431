"""States of which a run replaces a part, as one node that may write it where it lies:
windows that move on and take new elements at their end, and rows of constant number.

Files and `--stream` have them as slice and concat. Works on a graph with state.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from pybuild.dtype import DType
from pybuild.ir.graph import Graph, Node, Tensor
from pybuild.passes.state import zeros


def with_windows(graph: Graph) -> Graph:
    """The graph with a shift for each state that becomes its end and new elements, and
    a scatter for each of which a part is replaced."""
    if graph.storage or graph.is_placed:
        return graph
    makers, made = graph.producers(), dict[str, Node]()
    tensors, constants = dict(graph.tensors), dict(graph.constants)
    for name, state in graph.state.items():
        last = makers.get(state.next)
        same = graph.tensor(state.next).shape == graph.tensor(name).shape
        if last is None or not same or last.op != "concat" or len(last.attrs) > 1:
            continue
        part = makers.get(last.inputs[0])
        new = _replaced_part(graph, last, name)
        if part is not None and _is_tail(graph, part, name, last):
            ends = (name, last.inputs[1]), last.outputs
            made[last.output] = Node("shift", last.name, *ends, last.attrs)
        elif new is not None:
            rows, value = f"{last.output} (rows)", np.arange(*new[1], dtype=np.int32)
            tensors[rows] = Tensor(rows, value.shape, DType.INT32)
            constants[rows] = value
            attrs, inputs = {"join": "none", **last.attrs}, (name, rows, new[0])
            made[last.output] = Node("scatter", last.name, inputs, last.outputs, attrs)
    graph = replace(graph, tensors=tensors, constants=constants)
    return _replaced(graph, made) if made else graph


def _replaced_part(
    graph: Graph, joined: Node, name: str
) -> tuple[str, tuple[int, int]] | None:
    """The only part of a concat that is not what lies there in a state, and its first
    and last rows."""
    makers, axis = graph.producers(), int(joined.attrs["axis"])
    at, new = 0, list[tuple[str, tuple[int, int]]]()
    for part in joined.inputs:
        shape, node = graph.tensor(part).shape, makers.get(part)
        first = tuple(at if i == axis else 0 for i in range(len(shape)))
        same = node is not None and node.op == "slice" and node.inputs[0] == name
        attrs = node.attrs if node is not None and same else {}
        if attrs.get("begin") != first or set(attrs["strides"]) != {1}:
            new.append((part, (at, at + shape[axis])))
        at += shape[axis]
    return new[0] if len(new) == 1 else None


def with_long_windows(graph: Graph) -> Graph | None:
    """The graph in which states that become the end of themselves and new elements are
    kept with these: in less memory if that is not needed for anything else. None: there
    are none that are longer than what is new. States have their assignments."""
    if graph.storage or graph.is_placed:
        return None
    before = graph
    for name in graph.state:
        graph = _longer(graph, name)
    return None if graph is before else graph


def _is_tail(graph: Graph, part: Node, source: str, joined: Node) -> bool:
    """True if a slice is the end of a tensor along the axis of a concat."""
    if part.op != "slice" or joined.op != "concat" or part.inputs[0] != source:
        return False
    axis, shape = int(joined.attrs["axis"]), graph.tensor(source).shape
    if (
        len(joined.inputs) != 2
        or len(joined.attrs) > 1
        or set(part.attrs["strides"]) != {1}
    ):
        return False
    cut = shape[axis] - graph.tensor(part.output).shape[axis]
    wanted = tuple(cut if i == axis else 0 for i in range(len(shape)))
    return tuple(part.attrs["begin"]) == wanted and tuple(part.attrs["end"]) == shape


def _longer(graph: Graph, name: str) -> Graph:
    """The graph with a state that is all of what it was the end of."""
    makers, state = graph.producers(), graph.state[name]
    assign = makers[state.next]
    part = makers.get(assign.inputs[0])
    joined = makers.get(part.inputs[0]) if part is not None and part.inputs else None
    readers = [node for node in graph.nodes if name in node.inputs]
    if part is None or joined is None or readers != [joined]:
        return graph
    old, new = graph.tensor(name), graph.tensor(joined.output)
    ends = {name, joined.output} & {*graph.outputs}
    if ends or not _is_tail(graph, part, joined.output, joined):
        return graph
    axis = int(joined.attrs["axis"])
    count = new.shape[axis] - old.shape[axis]
    if joined.inputs[0] != name or count > old.shape[axis]:
        return graph
    made = Node("shift", joined.name, joined.inputs, joined.outputs, {"axis": axis})
    late = replace(assign, inputs=joined.outputs)
    grown = {n: replace(new, name=n) for n in (name, assign.output)}
    begin = zeros(new)
    begin[(slice(None),) * axis + (slice(count, None),)] = state.initial
    states = {**graph.state, name: replace(state, initial=begin, in_file=state.begun)}
    graph = replace(graph, tensors={**graph.tensors, **grown}, state=states)
    return _replaced(graph, {joined.output: made, assign.output: late})


def _replaced(graph: Graph, made: Mapping[str, Node]) -> Graph:
    """The graph with other nodes, and without slices that none reads any more."""
    nodes = [made.get(node.output, node) for node in graph.nodes]
    read = {n for node in nodes for n in node.inputs}
    read |= {*graph.outputs, *(state.next for state in graph.state.values())}
    left = tuple(n for n in nodes if n.op != "slice" or n.output in read)
    return replace(graph, nodes=left)
