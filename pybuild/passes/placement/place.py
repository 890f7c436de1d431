"""Decides which device computes which node: as the file says, or by the user's rules.

Knows devices as facts (targets/) and costs as numbers; plans no memory.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from pybuild.errors import BuildError, Problem, close_to
from pybuild.ir.graph import Graph, Node
from pybuild.passes.placement.cheapest import Bill, cheapest
from pybuild.passes.placement.copies import with_copies
from pybuild.targets.target import Target

# layer, operator, "input:NAME", "output:NAME" or "*" -> device, or for "*" a way
Rules = Mapping[str, int | str]
Cost = Callable[[Node, int], float]
WAYS = ("capability", "cost")


def place(graph: Graph, targets: Sequence[Target], rules: Rules, cost: Cost) -> Graph:
    """Puts every node on a device of the table, and adds copies between them.

    cost    time that a node takes on a device
    Errors  BuildError with everything that does not fit together
    """
    if graph.is_placed:
        graph = _on_one(graph, targets)
        found = _inconsistent(graph, targets, rules)
    else:
        found = _wrong_rules(graph, targets, rules)
        if not found:
            graph = _by_rules(graph, targets, rules, cost)
    found += _unable(graph, targets)
    if found:
        raise BuildError.of(found)
    return with_copies(graph)


# ---- a file that says it itself -----------------------------------------------


def _on_one(graph: Graph, targets: Sequence[Target]) -> Graph:
    """A graph all on one device that the table has not got runs on the CPU.

    Other writers number devices by type, so that a CPU is 1.
    """
    used = {*graph.locations().values(), *(n.device for n in graph.nodes)}
    if len(used) != 1 or max(used) < len(targets):
        return graph
    nodes = tuple(replace(node, device=0) for node in graph.nodes)
    return replace(graph, nodes=nodes, homes={})


def _inconsistent(
    graph: Graph, targets: Sequence[Target], rules: Rules
) -> list[Problem]:
    found = []
    if rules:
        what = "the file says itself which device computes what"
        found.append(Problem("--place", what, "leave --place out"))
    table = f"there are {len(targets)} devices, 0 is the CPU"
    for name, device in graph.homes.items():
        if device >= len(targets):
            found.append(
                Problem(f"{graph.source}: '{name}'", f"is on device {device}", table)
            )
    for node in graph.nodes:
        if node.device >= len(targets):
            what = f"is on device {node.device}"
            found.append(Problem(graph.where(node), what, table))
    return found


# ---- the user's rules ---------------------------------------------------------


def _wrong_rules(
    graph: Graph, targets: Sequence[Target], rules: Rules
) -> list[Problem]:
    found = []
    layers = {name for node in graph.nodes for name in _names(node, graph)}
    known = layers | {node.op for node in graph.nodes} | {"*"}
    known |= {f"input:{n}" for n in graph.inputs}
    known |= {f"output:{n}" for n in graph.outputs}
    for key, to in rules.items():
        if key not in known:
            some = ", ".join(sorted(known - layers))
            what = f"there is no layer or operator '{key}'"
            meant = close_to(key, known)
            hint = f"did you mean '{meant}'?" if meant else f"a layer's name, or {some}"
            found.append(Problem("--place", what, hint))
        if isinstance(to, str):
            if key != "*" or to not in WAYS:
                what = f"'{key}' cannot be placed by '{to}'"
                hint = f"the number of a device, or for '*' {' or '.join(WAYS)}"
                found.append(Problem("--place", what, hint))
        elif not 0 <= to < len(targets):
            what = f"'{key}' is placed on device {to}"
            hint = f"there are {len(targets)} devices, 0 is the CPU"
            found.append(Problem("--place", what, hint))
    return found


def _by_rules(
    graph: Graph, targets: Sequence[Target], rules: Rules, cost: Cost
) -> Graph:
    homes = {
        name: int(rules[f"{role}:{name}"])
        for role, names in (("input", graph.inputs), ("output", graph.outputs))
        for name in names
        if rules.get(f"{role}:{name}", 0)
    }
    graph = replace(graph, homes=homes)
    fixed = [_fixed(node, rules, graph) for node in graph.nodes]
    way = rules.get("*", 0)
    if way == "cost":
        bill = Bill(tuple(targets), cost)
        return _placed(graph, cheapest(graph, fixed, bill))
    devices, at = [], graph.locations()
    for node, told in zip(graph.nodes, fixed, strict=True):
        if told is None:
            told = _able(node, targets) if way == "capability" else int(way)
            source = at.get(node.inputs[0], told) if node.inputs else told
            if node.op == "reshape" and targets[source].can("reshape"):
                told = source  # nothing moves
        devices.append(told)
        at |= dict.fromkeys(node.outputs, told)
    return _placed(graph, devices)


def _fixed(node: Node, rules: Rules, graph: Graph) -> int | None:
    """A layer's own rule, else its operator's, else none.

    A word that is the name of an operator, too, is short for no layer.
    """
    operators = {one.op for one in graph.nodes}
    own = [name for name in _names(node, graph) if name not in operators]
    told = [rules[name] for name in (node.name, *own, node.op) if name in rules]
    return int(told[0]) if told else None


def _names(node: Node, graph: Graph) -> tuple[str, ...]:
    """The file's, and those for people: its own, and that of the file's layer."""
    return node.name, graph.called(node), graph.shown(node.name)


def _able(node: Node, targets: Sequence[Target]) -> int:
    """The first device that says it has the operator; else the CPU."""
    for index, target in enumerate(targets):
        if index and target.operators is not None and target.can(node.op):
            return index
    return 0


def _placed(graph: Graph, devices: Sequence[int]) -> Graph:
    pairs = zip(graph.nodes, devices, strict=True)
    return replace(graph, nodes=tuple(replace(n, device=d) for n, d in pairs))


def _unable(graph: Graph, targets: Sequence[Target]) -> list[Problem]:
    """Nodes on devices that cannot compute them."""
    crossings = graph.crossings()
    return [
        Problem(
            graph.where(node),
            f"is on device {node.device} ({targets[node.device].name}), which has no "
            f"such operator",
            f"it has {', '.join(sorted(targets[node.device].operators or ()))}",
        )
        for node in graph.nodes
        if node.device < len(targets)
        and not targets[node.device].can(node.op)
        and node.output not in crossings
    ]
