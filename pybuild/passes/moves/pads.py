"""Pads behind what moves their elements, where they stand before the layer that they
join: pad.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from pybuild.ir.graph import Graph, Node
from pybuild.passes.edit import Edit


def pad_behind_transposes(graph: Graph) -> Graph:
    """transpose(pad(x)) becomes pad(transpose(x)), where all readers of the pad
    transpose it alike: an image with channels first is padded as its layers read it."""
    users, edit = graph.consumers(), Edit(graph)
    pads: dict[str, Node] = {}
    turned: dict[str, str] = {}
    for node in graph.nodes:
        if node.op == "pad" and _turned_alike(node, graph, users):
            pads[node.output] = node
            continue
        pad = pads.get(node.inputs[0]) if node.op == "transpose" else None
        if pad is None:
            edit.keep(node)
            continue
        x = edit.tensors[edit.name(pad.inputs[0])]
        if pad.output not in turned:
            inner = turned[pad.output] = edit.fresh(f"{x.name}.turned")
            first = replace(node, name=inner, inputs=(x.name,), outputs=(inner,))
            edit.emit(first, dtype=x.dtype, quant=x.quant)
        given = tuple(pad.attrs["pads"][axis] for axis in node.attrs["perm"])
        inputs = (turned[pad.output], *map(edit.name, pad.inputs[1:]))
        padded = replace(pad, name=node.name, inputs=inputs, outputs=node.outputs)
        edit.emit(padded.with_attrs(pads=given), dtype=x.dtype, quant=x.quant)
    return edit.done()


def _turned_alike(pad: Node, graph: Graph, users: Mapping[str, Sequence[Node]]) -> bool:
    """True if all that reads a pad are transposes of the same axes."""
    readers = users.get(pad.output, ())
    turns = {tuple(r.attrs["perm"]) for r in readers if r.op == "transpose"}
    alike = len(turns) == 1 and all(r.op == "transpose" for r in readers)
    return alike and pad.output not in graph.outputs


def pad_behind_reshapes(graph: Graph) -> Graph:
    """reshape(pad(x)) that only adds axes of 1 becomes pad(reshape(x)): the pad of a
    layer over time stands where that of an image does, and joins its layer."""
    users, edit = graph.consumers(), Edit(graph)
    for node in graph.nodes:
        shape = _shape_behind(node, graph, users)
        if shape is None:
            edit.keep(node)
            continue
        x, y = (edit.tensors[edit.name(n)] for n in (node.inputs[0], node.output))
        inner, made = edit.fresh(f"{x.name}.more"), edit.fresh(f"{y.name}.more")
        pads = iter(node.attrs["pads"])
        kept = _kept_axes(y.shape, shape)
        axes = range(len(shape))
        given = tuple(next(pads) if at in kept else (0, 0) for at in axes)
        sizes = iter(x.shape)
        before = tuple(next(sizes) if at in kept else 1 for at in axes)
        first = Node("reshape", inner, (x.name,), (inner,))
        padded = replace(node, inputs=(inner, *node.inputs[1:]), outputs=(made,))
        padded = padded.with_attrs(pads=given)
        back = Node("reshape", f"{node.name}.less", (made,), node.outputs)
        for one, sizes_after in ((first, before), (padded, ()), (back, y.shape)):
            edit.emit(one, shape=sizes_after, dtype=x.dtype, quant=x.quant)
    return edit.done()


def _shape_behind(
    node: Node, graph: Graph, users: Mapping[str, Sequence[Node]]
) -> tuple[int, ...] | None:
    """The one shape to which all readers of a pad reshape it by adding axes of 1."""
    if node.op != "pad" or node.output in graph.outputs:
        return None
    readers = users.get(node.output, ())
    shapes = {graph.tensor(r.output).shape for r in readers if r.op == "reshape"}
    if len(shapes) != 1 or any(r.op != "reshape" for r in readers):
        return None
    shape, y = shapes.pop(), graph.tensor(node.output).shape
    more = len(shape) > len(y) and len(_kept_axes(y, shape)) == len(y)
    return shape if more else None


def _kept_axes(fewer: tuple[int, ...], more: tuple[int, ...]) -> list[int]:
    """The axes of the longer shape that are those of the other, without some of 1."""
    kept: list[int] = []
    for at, size in enumerate(more):
        if len(kept) < len(fewer) and size == fewer[len(kept)]:
            kept.append(at)
        elif size != 1:
            return []
    return kept
