"""Kernels of a graph whose nodes run on several devices, each with its own target."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence

from pybuild.errors import BuildError, Problem
from pybuild.ir.graph import Graph, Node
from pybuild.kernels.base.candidate import TASK_COPY, Candidate, whole
from pybuild.kernels.table import candidates
from pybuild.passes.placement.place import Rules, place
from pybuild.select.parameters import bound
from pybuild.targets.llvm import Llvm, llvm_named
from pybuild.targets.names import target_named
from pybuild.targets.target import Target

Targets = str | Target | Mapping[int, str | Target]


def table_of(target: Targets) -> tuple[Target, ...]:
    """The device table that a build option says; its first is the CPU.

    Errors  BuildError for unknown targets, and for numbers that leave one out
    """
    table = target if isinstance(target, Mapping) else {0: target}
    found: list[Problem] = []
    made = []
    for index, name in sorted(table.items()):
        try:
            made.append(name if isinstance(name, Target) else target_named(name))
        except BuildError as error:
            found += error.problems
        if index != len(made) - 1 and not found:
            what = f"there is a device {index}, but none of number {len(made) - 1}"
            found.append(Problem("--device", what, "number them 0 (the CPU), 1, ..."))
    if not made and not found:
        found.append(Problem("--device", "there is no device", "0 is the CPU"))
    if found:
        raise BuildError.of(found)
    return tuple(made)


def by_name(target: Targets) -> str | dict[int, str]:
    """The same option without facts of targets.

    Errors  BuildError for a target that is not a known one
    """
    names = _names(target)
    for name, one in zip(names, table_of(target), strict=True):
        if one != target_named(name):
            what = f"'{one.name}' is not as pybuild knows it"
            raise BuildError("--target", what, "only known targets can be exported")
    return dict(enumerate(names)) if isinstance(target, Mapping) else names[0]


def _names(target: Targets) -> list[str]:
    """The names of the devices in their order, as they were given."""
    table = target if isinstance(target, Mapping) else {0: target}
    given = (one for _, one in sorted(table.items()))
    return [one.name if isinstance(one, Target) else one for one in given]


def processor_of(target: Targets) -> Llvm:
    """The processor that an object is compiled for.

    Errors  BuildError for devices of several kinds
    """
    table_of(target)
    names = dict.fromkeys(_names(target))
    if len(names) > 1:
        what = f"one object is made for one processor, not for {', '.join(names)}"
        raise BuildError("--emit obj", what, "--emit c")
    return llvm_named(*names)


def on_devices(graph: Graph, table: Sequence[Target], rules: Rules) -> Graph:
    """The graph with a device for each node and copies between them.

    Errors  BuildError with everything that does not fit together
    """
    if len(table) == 1 and not rules and not graph.is_placed:
        return graph

    def cost(node: Node, device: int) -> float:
        target = table[device]
        if node.op == "reshape":
            return 0.0
        try:
            offers = candidates(node, graph, target)
        except BuildError:  # said with all others when kernels are chosen
            return float("inf")
        return target.pace * min(c.cost for c in offers)

    return place(graph, table, rules, cost)


def offers(
    graph: Graph, table: Sequence[Target], optimise: str = "balanced"
) -> dict[str, list[Candidate]]:
    """Every node's kernels for its device, by its first output.

    optimise  as of `candidates`
    Errors  BuildError with the problems of all nodes
    """
    found: list[Problem] = []
    made: dict[str, list[Candidate]] = {}
    crossings = graph.crossings()
    for node in graph.nodes:
        if node.output in crossings:
            made[node.output] = [_crossing(node, graph, crossings[node.output])]
            continue
        ask = functools.partial(_kernels, node, table[node.device], optimise)
        try:
            made[node.output] = bound(node, graph, ask)
        except BuildError as error:
            found += error.problems
    if found:
        raise BuildError.of(found)
    return made


def _kernels(
    node: Node, target: Target, optimise: str, graph: Graph
) -> list[Candidate]:
    return candidates(node, graph, target, optimise)


def _crossing(node: Node, graph: Graph, ends: tuple[int, int]) -> Candidate:
    """A copy between devices, which crt makes itself."""
    x, y = graph.tensor(node.inputs[0]), graph.tensor(node.output)
    args = (TASK_COPY, *ends, y.bytes)
    return Candidate(None, args, (whole(y),), (whole(x),))
