"""Windows without the taps that only ever stand on padding: 5x5 at stride 2 over one
pixel is 1x1. Knows no file format and no kernel.
"""

from __future__ import annotations

from collections.abc import Iterable

from pybuild.ir.graph import Graph, Node
from pybuild.passes.edit import Edit

# of each operator, the axis of its weights that is the window's first
_WINDOW = {"conv2d": 1, "depthwise_conv2d": 0}


def drop_outside_taps(graph: Graph) -> Graph:
    """Convolutions of integers, whose padding adds nothing: of floats it may be
    infinity times zero."""
    edit = Edit(graph)
    for node in graph.nodes:
        edit.keep(_less(node, edit) or node)
    return edit.done()


def _less(node: Node, edit: Edit) -> Node | None:
    """The node with only the taps that meet data; None: all taps do."""
    axis = _WINDOW.get(node.op)
    pads = tuple(node.attrs.get("pads", (0, 0, 0, 0)))
    weights = edit.name(node.inputs[1]) if axis is not None else ""
    if axis is None or not any(pads) or weights not in edit.constants:
        return None
    graph = edit.old
    x, y = graph.tensor(node.inputs[0]), graph.tensor(node.output)
    if x.dtype.is_float:
        return None
    value = edit.constants[weights]
    sizes, counts = x.shape[1:3], y.shape[1:3]
    strides = node.attrs.get("strides", (1, 1))
    gaps = node.attrs.get("dilations", (1, 1))
    kept = [
        _met(sizes[i], counts[i], value.shape[axis + i], strides[i], gaps[i],
             (pads[i], pads[i + 2]))
        for i in (0, 1)
    ]  # fmt: skip
    if all(len(k) == value.shape[axis + i] for i, k in enumerate(kept)):
        return None
    around = list(pads)
    for i, taps in enumerate(kept):
        around[i] -= taps[0] * gaps[i]
        around[i + 2] -= (value.shape[axis + i] - 1 - taps[-1]) * gaps[i]
        value = value.take(taps, axis + i)
    name = edit.moved(weights, "inside", value)
    inputs = (node.inputs[0], name, *node.inputs[2:])
    made = node.with_attrs(pads=tuple(around))
    return Node(made.op, made.name, inputs, made.outputs, made.attrs, made.device)


def _met(
    size: int, count: int, taps: int, stride: int, gap: int, pads: tuple[int, int]
) -> list[int]:
    """Neighbouring taps of one axis, among them all that stand on data for one of
    `count` windows; padding does not become less than none."""
    at = [
        k
        for k in range(taps)
        if _any_inside((o * stride + k * gap - pads[0] for o in range(count)), size)
    ]
    if not at:
        return list(range(taps))
    first = min(at[0], pads[0] // gap)
    last = max(at[-1], taps - 1 - pads[1] // gap)
    return list(range(first, last + 1))


def _any_inside(places: Iterable[int], size: int) -> bool:
    return any(0 <= place < size for place in places)
