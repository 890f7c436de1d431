"""Small values that are known while a file is read, such as shapes."""

from __future__ import annotations

import numpy as np

from pybuild.dtype import Array
from pybuild.ir.graph import Graph, Node
from pybuild.ops.interpret import operator_of
from pybuild.ops.shape import MOVING

# larger values are left to the passes
MOST_FOLDED = 1 << 12
# of passes/reference.py: what a node is depends on --rounding
MARKS = frozenset({"only", "unscaled", "either"})


def value_of(node: Node, graph: Graph) -> Array | None:
    """Return the value that a node computes, if it is known and small; else None.
    Scaled tensors and marks are excluded, as passes decide how they round, and so are
    weights that are only moved: they are folded under the file's name for them."""
    names = [name for name in (*node.inputs, *node.outputs) if name]
    tensors = [graph.tensors[name] for name in names]
    large = any(t.quant is not None or t.size > MOST_FOLDED for t in tensors)
    moved = node.op in MOVING and tensors[0].dtype.is_float
    if large or moved or len(node.outputs) > 1 or node.attrs.keys() & MARKS:
        return None
    values = [graph.constants.get(name) for name in node.inputs]
    if any(value is None for value in values):
        return None
    with np.errstate(all="ignore"):
        (made,) = operator_of(node, graph).reference(node, graph, values)
    return made
