"""Checks how much a file asks for before the package `onnx` processes it: the number of
nodes after inlining functions, and the sizes of values that shape inference would join.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from pybuild.params.budget import MOST_NODES, Budget

if TYPE_CHECKING:
    from onnx import GraphProto, ModelProto, NodeProto

Key = tuple[str, str]
_EQUATION = re.compile(rb"[A-Za-z.,> -]*")
# more elements are not a shape; onnx takes 150 bytes for each
_MOST_JOINED = 1 << 16


def take_nodes(source: str, model: ModelProto) -> None:
    """Count the nodes with all functions inlined; functions must not call each other in
    a circle.

    Errors  TooMuch if there are too many
    """
    sizes: dict[Key, int] = {}
    functions = {(f.domain, f.name): f for f in model.functions}
    left = list(functions)
    while left:
        key = left[-1]
        nodes = list(_inside(functions[key].node))
        first = [k for n in nodes if (k := _key(n)) in functions and k not in sizes]
        left += first
        if not first:
            sizes[left.pop()] = min(_written(nodes, sizes), MOST_NODES + 1)
    Budget(source, 0).take_nodes(_written(_inside(model.graph.node), sizes))


def _key(node: NodeProto) -> Key:
    return node.domain, node.op_type


def _written(nodes: Iterable[NodeProto], sizes: Mapping[Key, int]) -> int:
    return sum(sizes.get(_key(node), 1) for node in nodes)


def _inside(nodes: Iterable[NodeProto]) -> Iterator[NodeProto]:
    """Yield all nodes, with those of their subgraphs."""
    left = [iter(nodes)]
    while left:
        node = next(left[-1], None)
        if node is None:
            left.pop()
            continue
        yield node
        left += [iter(a.g.node) for a in node.attribute if a.HasField("g")]
        left += [iter(g.node) for a in node.attribute for g in a.graphs]


def joins_much(graph: GraphProto) -> bool:
    """Return True if Concat could make known values longer than any shape."""
    lengths = {t.name: max([1, *t.dims]) for t in graph.initializer}
    for node in graph.node:
        reads = [lengths.get(name, 1) for name in node.input]
        reads += [max([1, *a.t.dims]) for a in node.attribute if a.HasField("t")]
        length = sum(reads) if node.op_type == "Concat" else max(reads, default=1)
        if node.op_type == "Concat" and length > _MOST_JOINED:
            return True
        lengths |= dict.fromkeys(node.output, length)
    return False


def odd_equation(model: ModelProto) -> NodeProto | None:
    """Return an Einsum whose equation has invalid characters, on which onnx's shape
    inference hangs; else None."""
    bodies = (model.graph.node, *(function.node for function in model.functions))
    for node in (inner for body in bodies for inner in _inside(body)):
        texts = [a.s for a in node.attribute if a.name == "equation"]
        if node.op_type == "Einsum" and not all(map(_EQUATION.fullmatch, texts)):
            return node
    return None
