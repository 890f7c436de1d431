"""The order of axes in which a state is kept: that in which most of it is read, so that
no run transposes it.

Knows which operators pass an order on; the pass `fold_transposes` does the rest.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from pybuild.ir.graph import Graph, Node, State
from pybuild.ops.base.signatures import UNARY
from pybuild.passes.moves.transposes import fold_transposes
from pybuild.passes.state import state_as_inputs
from pybuild.passes.views import Perm, Shape, inverse, moves_nothing

# operators whose output has the order of their first input
_PASSING = (*UNARY, "copy", "quantize", "dequantize", "reshape", "scatter", "concat")


def with_state_order(graph: Graph) -> Graph:
    """The graph whose states are kept in the order that leaves the fewest bytes to
    transpose; their values at the start are in that order, too."""
    if not graph.state or not any(node.op == "transpose" for node in graph.nodes):
        return graph
    folded = fold_transposes(state_as_inputs(graph))
    for name in graph.state:
        for shape, perm in _orders(folded, name):
            other = _kept_in(graph, name, shape, perm)
            made = fold_transposes(state_as_inputs(other))
            if _transposed_bytes(made) < _transposed_bytes(folded):
                graph, folded = other, made
                break
    return graph


def _transposed_bytes(graph: Graph) -> int:
    moves = (node for node in graph.nodes if node.op == "transpose")
    return sum(graph.tensor(node.output).bytes for node in moves)


def _orders(graph: Graph, name: str) -> Iterable[tuple[Shape, Perm]]:
    """The shapes and orders of axes into which a state is transposed."""
    state, quant = graph.tensor(name), graph.tensor(name).quant
    if name in graph.outputs or (quant is not None and quant.axis is not None):
        return ()
    chain, found = {name: state.shape}, dict[tuple[Shape, Perm], None]()
    for node in graph.nodes:
        if not node.inputs or node.inputs[0] not in chain:
            continue
        if node.op == "slice":  # of which the whole has the same order
            chain[node.output] = chain[node.inputs[0]]
        elif node.op in _PASSING and graph.tensor(node.output).size == state.size:
            chain[node.output] = graph.tensor(node.output).shape
        elif node.op == "transpose":
            way = chain[node.inputs[0]], tuple(node.attrs["perm"])
            if not moves_nothing(*way):
                found[way] = None
    return found


def _kept_in(graph: Graph, name: str, shape: Shape, perm: Perm) -> Graph:
    """The graph with a state as it is read: reshaped, then transposed."""
    state, old = graph.state[name], graph.tensor(name)
    new = graph.tensor(state.next)
    fresh = _Fresh(graph)
    flat, read = fresh(f"{name} (flat)"), fresh(f"{name} (in order)")
    next_flat, kept = fresh(f"{state.next} (flat)"), fresh(f"{state.next} (kept)")
    moved = tuple(shape[axis] for axis in perm)
    tensors = {
        **graph.tensors,
        name: replace(old, shape=moved),
        flat: replace(old, name=flat, shape=shape),
        read: replace(old, name=read),
        next_flat: replace(new, name=next_flat, shape=shape),
        kept: replace(new, name=kept, shape=moved),
    }
    first = [
        Node("transpose", flat, (name,), (flat,), {"perm": inverse(perm)}),
        Node("reshape", read, (flat,), (read,)),
    ]
    last = [
        Node("reshape", next_flat, (state.next,), (next_flat,)),
        Node("transpose", kept, (next_flat,), (kept,), {"perm": perm}),
    ]
    nodes = [
        replace(n, inputs=tuple(read if i == name else i for i in n.inputs))
        for n in graph.nodes
    ]
    begin = np.ascontiguousarray(state.initial.reshape(shape).transpose(perm))
    moved_state = State(kept, begin, state.begun)
    states = {**graph.state, name: moved_state}
    made = (*first, *nodes, *last)
    return replace(graph, nodes=made, tensors=tensors, state=states)


class _Fresh:
    """Names that no tensor has."""

    def __init__(self, graph: Graph) -> None:
        self.taken = set(graph.tensors)

    def __call__(self, text: str) -> str:
        while text in self.taken:
            text += "'"
        self.taken.add(text)
        return text
