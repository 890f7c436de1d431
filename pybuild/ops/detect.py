"""suppress: of boxes that overlap, the ones with the best score.

A box is its two corners: y, x, y, x, the first ones less.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pybuild.dtype import Array, DType
from pybuild.graph import Graph, Node
from pybuild.ops.operator import Types, Values, invalid, operand, value


def infer_suppress(node: Node, graph: Graph) -> Types:
    """attrs count: most that are taken; score: the least; overlap: the most.
    Shapes  boxes float32[n, 4]  scores float32[A, n]  y int32[A, count]: places, -1
    after the last
    """
    boxes, scores = operand(node, graph, 0), operand(node, graph, 1)
    fits = len(scores.shape) == 2 and boxes.shape == (scores.shape[1], 4)
    if not fits or {boxes.dtype, scores.dtype} != {DType.FLOAT32}:
        what = f"scores {list(scores.shape)} of boxes {list(boxes.shape)}"
        raise invalid(node, graph, what, "float32, four numbers for each")
    return (((scores.shape[0], int(node.attrs["count"])), DType.INT32),)


def suppress(node: Node, graph: Graph, values: Values) -> tuple[Array, ...]:
    """Best first, of equal scores the first box; none that overlaps one taken before by
    more of what both cover than allowed.
    """
    boxes, scores = value(values, 0), value(values, 1)
    count, most = int(node.attrs["count"]), np.float32(node.attrs["overlap"])
    made = np.full((len(scores), count), -1, np.int32)
    for row, own in zip(made, scores, strict=True):
        left = np.where(own >= np.float32(node.attrs["score"]), own, -np.inf)
        for turn in range(count):
            best = int(np.argmax(left))
            if left[best] == -np.inf:
                break
            row[turn] = best
            left[best] = -np.inf
            left[_overlaps(boxes, boxes[best]) > most] = -np.inf
    return (made,)


def _overlaps(boxes: Any, one: Any) -> Any:
    """What both cover as a share of what either covers; 0 of boxes without area."""
    sizes = (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])
    size = (one[2] - one[0]) * (one[3] - one[1])
    low, high = np.maximum(boxes[:, :2], one[:2]), np.minimum(boxes[:, 2:], one[2:])
    sides = np.maximum(high - low, np.float32(0))
    both = sides[:, 0] * sides[:, 1]
    with np.errstate(all="ignore"):
        share = both / (sizes + size - both)
    return np.where((sizes <= 0) | (size <= 0), np.float32(0), share)
