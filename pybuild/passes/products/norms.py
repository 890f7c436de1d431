"""(x - mean) / sqrt(variance + epsilon) as one node, whatever spells it: means of one
axis or of several, sums and quotients, reshapes in between, factors and offsets in any
shape. RMSNorm, which takes off no mean, too.

Which elements a mean is of, and which one an operand is for, is looked up by number:
a tensor of the numbers of its elements is broadcast as the operand is.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from pybuild.dtype import Array, DType
from pybuild.ir.graph import Attr, Graph, Node
from pybuild.ops.interpret import operator_of
from pybuild.passes.dead import remove_dead
from pybuild.passes.edit import Edit, only_reader
from pybuild.passes.products.norm_views import (
    Numbers,
    View,
    finer,
    ordered,
    view_by_owners,
)
from pybuild.passes.spellings import Terms, word_of
from pybuild.records import dataclass

_MOST = 1 << 22  # elements of a tensor whose elements are looked at by number
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class _Norm:
    """source    what is normalised
    last         the node that makes the result
    owners       of each element of the source, in its order, the number of its group
    factors, offsets  of each element; None: there are none
    """

    source: str
    last: Node
    owners: Numbers
    epsilon: float
    centred: bool
    factors: Floats | None = None
    offsets: Floats | None = None
    clamp: Attr | None = None


def join_norms(graph: Graph) -> Graph:
    """The graph with one `group_norm` for each norm of float32."""
    roots = [n for n in graph.nodes if word_of(n) == "sqrt"]
    if not roots or graph.is_placed:
        return graph
    reader = _Reader(graph)
    made: dict[str, tuple[_Norm, View, bool]] = {}
    for root in roots:
        one = reader.norm(root)
        view = None if one is None else _view_of(one, graph, reader)
        if one is not None and view is not None:
            made[one.last.output] = (one, *view)
    if not made:
        return graph
    edit = Edit(graph)
    for node in graph.nodes:
        if node.output in made:
            _write(edit, *made[node.output])
        else:
            edit.keep(node)
    return remove_dead(edit.done())


def _write(edit: Edit, norm: _Norm, view: View, turned: bool) -> None:
    """The node; turned: on channels last, between two transposes."""
    old, name = edit.old, norm.last.output
    shape, x = old.tensor(norm.source).shape, edit.name(norm.source)
    rank = len(shape)
    perm = (0, *range(2, rank), 1)
    inputs = [x]
    if turned:
        inputs = [edit.fresh(f"{name}.channels_last")]
        node = Node("transpose", inputs[0], (x,), (inputs[0],), {"perm": perm})
        edit.emit(node)
    rows = old.tensor(name).shape
    if view[1:3] == (1, 1) and shape[-1:] != view[3:] == rows[-1:]:
        inputs = [edit.fresh(f"{name}.rows")]  # so that its groups are rows
        node = Node("reshape", inputs[0], (x,), (inputs[0],))
        edit.emit(node, shape=rows)
    for kind, each in (("factors", norm.factors), ("offsets", norm.offsets)):
        if each is None:
            inputs.append("")
            continue
        value = ordered(each, shape, turned)[: view[2] * view[3]]
        inputs.append(edit.constant(f"{name}.{kind}", value.astype(np.float32)))
    while not inputs[-1]:
        inputs.pop()
    attrs: dict[str, Attr] = {
        "epsilon": norm.epsilon, "centred": norm.centred, "view": view,
    }  # fmt: skip
    if norm.clamp is not None:
        attrs["clamp"] = norm.clamp
    back = (0, rank - 1, *range(1, rank - 1))
    ends = [("channels_first", "transpose", {"perm": back})] * turned
    first = edit.tensors[inputs[0]].shape
    if (shape if turned else first) != old.tensor(name).shape:
        ends.append(("norm", "reshape", {}))
    made = edit.fresh(f"{name}.norm") if ends else name
    edit.emit(Node("group_norm", norm.last.name, tuple(inputs), (made,), attrs))
    for index, (text, op, more) in enumerate(ends, 1):
        output = edit.fresh(f"{name}.{text}") if index < len(ends) else name
        node = Node(op, f"{norm.last.name}.{text}", (made,), (output,), more)
        made = edit.emit(node, shape=old.tensor(name).shape)


# ---- what is a norm ------------------------------------------------------------------


class _Reader:
    """Finds norms; reshapes between their nodes are skipped."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.makers, self.users = graph.producers(), graph.consumers()
        self._number = Terms(graph, self.makers).number

    def norm(self, root: Node) -> _Norm | None:
        """The norm that divides by this root."""
        variance, epsilon = self._plus(root.inputs[0])
        mean = self._mean(variance)
        square = self.makers.get(mean[0]) if mean is not None else None
        if mean is None or square is None or self.graph.tensor(root.output).size < 1:
            return None
        if word_of(square) != "mul" or len({*square.inputs}) != 1:
            return None
        away, owners = self.base(square.inputs[0]), mean[1]
        last = self._divided(root, away, owners)
        if last is None:
            return None
        source, centred = away, False
        less = self._less(away)
        if less is not None and np.array_equal(less[1], owners):
            source, centred = less[0], True
        found = _Norm(source, last, owners, epsilon, centred)
        return self._ended(found) if self._closed(found, root) else None

    def base(self, name: str) -> str:
        """What a tensor is a reshape of."""
        while (node := self.makers.get(name)) is not None and node.op == "reshape":
            name = node.inputs[0]
        return name

    def _plus(self, name: str) -> tuple[str, float]:
        """A sum's operand, and the number that is added; 0: it is no such sum."""
        node = self.makers.get(self.base(name))
        if node is not None and word_of(node) == "add":
            for one, other in (node.inputs, node.inputs[::-1]):
                number = self._number(other)
                if number is not None and number >= 0:
                    return one, number
        return name, 0.0

    def _mean(self, name: str) -> tuple[str, Numbers] | None:
        """What a tensor is the mean of, and of which elements."""
        node = self.makers.get(self.base(name))
        if node is None or node.op != "mean":
            return None
        x, axes = self.graph.tensor(node.inputs[0]), tuple(node.attrs["axes"])
        if x.dtype is not DType.FLOAT32 or not 0 < x.size <= _MOST:
            return None
        shape = [1 if i in axes else n for i, n in enumerate(x.shape)]
        groups = np.arange(int(np.prod(shape))).reshape(shape)
        owners = np.broadcast_to(groups, x.shape).reshape(-1)
        return self.base(node.inputs[0]), owners

    def _places(self, node: Node, operand: str) -> Numbers:
        """The element of an operand that each element of the result is made of."""
        one, y = self.graph.tensor(operand), self.graph.tensor(node.output)
        numbers = np.arange(one.size).reshape(one.shape)
        return np.broadcast_to(numbers, y.shape).reshape(-1)

    def _less(self, name: str) -> tuple[str, Numbers] | None:
        """What a tensor is less its mean, and of which elements that is."""
        node = self.makers.get(name)
        if node is None or word_of(node) != "sub":
            return None
        mean, source = self._mean(node.inputs[1]), self.base(node.inputs[0])
        same = mean is not None and mean[0] == source
        if mean is None or not same or not self._full(node, node.inputs[0]):
            return None
        fits = np.array_equal(self._places(node, node.inputs[1]), mean[1])
        return (source, mean[1]) if fits else None

    def _full(self, node: Node, name: str) -> bool:
        return self.graph.tensor(name).size == self.graph.tensor(node.output).size

    def _only(self, name: str) -> Node | None:
        """The one node that reads a tensor, reshapes skipped."""
        while only_reader(self.graph, self.users, name):
            node = self.users[name][0]
            if node.op != "reshape":
                return node
            name = node.output
        return None

    def _divided(self, root: Node, away: str, owners: Numbers) -> Node | None:
        """The node that divides a tensor by a root, or multiplies it by 1 / root."""
        by, node = root.output, self._only(root.output)
        kind = "divide"
        inverse = word_of(node) == "reciprocal" or (
            node is not None and word_of(node) == "divide"
            and self._number(node.inputs[0]) == 1
        )  # fmt: skip
        if node is not None and inverse:
            by, kind = node.output, "mul"
            node = self._only(node.output)
        if node is None or word_of(node) != kind or len(node.inputs) != 2:
            return None
        operands = node.inputs if kind == "divide" else sorted(
            node.inputs, key=lambda n: self.base(n) == self.base(by)
        )  # fmt: skip
        value, other = operands
        if self.base(other) != self.base(by) or not self._full(node, value):
            return None
        if not self._same(self.base(value), away, owners):
            return None
        return node if np.array_equal(self._places(node, other), owners) else None

    def _same(self, name: str, away: str, owners: Numbers) -> bool:
        """True if both are one tensor, or both x less the same mean."""
        if name == away:
            return True
        one, two = self._less(name), self._less(away)
        both = one is not None and two is not None and one[0] == two[0]
        return both and one is not None and np.array_equal(one[1], owners)

    def _closed(self, norm: _Norm, root: Node) -> bool:
        """True if nothing else needs what is made on the way."""
        inside: set[str] = set()
        ways = [norm.last.output]
        while ways:
            node = self.makers.get(ways.pop())
            if node is None or node.output in inside:
                continue
            inside.add(node.output)
            ways += [n for n in node.inputs if n and self.base(n) != norm.source]
        inside.discard(norm.last.output)
        return root.output in inside and all(
            name not in self.graph.outputs
            and {n.output for n in self.users[name]} <= inside | {norm.last.output}
            for name in inside
        )

    def _ended(self, norm: _Norm) -> _Norm:
        """With the factors and offsets behind it, and the limits of the last one."""
        while norm.clamp is None:
            node = self._only(norm.last.output)
            what = "" if node is None else word_of(node, clamped=True)
            if node is None or self.graph.tensor(node.output).size != norm.owners.size:
                break
            each = self._each(node) if what in ("add", "sub", "mul") else None
            if each is None:
                break
            factors, offsets = norm.factors, norm.offsets
            if what == "mul":
                factors = each if factors is None else factors * each
                offsets = None if offsets is None else offsets * each
            else:
                each = -each if what == "sub" else each
                offsets = each if offsets is None else offsets + each
            norm = replace(
                norm, last=node, factors=factors, offsets=offsets,
                clamp=node.attrs.get("clamp"),
            )  # fmt: skip
        return norm

    def _each(self, node: Node) -> Floats | None:
        """Of each element the constant that it is multiplied by, or that is added."""
        first = 1 if word_of(node, clamped=True) == "sub" else 0
        for name in node.inputs[first:]:
            value = self._known(name)
            if value is not None:
                each = value.astype(np.float64).reshape(-1)
                return np.asarray(each[self._places(node, name)])
        return None

    def _known(self, name: str) -> Array | None:
        """The elements of a constant, or of one of integers that is dequantised."""
        if self.graph.known(name):
            return self.graph.constants[name]
        node = self.makers.get(self.base(name))
        if node is None:
            return self._known(self.base(name)) if self.base(name) != name else None
        if node.op != "dequantize" or not self.graph.known(node.inputs[0]):
            return None
        given = (self.graph.constants[node.inputs[0]],)
        return operator_of(node, self.graph).reference(node, self.graph, given)[0]


