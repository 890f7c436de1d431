"""Finds states that are updated in place: the layer that computes the next value writes
it over the old one, and no assignment is needed. This is right if all readers of the
old value come first, or if the writing layer reads it in place. Knows no addresses.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import field, replace

from pybuild.ir.graph import Graph, Node
from pybuild.kernels.base.candidate import Candidate
from pybuild.ops.shape import ASSIGN
from pybuild.plan.buffers.sharing import Views, find_views
from pybuild.records import dataclass

# of a node and an output of it: the inputs that it may lie over
Overlays = Callable[[Node, str], Collection[int]]


def overlays(node: Node, output: str, offers: Sequence[Candidate]) -> set[int]:
    """Return the inputs that an output may overwrite, whichever kernel is chosen."""
    index = node.outputs.index(output)

    def of(candidate: Candidate) -> set[int]:
        if candidate.finish is not None:
            return set()
        if index == 0:
            return set(candidate.in_place)
        return {i for made, i in candidate.also_in_place if made == index}

    return set.intersection(*map(of, offers)) if offers else set()


def written_in_place(graph: Graph, allowed: Overlays) -> Graph:
    """Return the graph without needless assignments: a layer then writes the state's
    next value. The order of the nodes is final."""
    last = {n.output: n for n in graph.nodes if n.op == ASSIGN}
    if not last or graph.storage or graph.is_placed:
        return graph
    uses = _Uses(graph, find_views(graph))
    state, gone = dict(graph.state), set()
    for name, one in graph.state.items():
        node = last.get(one.next)
        if node is not None and uses.may_write(name, node.inputs[0], allowed):
            state[name] = replace(one, next=node.inputs[0])
            gone.add(node.output)
    nodes = tuple(n for n in graph.nodes if n.output not in gone)
    tensors = {n: t for n, t in graph.tensors.items() if n not in gone}
    return replace(graph, nodes=nodes, tensors=tensors, state=state)


def old_reads(
    graph: Graph, views: Views, nodes: Sequence[Node]
) -> list[tuple[int, int]]:
    """For each state that a layer updates in place, return the number of the last node
    that reads the old value and of the first that writes the new one. No stage may
    contain both: it would read new rows.

    nodes  the nodes that move bytes, in execution order
    """
    made: dict[str, int] = {}
    old: dict[str, int] = {}
    for index, node in enumerate(nodes):
        for name in {views.of(n).root for n in node.inputs if n} & graph.state.keys():
            if name not in made:
                old[name] = index
        for name in {views.of(n).root for n in node.outputs} & graph.state.keys():
            if node.op != ASSIGN:
                made.setdefault(name, index)
    return [(old[name], made[name]) for name in made if name in old]


@dataclass
class _Uses:
    """The nodes that write and read each group of views, by step number."""

    graph: Graph
    views: Views
    made: dict[str, list[tuple[int, Node]]] = field(default_factory=dict)
    read: dict[str, list[tuple[int, Node]]] = field(default_factory=dict)
    taken: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        graph, root_of = self.graph, self.views.of
        ends = (*graph.inputs, *graph.outputs, *graph.state, *graph.constants)
        self.taken |= {root_of(name).root for name in ends}
        steps = [n for n in graph.nodes if n.output not in self.views.dropped]
        for index, node in enumerate(steps):
            for names, uses in ((node.outputs, self.made), (node.inputs, self.read)):
                for root in {root_of(name).root for name in names if name}:
                    uses.setdefault(root, []).append((index, node))

    def may_write(self, name: str, source: str, allowed: Overlays) -> bool:
        """Return True if `source` can share the state's memory, and reserve that
        memory."""
        root, at = self.views.of(source)
        sizes = {self.graph.tensor(n).bytes for n in (name, root)}
        if at or len(sizes) > 1 or root in self.taken or root not in self.made:
            return False
        first, node = self.made[root][0]
        old = [i for i, _ in self.read.get(name, ())]
        if any(i > first for i in old):
            return False
        if first in old and not self._in_place(name, root, node, allowed):
            return False
        self.taken.add(root)
        return True

    def _in_place(self, name: str, root: str, node: Node, allowed: Overlays) -> bool:
        """Return True if the node reads the state only where it writes the same
        bytes."""
        view = self.views.of
        made = [n for n in node.outputs if view(n).root == root]
        read = {n for n in node.inputs if n and view(n).root == name}
        places = {i for i, n in enumerate(node.inputs) if n in read}
        sizes = {self.graph.tensor(n).bytes for n in (*made, *read)}
        at = {view(n).at for n in (*made, *read)}
        alone = len(made) == len(read) == len(sizes) == 1 and at == {0}
        return alone and places <= {*allowed(node, made[0])}
