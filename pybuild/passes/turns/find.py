"""Finds a loop that is written out: layers with the same weights, each of which reads
what the one before it has led to.

A turn is one of these layers and all that follows of it until the next; what only the
turns themselves read, and what is not part of a turn, is found by going back from them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace

from pybuild.ir.graph import Graph, Node
from pybuild.passes.turns.columns import Facts
from pybuild.records import dataclass

# turns that are worth a loop
LEAST = 4
_ANCHORS = ("dense", "dense_sums", "matmul")
# whose kernels compute a whole tensor in one call, whatever surrounds it
BODY = (
    "add", "clip", "copy", "dense", "dequantize", "leaky_relu", "logistic", "map",
    "matmul", "mul", "quantize", "reshape", "slice", "sub", "tanh", "transpose",
    "concat", "dense_sums", "gather", "lookup", "quantize_dynamic", "scale_sums",
)  # fmt: skip
Column = Sequence[str | None]


@dataclass(frozen=True)
class Source:
    """The source of an input of a node in the loop body.

    held   a tensor that all turns read
    parts  of it: (first, step); like  one of them
    role   number of the node that makes it, and of its output
    kept   it is of the turn before
    """

    held: str = ""
    parts: tuple[int, int] | None = None
    role: tuple[int, int] | None = None
    kept: bool = False
    like: str = field(default="", compare=False)


@dataclass(frozen=True)
class Role:
    """A node of every turn; None: of the first it is a constant, of the last nothing
    reads it.
    """

    nodes: list[Node | None]
    reads: list[Source | None] = field(default_factory=list)

    @property
    def node(self) -> Node:
        """The node of an iteration that has one; those of the others are alike."""
        found = self.nodes[1]
        assert found is not None
        return found

    def column(self, output: int) -> list[str]:
        """The tensors that each iteration makes; "": none."""
        return [node.outputs[output] if node else "" for node in self.nodes]


@dataclass(frozen=True)
class Loop:
    """roles   in an order in which a turn can run
    first   of what is kept (role, output): what the first turn reads; "": zeros
    """

    roles: tuple[Role, ...]
    first: Mapping[tuple[int, int], str]

    @property
    def count(self) -> int:
        return len(self.roles[0].nodes)


class NoLoop(Exception):
    """The turns are not alike."""


def find(graph: Graph) -> Loop | None:
    """The first loop of a graph, or none."""
    if graph.storage or graph.is_placed:
        return None
    facts = Facts(graph)
    for anchors in _anchors(facts):
        depth = facts.depths(anchors)
        if [depth[n.output] for n in anchors] != [*range(1, len(anchors) + 1)]:
            continue
        try:
            return _Match(facts, depth).loop(anchors)
        except NoLoop:
            continue
    return None


def _anchors(facts: Facts) -> Iterator[list[Node]]:
    """Nodes that do the same with the same weights."""
    groups: dict[tuple[object, ...], list[Node]] = {}
    for node in facts.graph.nodes:
        known = [facts.graph.known(name) for name in node.inputs if name]
        if node.op in _ANCHORS and known.count(False) == 1:
            groups.setdefault(facts.said(node), []).append(node)
    yield from (group for group in groups.values() if len(group) >= LEAST)


class _Match:
    """Roles that are found, by what all turns but the last two have in their place."""

    def __init__(self, facts: Facts, depth: dict[str, int]) -> None:
        self.facts, self.depth = facts, depth
        self.roles: list[Role] = []
        self.known: dict[tuple[str, ...], tuple[int, int]] = {}
        self.first: dict[tuple[int, int], str] = {}

    def loop(self, anchors: Sequence[Node]) -> Loop:
        """Errors  NoLoop"""
        self.role([*anchors])
        order = sorted(
            range(len(self.roles)),
            key=lambda i: self.facts.at[self.roles[i].node.output],
        )
        if sum(not self._completed(self.roles[i]) for i in order) * 2 > len(order):
            for role in self.roles:
                role.nodes.pop()
        if len(self.roles[0].nodes) < LEAST or not self.first:
            raise NoLoop()
        place = {old: new for new, old in enumerate(order)}
        for role in self.roles:
            role.reads[:] = [_renumbered(source, place) for source in role.reads]
        first = {(place[r], o): name for (r, o), name in self.first.items()}
        return Loop(tuple(self.roles[i] for i in order), first)

    def role(self, nodes: list[Node | None]) -> int:
        """The number of the role of these nodes."""
        some = [node for node in nodes if node is not None]
        if len({self.facts.said(node) for node in some}) != 1 or some[0].op not in BODY:
            raise NoLoop()
        if any(name in self.facts.graph.parameters for name in some[0].inputs):
            raise NoLoop()
        number, made = len(self.roles), Role(nodes)
        self.roles.append(made)
        for output in range(len(some[0].outputs)):
            made_here = tuple(node.outputs[output] for node in some)
            self.known[made_here[: len(nodes) - 2]] = number, output
        for index, name in enumerate(some[0].inputs):
            column = [node.inputs[index] if node else None for node in nodes]
            made.reads.append(self.source(column) if name else None)
        return number

    def source(self, column: Column) -> Source:
        """The source of a value that an iteration reads."""
        facts, names = self.facts, [name for name in column if name is not None]
        if facts.alike(names):
            if self.depth.get(names[0], 0):
                raise NoLoop()
            return Source(names[0])
        if (parts := self._parts(names)) is not None:
            return parts
        depths = [self.depth.get(name, 0) for name in names]
        turns = [*range(1, len(names) + 1)]
        if depths == turns or not any(depths):
            return Source(role=self.made(column))
        if depths == [t - 1 for t in turns]:
            made = self.made([*column[1:], None])
            if self.first.setdefault(made, names[0]) != names[0]:
                raise NoLoop()
            if facts.type_of(names[0]) != facts.type_of(names[1]):
                raise NoLoop()
            return Source(role=made, kept=True)
        raise NoLoop()

    def _parts(self, names: Sequence[str]) -> Source | None:
        """Parts of one tensor, at even steps."""
        each = [part for name in names if (part := self.facts.part(name)) is not None]
        if len(each) < len(names) or len({part.source for part in each}) > 1:
            return None
        index, source = [part.index for part in each], each[0].source
        step = index[1] - index[0]
        if not step or index != [index[0] + step * t for t in range(len(index))]:
            return None
        if self.depth.get(source, 0):
            raise NoLoop()
        return Source(source, (index[0], step), like=names[0])

    def made(self, column: Column) -> tuple[int, int]:
        """The role that makes a column, and which of its outputs it is."""
        names = [name for name in column if name is not None]
        key = tuple(names[: len(column) - 2])
        if key in self.known:
            number, output = self.known[key]
            if column[-1] is not None:
                self._last(number, column[-1])
            return number, output
        if len(names) < len(column) - 1:
            raise NoLoop()
        nodes = [self.facts.makers.get(name) for name in names]
        if any(node is None for node in nodes):
            raise NoLoop()
        some = [node for node in nodes if node is not None]
        places = {n.outputs.index(name) for n, name in zip(some, names, strict=True)}
        if len(places) != 1:
            raise NoLoop()
        missing = [None] * (len(column) - len(names))
        return self.role([*some, *missing]), places.pop()

    def _last(self, number: int, name: str) -> None:
        """The last turn's node of a role, which may not have been known."""
        role, node = self.roles[number], self.facts.makers.get(name)
        if node is None or self.facts.said(node) != self.facts.said(role.node):
            raise NoLoop()
        if role.nodes[-1] is None:
            role.nodes[-1] = node
        elif role.nodes[-1] is not node:
            raise NoLoop()

    def _completed(self, role: Role) -> bool:
        """True if the last turn has a node in this role."""
        if role.nodes[-1] is not None:
            return True
        asked = [self._expected(s, len(role.nodes) - 1) for s in role.reads if s]
        if not all(asked):
            return False
        known = self.facts.graph.constants
        for name in (n for names in asked for n in names if n not in known):
            for node in self.facts.users[name]:
                reads = [n for n in node.inputs if n]
                if self.facts.said(node) == self.facts.said(role.node) and all(
                    self.facts.alike((n, names[0])) or n in names
                    for n, names in zip(reads, asked, strict=True)
                ):
                    role.nodes[-1] = node
                    return True
        return False

    def _expected(self, source: Source, turn: int) -> list[str]:
        """The tensors that a node of this iteration must read."""
        if source.role is None and source.parts is None:
            return [source.held]
        if source.parts is not None:
            index = source.parts[0] + turn * source.parts[1]
            users = self.facts.users[source.held]
            names = [name for node in users for name in node.outputs]
            each = [(name, self.facts.part(name)) for name in names]
            return [n for n, p in each if p is not None and p.index == index]
        assert source.role is not None
        node = self.roles[source.role[0]].nodes[turn - source.kept]
        return [] if node is None else [node.outputs[source.role[1]]]


def _renumbered(source: Source | None, place: dict[int, int]) -> Source | None:
    if source is None or source.role is None:
        return source
    return replace(source, role=(place[source.role[0]], source.role[1]))