# ---- how its elements are read -------------------------------------------------------


def _view_of(norm: _Norm, graph: Graph, reader: _Reader) -> tuple[View, bool] | None:
    """The view that an operator has, and whether it is one of channels last: where
    factors are not those of the last axis, or where x has its channels last anyway."""
    shape = graph.tensor(norm.source).shape
    ways = [False, True] if len(shape) > 2 else [False]
    maker = reader.makers.get(norm.source)
    first = (0, len(shape) - 1, *range(1, len(shape) - 1))
    if maker is not None and maker.op == "transpose" and len(shape) > 3:
        ways = ways[:: -1 if tuple(maker.attrs["perm"]) == first else 1]
    found: list[tuple[bool, View, bool]] = []
    for turned in ways:
        owners = ordered(norm.owners, shape, turned)
        view = view_by_owners(np.asarray(owners, np.int64))
        order = (shape[0], *shape[2:], shape[1]) if turned else shape
        for one in finer(view, order) if view is not None else ():
            count = one[2] * one[3]
            rows = (
                ordered(each, shape, turned).reshape(-1, count)
                for each in (norm.factors, norm.offsets)
                if each is not None
            )
            if all((row == row[:1]).all() for row in rows):
                found.append((count > order[-1], one, turned))
    best = min(found, key=lambda one: one[0], default=None)
    return best and best[1:]
