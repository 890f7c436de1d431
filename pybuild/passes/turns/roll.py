"""Makes one node, `repeat`, of the steps of a sequence that a file has unrolled."""

from __future__ import annotations

import math
from collections.abc import Container, Mapping, Sequence
from dataclasses import replace

from pybuild.ir import graph_text
from pybuild.ir.graph import Graph, Node, Tensor
from pybuild.ops.base.repeat import HELD, KEPT, LAST, Way
from pybuild.passes.dead import remove_dead
from pybuild.passes.edit import Edit, used
from pybuild.passes.turns.columns import Facts
from pybuild.passes.turns.find import Loop, Source, find
from pybuild.passes.turns.first import with_first, zeros

Place = tuple[int, int]


def roll(graph: Graph) -> Graph:
    """Replaces each loop that is found by a node."""
    while (loop := find(graph)) is not None:
        graph = _Rolled(graph, with_first(Facts(graph), loop)).graph()
    return graph


def alike(graph: Graph) -> tuple[tuple[str, ...], ...]:
    """For each unrolled loop: groups of the tensors that its iterations have in the
    same place."""
    found: list[tuple[str, ...]] = []
    while (loop := find(graph)) is not None:
        loop = with_first(Facts(graph), loop)
        for number, role in enumerate(loop.roles):
            for output in range(len(role.node.outputs)):
                names = [loop.first.get((number, output), ""), *role.column(output)]
                found.append(tuple(name for name in names if name))
        graph = _Rolled(graph, loop).graph()
    return tuple(found)


