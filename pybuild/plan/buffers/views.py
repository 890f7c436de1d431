"""Finds data movements that need no copy because they are contiguous windows of a
tensor.
"""

from __future__ import annotations

from pybuild.ir.graph import Graph, Node


def slice_offset(node: Node, graph: Graph) -> int | None:
    """Return the byte offset of a slice inside its input, or None if the slice is not
    contiguous."""
    source, made = graph.tensor(node.inputs[0]), graph.tensor(node.output)
    begin, strides = node.attrs["begin"], node.attrs["strides"]
    cut = False
    at = 0
    for axis, dim in enumerate(source.shape):
        at = at * dim + begin[axis]
        if made.shape and cut and _length(node, axis) != dim:
            return None
        if _length(node, axis) != 1:
            cut = True
            if strides[axis] != 1:
                return None
    return at * source.dtype.bytes


def _length(node: Node, axis: int) -> int:
    begin, end = node.attrs["begin"][axis], node.attrs["end"][axis]
    stride = node.attrs["strides"][axis]
    return int(max(0, -(-(end - begin) // stride)))


def concat_parts(node: Node, graph: Graph) -> list[tuple[str, int]] | None:
    """Return (input, byte offset in the output) of each part, or None if the parts are
    interleaved."""
    shape = graph.tensor(node.output).shape
    outer = 1
    for dim in shape[: node.attrs["axis"]]:
        outer *= dim
    if outer != 1:
        return None
    parts, at = [], 0
    for name in node.inputs:
        parts.append((name, at))
        at += graph.tensor(name).bytes
    return parts
