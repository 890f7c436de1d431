"""TFLite_Detection_PostProcess: decodes boxes relative to anchors, and selects the best
of overlapping boxes.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from flatbuffers import flexbuffers

from pybuild.dtype import DType
from pybuild.frontends.tflite.draft.builder import Call
from pybuild.frontends.tflite.draft.flow import Flow
from pybuild.frontends.tflite.operators.elements import BYTES, unsupported
from pybuild.frontends.tflite.operators.fixed import whole_scale
from pybuild.frontends.tflite.reader.flat import guarded
from pybuild.ir.graph import Tensor
from pybuild.records import dataclass

NAME = "CUSTOM TFLite_Detection_PostProcess"
_LOWEST = float(np.finfo(np.float32).min)


@dataclass(frozen=True)
class _Options:
    """The options in the file's flexbuffer; scales of y, x, height and width."""

    classes: int
    most: int
    each: int
    per_class: int
    regular: bool
    score: float
    overlap: float
    scales: tuple[float, ...]


def _options(call: Call) -> _Options:
    """Return the options of the operator.

    Errors  BuildError if they are damaged or invalid
    """

    def found() -> _Options:
        fields = flexbuffers.GetRoot(call.flat.custom).AsMap

        def one(name: str, missing: Any = None) -> Any:
            try:
                return fields[name].Value
            except KeyError:
                if missing is None:
                    raise
                return missing

        return _Options(
            int(one("num_classes")),
            int(one("max_detections")),
            int(one("max_classes_per_detection")),
            int(one("detections_per_class", 100)),
            bool(one("use_regular_nms", False)),
            float(one("nms_score_threshold")),
            float(one("nms_iou_threshold")),
            tuple(float(one(f"{side}_scale")) for side in "yxhw"),
        )

    made = guarded(call.where, found)
    counts = (made.classes, made.most, made.each, made.per_class)
    fits = all(0 < n < 1 << 16 for n in counts) and 0 < made.overlap <= 1
    fits &= all(0 < s < math.inf for s in made.scales) and not math.isnan(made.score)
    if not fits:
        raise call.error(f"its options make no sense: {made}")
    if not made.regular and min(made.each, made.classes) > 1:
        what = f"max_classes_per_detection is {made.each}"
        raise call.error(what, "1, or use_regular_nms")
    return made


def detection(call: Call) -> None:
    """Boxes [1, most, 4], their classes and scores [1, most], how many there are [1];
    0 after the last.

    Source  LiteRT and TFLM detection_postprocess
    """
    flow, options = Flow(call), _options(call)
    boxes, scores, anchors = (_real(flow, flow.arg(i)) for i in range(3))
    count = boxes.shape[1] if len(boxes.shape) == 3 else 0
    classes = scores.shape[2] if len(scores.shape) == 3 else 0
    fits = boxes.shape == (1, count, max(4, boxes.shape[-1]))
    fits &= scores.shape == (1, count, classes) and anchors.shape == (count, 4)
    background = classes - options.classes
    if not fits or background not in (0, 1) or len(call.flat.outputs) != 4:
        shapes = ", ".join(str(list(x.shape)) for x in (boxes, scores, anchors))
        raise call.error(f"{shapes} and {options.classes} classes do not fit")
    corners = _corners(flow, flow.reshape(boxes, boxes.shape[1:]), anchors, options)
    scores = flow.part(flow.reshape(scores, (count, classes)), 1, background, classes)
    chosen = _regular if options.regular else _fast
    place, kind, score, valid = chosen(flow, corners, scores, options)
    found = flow.gather(corners, place, 0)
    wide = flow.reshape(valid, (*valid.shape, 1))
    outputs = (
        _ended(flow, wide, found, options.most),
        _ended(flow, valid, flow.cast(kind, DType.FLOAT32), options.most),
        _ended(flow, valid, score, options.most),
        flow.cast(flow.reduce("sum", flow.cast(valid, DType.INT32), (0,)), score.dtype),
    )
    for index, made in enumerate(outputs):
        shape = made.shape if index == 3 else (1, *made.shape)
        flow.give(flow.reshape(made, shape), index)


