"""The order in which nodes run: the given one, or one that keeps fewer bytes.

Knows tensors and bytes, not kernels.
"""

from __future__ import annotations

import heapq
from dataclasses import replace

from pybuild.graph import Graph, Node
from pybuild.ops.shape import ASSIGN


def order_nodes(graph: Graph) -> tuple[Node, ...]:
    """The given order, or the greedy one if its peak is lower.

    An assignment comes when all have read what was there before.
    """
    last = tuple(node for node in graph.nodes if node.op == ASSIGN)
    if last:
        rest = tuple(node for node in graph.nodes if node.op != ASSIGN)
        ends = (*graph.outputs, *(node.inputs[0] for node in last))
        inputs = (*graph.inputs, *graph.state)
        graph = replace(graph, nodes=rest, inputs=inputs, outputs=ends)
    greedy = _greedy(graph)
    less = _peak(graph, greedy) < _peak(graph, graph.nodes)
    return _assigned(greedy if less else graph.nodes, last, graph)


def _assigned(
    nodes: tuple[Node, ...], last: tuple[Node, ...], graph: Graph
) -> tuple[Node, ...]:
    """The nodes with assignments, each as early as can be; at the end where views of
    the old value are read."""
    made: dict[int, list[Node]] = {}
    states = {state.next: name for name, state in graph.state.items()}
    for node in last:
        old, source, at = states[node.output], node.inputs[0], 0
        for index, other in enumerate(nodes):
            if old in other.inputs and other.op in ("reshape", "slice"):
                at = len(nodes)
            if old in other.inputs or source in other.outputs:
                at = max(at, index + 1)
        made.setdefault(at, []).append(node)
    found = list(made.get(0, ()))
    for index, node in enumerate(nodes):
        found += [node, *made.get(index + 1, ())]
    return tuple(found)


def _bytes(graph: Graph, name: str) -> int:
    """Bytes a tensor adds; what only renames another adds none."""
    return 0 if not name or name in graph.constants else graph.tensor(name).bytes


def _counts(graph: Graph) -> dict[str, int]:
    counts = {name: len(nodes) for name, nodes in graph.consumers().items()}
    for name in graph.outputs:
        counts[name] += 1
    return counts


def _peak(graph: Graph, nodes: tuple[Node, ...]) -> int:
    """Most bytes alive at one node; reshapes free and cost nothing."""
    left = _counts(graph)
    now = sum(_bytes(graph, name) for name in graph.inputs)
    peak = now
    for node in nodes:
        now += sum(_bytes(graph, name) for name in node.outputs)
        if node.op != "reshape":
            peak = max(peak, now)
        for name in node.inputs:
            if name:
                left[name] -= 1
                if left[name] == 0:
                    now -= _bytes(graph, name)
    return peak


def _greedy(graph: Graph) -> tuple[Node, ...]:
    """Always the ready node that leaves the fewest bytes behind; ties by position."""
    left = _counts(graph)
    consumers = graph.consumers()
    known = set(graph.inputs) | set(graph.constants)
    waiting = [
        len({n for n in node.inputs if n and n not in known}) for node in graph.nodes
    ]
    position = {id(node): i for i, node in enumerate(graph.nodes)}

    def growth(i: int) -> int:
        node = graph.nodes[i]
        made = sum(_bytes(graph, n) for n in node.outputs)
        dying = {n for n in node.inputs if n and left[n] == node.inputs.count(n)}
        return made - sum(_bytes(graph, n) for n in dying)

    ready = [(growth(i), i) for i, count in enumerate(waiting) if count == 0]
    heapq.heapify(ready)
    chosen: list[Node] = []
    while ready:
        key, i = heapq.heappop(ready)
        fresh = growth(i)
        if fresh < key:
            heapq.heappush(ready, (fresh, i))
            continue
        node = graph.nodes[i]
        chosen.append(node)
        for name in filter(None, node.inputs):
            left[name] -= 1
        for name in node.outputs:
            for user in {position[id(n)] for n in consumers[name]}:
                waiting[user] -= 1
                if waiting[user] == 0:
                    heapq.heappush(ready, (growth(user), user))
    return tuple(chosen)
