"""Quantisation before what only moves values: what is moved are bytes then.

A file may quantise a concat, whose inputs are floats: each value is the same integer
whether it is rounded before it is moved or after.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from pybuild.ir.graph import Graph, Node
from pybuild.ops.base.signatures import BINARY, UNARY
from pybuild.passes.edit import Edit
from pybuild.passes.moves.pairs import is_whole, quantised_pair
from pybuild.passes.qdq import Form, form_of, moved_inputs

_MOST = 16  # steps of a function
# those that leave no value out, or hardly
_MOVES = ("reshape", "transpose", "concat", "pad", "copy", "gather")


def quantize_before_moves(graph: Graph) -> Graph:
    """Put a quantize and a dequantize in front of each float that moves before it is
    quantised, if nothing else reads what moves it."""
    edit = Edit(graph)
    readers: dict[str, list[Node]] = {n: [*u] for n, u in graph.consumers().items()}
    makers = graph.producers()
    nodes: list[Node] = []  # from the last to the first
    for node in reversed(graph.nodes):
        form = None
        if node.op in _MOVES or _is_maximum(graph, node, makers):
            form = _form_after(edit, node, readers)
        if form is None or not (
            _is_maximum(graph, node, makers) or _takes(graph, node, makers)
        ):
            nodes.append(node)
            continue
        pairs: list[Node] = []
        inputs = list(node.inputs)
        for at in moved_inputs(node):
            if is_whole(makers.get(inputs[at])):
                continue
            pair = quantised_pair(edit, inputs[at], form)
            readers[inputs[at]] = [
                one for one in readers[inputs[at]] if one is not node
            ] + [pair[0]]
            inputs[at] = pair[1].output
            pairs += pair[::-1]
        nodes += [replace(node, inputs=tuple(inputs)), *pairs]
    return edit.done(reversed(nodes))


def _is_maximum(graph: Graph, node: Node, makers: Mapping[str, Node]) -> bool:
    """True for maxima of a function of single integers: quantised before them, the
    function is a table of bytes."""
    if node.op not in ("max_pool2d", "reduce") or moved_inputs(node) != (0,):
        return False
    leaves, ways, functions = set[str](), [node.inputs[0]], 0
    while ways:
        name = ways.pop()
        maker = makers.get(name)
        if maker is None or is_whole(maker):
            leaves.add(name if maker is not None else "")
            continue
        function = maker.op == "map" or maker.op in (*UNARY, *BINARY)
        if not function and maker.op not in ("reshape", "transpose"):
            return False
        functions += function
        reads = [n for n in maker.inputs if n and not graph.known(n)]
        held = [n for n in maker.inputs if graph.known(n)]
        if functions > _MOST or any(graph.tensor(n).size != 1 for n in held):
            return False
        ways += dict.fromkeys(reads)
    return functions > 0 and len(leaves - {""}) == len(leaves) == 1


def _form_after(
    edit: Edit, node: Node, readers: Mapping[str, Sequence[Node]]
) -> Form | None:
    """The integers that all readers of what a node moves make of it."""
    if node.output in edit.old.outputs:
        return None
    users = readers.get(node.output, ())
    if not all(u.op == "quantize" and u.attrs.get("simulated") for u in users):
        return None
    forms = {form_of(edit.tensors[user.output]) for user in users}
    return forms.pop() if len(forms) == 1 else None


def _takes(graph: Graph, node: Node, makers: Mapping[str, Node]) -> bool:
    """True if some of what it moves are computed floats, and all others integers; it
    leaves no value out."""
    names = [node.inputs[at] for at in moved_inputs(node)]
    floats = [name for name in dict.fromkeys(names) if not is_whole(makers.get(name))]
    if any(name in graph.constants for name in floats):
        return False
    size = sum(graph.tensor(name).size for name in floats)
    return 0 < size <= graph.tensor(node.output).size
