"""The own share of a layer in a difference: its inputs may differ already, and a right
layer passes that on. So a right net is right in all its layers, however small the range
of one in between, and a wrong layer is wrong where it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pybuild.dtype import Array, DType
from pybuild.ir.graph import Graph, Node
from pybuild.ops.interpret import operator_of
from pybuild.verify.compare import Values

# sums of products: in another order they differ by some roundings of their terms
_SUMS = ("conv2d", "depthwise_conv2d", "dense", "matmul", "add", "mean", "avg_pool2d")
_ROUNDINGS = 8 * 2.0**-24
Reals = np.ndarray[Any, np.dtype[np.float64]]


def carried(
    graph: Graph, inputs: Mapping[str, Array], have: Values, want: Values
) -> Values:
    """`want` as it would be if each layer read what it has read in `have`, by the
    numpy meaning of the layer; outputs of the graph and integers as they are.

    A sum whose terms cancel may be off by 8 roundings of its terms.
    Source  |fl(sum) - sum| <= n u sum|terms|, N. Higham 2002, with its usual sqrt(n)
    """
    if graph.state or graph.windows or graph.bounded:
        return want
    ours: dict[str, Array] = {**graph.constants, **inputs}
    theirs, moved = dict(ours), dict(want)
    for node in graph.nodes:
        mine, other = _made(node, graph, ours), _made(node, graph, theirs)
        for name, a, b in zip(node.outputs, mine, other, strict=True):
            if name in want and name in have and _is_judged(node, graph, name):
                near = want[name].astype(np.float64) + (
                    a.astype(np.float64) - b.astype(np.float64)
                )
                off = have[name].astype(np.float64) - near
                terms = terms_of(node, graph, ours)
                room = np.zeros(()) if terms is None else terms * _ROUNDINGS
                near = near + np.clip(off, -room, room)
                whole = np.where(np.isfinite(near), near, want[name])
                moved[name] = whole.astype(np.float32)
            ours[name] = np.asarray(have.get(name, a)).reshape(a.shape)
            theirs[name] = np.asarray(want.get(name, b)).reshape(b.shape)
    return moved


def _is_judged(node: Node, graph: Graph, name: str) -> bool:
    """A float of floats, that no user sees."""
    reads = (graph.tensor(n).dtype for n in (name, *node.inputs) if n)
    return name not in graph.outputs and all(d is DType.FLOAT32 for d in reads)


def _made(node: Node, graph: Graph, values: Values) -> Sequence[Array]:
    reads = [values[name] if name else None for name in node.inputs]
    return operator_of(node, graph).reference(node, graph, reads)


def terms_of(node: Node, graph: Graph, values: Values) -> Reals | None:
    """The sum of the absolute values of all terms; None: the layer is not a sum."""
    if node.op not in _SUMS:
        return None
    free = node.with_attrs(clamp=(None, None)) if "clamp" in node.attrs else node
    great = {name: np.abs(values[name]) for name in node.inputs if name}
    made: Reals = np.abs(_made(free, graph, great)[0].astype(np.float64))
    return made
