"""softmax(q @ k.T) @ v as one node that is told at run time which rows count.

A mask that is a function of one integer, the position, is tried at every position. If
it lets through rows that follow each other, these are a table by position. The rows
that it hides have the weight exp(-inf) (or of -1e9 and less), which is 0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from pybuild.dtype import Array, DType
from pybuild.errors import BuildError
from pybuild.ir.graph import Attr, Graph, Node, Tensor
from pybuild.ops.interpret import operator_of
from pybuild.passes.dead import remove_dead
from pybuild.passes.edit import Edit, only_reader
from pybuild.records import dataclass

HIDDEN = -1e9  # a mask's number from which on a row has no weight
MOST = 1024  # positions that are tried


@dataclass(frozen=True)
class _Mask:
    """A tensor that hides rows: added to scores, or chosen where `hides` is true."""

    name: str
    added: bool = True
    hides: bool = True


@dataclass(frozen=True)
class _Found:
    """The nodes from q @ k.T to the product with v."""

    first: Node
    last: Node
    scale: float
    mask: _Mask


def join_attention(graph: Graph) -> Graph:
    """The graph with one node for each attention whose mask the position decides."""
    if not any(node.op == "softmax" for node in graph.nodes) or graph.is_placed:
        return graph
    seen = _Reader(graph)
    found: dict[str, tuple[_Found, tuple[str, Array]]] = {}
    for node in graph.nodes:
        one = seen.attention(node) if node.op == "softmax" else None
        live = seen.rows(one) if one is not None else None
        if one is not None and live is not None:
            found[one.last.output] = one, live
    if not found:
        return graph
    return remove_dead(_written(graph, found, seen))


def _written(
    graph: Graph, found: Mapping[str, tuple[_Found, tuple[str, Array]]], seen: _Reader
) -> Graph:
    edit = Edit(graph)
    tables: dict[tuple[str, bytes], str] = {}
    for node in graph.nodes:
        if node.output not in found:
            edit.keep(node)
            continue
        one, (position, table) = found[node.output]
        key = position, table.tobytes()
        if key not in tables:
            tables[key] = _looked_up(edit, position, table)
        _write(edit, one, tables[key], seen)
    return edit.done()


def _write(edit: Edit, one: _Found, rows: str, seen: _Reader) -> None:
    """The node; int8 keys and values are read as they are, their scales apart."""
    graph, (q, k), v = edit.old, one.first.inputs, one.last.inputs[1]
    (k, k_scale), (v, v_scale) = seen.stored(k), seen.stored(v)
    attrs: dict[str, Attr] = {"scale": one.scale * k_scale}
    if not one.first.attrs.get("transpose_b"):
        attrs["across"] = True
    inputs = (*map(edit.name, (q, k, v)), rows)
    y = graph.tensor(one.last.output)
    made = y.name if v_scale == 1 else edit.fresh(f"{y.name}.steps")
    node = Node("attention", one.last.name, inputs, (made,), attrs)
    edit.emit(node, shape=y.shape)
    if made != y.name:
        factor = edit.constant(f"{y.name}.scale", np.asarray(v_scale, np.float32))
        edit.emit(Node("mul", y.name, (made, factor), (y.name,)), shape=y.shape)


def _looked_up(edit: Edit, position: str, table: Array) -> str:
    """The first row, and the one after the last, at a position."""
    at, name = edit.old.tensor(position), edit.fresh(f"{position}.rows")
    source = edit.name(position)
    if at.shape:
        one = edit.fresh(f"{position}.one")
        made = Node("reshape", one, (source,), (one,), {"shape": ()})
        source = edit.emit(made, dtype=at.dtype)
    known = edit.constant(f"{name}.table", table)
    made = Node("gather", name, (known, source), (name,), {"axis": 0})
    return edit.emit(made, shape=(2,), dtype=DType.INT32)


class _Reader:
    """Finds the parts of attention in a graph."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.makers, self.users = graph.producers(), graph.consumers()
        fixed = graph.constants.keys() - graph.parameters.keys()
        self.fixed = {name: graph.constants[name] for name in fixed}
        self.known: dict[tuple[_Mask, int], tuple[str, Array] | None] = {}

    def attention(self, node: Node) -> _Found | None:
        """The products around a softmax, and the mask before it."""
        y = self.graph.tensor(node.output)
        last = self._reader(node.output)
        real = y.dtype is DType.FLOAT32 and node.attrs["axis"] == len(y.shape) - 1
        if not real or last is None or last.op != "matmul":
            return None
        masked = self._masked(node.inputs[0])
        if masked is None or last.attrs.get("transpose_b"):
            return None
        first, scale = self._scaled(masked[0])
        if first is None or not self._fit(first, last):
            return None
        return _Found(first, last, scale * float(node.attrs["beta"]), masked[1])

    def _keeps_rows(self, node: Node) -> bool:
        """True if a node is a reshape that keeps the last axis."""
        both = (self.graph.tensor(n).shape[-1:] for n in (*node.inputs, node.output))
        return node.op == "reshape" and len(set(both)) == 1

    def _reader(self, name: str) -> Node | None:
        """The only reader of a tensor, reshapes skipped."""
        node = next(iter(self.users[name]), None)
        if node is None or not only_reader(self.graph, self.users, name):
            return None
        if self._keeps_rows(node):
            return self._reader(node.output)
        return node if node.inputs[0] == name else None

    def _made(self, name: str) -> Node | None:
        """The producer of a tensor that has one reader, reshapes skipped."""
        node = self.makers.get(name)
        if node is None or not only_reader(self.graph, self.users, name):
            return None
        return self._made(node.inputs[0]) if self._keeps_rows(node) else node

    def _masked(self, name: str) -> tuple[str, _Mask] | None:
        """The scores before a mask, and the mask."""
        node, graph = self._made(name), self.graph
        if node is not None and node.op == "add" and "clamp" not in node.attrs:
            for scores, mask in (node.inputs, node.inputs[::-1]):
                whole = graph.tensor(scores).shape == graph.tensor(node.output).shape
                if whole and self._scaled(scores)[0] is not None:
                    return scores, _Mask(mask)
        if node is not None and node.op == "map" and node.attrs["fn"] == "where":
            mask, *both = node.inputs
            for i, one in enumerate(both):
                value = self.fixed.get(one)
                if value is not None and _hidden(value).all():
                    return both[1 - i], _Mask(mask, added=False, hides=i == 0)
        return None

    def _scaled(self, name: str) -> tuple[Node | None, float]:
        """The first product, and what it is multiplied with."""
        node, scale = self._made(name), 1.0
        if node is not None and node.op == "mul" and "clamp" not in node.attrs:
            values = [self.fixed.get(n) for n in node.inputs]
            number = next((v for v in values if v is not None and v.size == 1), None)
            if number is None:
                return None, scale
            scale = float(number.ravel()[0])
            node = self._made(node.inputs[0 if values[0] is None else 1])
        is_product = node is not None and node.op == "matmul"
        return (node if is_product else None), scale

    def _fit(self, first: Node, last: Node) -> bool:
        """True if the shapes are valid for the operator."""
        q, k, v = (self.graph.tensor(n) for n in (*first.inputs, last.inputs[1]))
        *outer, rows, depth = q.shape
        window = v.shape[-2]
        keys = (window, depth) if first.attrs.get("transpose_b") else (depth, window)
        shares = self.graph.tensor(last.inputs[0]).shape == (*outer, rows, window)
        real = all(one.dtype is DType.FLOAT32 for one in (q, k, v))
        whole = k.shape == (*outer, *keys) and v.shape[:-2] == tuple(outer)
        return shares and real and whole

    def stored(self, name: str) -> tuple[str, float]:
        """The int8 that keys or values are made of, and their scale; or themselves."""
        node, scale = self.makers.get(name), 1.0
        if node is not None and node.op == "mul" and "clamp" not in node.attrs:
            values = [self.fixed.get(n) for n in node.inputs]
            number = next((v for v in values if v is not None and v.size == 1), None)
            if number is None:
                return name, 1.0
            scale = float(number.ravel()[0])
            node = self.makers.get(node.inputs[0 if values[0] is None else 1])
        if node is None or node.op != "map" or node.attrs["fn"] != "cast":
            return name, 1.0
        x = self.graph.tensor(node.inputs[0])
        same = x.dtype is DType.INT8 and x.shape == self.graph.tensor(name).shape
        return (x.name, scale) if same else (name, 1.0)

    # ---- which rows a mask lets through -------------------------------------------

    def rows(self, one: _Found) -> tuple[str, Array] | None:
        """The tensor that is the position, and the first row and the one after the
        last at each; None: the mask is not such a one."""
        window = self.graph.tensor(one.last.inputs[1]).shape[-2]
        key = one.mask, window
        if key not in self.known:
            self.known[key] = self._rows(one.mask, window)
        return self.known[key]

    def _rows(self, mask: _Mask, window: int) -> tuple[str, Array] | None:
        shape = self.graph.tensor(mask.name).shape
        above = self._above(mask.name)
        if above is None or window > MOST or shape[-1:] != (window,):
            return None
        if self.graph.tensor(mask.name).size != window:
            return None
        nodes, position = above
        table = np.zeros((window, 2), np.int32)
        for at in range(window):
            value = self._value(nodes, position, at)
            live = None if value is None else _let_through(value.ravel(), mask)
            if live is None:
                return None
            table[at] = live
        return position.name, table

    def _above(self, name: str) -> tuple[list[Node], Tensor] | None:
        """The nodes that make a tensor of one integer and constants, in order."""
        wanted, nodes, given = {name}, [], set()
        for node in reversed(self.graph.nodes):
            if wanted.isdisjoint(node.outputs):
                continue
            if any(map(self._is_position, node.outputs)):
                continue
            nodes.append(node)
            wanted |= {n for n in node.inputs if n}
        made = {n for node in nodes for n in node.outputs}
        given = {n for n in wanted if n not in made and n not in self.fixed}
        if len(given) != 1 or not nodes:
            return None
        position = self.graph.tensor(given.pop())
        return (nodes[::-1], position) if self._is_position(position.name) else None

    def _is_position(self, name: str) -> bool:
        tensor = self.graph.tensor(name)
        whole = tensor.dtype in (DType.INT32, DType.INT64) and tensor.size == 1
        return whole and name in self.graph.inputs

    def _value(self, nodes: Sequence[Node], position: Tensor, at: int) -> Array | None:
        """The value that the nodes compute from a position."""
        graph = self.graph
        values: dict[str, Array] = dict(self.fixed)
        values[position.name] = np.full(position.shape, at, position.dtype.numpy)
        for node in nodes:
            reads = [values[name] if name else None for name in node.inputs]
            try:
                made = operator_of(node, graph).reference(node, graph, reads)
            except BuildError:
                return None
            values.update(zip(node.outputs, made, strict=True))
        return values[nodes[-1].output]


def _hidden(mask: Array) -> Array:
    return np.asarray(mask.astype(np.float64) <= HIDDEN)


def _let_through(mask: Array, how: _Mask) -> tuple[int, int] | None:
    """The rows that a mask lets through, if they follow each other."""
    if how.added:
        seen = mask == 0
        if not (seen | _hidden(mask)).all():
            return None
    else:
        seen = mask.astype(bool) != how.hides
    places = np.flatnonzero(seen)
    if not len(places) or places[-1] - places[0] + 1 != len(places):
        return None
    return int(places[0]), int(places[-1]) + 1
