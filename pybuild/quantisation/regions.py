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
    norms = {one.output: one for one in _norms(graph)}
    taken = {node.output for one in norms.values() for node in one.nodes}
    curves = _curves(graph, users, taken)
    return {**norms, **{one.output: one for one in curves}}


# ---- norms ---------------------------------------------------------------------------


def _norms(graph: Graph) -> Iterator[Region]:
    """Those whose groups are rows of the last axis, with known factors."""
    for node in graph.nodes:
        if node.op != "group_norm":
            continue
        x, view = graph.tensor(node.inputs[0]), tuple(node.attrs["view"])
        is_row = view[1:3] == (1, 1) and x.shape[-1:] == view[3:] and view[3] <= MOST
        known = all(graph.known(name) for name in node.inputs[1:] if name)
        if not is_row or not known:
            continue
        constants = []
        for index, name in enumerate(node.inputs[1:]):
            value = np.full(view[3], 1.0 - index, np.float32)
            constants.append(graph.constants[name].reshape(-1) if name else value)
        attrs = {name: node.attrs[name] for name in ("epsilon", "centred")}
        yield Region(NORM, x.name, (node,), attrs, tuple(constants))


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
