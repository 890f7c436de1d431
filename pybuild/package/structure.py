"""The final graph as rows of the report: what reads what, and what that takes.

Values only; knows no address and no kernel's code.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pybuild.emit.tables.tables import Tables
from pybuild.ir.graph import Graph, Node
from pybuild.ops import OPERATORS
from pybuild.package.choices import KernelChoice
from pybuild.plan.plan import Plan
from pybuild.records import dataclass
from pybuild.select.bound import least_per_mac
from pybuild.targets.target import Target


@dataclass(frozen=True)
class NodeFacts:
    """A node; the row of `layers` with the same number has its name and MACs.

    kernel   the number of its row in `kernels`; None: it has none of its own
    weights  bytes of the constants that it reads, as the model has them
    bound    instructions that its MACs take on its core at the least, each by itself
    """

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    device: int
    kernel: int | None
    weights: int
    bound: int


@dataclass(frozen=True)
class TensorFacts:
    """A tensor that is computed or given; one scale, or None where channels have own.

    origin  "input", "output", "state" or ""
    """

    name: str
    short: str
    shape: tuple[int, ...]
    dtype: str
    bytes: int
    scale: float | None
    zero_point: int | None
    origin: str


@dataclass(frozen=True)
class GraphFacts:
    """The graph after all passes."""

    nodes: tuple[NodeFacts, ...]
    tensors: tuple[TensorFacts, ...]


@dataclass(frozen=True)
class WeightFacts:
    """An array in flash, by its name in C, and the layers that read it, by their short
    names; bytes as arranged for their kernel.
    """

    symbol: str
    bytes: int
    layers: tuple[str, ...]


def graph_facts(
    plan: Plan, targets: Sequence[Target], kernels: Sequence[KernelChoice]
) -> GraphFacts:
    graph = plan.graph
    rows = {row.output: number for number, row in enumerate(kernels)}
    nodes = tuple(
        NodeFacts(
            inputs=tuple(n for n in node.inputs if n and n not in graph.constants),
            outputs=node.outputs,
            device=node.device,
            kernel=next((rows[n] for n in node.outputs if n in rows), None),
            weights=sum(graph.constants[n].nbytes for n in _constants(node, graph)),
            bound=_bound(node, graph, targets),
        )
        for node in graph.nodes
    )
    return GraphFacts(nodes, tuple(_tensors(graph)))


def _constants(node: Node, graph: Graph) -> set[str]:
    return {name for name in node.inputs if name in graph.constants}


def _bound(node: Node, graph: Graph, targets: Sequence[Target]) -> int:
    if node.op not in OPERATORS or node.device >= len(targets):
        return 0
    macs = OPERATORS[node.op].macs(node, graph)
    operands = [name for name in node.inputs[:2] if name]
    if not macs or not operands:
        return 0
    widest = max((graph.tensor(n).dtype for n in operands), key=lambda d: d.bytes)
    return int(macs * least_per_mac(targets[node.device], widest))


def _tensors(graph: Graph) -> Iterator[TensorFacts]:
    for name, tensor in graph.tensors.items():
        if name in graph.constants:
            continue
        whole = tensor.quant is not None and len(tensor.quant.scale) == 1
        yield TensorFacts(
            name,
            graph.shown(name),
            tensor.shape,
            tensor.dtype.value,
            tensor.bytes,
            tensor.scale if whole else None,
            tensor.zero_point if whole else None,
            _origin(name, graph),
        )


def _origin(name: str, graph: Graph) -> str:
    known = (("input", graph.inputs), ("output", graph.outputs))
    found = [word for word, names in known if name in names]
    return "state" if name in graph.state else "".join(found[:1])


def weight_facts(tables: Tables) -> tuple[WeightFacts, ...]:
    """Every array in flash but parameters, which are an image of their own."""
    users: dict[str, dict[str, None]] = {}
    for step in tables.steps:
        first = step.constants
        for symbol in tables.constant_list[first : first + step.counts[2]]:
            if symbol:
                users.setdefault(symbol, {})[step.layer] = None
    return tuple(
        WeightFacts(each.symbol, each.array.nbytes, tuple(users.get(each.symbol, ())))
        for each in tables.constants
    )
