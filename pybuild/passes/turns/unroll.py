"""Loops written out again, all steps alike: so they are quantised."""

from __future__ import annotations

from dataclasses import replace

from pybuild.ir.graph import Graph, Node, Tensor
from pybuild.ops.base.repeat import LAST, Turns, names_read, turns_of
from pybuild.passes.edit import Edit


def unrolled(graph: Graph) -> Graph:
    """The graph without loops."""
    if all(node.op != "repeat" for node in graph.nodes):
        return graph
    edit = Edit(graph)
    for node in graph.nodes:
        if node.op == "repeat":
            _Written(edit, node, graph).turns()
        else:
            edit.keep(node)
    return edit.done()


class _Written:
    """The turns of one node; now: what the body's names are in the turn being made."""

    def __init__(self, edit: Edit, node: Node, graph: Graph) -> None:
        self.edit, self.node = edit, node
        self.loop: Turns = turns_of(node, graph)
        self.names = names_read(node)
        self.now: dict[str, str] = dict(zip(self.names, node.inputs, strict=True))
        self.parts: dict[str, str] = {}

    def turns(self) -> None:
        made: dict[str, list[str]] = {}
        loop, kept = self.loop, self.loop.kept()
        for turn in range(loop.count):
            self._read(turn)
            last = turn == loop.count - 1
            for one in loop.body.nodes:
                inputs = tuple(self.now.get(n, n) for n in one.inputs)
                for name in one.outputs:
                    self.now[name] = self._named(name, turn, last)
                    made.setdefault(name, []).append(self.now[name])
                outputs = tuple(self.now[name] for name in one.outputs)
                self._node(replace(one, inputs=inputs, outputs=outputs))
            for index, new in kept:
                self.now[self.names[index]] = self.now[new]
        self._together(made)

    def _node(self, node: Node) -> None:
        """By the loop's own name, by which users name it."""
        self.edit.nodes.append(replace(node, name=self.node.name))

    def _typed(self, name: str, like: Tensor, shape: tuple[int, ...]) -> str:
        self.edit.tensors[name] = replace(like, name=name, shape=shape)
        return name

    def _named(self, inner: str, turn: int, last: bool) -> str:
        """The name of a tensor of the body in an iteration."""
        like, loop = self.loop.body.tensor(inner), self.loop
        for name, way, own in zip(
            self.node.outputs, loop.makes, loop.body.outputs, strict=False
        ):
            if last and way == LAST and own == inner:
                return self._typed(name, like, like.shape)
        name = self.edit.fresh(f"{self.node.output}.{inner}.{turn}")
        return self._typed(name, like, like.shape)

    def _read(self, turn: int) -> None:
        """The parts that this turn reads."""
        for inner, outer, way in zip(
            self.names, self.node.inputs, self.loop.reads, strict=True
        ):
            if isinstance(way, str):
                continue
            like = self.loop.body.tensor(inner)
            count = self.edit.tensors[outer].size // like.size
            rows = self._rows(outer, like, count)
            at, rest = way[0] + way[1] * turn, (0,) * len(like.shape)
            part = self._typed(self.edit.fresh(f"{inner}.part"), like, (1, *like.shape))
            attrs = {"begin": (at, *rest), "end": (at + 1, *like.shape),
                     "strides": (1,) * (1 + len(rest))}  # fmt: skip
            self._node(Node("slice", part, (rows,), (part,), attrs))
            name = self._typed(self.edit.fresh(f"{inner}.{turn}"), like, like.shape)
            self._node(Node("reshape", name, (part,), (name,)))
            self.now[inner] = name

    def _rows(self, outer: str, like: Tensor, count: int) -> str:
        """A tensor as its parts, one after the other."""
        key = f"{outer} {like.shape}"
        if key not in self.parts:
            name = self.edit.fresh(f"{outer}.parts")
            self.parts[key] = self._typed(name, like, (count, *like.shape))
            self._node(Node("reshape", name, (outer,), (name,)))
        return self.parts[key]

    def _together(self, made: dict[str, list[str]]) -> None:
        """Joins the results of all iterations into one tensor."""
        loop = self.loop
        for name, way, inner in zip(
            self.node.outputs, loop.makes, loop.body.outputs, strict=False
        ):
            like, rows = loop.body.tensor(inner), []
            if isinstance(way, str):
                continue
            for one in made[inner][:: 1 if way[1] > 0 else -1]:
                row = self._typed(self.edit.fresh(f"{one}.row"), like, (1, *like.shape))
                self._node(Node("reshape", row, (one,), (row,)))
                rows.append(row)
            self._typed(name, like, (len(rows), *like.shape))
            self._node(Node("concat", name, tuple(rows), (name,), {"axis": 0}))
