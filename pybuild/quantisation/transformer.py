"""Finds the nodes of a transformer, which get int16 activations.

A value of a residual stream is a sum of all blocks before it, a norm makes differences
of a few steps large, and attention multiplies two such tensors: 256 steps for each lose
more there than all weights do. Products of int16 by int8 cost what those of int8 do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pybuild.dtype import DType
from pybuild.ir.graph import Graph, Node
from pybuild.ops.base.operator import NO_CLAMP, clamp_of
from pybuild.passes.edit import Edit, only_reader
from pybuild.passes.qdq import MOVEMENT, WEIGHTED, moved_inputs
from pybuild.quantisation.regions import NORM, Region

# what moves values here; indices of gather are what they are
MOVES = (*MOVEMENT, "gather", "resize_bilinear")


def is_move(node: Node, graph: Graph) -> bool:
    """True if all values of the output are of inputs, as of what MOVES names, or of
    maxima and of copies of computed tensors."""
    if node.op not in ("reduce", "map"):
        return node.op in MOVES
    held = any(name in graph.constants for name in node.inputs)  # it may be -inf
    return moved_inputs(node) == tuple(range(len(node.inputs))) and not held


def wide_nodes(graph: Graph, regions: Mapping[str, Region]) -> frozenset[str]:
    """Outputs of what lies between norms and products of computed tensors, or next to
    one, through what only moves or adds values.
    """
    seeds = {name for name, one in regions.items() if one.op == NORM}
    seeds |= _attention(graph)
    if not seeds:
        return frozenset()
    after, before = (_reached(graph, regions, seeds, back) for back in (False, True))
    inside = (after & before) | seeds
    return frozenset(inside | _beside(graph, regions, inside))


def _attention(graph: Graph) -> set[str]:
    """Products of computed tensors on both sides of a softmax."""
    makers, users = graph.producers(), graph.consumers()
    found: set[str] = set()
    for node in graph.nodes:
        if node.op != "softmax":
            continue
        source = makers.get(node.inputs[0])
        while source is not None and source.op in ("mul", "add", *MOVES):
            computed = [n for n in source.inputs if n in makers]
            source = makers[computed[0]] if computed else None
        readers = [node]
        while len(readers) == 1 and readers[0].op in ("softmax", *MOVES):
            readers = list(users[readers[0].output])
        both = [source, *readers]
        if all(n is not None and _is_product(n, graph) for n in both):
            found |= {n.output for n in both if n is not None}
    return found


def _is_product(node: Node, graph: Graph) -> bool:
    if node.op != "matmul" or graph.tensor(node.output).dtype is not DType.FLOAT32:
        return False
    return not any(name in graph.constants for name in node.inputs)


def _steps(
    graph: Graph, regions: Mapping[str, Region]
) -> list[tuple[str, tuple[str, ...]]]:
    """Each node, or region in the place of its last one: its output, what it reads."""
    inside = {n.output for r in regions.values() for n in r.nodes}
    found: list[tuple[str, tuple[str, ...]]] = []
    for node in graph.nodes:
        if node.output in regions:
            found.append((node.output, (regions[node.output].source,)))
        elif node.output not in inside:
            found.append((node.output, tuple(n for n in node.inputs if n)))
    return found


def _reached(
    graph: Graph, regions: Mapping[str, Region], seeds: set[str], back: bool
) -> set[str]:
    """The tensors that are made from seeds, or (back) from which seeds are made."""
    found = set(seeds)
    steps = _steps(graph, regions)
    for output, reads in reversed(steps) if back else steps:
        if back:
            if output in found:
                found.update(reads)
        elif found & {*reads}:
            found.add(output)
    return found


def _beside(graph: Graph, regions: Mapping[str, Region], inside: set[str]) -> set[str]:
    """Layers next to it, and what only moves or adds values in between; of two layers
    with a curve between them the second, too.
    """
    ops = {node.output: node.op for node in graph.nodes} | dict.fromkeys(regions, "")
    near, found, seconds = (*MOVES, "add", "sub"), set(inside), set[str]()
    grew = True
    while grew:
        before = len(found)
        for output, reads in _steps(graph, regions):
            op, first = ops[output], reads[0] if reads else ""
            # what makes an operand of it
            if output in inside or (output in found and op in near):
                found.update(n for n in reads if ops.get(n) in (*WEIGHTED, *near))
            through = {n for n in reads if n in inside or ops.get(n) in near}
            joins = op in (*WEIGHTED, *near) and bool(found & through)
            curve = output in regions and ops.get(first) in WEIGHTED and first in found
            if joins or curve:
                found.add(output)
            elif op in WEIGHTED and first in regions and first in found:
                again = output in found or regions[first].source in seconds
                seconds |= set() if again else {output}
                found |= set() if again else {output}
        grew = len(found) > before
    return found - inside


def scaled_softmax(graph: Graph) -> Graph:
    """With a factor of all that a softmax reads as its `beta`."""
    edit, users = Edit(graph), graph.consumers()
    factors: dict[str, float] = {}
    for node in graph.nodes:
        factor = _factor(node, graph, users)
        if factor is not None:
            computed = next(n for n in node.inputs if not graph.known(n))
            factors[node.output] = factor
            edit.alias(node.output, computed)
            continue
        if node.op == "softmax" and node.inputs[0] in factors:
            beta = float(node.attrs["beta"]) * factors[node.inputs[0]]
            node = node.with_attrs(beta=beta)
        edit.keep(node)
    return edit.done() if factors else graph


def _factor(
    node: Node, graph: Graph, users: Mapping[str, Sequence[Node]]
) -> float | None:
    """The factor of a mul by one positive number that only a softmax reads."""
    known = [n for n in node.inputs if graph.known(n)]
    if node.op != "mul" or len(known) != 1 or clamp_of(node) != NO_CLAMP:
        return None
    if not only_reader(graph, users, node.output):
        return None
    value, tensor = graph.constants[known[0]], graph.tensor(node.output)
    other = graph.tensor(next(n for n in node.inputs if n != known[0]))
    fits = value.size == 1 and float(value.reshape(-1)[0]) > 0
    fits = fits and tensor.dtype is DType.FLOAT32 and other.shape == tensor.shape
    read = users[node.output][0].op == "softmax"
    return float(value.reshape(-1)[0]) if fits and read else None
