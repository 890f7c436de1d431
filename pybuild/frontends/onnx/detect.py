"""Boxes in images: NonMaxSuppression, RoiAlign."""

from __future__ import annotations

import numpy as np

from pybuild.dtype import DType
from pybuild.frontends.onnx.bounded import (
    absent_at,
    give_bounded,
    places_of,
    room_for,
)
from pybuild.frontends.onnx.elements import Handler, flowing
from pybuild.frontends.onnx.flow import Flow

_LEAST = float(np.finfo(np.float32).min)


def _corners(flow: Flow, boxes: str) -> str:
    """The less ones first, of any two corners or of centres and sizes."""
    low, high = (flow.slice(boxes, 2, n, n + 2) for n in (0, 2))
    if flow.op.integer("center_point_box", 0):
        half = flow.scaled(high, 0.5)
        low, high = flow.sub(low, half), flow.add(low, half)
    pair = (flow.map(fn, low, high) for fn in ("minimum", "maximum"))
    return flow.concat(list(pair), 2)


@flowing
def non_max_suppression(flow: Flow) -> None:
    """[image, class, box] of the boxes taken, image by image and class by class."""
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


DETECT: dict[str, Handler] = {
    "NonMaxSuppression": non_max_suppression,
    "RoiAlign": roi_align,
}
