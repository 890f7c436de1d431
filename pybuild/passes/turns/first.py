"""The first turn of a loop whose state begins with constants: what is computed of
these alone is a constant in the file, and so the turn looks otherwise."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from pybuild.dtype import Array
from pybuild.ir.graph import Node, Tensor
from pybuild.ops.base.operator import Numbers
from pybuild.ops.interpret import operator_of
from pybuild.passes.turns.columns import Facts
from pybuild.passes.turns.find import Loop, NoLoop, Role, Source

_SWAPS = ("add", "mul")
_SINGLE = (*_SWAPS, "sub", "map", "logistic", "tanh", "clip", "reshape")
Place = tuple[int, int]


def with_first(facts: Facts, loop: Loop) -> Loop:
    """The loop with a turn before its first, where there is one."""
    try:
        return _First(facts, loop).loop_with()
    except NoLoop:
        return loop


class _First:
    """nodes   of the turn before, by role
    first   what that turn reads of the state
    folded  what is a constant in the file, by what makes it in the other turns
    """

    def __init__(self, facts: Facts, loop: Loop) -> None:
        self.facts, self.loop = facts, loop
        self.nodes: dict[int, Node] = {}
        self.first: dict[Place, str] = {}
        self.folded: dict[Place, str] = {}

    def loop_with(self) -> Loop:
        """Errors  NoLoop"""
        for place, name in self.loop.first.items():
            self.makes(place, name)
        for place, name in self.folded.items():
            made = self._value(place).reshape(-1)
            if not np.array_equal(made, self.facts.graph.constants[name].reshape(-1)):
                raise NoLoop()
        roles = []
        for number, role in enumerate(self.loop.roles):
            reads = [_earlier(source) for source in role.reads]
            roles.append(Role([self.nodes.get(number), *role.nodes], reads))
        first = {place: self.first.get(place, "") for place in self.loop.first}
        return Loop(tuple(roles), first)

    def makes(self, place: Place, name: str) -> None:
        """Notes that this role makes `name` in the iteration before."""
        role, node = self.loop.roles[place[0]].node, self.facts.makers.get(name)
        if node is None:
            if name not in self.facts.graph.constants:
                raise NoLoop()
            if self.folded.setdefault(place, name) != name:
                raise NoLoop()
            return
        if node.op != role.op and role.op == "reshape":
            source = self.loop.roles[place[0]].reads[0]
            assert source is not None
            return self.reads(source, name)
        if node.op != role.op and node.op == "reshape":
            return self.makes(place, node.inputs[0])
        if role.op == "add" and node.op == "dense":
            return self._added(place[0], node)
        if role.op == "add" and node.op != "add":
            return self._plus_zero(place[0], name)
        if self.nodes.setdefault(place[0], node) is not node:
            raise NoLoop()
        self._same(role, node)
        self._inputs(place[0], node)

    def _added(self, number: int, node: Node) -> None:
        """A layer whose bias has what the other turns add to it: float, as integers are
        not folded so."""
        two = self._sources(number)
        for one, other in (two, two[::-1]):
            layer = self.loop.roles[one.role[0]] if one.role else None
            if layer is None or layer.node.op != "dense" or one.kept or not other.role:
                continue
            bias = layer.reads[2] if len(layer.reads) > 2 else None
            weights = layer.reads[1]
            if weights is None or not self.facts.alike((weights.held, node.inputs[1])):
                continue
            more: Numbers = self._value(other.role)
            before: Numbers = (
                self.facts.graph.constants[bias.held] if bias else more * 0
            )
            made = self.facts.graph.constants.get(node.inputs[2], before)
            if np.allclose(made, before + more.reshape(-1), 1e-6, 1e-7):
                assert layer.reads[0] is not None
                return self.reads(layer.reads[0], node.inputs[0])
        raise NoLoop()

    def _plus_zero(self, number: int, name: str) -> None:
        """A sum of which one operand is nothing: it is the other."""
        two = self._sources(number)
        for one, other in (two, two[::-1]):
            if other.role is not None and not other.kept:
                try:
                    nothing = not self._value(other.role).any()
                except NoLoop:
                    continue
                if nothing:
                    return self.reads(one, name)
        raise NoLoop()

    def _sources(self, number: int) -> list[Source]:
        """The sources of a sum's two operands."""
        found = [s for s in self.loop.roles[number].reads if s is not None]
        if len(found) != 2:
            raise NoLoop()
        return found

    def _same(self, role: Node, node: Node) -> None:
        """Errors  NoLoop where they do other things"""
        old, new = (self.facts.graph.tensor(n.output) for n in (role, node))
        types = ((t.dtype, t.quant, t.size) for t in (old, new))
        same = role.op == node.op and len(set(types)) == 1
        same &= dict(role.attrs) == dict(node.attrs)
        same &= len(role.inputs) == len(node.inputs)
        if not same or (old.shape != new.shape and role.op not in _SINGLE):
            raise NoLoop()

    def _inputs(self, number: int, node: Node) -> None:
        role = self.loop.roles[number]
        fn = node.attrs.get("fn", "")
        swaps = node.op in _SWAPS or fn in ("add", "multiply")
        orders: list[Iterable[str]] = [node.inputs]
        orders += [reversed(node.inputs)] if swaps else []
        nodes, first, folded = self.nodes, self.first, self.folded
        for order in orders:
            self.nodes, self.first, self.folded = {**nodes}, {**first}, {**folded}
            try:
                for source, name in zip(role.reads, order, strict=True):
                    if source is not None:
                        self.reads(source, name)
                return
            except NoLoop:
                continue
        raise NoLoop()

    def reads(self, source: Source, name: str) -> None:
        """Notes that a node of the iteration before has an input from here."""
        if source.role is not None and not source.kept:
            return self.makes(source.role, name)
        if source.role is not None:
            if self.first.setdefault(source.role, name) != name:
                raise NoLoop()
            made = self.loop.roles[source.role[0]].node.outputs[source.role[1]]
            same = self.facts.type_of(name) == self.facts.type_of(made)
            if not same or name in self.facts.makers:
                raise NoLoop()
        elif source.parts is not None:
            part, first = self.facts.part(name), source.parts[0] - source.parts[1]
            if part is None or (part.source, part.index) != (source.held, first):
                raise NoLoop()
        elif not self.facts.alike((name, source.held)):
            raise NoLoop()

    # ---- constants ----------------------------------------------------------------

    def _value(self, place: Place) -> Array:
        """The value of a role for the state that the loop begins with."""
        role, graph = self.loop.roles[place[0]], self.facts.graph
        reads = [self._read(source) if source else None for source in role.reads]
        made = operator_of(role.node, graph).reference(role.node, graph, reads)
        return made[place[1]]

    def _read(self, source: Source) -> Array:
        graph = self.facts.graph
        if source.role is not None and source.kept:
            name = self.first.get(source.role, "")
            made = self.loop.roles[source.role[0]].node.outputs[source.role[1]]
            if not name:
                return zeros(graph.tensor(made))
            source = Source(name)
        if source.role is not None:
            return self._value(source.role)
        if source.parts is not None or source.held not in graph.constants:
            raise NoLoop()
        return graph.constants[source.held]


def zeros(tensor: Tensor) -> Array:
    """The integers that mean 0 in a tensor's quantisation."""
    zero = tensor.zero_point if tensor.quant is not None else 0
    return np.full(tensor.shape, zero, tensor.dtype.numpy)


def _earlier(source: Source | None) -> Source | None:
    if source is None or source.parts is None:
        return source
    first, step = source.parts
    return replace(source, parts=(first - step, step))
