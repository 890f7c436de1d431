"""Object detection: NonMaxSuppression, RoiAlign, MaxRoiPool."""

from __future__ import annotations

import numpy as np

from pybuild.dtype import DType
from pybuild.frontends.onnx.draft.flow import Flow
from pybuild.frontends.onnx.operators.bounded import (
    absent_at,
    give_bounded,
    places_of,
    room_for,
)
from pybuild.frontends.onnx.operators.elements import Handler, flowing

_LEAST = float(np.finfo(np.float32).min)


def _corners(flow: Flow, boxes: str) -> str:
    """Return boxes with the lower corner first, from any two corners or from centres
    and sizes."""
    low, high = (flow.slice(boxes, 2, n, n + 2) for n in (0, 2))
    if flow.op.integer("center_point_box", 0):
        half = flow.scaled(high, 0.5)
        low, high = flow.sub(low, half), flow.add(low, half)
    pair = (flow.map(fn, low, high) for fn in ("minimum", "maximum"))
    return flow.concat(list(pair), 2)


@flowing
def non_max_suppression(flow: Flow) -> None:
    """Emit [image, class, box] of the selected boxes, ordered by image and class."""
    boxes, scores = flow.arg(0), flow.arg(1)
    images, classes, count = flow.shape(scores)
    numbers = ("max_output_boxes_per_class", "iou_threshold", "score_threshold")
    given = [
        float(flow.value(i, name).reshape(-1)[0]) if flow.has(i) else 0.0
        for i, name in enumerate(numbers, 2)
    ]
    each = max(min(int(given[0]), count), 0)
    least = _LEAST
    if flow.has(4):  # only more than that will do
        least = float(np.nextafter(np.float32(given[2]), np.float32(np.inf)))
    room = room_for(flow, images * classes * each)
    attrs = {"count": each, "score": least, "overlap": given[1]}
    boxes = _corners(flow, boxes)
    rows = []
    for n in range(images):
        own = flow.reshape(flow.slice(boxes, 0, n, n + 1), (count, 4))
        score = flow.reshape(flow.slice(scores, 0, n, n + 1), (classes, count))
        rows.append(flow.emit("suppress", [own, score], attrs))
    best = flow.reshape(flow.concat(rows, 0), (images * classes * each,))
    taken = flow.map("less", flow.const(-1, best), best)
    at, total = places_of(flow, taken, room)
    held = flow.map("maximum", at, flow.const(0, at))
    row = flow.div(held, flow.const(each, at))
    columns = [
        flow.div(row, flow.const(classes, row)),
        flow.map("modulo", row, flow.const(classes, row)),
        flow.gather(best, held, 0),
    ]
    made = flow.concat([flow.reshape(c, (room, 1)) for c in columns], 1)
    absent = flow.reshape(absent_at(flow, at), (room, 1))
    made = flow.map("where", absent, flow.const(-1, made), made)
    give_bounded(flow, flow.cast(made, DType.INT64), 0, total)


@flowing
def roi_align(flow: Flow) -> None:
    op = flow.op
    late = op.opset >= 16
    usual = "half_pixel" if late else "output_half_pixel"
    mode = str(op.attrs.get("coordinate_transformation_mode", usual))
    attrs = {
        "mode": str(op.attrs.get("mode", "avg")).lower(),
        "size": (op.integer("output_height", 1), op.integer("output_width", 1)),
        "samples": op.integer("sampling_ratio", 0),
        "scale": float(op.attrs.get("spatial_scale", 1.0)),
        "centred": mode.lower() == "half_pixel",
    }
    image = flow.cast(flow.arg(2), DType.INT32)
    flow.give(flow.emit("roi_align", [flow.arg(0), flow.arg(1), image], attrs))


def _rounded(flow: Flow, x: str) -> str:
    """Rounds to whole numbers, halves away from zero."""
    size = flow.map("abs", x)
    whole = flow.map("floor", size)
    up = flow.map("less_or_equal", flow.const(0.5, x), flow.sub(size, whole))
    made = flow.map("where", up, flow.plus(whole, 1), whole)
    below = flow.map("less", x, flow.const(0, x))
    return flow.map("where", below, flow.map("negate", made), made)


def _cells(flow: Flow, low: str, high: str, count: int, size: int) -> tuple[str, str]:
    """For boxes from `low` to `high` along an axis, each cut into `count` cells, return
    which indices lie in each cell, [boxes, cells, indices], and which cells are empty,
    [boxes, cells]."""
    start, end = (_rounded(flow, side) for side in (low, high))
    length = flow.plus(flow.sub(end, start), 1)
    length = flow.map("maximum", length, flow.const(1, length))
    step = flow.div(length, flow.const(count, length))
    ends = [
        flow.add(flow.map(fn, flow.mul(step, flow.const(at, step))), start)
        for fn, at in (("floor", np.arange(count)), ("ceil", np.arange(count) + 1))
    ]
    zero, last = flow.const(0, step), flow.const(size, step)
    first, past = (
        flow.map("minimum", flow.map("maximum", side, zero), last) for side in ends
    )
    empty = flow.map("less_or_equal", past, first)
    places = flow.const(np.arange(size), step)
    wide = [flow.reshape(side, (*flow.shape(side), 1)) for side in (first, past)]
    after = flow.map("less_or_equal", wide[0], places)
    return flow.map("and", after, flow.map("less", places, wide[1])), empty


@flowing
def max_roi_pool(flow: Flow) -> None:
    """Emit the maximum of each cell of each box; 0 for a cell outside the image.

    Shapes  x [N,C,H,W]  boxes [R,5]: image, left, top, right, bottom  y [R,C,PH,PW]
    Source  ONNX Runtime, as ONNX does not define the cells
    """
    x, boxes = flow.arg(0), flow.arg(1)
    count, _ = flow.shape(boxes)
    image = flow.cast(flow.slice(boxes, 1, 0, 1), DType.INT32)
    y = flow.gather(x, flow.reshape(image, (count,)), 0)
    corners = flow.scaled(boxes, float(flow.op.attrs.get("spatial_scale", 1.0)))
    least = flow.const(np.finfo(flow.dtype(x).value).min, x)
    for axis, pooled in zip((2, 3), flow.op.integers("pooled_shape", ()), strict=True):
        low, high = (flow.slice(corners, 1, n, n + 1) for n in (4 - axis, 6 - axis))
        size = flow.shape(x)[axis]
        within, empty = _cells(flow, low, high, pooled, size)
        along, across = [1] * 4, [count, 1, 1, 1]
        along[0], along[axis] = count, size
        across[axis] = pooled
        cells = []
        for n in range(pooled):
            mask = flow.reshape(flow.slice(within, 1, n, n + 1), along)
            held = flow.map("where", mask, y, least)
            cells.append(flow.reduce("max", held, (axis,)))
        y = flow.concat(cells, axis)
        y = flow.map("where", flow.reshape(empty, across), flow.const(0, y), y)
    flow.give(y)


DETECT: dict[str, Handler] = {
    "MaxRoiPool": max_roi_pool,
    "NonMaxSuppression": non_max_suppression,
    "RoiAlign": roi_align,
}
