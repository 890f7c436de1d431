"""Two lines for each channel that meet where x is 0, such as a PReLU between a
dequantize and a quantize: each is a table or a layer of one tap, and the larger of both
is the result, where that gives the same integers for all 256 inputs of each channel.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from pybuild.dtype import Array
from pybuild.ir.graph import Node
from pybuild.passes.edit import Edit
from pybuild.passes.lookups.affine import Line, as_layer

_INPUT = np.arange(-128, 128)[:, None]


def as_layers(edit: Edit, line: Line, rounding: str) -> tuple[Node, ...]:
    """The nodes that compute a line or a bend of each channel, the last of which makes
    its result; (): it is neither.

    rounding  litert | tflm | single | onnx
    """
    root, node = line.root, line.node
    y = edit.tensors[node.output]
    if root.shape != y.shape or not root.shape:
        return ()
    if len(root.shape) == 4:
        return _as_layers(edit, line, rounding)
    shape = (1, 1, root.size // root.shape[-1], root.shape[-1])  # layers read images
    names = [edit.fresh(f"{name}.image") for name in (root.name, y.name)]
    for name, tensor in zip(names, (root, y), strict=True):
        edit.tensors[name] = replace(tensor, name=name, shape=shape)
    image = Line(
        edit.tensors[names[0]],
        replace(node, outputs=(names[1],)),
        line.reals,
        line.whole,
    )
    made = _as_layers(edit, image, rounding)
    if not made:
        return ()
    return (
        Node("reshape", names[0], (root.name,), (names[0],)),
        *made,
        Node("reshape", node.name, (names[1],), (y.name,)),
    )


def _as_layers(edit: Edit, line: Line, rounding: str) -> tuple[Node, ...]:
    layer = as_layer(edit, line, rounding)
    return (layer,) if layer is not None else as_bend(edit, line, rounding)


def as_bend(edit: Edit, line: Line, rounding: str) -> tuple[Node, ...]:
    """The nodes that compute the function, the last of which makes its result; (): it
    is not such a function.

    rounding  litert | tflm | single | onnx
    """
    same = _as_table(edit, line)
    if same is not None:
        return (same,)
    y, steps = edit.tensors[line.node.output], _INPUT - line.root.zero_point
    if not 0 < line.root.zero_point + 128 < 255 or line.reals[steps[:, 0] == 0].any():
        return ()
    reals = line.reals.astype(np.float64)
    below, above = reals[0] / steps[0], reals[-1] / steps[-1]
    if not (below <= above).all() and not (below >= above).all():
        return ()
    larger = bool((below <= above).all())
    low, high = line.whole.min(), line.whole.max()
    nodes, sides = list[Node](), list[Array]()
    for mine, slope in ((steps < 0, below), (steps >= 0, above)):
        beyond = steps * slope
        whole = np.rint(beyond / y.scale + y.zero_point).clip(low, high)
        whole = np.where(mine, line.whole, whole.astype(line.whole.dtype))
        name = edit.fresh(f"{y.name}.{'above' if nodes else 'below'}")
        edit.tensors[name] = replace(y, name=name)
        node = replace(line.node, outputs=(name,))
        side = Line(line.root, node, np.where(mine, reals, beyond), whole)
        made = _as_table(edit, side) or as_layer(edit, side, rounding)
        if made is None:
            return ()
        nodes.append(made)
        sides.append(whole)
    both_sides = np.maximum(*sides) if larger else np.minimum(*sides)
    if (both_sides != line.whole).any():
        return ()
    both = tuple(node.output for node in nodes)
    fn = {"fn": "maximum" if larger else "minimum"}
    return (*nodes, replace(line.node, op="map", inputs=both, attrs=fn))


def _as_table(edit: Edit, line: Line) -> Node | None:
    """The node as a lookup, if all channels have the same function."""
    if (line.whole != line.whole[:, :1]).any():
        return None
    name = edit.constant(f"{line.node.output}.table", line.whole[:, 0].copy())
    return replace(line.node, op="lookup", inputs=(line.root.name, name), attrs={})
