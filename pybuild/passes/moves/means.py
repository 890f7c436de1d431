"""A mean of joined integers: of each of them before they are joined, so that the means
are integers too. PT2E gives a concat no scale where only a mean reads it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import prod

from pybuild.ir.graph import Graph, Node
from pybuild.passes.dead import remove_dead
from pybuild.passes.edit import Edit
from pybuild.passes.moves.pairs import is_whole

Shape = tuple[int, ...]


def means_before_concats(graph: Graph) -> Graph:
    """The graph in which a mean reads what a concat joins, where that is dequantised
    and joined on an axis that stays; transposes and reshapes may lie between."""
    makers, edit = graph.producers(), Edit(graph)
    nodes: list[Node] = []
    for node in graph.nodes:
        found = _joined(graph, node) if node.op == "mean" else None
        if found is None or not all(
            _is_of_integers(makers, n) for n in found[0].inputs
        ):
            nodes.append(node)
            continue
        concat, axes, moves = found
        nodes += _apart(edit, node, concat, axes, moves)
    return graph if len(nodes) == len(graph.nodes) else remove_dead(edit.done(nodes))


def _is_of_integers(makers: Mapping[str, Node], name: str) -> bool:
    """True if it is dequantised, and perhaps moved, integers."""
    maker = makers.get(name)
    while maker is not None and maker.op in ("slice", "transpose", "reshape"):
        maker = makers.get(maker.inputs[0])
    return is_whole(maker)


def _joined(graph: Graph, mean: Node) -> tuple[Node, Shape, list[Node]] | None:
    """The concat that a mean reads, the axes there, and the moves in between."""
    makers, axes = graph.producers(), tuple(mean.attrs["axes"])
    moves: list[Node] = []
    node = makers.get(mean.inputs[0])
    while node is not None and node.op in ("transpose", "reshape"):
        x, y = (graph.tensor(name).shape for name in (node.inputs[0], node.output))
        if node.op == "transpose":
            axes = tuple(node.attrs["perm"][axis] for axis in axes)
        else:
            axes = tuple(_same_axis(x, y, axis) for axis in axes)
        if -1 in axes:
            return None
        moves.append(node)
        node = makers.get(node.inputs[0])
    if node is None or node.op != "concat" or node.attrs["axis"] in axes:
        return None
    return node, axes, moves[::-1]


def _same_axis(x: Shape, y: Shape, axis: int) -> int:
    """The axis before a reshape whose steps are those of one behind it; -1: none."""
    inner = prod(y[axis + 1 :])
    found = (i for i, n in enumerate(x) if n == y[axis] and prod(x[i + 1 :]) == inner)
    return next(found, -1)


def _apart(
    edit: Edit, mean: Node, concat: Node, axes: Shape, moves: Sequence[Node]
) -> list[Node]:
    nodes: list[Node] = []

    def add(node: Node, like: str, reduced: Shape) -> str:
        shape = edit.tensors[like].shape
        shape = tuple(1 if i in reduced else n for i, n in enumerate(shape))
        name = edit.fresh(f"{like}.mean")
        edit.tensors[name] = replace(edit.tensors[like], name=name, shape=shape)
        nodes.append(replace(node, outputs=(name,)))
        return name

    each = mean.with_attrs(axes=axes, keepdims=True)
    parts = [add(replace(each, inputs=(n,)), n, axes) for n in concat.inputs]
    last = add(replace(concat, inputs=tuple(parts)), concat.output, axes)
    for move in moves:
        x, y = (edit.tensors[name].shape for name in (move.inputs[0], move.output))
        if move.op == "transpose":
            axes = tuple(move.attrs["perm"].index(axis) for axis in axes)
        else:
            axes = tuple(_same_axis(y, x, axis) for axis in axes)
        last = add(replace(move, inputs=(last,)), move.output, axes)
    return [*nodes, Node("reshape", mean.name, (last,), mean.outputs)]
