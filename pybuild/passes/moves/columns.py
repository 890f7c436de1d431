"""Images of one row become images of one column, which can go row by row.

A layer over time arrives as [N,1,T,C] from a .tflite and as [N,T,1,C] from others:
then it is one layer, with one set of kernels.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from pybuild.ir.graph import Graph, Node
from pybuild.ops.base.swapped_axes import POOLS, WEIGHTS, exchanged, swapped
from pybuild.passes.edit import Edit

_WINDOWED = (*WEIGHTS, *POOLS)
_TURNED = (*_WINDOWED, "pad", "concat", "slice", "mean")


def stand_rows(graph: Graph) -> Graph:
    """Give each layer of [N,1,T,C] images [N,T,1,C], between reshapes, if any slides a
    window along them."""
    rows = [node for node in graph.nodes if _is_row(node, graph)]
    turned = {name for node in rows for name in node.outputs}
    if not any(node.op in _WINDOWED and _slides(node, graph) for node in rows):
        turned = set()
    edit, makers = Edit(graph), graph.producers()
    for node in graph.nodes:
        if turned.intersection(node.outputs):
            _turn(edit, node)
        elif _is_mean_of_column(node, graph, makers):
            _mean(edit, node)
        else:
            edit.keep(node)
    return edit.done()


def _is_row(node: Node, graph: Graph) -> bool:
    """True if its images have one row, and what it does is alike along columns."""
    if node.op not in _TURNED:
        return False
    ends = [graph.tensor(name).shape for name in _images(node, graph)]
    if any(name in graph.constants for name in _images(node, graph)[1:]):
        return False
    ends += [] if node.op == "mean" else [graph.tensor(node.output).shape]
    if not ends or any(len(shape) != 4 or shape[1] != 1 for shape in ends):
        return False
    if node.op == "mean":
        axes = {axis % 4 for axis in node.attrs["axes"]}
        return axes == {1, 2} and ends[0][2] > 1
    if node.op in _WINDOWED and any(_padded_rows(node)):
        return False
    if node.op in WEIGHTS and graph.tensor(node.inputs[1]).shape[WEIGHTS[node.op]] != 1:
        return False
    if node.op in POOLS and node.attrs["kernel"][0] != 1:
        return False
    return max(shape[2] for shape in ends) > 1


def _is_mean_of_column(node: Node, graph: Graph, makers: Mapping[str, Node]) -> bool:
    """True if it is the mean of [N,T,C] along T, which is a view of [N,T,1,C]."""
    maker = makers.get(node.inputs[0]) if node.op == "mean" else None
    if maker is None or maker.op != "reshape":
        return False
    n, *rest = graph.tensor(node.inputs[0]).shape
    if len(rest) != 2 or {axis % 3 for axis in node.attrs["axes"]} != {1}:
        return False
    return graph.tensor(maker.inputs[0]).shape == (n, rest[0], 1, rest[1])


def _mean(edit: Edit, node: Node) -> None:
    """The mean along rows and columns of the column."""
    name = edit.name(node.inputs[0])
    n, rows, channels = edit.tensors[name].shape
    column = _viewed(edit, name, (n, rows, 1, channels))
    made = node.with_attrs(axes=(1, 2), keepdims=True)
    _replaced(edit, node, replace(made, inputs=(column,)))


def _padded_rows(node: Node) -> tuple[int, int]:
    top, _, bottom, _ = node.attrs.get("pads", (0, 0, 0, 0))
    return top, bottom


def _slides(node: Node, graph: Graph) -> bool:
    """True if its window has more than one column."""
    if node.op in POOLS:
        return int(node.attrs["kernel"][1]) > 1
    return graph.tensor(node.inputs[1]).shape[WEIGHTS[node.op] + 1] > 1


def _images(node: Node, graph: Graph) -> tuple[str, ...]:
    """The inputs that are images."""
    return node.inputs if node.op == "concat" else node.inputs[:1]


def _turn(edit: Edit, node: Node) -> None:
    inputs = [edit.name(name) if name else name for name in node.inputs]
    for at, name in enumerate(_images(node, edit.old)):
        inputs[at] = _column(edit, edit.name(name))
    if node.op == "mean":
        edit.keep(replace(node, inputs=tuple(inputs)))
        return
    if node.op in WEIGHTS:
        inputs[1] = _column(edit, inputs[1], WEIGHTS[node.op])
    made = replace(node, inputs=tuple(inputs), attrs=exchanged(node.attrs))
    _replaced(edit, node, made)


def _replaced(edit: Edit, node: Node, made: Node) -> None:
    """Emits what takes the place of a node, and its result in the shape that it had."""
    y = edit.tensors[node.output]
    inner = edit.fresh(f"{node.output}.column")
    edit.emit(replace(made, outputs=(inner,)), dtype=y.dtype, quant=y.quant)
    back = Node("reshape", f"{node.name}.row", (inner,), node.outputs)
    edit.emit(back, shape=y.shape, dtype=y.dtype, quant=y.quant)


def _column(edit: Edit, name: str, axis: int = 1) -> str:
    """The image, or the weights, as a column.

    axis  that of rows
    """
    shape = swapped(edit.tensors[name].shape, axis)
    if name in edit.constants:
        return edit.moved(name, "column", edit.constants[name].reshape(shape))
    return _viewed(edit, name, shape)


def _viewed(edit: Edit, name: str, shape: tuple[int, ...]) -> str:
    """A tensor in another shape."""
    x, inner = edit.tensors[name], edit.fresh(f"{name}.column")
    node = Node("reshape", inner, (name,), (inner,))
    return edit.emit(node, shape=shape, dtype=x.dtype, quant=x.quant)
