"""Layers of int8 weights with inputs of float32, each as three nodes: the input made
int8 once, plain sums, and the sums made real numbers.

Files have the last as several nodes, and name the scale of an input apart from what a
layer reads of it. Knows no file format.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace

import numpy as np

from pybuild.dtype import Array, DType
from pybuild.ir.graph import Attr, Graph, Node
from pybuild.ops.hybrid import SUMS, totals
from pybuild.passes.dead import remove_dead
from pybuild.passes.edit import Edit, only_reader, renamed
from pybuild.records import dataclass

_QUANTIZE = "quantize_dynamic"
_MOVES = ("reshape", "transpose", "copy")


def join_dynamic(graph: Graph) -> Graph:
    """One quantize_dynamic for a tensor, where one will do; scale_sums behind sums."""
    if not any(node.op in SUMS for node in graph.nodes):
        return graph
    return remove_dead(_Joined(Edit(_quantised_once(graph))).done())


# ---- one quantize_dynamic -------------------------------------------------------


def _quantised_once(graph: Graph) -> Graph:
    """Equal nodes are one; of one whose integers nobody reads, the scale and the zero
    point are those of another over the same elements."""
    makers, users = graph.producers(), graph.consumers()
    groups: dict[object, Node] = {}
    names: dict[str, str] = {}
    found = [n for n in graph.nodes if n.op == _QUANTIZE and n.attrs["batches"] == 1]
    read = [n for n in found if users[n.output] or n.output in graph.outputs]
    for node in read:
        same = (node.inputs, tuple(sorted(node.attrs.items())))
        names |= _outputs(node, groups.setdefault(same, node))
        groups.setdefault(_elements(node, makers), node)
    for node in found:
        other = groups.get(_elements(node, makers), node)
        if node not in read:
            names |= dict(list(_outputs(node, other).items())[1:])
    names = {old: new for old, new in names.items() if old != new}
    if not names or not names.keys().isdisjoint(graph.outputs):
        return graph
    gone = [n for n in found if n.outputs[1] in names]
    left = replace(graph, nodes=tuple(n for n in graph.nodes if n not in gone))
    made = renamed(replace(left, tensors=dict(graph.tensors)), names)
    return replace(made, nodes=tuple(_in_order(made.nodes)))


def _outputs(node: Node, other: Node) -> dict[str, str]:
    return dict(zip(node.outputs, other.outputs, strict=True))


def _elements(node: Node, makers: Mapping[str, Node]) -> tuple[str, str]:
    """The elements that a node reads, in any order, and the rule."""
    rule = f"{node.attrs['rule']} {node.attrs.get('eps')}"
    return _before(node.inputs[0], makers), rule


def _before(name: str, makers: Mapping[str, Node]) -> str:
    """The tensor before data movement."""
    while name in makers and makers[name].op in _MOVES:
        name = makers[name].inputs[0]
    return name


def _in_order(nodes: Iterable[Node]) -> Iterable[Node]:
    """The nodes, makers before their readers."""
    left = list(nodes)
    waiting = {name for node in left for name in node.outputs}
    while left:
        later = []
        for node in left:
            if waiting.isdisjoint(node.inputs):
                waiting -= set(node.outputs)
                yield node
            else:
                later.append(node)
        left = later


# ---- scale_sums -----------------------------------------------------------------


@dataclass(frozen=True)
class _Sums:
    """Sums without their zero point: the layer, and the node that quantises for it."""

    layer: Node
    quantise: Node


class _Joined:
    """A graph in which sums meet their scales."""

    def __init__(self, edit: Edit) -> None:
        self.edit, self.graph = edit, edit.old
        self.makers, self.users = self.graph.producers(), self.graph.consumers()

    def done(self) -> Graph:
        """The graph with scale_sums; what that leaves without a reader is dead."""
        made: dict[str, list[Node]] = {}
        for node in self.graph.nodes:
            sums = self._sums(node)
            joined = self._scaled(node, sums) if sums is not None else None
            if joined is not None:
                made[joined.output] = self._shaped(joined)
        nodes = self.graph.nodes
        return self.edit.done([m for n in nodes for m in made.get(n.output, [n])])

    def _shaped(self, joined: Node) -> list[Node]:
        """In the shape of the sums, then in that of the output."""
        edit, sums = self.edit, self.graph.tensor(joined.inputs[0])
        if sums.shape == self.graph.tensor(joined.output).shape:
            return [joined]
        name = edit.fresh(f"{joined.output}.sums")
        edit.tensors[name] = replace(sums, name=name, dtype=DType.FLOAT32)
        last = Node("reshape", joined.name, (name,), joined.outputs)
        return [replace(joined, name=name, outputs=(name,)), last]

    def _maker(self, name: str, op: str, fn: str = "") -> Node | None:
        node = self.makers.get(name)
        fits = node is not None and node.op == op and node.attrs.get("fn", "") == fn
        return node if fits else None

    def _sums(self, cast: Node) -> _Sums | None:
        """The integer sums that a node dequantises: sums - zero * totals of the
        weights."""
        if cast.op != "map" or cast.attrs["fn"] != "cast":
            return None
        if self.graph.tensor(cast.output).dtype is not DType.FLOAT32:
            return None
        less = self._maker(self._moved(cast.inputs[0]), "map", "subtract")
        if less is None:
            return None
        layer = self.makers.get(less.inputs[0])
        point = self._maker(less.inputs[1], "map", "multiply")
        if layer is None or point is None or layer.op not in SUMS:
            return None
        quantise = self.makers.get(_before(layer.inputs[0], self.makers))
        if quantise is None or quantise.op != _QUANTIZE:
            return None
        fits = point.inputs[0] in quantise.outputs[2:]
        return _Sums(layer, quantise) if fits and self._total(layer, point) else None

    def _total(self, layer: Node, point: Node) -> bool:
        known = self.graph.constants
        w, total = known.get(layer.inputs[1]), known.get(point.inputs[1])
        if w is None or total is None:
            return False
        return np.array_equal(totals(layer.with_attrs(axis=_axis(layer)), w), total)

    def _moved(self, name: str) -> str:
        """The tensor before a reshape that keeps its last axis."""
        node = self._maker(name, "reshape")
        while node is not None and node.inputs[0] not in self.graph.constants:
            before, after = (self.graph.tensor(n).shape for n in (node.inputs[0], name))
            if before[-1:] != after[-1:]:
                break
            name = node.inputs[0]
            node = self._maker(name, "reshape")
        return name

    def _reader(self, name: str, op: str) -> tuple[Node, str] | None:
        """The only reader of a tensor, and its other operand."""
        if not only_reader(self.graph, self.users, name):
            return None
        (node,) = self.users[name]
        if node.op != op or node.attrs.get("exact") or len(set(node.inputs)) < 2:
            return None
        (other,) = (n for n in node.inputs if n != name)
        shapes = {self.graph.tensor(n).shape for n in (name, node.output)}
        return (node, other) if len(shapes) == 1 else None

    def _scaled(self, cast: Node, sums: _Sums) -> Node | None:
        """scale_sums in the place of the last node that it is."""
        scaled = self._reader(cast.output, "mul")
        factor = self._factor(scaled[1], sums) if scaled is not None else None
        if scaled is None or factor is None:
            return None
        last, bias = scaled[0], ""
        added = None if "clamp" in last.attrs else self._reader(last.output, "add")
        channels = self.graph.tensor(last.output).shape[-1]
        row = self._row(added[1], channels) if added is not None else None
        if added is not None and row is not None:
            last = added[0]
            bias = self._constant(added[1], np.broadcast_to(row, (channels,)))
        layer, (_, scale, zero) = sums.layer, sums.quantise.outputs
        names = (layer.output, scale, factor, bias, zero, layer.inputs[1])
        attrs: dict[str, Attr] = {"sums_first": False, "axis": _axis(layer)}
        if "clamp" in last.attrs:
            attrs["clamp"] = last.attrs["clamp"]
        return replace(last, op="scale_sums", inputs=names, attrs=attrs)

    def _factor(self, name: str, sums: _Sums) -> str | None:
        """The constant of scale * constant, where `name` is that."""
        node = self.makers.get(_before(name, self.makers))
        if node is None or node.op != "mul" or "clamp" in node.attrs:
            return None
        channels = self.graph.tensor(sums.layer.output).shape[-1]
        product = self.graph.tensor(name)
        if product.size not in (1, math.prod(product.shape[-1:])):
            return None
        for this, other in (node.inputs, node.inputs[::-1]):
            row = self._numbers(other, channels)
            if row is not None and self._is_scale(this, sums.quantise):
                return self._constant(other, row)
        return None

    def _is_scale(self, name: str, quantise: Node) -> bool:
        """True if a scale belongs to the same elements."""
        name = _before(name, self.makers)
        node = self.makers.get(name)
        if node is None or node.op != _QUANTIZE or name != node.outputs[1]:
            return False
        both = {_elements(n, self.makers) for n in (node, quantise)}
        return len(both) == 1 and node.attrs["batches"] == 1

    def _row(self, name: str, channels: int) -> Array | None:
        """A constant that is one number, or one for each channel, its last axis."""
        row = self._numbers(name, channels)
        last = self.graph.tensor(name).shape[-1:]
        return row if row is not None and row.size == math.prod(last) else None

    def _numbers(self, name: str, channels: int) -> Array | None:
        """A constant of one number, or as many as there are channels."""
        value = self.graph.constants.get(name)
        if value is None or value.dtype != np.float32:
            return None
        return value.reshape(-1) if value.size in (1, channels) else None

    def _constant(self, name: str, row: Array) -> str:
        if self.graph.constants[name].shape == row.shape:
            return name
        return self.edit.moved(name, "row", np.ascontiguousarray(row))


def _axis(layer: Node) -> int:
    """The axis of the output channels in a layer's weights."""
    return 2 if layer.op.startswith("depthwise") else 0