def _real(flow: Flow, x: Tensor) -> Tensor:
    if x.dtype is DType.FLOAT32:
        return x
    if x.dtype not in BYTES:
        raise unsupported(flow.call, x, (DType.FLOAT32, *BYTES))
    whole_scale(flow, x)
    real = flow.cast(flow.centred(x), DType.FLOAT32)
    return flow.mul(real, flow.const(x.scale, real))


def _corners(flow: Flow, boxes: Tensor, anchors: Tensor, options: _Options) -> Tensor:
    """Return corners y, x, y, x of boxes relative to the anchors' centres."""
    scales = flow.const(options.scales, boxes)
    parts = [flow.part(boxes, 1, 2 * i, 2 * i + 2) for i in (0, 1)]
    middle, size = (
        flow.map("divide", part, flow.part(scales, 0, 2 * i, 2 * i + 2))
        for i, part in enumerate(parts)
    )
    at, span = (flow.part(anchors, 1, 2 * i, 2 * i + 2) for i in (0, 1))
    middle = flow.add(flow.mul(middle, span), at)
    half = flow.mul(flow.map("exp", size), flow.const(0.5, size))
    half = flow.mul(half, span)
    return flow.concat([flow.sub(middle, half), flow.add(middle, half)], 1)


def _taken(
    flow: Flow, corners: Tensor, scores: Tensor, count: int, options: _Options
) -> Tensor:
    """Return the indices of the best boxes of scores [classes, boxes]: [classes,
    count], or -1."""
    attrs = {"count": count, "score": options.score, "overlap": options.overlap}
    return flow.node("suppress", [corners, scores], {**attrs})


Found = tuple[Tensor, Tensor, Tensor, Tensor]  # place, class, score, whether there


def _fast(flow: Flow, corners: Tensor, scores: Tensor, options: _Options) -> Found:
    """Selects boxes by the best class of each."""
    best = flow.reduce("max", scores, (1,), False)
    kinds = flow.node("arg_reduce", [scores], {"fn": "max", "axis": 1, "last": False})
    kinds = flow.reshape(kinds, best.shape)
    count = min(options.most, best.shape[0])
    taken = _taken(flow, corners, flow.reshape(best, (1, *best.shape)), count, options)
    place, valid = _there(flow, flow.reshape(taken, (count,)))
    return place, flow.gather(kinds, place, 0), flow.gather(best, place, 0), valid


def _regular(flow: Flow, corners: Tensor, scores: Tensor, options: _Options) -> Found:
    """Selects boxes for each class by itself, then the best of all."""
    boxes, classes = scores.shape
    each = min(options.per_class, boxes)
    scores = flow.transpose(scores, (1, 0))
    taken = _taken(flow, corners, scores, each, options)
    place, valid = _there(flow, taken)
    starts = np.arange(classes).reshape(-1, 1) * boxes
    flat = flow.reshape(scores, (classes * boxes,))
    score = flow.gather(flat, flow.add(place, flow.const(starts, place)), 0)
    whole = (classes * each,)
    place, valid = flow.reshape(place, whole), flow.reshape(valid, whole)
    score = flow.map("where", valid, flow.reshape(score, whole), flow.const(
        _LOWEST, score))  # fmt: skip
    count = min(options.most, whole[0])
    top = flow.node(
        "top_k", [flow.reshape(score, (1, *whole, 1))], {"k": count, "largest": True}
    )
    top = flow.cast(flow.reshape(top, (count,)), DType.INT32)
    kinds = flow.const(np.arange(whole[0]) // each, DType.INT32)
    place, kind, score, valid = (
        flow.gather(x, top, 0) for x in (place, kinds, score, valid)
    )
    return place, kind, score, valid


def _there(flow: Flow, taken: Tensor) -> tuple[Tensor, Tensor]:
    """Return indices that can be read, and whether they are valid."""
    valid = flow.map("less_or_equal", flow.const(0, taken), taken)
    return flow.held(taken, 0, None), valid


def _ended(flow: Flow, valid: Tensor, x: Tensor, most: int) -> Tensor:
    """Set invalid rows to 0, and pad to `most` rows."""
    x = flow.map("where", valid, x, flow.const(0, x))
    pads = [(0, most - x.shape[0])] + [(0, 0)] * (len(x.shape) - 1)
    return flow.pad(x, pads)
