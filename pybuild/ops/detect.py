"""suppress: of boxes that overlap, the ones with the best score; roi_align: what is in
boxes.

A box of suppress is its two corners: y, x, y, x, the first ones less.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pybuild.dtype import Array, DType
from pybuild.ir.graph import Graph, Node
from pybuild.ops.base.operator import Types, Values, invalid, operand, value

_MOST_SAMPLES = 32767  # of a cell, each way


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
    """The intersection over union with each box; 0 for boxes without area."""
    sizes = (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])
    size = (one[2] - one[0]) * (one[3] - one[1])
    low, high = np.maximum(boxes[:, :2], one[:2]), np.minimum(boxes[:, 2:], one[2:])
    sides = np.maximum(high - low, np.float32(0))
    both = sides[:, 0] * sides[:, 1]
    with np.errstate(all="ignore"):
        share = both / (sizes + size - both)
    return np.where((sizes <= 0) | (size <= 0), np.float32(0), share)


def infer_roi_align(node: Node, graph: Graph) -> Types:
    """attrs mode "avg" or "max"; size of y; samples each way in a cell (0: one for each
    pixel); scale of the boxes; centred: pixels are where their middle is.
    Shapes  x float32[N,C,H,W]  boxes float32[R,4] (x, y, x, y)  image int32[R]
            y float32[R,C,*size]
    """
    x, boxes, image = (operand(node, graph, n) for n in range(3))
    floats = {x.dtype, boxes.dtype} == {DType.FLOAT32} and image.dtype is DType.INT32
    fits = len(x.shape) == 4 and boxes.shape == (*image.shape, 4)
    if not (floats and fits) or node.attrs["mode"] not in ("avg", "max"):
        what = f"{node.attrs['mode']} of {x.dtype.value}{list(x.shape)} in boxes "
        raise invalid(node, graph, what + str(list(boxes.shape)), "float32, avg or max")
    if not 0 <= node.attrs["samples"] <= _MOST_SAMPLES:
        what = f"{node.attrs['samples']} samples each way in a cell"
        raise invalid(node, graph, what, f"0 to {_MOST_SAMPLES}")
    return (((boxes.shape[0], x.shape[1], *node.attrs["size"]), DType.FLOAT32),)


def roi_align(node: Node, graph: Graph, values: Values) -> tuple[Array, ...]:
    """Each cell of a box is the mean of samples between pixels, or the most that one
    pixel adds to one of them; 0 more than a pixel outside.
    """
    x, boxes, image = (value(values, n) for n in range(3))
    size, single = tuple(node.attrs["size"]), np.float32
    y = np.zeros((len(boxes), x.shape[1], *size), single)
    shift = single(0.5 if node.attrs["centred"] else 0)
    for made, box, number in zip(y, boxes, image.tolist(), strict=True):
        plane = x[min(max(number, 0), len(x) - 1)]
        nothing = np.zeros(len(plane), single)
        ends = box * single(node.attrs["scale"]) - shift
        axes = [
            _samples(node, (ends[1 - n], ends[3 - n]), size[n], plane.shape[1 + n])
            for n in (0, 1)
        ]
        for i, rows in enumerate(axes[0]):
            for j, columns in enumerate(axes[1]):
                parts = [
                    [
                        plane[:, a, b] * (u * v) if inside else nothing
                        for a, u in row
                        for b, v in column
                    ]
                    for above, row in rows
                    for aside, column in columns
                    for inside in [above and aside]
                ]
                if not parts:
                    continue
                taps = np.asarray(parts)
                mean = node.attrs["mode"] == "avg"
                made[:, i, j] = (
                    taps.sum(1).sum(0) / single(len(parts))
                    if mean
                    else taps.max(1).max(0)
                )
    return (y,)


def _samples(node: Node, ends: Any, cells: int, size: int) -> list[Any]:
    """For each cell the samples along an axis: whether each is in the image, and two
    pixels with their weights."""
    single = np.float32
    span = ends[1] - ends[0]
    span = span if node.attrs["centred"] else np.maximum(span, single(1))
    step = span / single(cells)
    asked = np.clip(np.ceil(step), 0, _MOST_SAMPLES)
    count = node.attrs["samples"] or int(np.nan_to_num(asked, nan=1))
    found = []
    for cell in range(cells):
        row = []
        for n in range(count):
            part = (single(n) + single(0.5)) * step / single(count)
            at = ends[0] + single(cell) * step + part
            inside = not (at < -1 or at > size)
            held = np.clip(at, single(0), single(size - 1))
            low = int(np.nan_to_num(held, nan=0))
            rest = held - single(low)
            pair = ((low, 1 - rest), (min(low + 1, size - 1), rest))
            row.append((inside, pair))
        found.append(row)
    return found
