"""A gather of known, consecutive rows of the outermost axis is a slice, which is a
view of its input and costs nothing: PyTorch's x[0].
"""

from __future__ import annotations

import math

import numpy as np

from pybuild.ir.graph import Attr, Graph, Node
from pybuild.passes.edit import Edit


def slice_known_rows(graph: Graph) -> Graph:
    """The graph with slices for such gathers, reshaped as the indices' shape asks."""
    found = {n.output: start for n in graph.nodes if (start := _first(graph, n)) >= 0}
    if not found:
        return graph
    edit = Edit(graph)
    for node in graph.nodes:
        if node.output in found:
            _sliced(edit, graph, node, found[node.output])
        else:
            edit.keep(node)
    return edit.done()


def _first(graph: Graph, node: Node) -> int:
    """The first row of a gather of rows one after the other; -1: it is none."""
    if node.op != "gather" or graph.is_placed or node.inputs[1] in graph.parameters:
        return -1
    rows = graph.constants.get(node.inputs[1])
    if rows is None or not rows.size:
        return -1
    shape, axis = graph.tensor(node.inputs[0]).shape, int(node.attrs["axis"])
    if math.prod(shape[:axis]) != 1:
        return -1
    count = shape[axis]
    flat = rows.astype(np.int64).ravel()
    flat = np.where(flat < 0, flat + count, flat)
    inside = flat[0] >= 0 and flat[-1] < count
    return int(flat[0]) if inside and (np.diff(flat) == 1).all() else -1


def _sliced(edit: Edit, graph: Graph, node: Node, first: int) -> None:
    x, axis = graph.tensor(node.inputs[0]), int(node.attrs["axis"])
    begin, end = [0] * len(x.shape), list(x.shape)
    begin[axis] = first
    end[axis] = first + graph.tensor(node.inputs[1]).size
    attrs: dict[str, Attr] = {"begin": tuple(begin), "end": tuple(end)}
    attrs["strides"] = (1,) * len(begin)
    made = graph.tensor(node.output)
    shape = tuple(e - b for b, e in zip(begin, end, strict=True))
    cut = node.output if shape == made.shape else edit.fresh(f"{node.output}.rows")
    quant, dtype, source = made.quant, made.dtype, (edit.name(x.name),)
    node = Node("slice", node.name, source, (cut,), attrs)
    edit.emit(node, shape=shape, quant=quant, dtype=dtype)
    if cut != made.name:
        again = Node("reshape", node.name, (cut,), (made.name,), {"shape": made.shape})
        edit.emit(again, shape=made.shape, quant=quant, dtype=dtype)