class _Rolled:
    """The body that is being made, and what surrounds it.

    reads  what the node reads, by what the body calls it
    """

    def __init__(self, graph: Graph, loop: Loop) -> None:
        self.old, self.loop, self.edit = graph, loop, Edit(graph)
        self.reads: dict[str, tuple[str, Way]] = {}
        self.inner: dict[Source, str] = {}
        self.tensors: dict[str, Tensor] = {}
        self.moved = self._moved()
        own = [n.output for i, r in enumerate(loop.roles) for n in r.nodes
               if n is not None and i not in self.moved]  # fmt: skip
        self.own = set(own)

    def _moved(self) -> set[int]:
        """Roles that only move what there is before any turn: who else reads them, may
        have them too."""
        found: set[int] = set()
        for number, role in enumerate(self.loop.roles):
            reads = [s for s in role.reads if s is not None]
            only = all(not s.kept and (not s.role or s.role[0] in found) for s in reads)
            if only and role.node.op in ("reshape", "slice", "copy"):
                found.add(number)
        return found

    def graph(self) -> Graph:
        roles, nodes = self.loop.roles, []
        for number, role in enumerate(roles):
            inputs = tuple(self._input(s) if s else "" for s in role.reads)
            outputs = tuple(_inner((number, o)) for o in range(len(role.node.outputs)))
            for name, inside in zip(role.node.outputs, outputs, strict=True):
                self.tensors[inside] = replace(self.old.tensor(name), name=inside)
            op, attrs = role.node.op, dict(role.node.attrs)
            nodes.append(Node(op, outputs[0], inputs, outputs, attrs))
        given = self._outputs()
        kept = [_inner(s.role) for s, n in self.inner.items()
                if s.role is not None and self.reads[n][1] == KEPT]  # fmt: skip
        body = Graph(
            "turn", "turn", tuple(nodes), self.tensors, tuple(self.reads),
            (*(_inner(place) for place, _, _ in given), *kept),
        )  # fmt: skip
        told = {
            "body": graph_text.text(body),
            "turns": self.loop.count,
            "reads": tuple(way for _, way in self.reads.values()),
            "makes": tuple(way for _, _, way in given),
        }
        made = tuple(name for _, name, _ in given)
        inputs = tuple(name for name, _ in self.reads.values())
        node = Node("repeat", made[0], inputs, made, told)
        rest = [n for n in self.old.nodes if n.output not in self.own]
        self.edit.nodes = _ordered([node, *rest, *self.edit.nodes])
        return used(remove_dead(self.edit.done()))

    def _input(self, source: Source) -> str:
        """The body's name for a source."""
        if source.role is not None and not source.kept:
            return _inner(source.role)
        if source not in self.inner:
            name = self.inner[source] = f"x{len(self.inner)}"
            if source.role is not None:
                outer, way = self._first(source.role), KEPT
                self.reads[name] = outer, way
                like = self.loop.roles[source.role[0]].node.outputs[source.role[1]]
            else:
                self.reads[name] = source.held, source.parts or HELD
                like = source.like or source.held
            self.tensors[name] = replace(self.old.tensor(like), name=name)
        return self.inner[source]

    def _first(self, place: Place) -> str:
        """The state that the first iteration reads."""
        name = self.loop.first[place]
        if name:
            return name
        like = self.old.tensor(self.loop.roles[place[0]].node.outputs[place[1]])
        return self.edit.constant(f"{like.name}.first", zeros(like), like.quant)

    # ---- what the turns make --------------------------------------------------------

    def _outputs(self) -> list[tuple[Place, str, Way]]:
        """The results that are read outside: the last iteration's, or those of all
        iterations."""
        found: list[tuple[Place, str, Way]] = []
        last = self.loop.count - 1
        read = self._read_outside()
        for number, role in enumerate(self.loop.roles):
            outputs = () if number in self.moved else range(len(role.node.outputs))
            for output in outputs:
                column = role.column(output)
                out = [t for t, name in enumerate(column) if name in read]
                if out == [last]:
                    found.append(((number, output), column[last], LAST))
                elif out:
                    found.append(((number, output), *self._every(column, out)))
        return found

    def _read_outside(self) -> set[str]:
        """The tensors that outputs, states and the nodes that lead to them read."""
        read = {*self.old.outputs, *(s.next for s in self.old.state.values())}
        for node in reversed(self.old.nodes):
            if node.output not in self.own and not read.isdisjoint(node.outputs):
                read.update(filter(None, node.inputs))
        return read

    def _every(self, column: Sequence[str], out: Sequence[int]) -> tuple[str, Way]:
        """A tensor of what all turns make, and each one that is read as part of it."""
        edit, like = self.edit, self.old.tensor(next(filter(None, column)))
        count = len(column)
        whole = edit.fresh(f"{like.name}.turns")
        shape = (count, *like.shape)
        edit.tensors[whole] = replace(like, name=whole, shape=shape)
        back = self._joined(column, whole)
        way = (count - 1, -1) if back else (0, 1)
        for turn in out:
            at = way[0] + way[1] * turn
            part = edit.fresh(f"{column[turn]}.part")
            edit.tensors[part] = replace(like, name=part, shape=(1, *like.shape))
            rest = (0,) * len(like.shape)
            attrs = {"begin": (at, *rest), "end": (at + 1, *like.shape),
                     "strides": (1,) * len(shape)}  # fmt: skip
            edit.nodes.append(Node("slice", part, (whole,), (part,), attrs))
            name = column[turn]
            edit.nodes.append(Node("reshape", name, (part,), (name,)))
        return whole, way

    def _joined(self, column: Sequence[str], whole: str) -> bool:
        """Where these are put side by side, they are as they were made; whether they
        lie from the last to the first."""
        made, back = self.old.producers(), None
        place = {name: t for t, name in enumerate(column) if name}
        nodes = []
        for node in self.old.nodes:
            if node.op != "concat" or node.output in self.own:
                nodes.append(node)
                continue
            turns = [place.get(_base(name, made, place)) for name in node.inputs]
            for order in (range(len(column)), range(len(column) - 1, -1, -1)):
                at = _run(turns, [*order])
                is_back = order.step < 0
                if at is None or back not in (None, is_back):
                    continue
                if (new := self._shorter(node, at, len(column), whole)) is not None:
                    node, back = new, is_back
                    break
            nodes.append(node)
        self.old = replace(self.old, nodes=tuple(nodes))
        return bool(back)

    def _shorter(self, node: Node, at: int, count: int, whole: str) -> Node | None:
        """A concatenation that reads the turns as one."""
        edit, y = self.edit, self.old.tensor(node.output)
        axis = int(node.attrs["axis"]) % len(y.shape)
        if math.prod(y.shape[:axis]) != 1:
            return None
        many = sum(self.old.tensor(n).shape[axis] for n in node.inputs[at : at + count])
        shape = (*y.shape[:axis], many, *y.shape[axis + 1 :])
        if edit.tensors[whole].quant != y.quant:
            return None
        joined = node.output if count == len(node.inputs) else edit.fresh(whole)
        edit.tensors[joined] = replace(y, name=joined, shape=shape)
        turned = Node("reshape", joined, (whole,), (joined,))
        if joined == node.output:
            return turned
        edit.nodes.append(turned)
        inputs = (*node.inputs[:at], joined, *node.inputs[at + count :])
        return replace(node, inputs=inputs)


def _inner(place: Place) -> str:
    number, output = place
    return f"t{number}" if not output else f"t{number}_{output}"


def _base(name: str, made: Mapping[str, Node], known: Container[str]) -> str:
    """The tensor before it is only reshaped, as far as it is known."""
    while name not in known and name in made and made[name].op == "reshape":
        name = made[name].inputs[0]
    return name


def _run(turns: Sequence[int | None], order: Sequence[int]) -> int | None:
    """The position where these nodes follow each other."""
    ends = len(turns) - len(order) + 1
    return next(
        (i for i in range(ends) if list(turns[i : i + len(order)]) == order), None
    )


def _ordered(nodes: Sequence[Node]) -> list[Node]:
    """After what they read; else as they are."""
    made = {name: node for node in nodes for name in node.outputs}
    done: set[str] = set()
    found: list[Node] = []
    for node in nodes:
        stack = [node]
        while stack:
            top = stack[-1]
            if top.output in done:
                stack.pop()
                continue
            above = [made[n] for n in top.inputs
                     if n in made and made[n].output not in done]  # fmt: skip
            if above:
                stack += reversed(above)
            else:
                done.add(top.output)
                found.append(stack.pop())
    return found
