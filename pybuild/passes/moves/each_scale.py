"""Floats of integers that are quantised with several scales, or after a move that
leaves values out: the function of a byte is computed for each scale, before it moves.

PT2E quantises what a layer reads, so a SiLU that a pool and a concat read, or halves of
a shuffle, get two scales. Each is then a table or a move of bytes, not of floats.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from pybuild.dtype import DType
from pybuild.ir.graph import Graph, Node
from pybuild.ops.base.signatures import BINARY, UNARY
from pybuild.passes.dead import remove_dead
from pybuild.passes.edit import Edit
from pybuild.passes.moves.pairs import is_whole, quantised_pair
from pybuild.passes.qdq import Form, form_of, moved_inputs

_MOVES = ("reshape", "transpose", "slice", "max_pool2d", "concat", "copy")
# so many times a function is computed at most
_MOST = 4
# for each float of integers: the forms that are made of it; None: it is read as a float
_Forms = Mapping[str, tuple[Form, ...] | None]


def quantize_each_use(graph: Graph) -> Graph:
    """The graph in which a function of one int8 tensor, or a move of such, that is only
    quantised is computed for each scale by itself."""
    made = _of_integers(graph)
    forms = _forms(graph, made)
    split = _Split(graph, made, forms)
    nodes: list[Node] = []
    for node in graph.nodes:
        if node.op == "quantize" and split.is_apart(node.inputs[0]):
            form = form_of(graph.tensor(node.output))
            assert form is not None
            name = split.of(node.inputs[0], form, nodes)
            node = replace(node, inputs=(name,))
        nodes.append(node)
    if not split.names:
        return graph
    return remove_dead(split.edit.done(nodes))


def _of_integers(graph: Graph) -> dict[str, Node]:
    """The floats that are moved integers, or functions of one int8 tensor, and what
    makes each."""
    found: dict[str, Node] = {}
    roots: dict[str, str] = {}  # of functions and of what they read
    for node in graph.nodes:
        if len(node.outputs) != 1 or node.device:
            continue
        if is_whole(node) and form_of(graph.tensor(node.inputs[0])) is not None:
            if graph.tensor(node.inputs[0]).dtype is DType.INT8:
                found[node.output], roots[node.output] = node, node.output
            continue
        reads = [n for n in node.inputs if n and n not in graph.constants]
        if not reads or not all(name in found for name in reads):
            continue
        if node.op in _MOVES and len(moved_inputs(node)) == len(node.inputs):
            found[node.output] = node
        elif root := _one_root(graph, node, [roots.get(name, "") for name in reads]):
            found[node.output], roots[node.output] = node, root
    return found


def _one_root(graph: Graph, node: Node, roots: Sequence[str]) -> str:
    """What all elements of a function depend on, each on one element; "": several."""
    if node.op not in (*UNARY, *BINARY) or len(set(roots)) != 1:
        return ""
    held = [graph.tensor(n).size for n in node.inputs if n in graph.constants]
    same = (
        not roots[0] or graph.tensor(roots[0]).shape == graph.tensor(node.output).shape
    )
    return roots[0] if same and all(size == 1 for size in held) else ""


def _forms(graph: Graph, made: Mapping[str, Node]) -> _Forms:
    users, found = graph.consumers(), dict[str, tuple[Form, ...] | None]()
    for node in reversed(graph.nodes):
        if node.output not in made or is_whole(node):
            continue
        forms: dict[Form, None] = {}
        good = node.output not in graph.outputs
        for user in users[node.output]:
            asked: tuple[Form, ...] | None = None
            if user.op == "quantize" and user.attrs.get("simulated"):
                one = form_of(graph.tensor(user.output))
                asked = (one,) if one and one.dtype is DType.INT8 else None
            elif user.output in made:
                asked = found.get(user.output)
                asked = asked if user.op in _MOVES or not asked else ()
            good = good and asked is not None
            forms |= dict.fromkeys(asked or ())
        found[node.output] = tuple(forms) if good and len(forms) <= _MOST else None
    return found


class _Split:
    """What is made for each scale; names: (float, form) -> the float of that form."""

    def __init__(self, graph: Graph, made: Mapping[str, Node], forms: _Forms) -> None:
        self.edit, self.names = Edit(graph), dict[tuple[str, Form | None], str]()
        self._made, self._forms = made, forms
        self._apart: dict[str, bool] = {}
        for name, node in made.items():
            self._apart[name] = self._is_apart(name, node)

    def is_apart(self, name: str) -> bool:
        """True if it is only quantised, and gains by being made for each form."""
        return self._apart.get(name, False)

    def _is_apart(self, name: str, node: Node) -> bool:
        if is_whole(node) or self._forms[name] is None:
            return False
        before = [n for n in node.inputs if n in self._made]
        if any(not is_whole(self._made[n]) and self._forms[n] is None for n in before):
            return False
        computed = any(not is_whole(m) and m.op not in _MOVES
                       for m in (self._made[n] for n in before))  # fmt: skip
        moves = node.op in ("slice", "max_pool2d") and computed
        several = len(self._forms[name] or ()) > 1
        return several or moves or any(self._apart[n] for n in before)

    def of(self, name: str, form: Form, nodes: list[Node]) -> str:
        """The float for one form; if it is computed, of the integers of that form."""
        node = self._made[name]
        if is_whole(node):
            return name
        key = (name, form)
        if key not in self.names:
            if node.op in _MOVES:
                inputs = [self.of(n, form, nodes) for n in node.inputs]
                self.names[key] = self._again(node, inputs, nodes)
            else:
                real = self._function(name, {}, nodes)
                pair = quantised_pair(self.edit, real, form)
                nodes += pair
                self.names[key] = pair[1].output
        return self.names[key]

    def _function(self, name: str, held: dict[str, str], nodes: list[Node]) -> str:
        """The whole chain of a function again, from its integers."""
        if name not in self._made or is_whole(self._made[name]):
            return name
        if name not in held:
            node = self._made[name]
            inputs = [self._function(n, held, nodes) for n in node.inputs]
            held[name] = self._again(node, inputs, nodes)
        return held[name]

    def _again(self, node: Node, inputs: Sequence[str], nodes: list[Node]) -> str:
        name = self.edit.fresh(f"{node.output}.part")
        self.edit.tensors[name] = replace(self.edit.tensors[node.output], name=name)
        nodes.append(replace(node, inputs=tuple(inputs), outputs=(name,)))
        return name
