"""Parts of a float graph of several operators that are one operator of int16: norms of
rows, and functions of one tensor, as GELU, which become curves between 513 points.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field

import numpy as np

from pybuild.dtype import Array, DType
from pybuild.ir.graph import Attr, Graph, Node
from pybuild.ops.base.signatures import BINARY, UNARY
from pybuild.ops.norm import MOST
from pybuild.records import dataclass

NORM, CURVE = "norm", "lookup"
# functions of map that move values or change their type
_OTHERS = ("copy", "cast")
_FUNCTIONS = {"mul": "multiply", "add": "add", "sub": "subtract"}
Users = Mapping[str, Sequence[Node]]


@dataclass(frozen=True)
class Region:
    """nodes    all that it is made of, in order; the last one makes its output
    source      the one tensor that they read
    attrs, constants  of a norm: gamma, then beta
    """

    op: str
    source: str
    nodes: tuple[Node, ...]
    attrs: Mapping[str, Attr] = field(default_factory=dict)
    constants: tuple[Array, ...] = ()

    @property
    def output(self) -> str:
        return self.nodes[-1].output


def regions(graph: Graph) -> dict[str, Region]:
    """By output; none shares a node with another."""
    users = graph.consumers()
    norms = {one.output: one for one in _norms(graph, users)}
    taken = {node.output for one in norms.values() for node in one.nodes}
    curves = _curves(graph, users, taken)
    return {**norms, **{one.output: one for one in curves}}


# ---- norms ---------------------------------------------------------------------------


def _norms(graph: Graph, users: Users) -> Iterator[Region]:
    makers = graph.producers()
    for mean in graph.nodes:
        found = _norm(graph, users, makers, mean) if _is_row_mean(mean, graph) else None
        if found is not None and _is_closed(found, graph, users):
            yield found


def _is_row_mean(node: Node, graph: Graph) -> bool:
    if node.op != "mean" or graph.tensor(node.output).dtype is not DType.FLOAT32:
        return False
    x, y = graph.tensor(node.inputs[0]).shape, graph.tensor(node.output).shape
    axes = tuple(a % len(x) for a in node.attrs["axes"])
    return axes == (len(x) - 1,) and y == (*x[:-1], 1) and x[-1] <= MOST


def _norm(
    graph: Graph, users: Users, makers: Mapping[str, Node], mean: Node
) -> Region | None:
    """The norm whose mean of squares this is: d * d, and d / sqrt(mean + epsilon)."""
    square = makers.get(mean.inputs[0])
    if square is None or not _does(square, "mul") or len({*square.inputs}) != 1:
        return None
    around = square.inputs[0]
    less = makers.get(around)
    first: list[Node] = []
    source, centred = around, False
    if less is not None and _does(less, "sub"):
        taken = makers.get(less.inputs[1])
        same = taken is not None and taken.inputs == less.inputs[:1]
        if taken is not None and same and _is_row_mean(taken, graph):
            source, centred, first = less.inputs[0], True, [taken, less]
    plus = _only(users, mean.output, "add")
    epsilon = _number(graph, plus, mean.output)
    root = _only(users, plus.output, "sqrt") if plus is not None else None
    if epsilon is None or plus is None or root is None:
        return None
    nodes = [*first, square, mean, plus, root]
    over = _divided(graph, users, around, root.output)
    if not over:
        return None
    nodes += over
    constants: list[Array] = []
    for op in ("mul", "add"):
        last = nodes[-1].output
        after = _only(users, last, op) if last not in graph.outputs else None
        row = _row(graph, after, last)
        if after is None or row is None:
            break
        nodes.append(after)
        constants.append(row)
    attrs: dict[str, Attr] = {"epsilon": epsilon, "centred": centred}
    return Region(NORM, source, tuple(nodes), attrs, tuple(constants))


def _divided(graph: Graph, users: Users, name: str, by: str) -> list[Node]:
    """The nodes that divide a tensor by another, [] if what reads that does not."""
    over = _only(users, by, "divide")
    if over is not None and over.inputs == (name, by):
        return [over]
    inverse = _only(users, by, "reciprocal")
    if over is not None and _number(graph, over, by) == 1 and over.inputs[1] == by:
        inverse = over
    product = _only(users, inverse.output, "mul") if inverse is not None else None
    if inverse is None or product is None:
        return []
    return [inverse, product] if {*product.inputs} == {name, inverse.output} else []


def _does(node: Node, what: str) -> bool:
    """True if it is that operator, or `map` by that function."""
    if node.op == "map":
        return bool(node.attrs["fn"] == _FUNCTIONS.get(what, what))
    return node.op == what and not node.attrs.get("clamp")


def _only(users: Users, name: str, what: str) -> Node | None:
    """The one reader, if it does that."""
    found = users[name]
    return found[0] if len(found) == 1 and _does(found[0], what) else None


def _other(node: Node | None, name: str) -> str:
    if node is None or len(node.inputs) != 2 or name not in node.inputs:
        return ""
    return node.inputs[1 - node.inputs.index(name)]


def _number(graph: Graph, node: Node | None, name: str) -> float | None:
    """The other operand of a node, if that is one number."""
    other = _other(node, name)
    if not other or not graph.known(other) or graph.tensor(other).size != 1:
        return None
    return float(graph.constants[other].reshape(-1)[0])


def _row(graph: Graph, node: Node | None, name: str) -> Array | None:
    """Constants for each element of a row, of the same in every row."""
    other = _other(node, name)
    if node is None or not other or not graph.known(other):
        return None
    count, value = graph.tensor(name).shape[-1], graph.constants[other]
    if graph.tensor(node.output).shape != graph.tensor(name).shape:
        return None
    if value.size == 1:
        return np.full(count, value.reshape(-1)[0], np.float32)
    fits = value.size == count and value.shape[-1] == count
    return value.reshape(count).astype(np.float32) if fits else None


def _is_closed(region: Region, graph: Graph, users: Users) -> bool:
    """No other node and no output needs what is made in between."""
    inside = {node.output for node in region.nodes}
    return all(
        name not in graph.outputs and {n.output for n in users[name]} <= inside
        for name in inside - {region.output}
    )


# ---- curves --------------------------------------------------------------------------


def _curves(graph: Graph, users: Users, taken: set[str]) -> Iterator[Region]:
    """Functions of single values, but for those that are an operator of int16."""
    roots = _roots(graph, taken)
    for node in reversed(graph.nodes):
        name = node.output
        if name not in roots or name in taken:
            continue
        chain = _chain(graph, roots, node)
        made = Region(CURVE, roots[name], chain)
        worth = len(chain) > 1 or node.op == "map"
        if worth and _is_closed(made, graph, users):
            taken |= {n.output for n in chain}
            yield made


def _roots(graph: Graph, taken: set[str]) -> dict[str, str]:
    """Float tensor -> the one of which each of its values is a function."""
    found: dict[str, str] = {}
    for node in graph.nodes:
        reads = {n for n in node.inputs if n and not _is_number(graph, n)}
        single = node.op in (*UNARY, *BINARY) or (
            node.op == "map" and node.attrs["fn"] not in _OTHERS
        )
        source = {found.get(name, name) for name in reads}
        if not single or len(source) != 1 or node.output in taken:
            continue
        (root,) = source
        x, y = graph.tensor(root), graph.tensor(node.output)
        if x.dtype is y.dtype is DType.FLOAT32 and x.shape == y.shape:
            found[node.output] = root
    return found


def _is_number(graph: Graph, name: str) -> bool:
    return graph.known(name) and graph.tensor(name).size == 1


def _chain(graph: Graph, roots: Mapping[str, str], last: Node) -> tuple[Node, ...]:
    root, needed = roots[last.output], {last.output}
    found: list[Node] = []
    for node in reversed(graph.nodes):
        if node.output in needed:
            found.append(node)
            needed |= {n for n in node.inputs if n != root and n in roots}
    return tuple(reversed(found))
