"""Facts of a graph's nodes by which turns of a loop are known to be alike.

A column is what the turns have in one place: a tensor for each turn.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Sequence

from pybuild.ir.graph import Graph, Node, Tensor
from pybuild.records import dataclass


@dataclass(frozen=True)
class Part:
    """Part `index` of a tensor, seen as parts that lie one after the other."""

    source: str
    index: int


class Facts:
    """Facts about one graph; each is computed once."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.makers = graph.producers()
        self.users = graph.consumers()
        self.at = {node.output: i for i, node in enumerate(graph.nodes)}
        self._said: dict[str, tuple[object, ...]] = {}
        self._digests: dict[str, bytes] = {}
        self._parts: dict[str, Part | None] = {}

    def type_of(self, name: str) -> tuple[object, ...]:
        tensor = self.graph.tensor(name)
        return tensor.shape, tensor.dtype, tensor.quant

    def digest(self, name: str) -> tuple[object, ...]:
        """Equal for constants of equal values."""
        if name not in self._digests:
            raw = self.graph.constants[name].tobytes()
            self._digests[name] = hashlib.sha256(raw).digest()
        return (self._digests[name], *self.type_of(name))

    def alike(self, names: Iterable[str]) -> bool:
        """True if all are one tensor, or constants of one value."""
        names = list(names)
        if len(set(names)) == 1:
            return True
        known = all(name in self.graph.constants for name in names)
        return known and len({self.digest(name) for name in names}) == 1

    def said(self, node: Node) -> tuple[object, ...]:
        """Equal for nodes that do the same with their inputs."""
        if node.output not in self._said:
            ins = (self._input(n) if n else None for n in node.inputs)
            attrs = tuple(sorted((k, repr(v)) for k, v in node.attrs.items()))
            outs = (self.type_of(n) for n in node.outputs)
            self._said[node.output] = (node.op, node.device, attrs, *outs, *ins)
        return self._said[node.output]

    def _input(self, name: str) -> tuple[object, ...]:
        known = name in self.graph.constants
        return self.digest(name) if known else self.type_of(name)

    def part(self, name: str) -> Part | None:
        """The part of another tensor that this one is."""
        if name not in self._parts:
            node = self.makers.get(name)
            found = None
            if node is not None and node.op in ("slice", "gather"):
                found = _part(node, self.graph)
            self._parts[name] = found
        return self._parts[name]

    def depths(self, marked: Sequence[Node]) -> dict[str, int]:
        """For each tensor: the greatest number of these nodes on a path to it, its own
        included."""
        found: dict[str, int] = {}
        own = {node.output for node in marked}
        for node in self.graph.nodes:
            above = max((found.get(n, 0) for n in node.inputs), default=0)
            above += node.output in own
            if above:
                found.update(dict.fromkeys(node.outputs, above))
        return found


def _part(node: Node, graph: Graph) -> Part | None:
    x, y = graph.tensor(node.inputs[0]), graph.tensor(node.output)
    if not y.size or x.quant != y.quant:
        return None
    if node.op == "gather":
        return _gathered(node, graph, x, y)
    begin, strides = node.attrs["begin"], node.attrs["strides"]
    if any(s != 1 for s in strides) or len(x.shape) != len(y.shape):
        return None
    axes = [a for a, (m, n) in enumerate(zip(x.shape, y.shape, strict=True)) if m != n]
    if len(axes) != 1:
        return None
    axis, first = axes[0], int(begin[axes[0]])
    count = y.shape[axis]
    if math.prod(x.shape[:axis]) != 1 or first % count or x.shape[axis] % count:
        return None
    return Part(x.name, first // count)


def _gathered(node: Node, graph: Graph, x: Tensor, y: Tensor) -> Part | None:
    """The part that a gather of a known index reads, along an axis with nothing before
    it."""
    axis, places = int(node.attrs["axis"]), graph.constants.get(node.inputs[1])
    if places is None or places.size != 1 or math.prod(x.shape[:axis]) != 1:
        return None
    index = int(places.reshape(-1)[0])
    index += x.shape[axis] if index < 0 else 0
    inside = 0 <= index < x.shape[axis] and y.size * x.shape[axis] == x.size
    return Part(x.name, index) if inside else None
