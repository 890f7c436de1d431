"""repeat: the same few nodes, turn after turn, and what each turn hands to the next.

The nodes are a graph of their own, as text in the attribute `body`: what recurrent
layers become whose steps a file has written out.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from pybuild.dtype import Array
from pybuild.errors import BuildError
from pybuild.ir import graph_text
from pybuild.ir.graph import Graph, Node, Tensor, verify
from pybuild.ops.base.operator import Operator, Types, Values, invalid
from pybuild.records import dataclass

# how a turn reads an input: as it is, or as the turn before left it; else (first,
# step): turn t reads part first + t * step of its elements, in parts of the body's size
HELD, KEPT = "held", "kept"
# how it makes an output: the last turn's stays; else (first, step), as inputs are read
LAST = "last"
Way = str | tuple[int, int]
Table = Mapping[str, Operator]


@dataclass(frozen=True)
class Turns:
    """A node of this kind, read.

    body   its inputs are the node's, in order; its outputs are the node's, then what
           is kept, in the order of the inputs that it is kept for
    reads  of each input; makes  of each output of the node
    """

    body: Graph
    count: int
    reads: tuple[Way, ...]
    makes: tuple[Way, ...]

    def kept(self) -> list[tuple[int, str]]:
        """Number of the input that the next turn reads, what this turn makes of it."""
        numbers = [i for i, way in enumerate(self.reads) if way == KEPT]
        return list(zip(numbers, self.body.outputs[len(self.makes) :], strict=True))


@functools.lru_cache(256)
def _parsed(text: str) -> Graph:
    body = graph_text.parse(text)
    verify(body)
    return body


def turns_of(node: Node, graph: Graph) -> Turns:
    """With the constants that the node reads as constants of its body.

    Errors  BuildError for a body that is not a graph, or that does not fit the node
    """
    try:
        body = _parsed(str(node.attrs["body"]))
    except (ValueError, BuildError) as error:
        raise invalid(node, graph, f"its body is not a graph: {error}") from None
    reads, makes = tuple(node.attrs["reads"]), tuple(node.attrs["makes"])
    kept = sum(way == KEPT for way in reads)
    sizes = len(body.inputs), len(body.outputs), len(node.inputs), len(node.outputs)
    if sizes != (len(reads), len(makes) + kept, len(reads), len(makes)):
        raise invalid(node, graph, "its body has other inputs or outputs")
    pairs = zip(body.inputs, node.inputs, reads, strict=True)
    held = {i: graph.constants[n] for i, n, way in pairs
            if n in graph.constants and way == HELD}  # fmt: skip
    given = tuple(name for name in body.inputs if name not in held)
    body = replace(body, source=graph.source, constants=held, inputs=given)
    return Turns(body, int(node.attrs["turns"]), reads, makes)


def names_read(node: Node) -> tuple[str, ...]:
    """The body's names for the node's inputs, constants included."""
    return _parsed(str(node.attrs["body"])).inputs


def _must_fit(node: Node, graph: Graph, turns: Turns) -> None:
    """Checks the parts that iterations read.

    Errors  BuildError for parts beyond what there is, or of another type
    """
    inside = names_read(node)
    for inner, name, way in zip(inside, node.inputs, turns.reads, strict=True):
        part, whole = turns.body.tensor(inner), graph.tensor(name)
        if isinstance(way, str):
            fits = way in (HELD, KEPT) and part.shape == whole.shape
        else:
            ends = way[0], way[0] + way[1] * (turns.count - 1)
            most = whole.size // max(part.size, 1)
            fits = whole.size % max(part.size, 1) == 0 and min(ends) >= 0
            fits = fits and max(ends) < most
        if not fits or (part.dtype, part.quant) != (whole.dtype, whole.quant):
            raise invalid(node, graph, f"its turns cannot read '{name}' so")
    for (index, made), way in zip(turns.kept(), _kept_ways(turns), strict=True):
        old, new = turns.body.tensor(inside[index]), turns.body.tensor(made)
        if replace(old, name="") != replace(new, name="") or way != KEPT:
            raise invalid(node, graph, f"'{made}' is another type than it was")
    for way in turns.makes:
        if way != LAST and sorted(_numbers(way, turns)) != [*range(turns.count)]:
            raise invalid(node, graph, f"its turns cannot make {way}")


def _kept_ways(turns: Turns) -> list[Way]:
    return [way for way in turns.reads if way == KEPT]


def _numbers(way: Way, turns: Turns) -> list[int]:
    """The slice that each iteration reads or writes."""
    return [int(way[0]) + int(way[1]) * t for t in range(turns.count)]


def infer(table: Table, node: Node, graph: Graph) -> Types:
    """Shapes  of each output the body's, or, of every turn, [turns, *the body's]"""
    turns = turns_of(node, graph)
    _must_fit(node, graph, turns)
    for one in turns.body.nodes:
        if one.op not in table or one.op == node.op:
            raise invalid(node, graph, f"'{one.op}' is not an operator of a body")
        made = table[one.op].infer(one, turns.body)
        for name, (shape, dtype) in zip(one.outputs, made, strict=True):
            tensor = turns.body.tensor(name)
            if (tensor.shape, tensor.dtype) != (shape, dtype):
                raise invalid(node, graph, f"'{name}' is another type in its body")
    return tuple(
        (tensor.shape if way == LAST else (turns.count, *tensor.shape), tensor.dtype)
        for tensor, way in zip(_made(turns), turns.makes, strict=True)
    )


def _made(turns: Turns) -> list[Tensor]:
    return [turns.body.tensor(n) for n in turns.body.outputs[: len(turns.makes)]]


def evaluated(
    table: Table, nodes: Iterable[Node], graph: Graph, values: dict[str, Array]
) -> None:
    """Adds to `values` what nodes of a body make."""
    for node in nodes:
        reads = [values[name] if name else None for name in node.inputs]
        made = table[node.op].reference(node, graph, reads)
        values.update(zip(node.outputs, made, strict=True))


def reference(
    table: Table, node: Node, graph: Graph, values: Values
) -> tuple[Array, ...]:
    """Numpy meaning."""
    turns = turns_of(node, graph)
    body, names = turns.body, names_read(node)
    now: dict[str, Array] = {}
    whole: dict[str, Array] = {}
    for name, value in zip(names, values, strict=True):
        assert value is not None
        whole[name] = now[name] = value
    every: list[list[Array]] = []
    for turn in range(turns.count):
        for name, way in zip(names, turns.reads, strict=True):
            if not isinstance(way, str):
                part = body.tensor(name)
                flat = whole[name].reshape(-1, *part.shape)
                now[name] = flat[way[0] + way[1] * turn]
        evaluated(table, body.nodes, body, now)
        every.append([now[name] for name in body.outputs])
        for (index, _), made in zip(
            turns.kept(), every[-1][len(turns.makes) :], strict=True
        ):
            now[names[index]] = made
    return tuple(_given(every, i, way, turns) for i, way in enumerate(turns.makes))


def _given(
    every: Sequence[Sequence[Array]], index: int, way: Way, turns: Turns
) -> Array:
    if way == LAST:
        return every[-1][index]
    order = np.argsort(_numbers(way, turns))
    return np.stack([every[t][index] for t in order])


def macs(table: Table, node: Node, graph: Graph) -> int:
    turns = turns_of(node, graph)
    body = turns.body
    return turns.count * sum(table[n.op].macs(n, body) for n in body.nodes)


def operator(table: Table) -> Operator:
    """The operator, over the others of a table."""
    return Operator(
        functools.partial(infer, table),
        functools.partial(reference, table),
        functools.partial(macs, table),
    )
