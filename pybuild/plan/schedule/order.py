"""The order in which nodes run: the given one, or one that keeps fewer bytes.

Knows tensors and bytes, not kernels.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice

from pybuild.ir.graph import Graph, Node
from pybuild.ops.base.signatures import WHEN_SET
from pybuild.ops.shape import ASSIGN

# up to this many nodes, as many orders are sampled as requested, beyond it fewer; the
# probability that the next node reads the newest result
_FEW, _DEEP = 12, 0.75


def order_nodes(graph: Graph) -> tuple[Node, ...]:
    """Return the nodes in the given order, or in a greedy order if its peak is lower.
    Conversions of inputs come first; an assignment follows all readers of the state's
    old value."""
    first = tuple(node for node in graph.nodes if node.attrs.get(WHEN_SET))
    if first:
        rest = tuple(node for node in graph.nodes if node not in first)
        inputs = (*graph.inputs, *(node.output for node in first))
        return (*first, *order_nodes(replace(graph, nodes=rest, inputs=inputs)))
    last = tuple(node for node in graph.nodes if node.op == ASSIGN)
    if last:  # a state is never free: its next value is written there
        nodes = _assigned(_others(graph.nodes), last, graph)
        ends = (*graph.outputs, *graph.state)
        inputs = (*graph.inputs, *graph.state)
        graph = replace(graph, nodes=nodes, inputs=inputs, outputs=ends)
    greedy = _greedy(graph)
    less = _peak(graph, greedy) < _peak(graph, graph.nodes)
    nodes = greedy if less else graph.nodes
    return _updated(nodes, last, graph) if last else nodes


def _others(nodes: Sequence[Node]) -> tuple[Node, ...]:
    return tuple(node for node in nodes if node.op != ASSIGN)


def _updated(
    nodes: tuple[Node, ...], last: tuple[Node, ...], graph: Graph
) -> tuple[Node, ...]:
    """Return the nodes reordered so that states can be updated in place where
    possible."""
    states = {state.next: name for name, state in graph.state.items()}
    rest = _others(nodes)
    for node in last:
        rest = _old_first(rest, states[node.output], node.inputs[0])
    return nodes if rest == _others(nodes) else _assigned(rest, last, graph)


def orders(needs: Sequence[frozenset[int]], most: int) -> list[tuple[int, ...]]:
    """Return all valid orders if there are at most `most`, otherwise a random but
    repeatable sample.

    needs  for each node, the nodes that must precede it
    """
    found = list(islice(_every(needs), most + 1)) if len(needs) <= most else []
    if 0 < len(found) <= most:
        return found
    chance = random.Random(0)
    some = (_any(needs, chance) for _ in range(most * _FEW // max(len(needs), _FEW)))
    return list(dict.fromkeys(some))


def _every(needs: Sequence[frozenset[int]]) -> Iterator[tuple[int, ...]]:
    waiting: list[tuple[int, ...]] = [()]
    while waiting:
        begun = waiting.pop()
        if len(begun) == len(needs):
            yield begun
        free = (i for i, n in enumerate(needs) if i not in begun and n <= {*begun})
        waiting += sorted(((*begun, i) for i in free), reverse=True)


def _any(needs: Sequence[frozenset[int]], chance: random.Random) -> tuple[int, ...]:
    """Return a random order, mostly depth first: the newest result is read next."""
    left = [len(n) for n in needs]
    readers: list[list[int]] = [[] for _ in needs]
    for index, each in enumerate(needs):
        for maker in each:
            readers[maker].append(index)
    ready = [i for i, count in enumerate(left) if not count]
    chosen: list[int] = []
    while ready:
        deep = chance.random() < _DEEP
        chosen.append(ready.pop(-1 if deep else chance.randrange(len(ready))))
        freed = []
        for reader in readers[chosen[-1]]:
            left[reader] -= 1
            freed += [reader] * (left[reader] == 0)
        chance.shuffle(freed)
        ready += freed
    return tuple(chosen)


def _old_first(nodes: tuple[Node, ...], name: str, source: str) -> tuple[Node, ...]:
    """Return the nodes with the computation of a state's next value moved behind all
    readers of the old value, so that the state can be updated in place; unchanged if
    that is impossible.

    name    the state; source: its next value
    """
    new, old = {source}, {name}
    for node in reversed(nodes):
        if node.op == "reshape" and node.output in new:
            new.add(node.inputs[0])
    for node in nodes:
        if node.op in ("reshape", "slice") and node.inputs[0] in old:
            old.add(node.output)
    makers = [i for i, n in enumerate(nodes) if new & {*n.outputs}]
    first = min((i for i in makers if nodes[i].op != "reshape"), default=len(nodes))
    late = {*nodes[first].outputs} if first < len(nodes) else set()
    moved, rest = [first], list[int]()
    for i in range(first + 1, len(nodes)):
        depends = bool(late & {*nodes[i].inputs})
        if depends:
            late |= {*nodes[i].outputs}
        (moved if depends else rest).append(i)
    readers = [i for i in range(first + 1, len(nodes)) if old & {*nodes[i].inputs}]
    if not readers or not {*readers} <= {*rest}:
        return nodes
    end = max(readers) + 1
    head = [i for i in rest if i < end]
    tail = [i for i in range(first, len(nodes)) if i not in {*head}]
    return tuple(nodes[i] for i in (*range(first), *head, *tail))


def _assigned(
    nodes: tuple[Node, ...], last: tuple[Node, ...], graph: Graph
) -> tuple[Node, ...]:
    """Insert each assignment as early as possible."""
    made: dict[int, list[Node]] = {}
    position = {id(node): i for i, node in enumerate(nodes)}
    for node, before in zip(last, _befores(last, nodes, graph), strict=True):
        at = max((position[id(other)] + 1 for other in before), default=0)
        for index, other in enumerate(nodes):
            if node.inputs[0] in other.outputs:
                at = max(at, index + 1)
        made.setdefault(at, []).append(node)
    found = list(made.get(0, ()))
    for index, node in enumerate(nodes):
        found += [node, *made.get(index + 1, ())]
    return tuple(found)


def _befores(
    last: Sequence[Node], nodes: Sequence[Node], graph: Graph
) -> list[Sequence[Node]]:
    """For each assignment, return the nodes that read the old value; all nodes if views
    of it are read."""
    states = {state.next: name for name, state in graph.state.items()}
    found: list[Sequence[Node]] = []
    for node in last:
        readers = [n for n in nodes if states[node.output] in n.inputs]
        viewed = any(n.op in ("reshape", "slice") for n in readers)
        found.append(nodes if viewed else readers)
    return found


def _bytes(graph: Graph, name: str) -> int:
    """Return the bytes that a tensor occupies; constants and absent tensors occupy
    none."""
    return 0 if not name or name in graph.constants else graph.tensor(name).bytes


def _made(graph: Graph, node: Node) -> int:
    """Return the bytes that a node's outputs add; an assignment writes into the
    state."""
    if node.op == ASSIGN:
        return 0
    return sum(_bytes(graph, name) for name in node.outputs)


def _counts(graph: Graph) -> dict[str, int]:
    counts = {name: len(nodes) for name, nodes in graph.consumers().items()}
    for name in graph.outputs:
        counts[name] += 1
    return counts


def _peak(graph: Graph, nodes: tuple[Node, ...]) -> int:
    """Return the peak of bytes alive at any node; reshapes cost nothing."""
    left = _counts(graph)
    now = sum(_bytes(graph, name) for name in graph.inputs)
    peak = now
    for node in nodes:
        now += _made(graph, node)
        if node.op != "reshape":
            peak = max(peak, now)
        for name in node.inputs:
            if name:
                left[name] -= 1
                if left[name] == 0:
                    now -= _bytes(graph, name)
    return peak


def _greedy(graph: Graph) -> tuple[Node, ...]:
    """Repeatedly choose the ready node that leaves the fewest bytes alive; ties by
    position."""
    left = _counts(graph)
    consumers = graph.consumers()
    known = set(graph.inputs) | set(graph.constants)
    waiting = [
        len({n for n in node.inputs if n and n not in known}) for node in graph.nodes
    ]
    position = {id(node): i for i, node in enumerate(graph.nodes)}
    rest = [node for node in graph.nodes if node.op != ASSIGN]
    last = [node for node in graph.nodes if node.op == ASSIGN]
    after: dict[int, list[int]] = {}
    for node, before in zip(last, _befores(last, rest, graph), strict=True):
        waiting[position[id(node)]] += len(before)
        for other in before:
            after.setdefault(position[id(other)], []).append(position[id(node)])

    def growth(i: int) -> int:
        node = graph.nodes[i]
        made = _made(graph, node)
        dying = {n for n in node.inputs if n and left[n] == node.inputs.count(n)}
        return made - sum(_bytes(graph, n) for n in dying)

    ready = [(growth(i), i) for i, count in enumerate(waiting) if count == 0]
    heapq.heapify(ready)
    chosen: list[Node] = []
    while ready:
        key, i = heapq.heappop(ready)
        if waiting[i] < 0 or growth(i) != key:  # chosen, or since there anew
            continue
        node = graph.nodes[i]
        chosen.append(node)
        waiting[i] = -1
        for name in filter(None, node.inputs):
            left[name] -= 1
            for user in {position[id(n)] for n in consumers[name]}:
                if waiting[user] == 0:  # may now be its last reader
                    heapq.heappush(ready, (growth(user), user))
        freed = after.get(i, [])
        for name in node.outputs:
            freed = [*freed, *{position[id(n)] for n in consumers[name]}]
        for user in freed:
            waiting[user] -= 1
            if waiting[user] == 0:
                heapq.heappush(ready, (growth(user), user))
    return tuple(chosen)
