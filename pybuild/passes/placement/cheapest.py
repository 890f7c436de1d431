"""Placement by cost: the time of the nodes and of the copies between devices.

Exact for a chain of nodes; where a graph branches, the best of a few ways that are
kept node by node. Knows costs as numbers only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from pybuild.ir.graph import Graph, Node
from pybuild.records import dataclass
from pybuild.targets.target import Target


@dataclass(frozen=True)
class Bill:
    """The costs of everything, in the time of one instruction of device 0."""

    targets: tuple[Target, ...]
    compute: Callable[[Node, int], float]

    def copy(self, size: int, start: int, end: int) -> float:
        """The cost of moving bytes between two devices, through the CPU."""
        ends = [self.targets[device] for device in {start, end} if device]
        if start == end:
            return 0.0
        return sum(t.copy_start + size * t.copy_pace for t in ends)


@dataclass(frozen=True)
class _Way:
    """Devices of the nodes so far, where tensors are, and what all that costs."""

    total: float
    devices: tuple[int, ...]
    at: Mapping[str, frozenset[int]]


def cheapest(graph: Graph, fixed: Sequence[int | None], bill: Bill) -> list[int]:
    """The device of each node.

    fixed  devices that are told, None where they are free
    """
    start = {n: frozenset({graph.homes.get(n, 0)}) for n in graph.inputs}
    ways = [_Way(0.0, (), start)]
    for node, told in zip(graph.nodes, fixed, strict=True):
        free = range(len(bill.targets)) if told is None else (told,)
        able = [d for d in free if bill.targets[d].can(node.op)] or [told or 0]
        ways = [
            min((_step(graph, way, node, d, bill) for way in ways), key=_total)
            for d in able
        ]
    done = [(_end(graph, way, bill), way.devices) for way in ways]
    return list(min(done)[1])


def _total(way: _Way) -> tuple[float, tuple[int, ...]]:
    return way.total, way.devices


def _step(graph: Graph, way: _Way, node: Node, device: int, bill: Bill) -> _Way:
    total = way.total + bill.compute(node, device)
    reads = [name for name in node.inputs if name in way.at]
    at = dict(way.at)
    for name in dict.fromkeys(reads):
        total += _fetch(graph, at, name, device, bill)
        at[name] |= {device}
    at |= {name: frozenset({device}) for name in node.outputs}
    return _Way(total, (*way.devices, device), at)


def _fetch(
    graph: Graph, at: Mapping[str, Iterable[int]], name: str, device: int, bill: Bill
) -> float:
    size = graph.tensor(name).bytes
    return min(bill.copy(size, source, device) for source in at[name])


def _end(graph: Graph, way: _Way, bill: Bill) -> float:
    """The cost with all outputs where they belong."""
    homes = [(name, graph.homes.get(name, 0)) for name in graph.outputs]
    return way.total + sum(_fetch(graph, way.at, n, d, bill) for n, d in homes)
