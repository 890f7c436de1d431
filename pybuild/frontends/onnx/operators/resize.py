"""Resize and Upsample: interpolation at known positions. Bilinear resizing of images
becomes resize_bilinear, nearest a gather; otherwise each axis is multiplied by a banded
matrix.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from pybuild.dtype import DType
from pybuild.frontends.onnx.draft.flow import Flow
from pybuild.frontends.onnx.operators.elements import Handler, flowing
from pybuild.params.budget import MOST_RESIZED

_MOST_WEIGHTS = 1 << 25  # of an axis: each result's of each row
Floats = np.ndarray[tuple[int, ...], np.dtype[np.float64]]


def _source(
    mode: str, out: int, size: int, scale: float, roi: tuple[float, float]
) -> Floats:
    """Return the input position of each output, by the coordinate transformation."""
    at = np.arange(out, dtype=np.float64)
    match mode:
        case "asymmetric":
            return at / scale
        case "align_corners":
            whole = scale * size
            return at * (size - 1) / (whole - 1) if whole > 1 else at * 0
        case "pytorch_half_pixel":
            return (at + 0.5) / scale - 0.5 if out > 1 else at * 0
        case "half_pixel_symmetric":
            adjusted = out / (scale * size)
            return size / 2 * (1 - adjusted) + (at + 0.5) / scale - 0.5
        case "tf_crop_and_resize":
            start, end = roi
            if out > 1:
                return start * (size - 1) + at * (end - start) * (size - 1) / (out - 1)
            return at * 0 + 0.5 * (start + end) * (size - 1)
        case "tf_half_pixel_for_nn":
            return (at + 0.5) / scale
    return (at + 0.5) / scale - 0.5


def _nearest(mode: str, at: Floats, scale: float) -> Floats:
    if mode == "simple":  # before opset 11
        mode = "ceil" if scale < 1 else "floor"
    match mode:
        case "round_prefer_ceil":
            return np.floor(at + 0.5)
        case "floor":
            return np.floor(at)
        case "ceil":
            return np.ceil(at)
    return np.ceil(at - 0.5)


def _kernel(mode: str, x: Floats, a: float) -> Floats:
    x = np.abs(x)
    if mode == "linear":
        return np.maximum(1 - x, 0)
    near = (a + 2) * x**3 - (a + 3) * x**2 + 1
    far = a * x**3 - 5 * a * x**2 + 8 * a * x - 4 * a
    return np.where(x <= 1, near, np.where(x < 2, far, 0))


class _Rule:
    """The interpolation settings of a Resize node."""

    def __init__(self, flow: Flow) -> None:
        attrs, op = flow.op.attrs, flow.op
        self.mode = str(attrs.get("mode", "nearest"))
        old = op.kind == "Upsample" or op.opset < 11
        usual = "asymmetric" if old else "half_pixel"
        self.transform = str(attrs.get("coordinate_transformation_mode", usual))
        usual = "simple" if old else "round_prefer_floor"
        self.nearest = str(attrs.get("nearest_mode", usual))
        self.a = float(attrs.get("cubic_coeff_a", -0.75))
        self.exclude = bool(op.integer("exclude_outside", 0))
        self.outside = float(attrs.get("extrapolation_value", 0.0))
        self.antialias = bool(op.integer("antialias", 0))

    def matrix(self, at: Floats, size: int, scale: float) -> Floats:
        """Return the interpolation weights of one axis: [outputs, inputs]."""
        reach = 2 if self.mode == "cubic" else 1
        spread = max(1.0, 1 / scale) if self.antialias else 1.0
        taps = math.ceil(reach * spread) + 1
        made = np.zeros((len(at), size))
        for row, place in enumerate(at):
            first = math.floor(place) - taps
            index = np.arange(first, first + 2 * taps + 2)
            weights = _kernel(self.mode, (index - place) / spread, self.a)
            if self.exclude:
                weights = np.where((index >= 0) & (index < size), weights, 0)
            if self.antialias or self.exclude:
                weights = weights / weights.sum()
            np.add.at(made[row], np.clip(index, 0, size - 1), weights)
        return made


def _scales(
    flow: Flow, shape: tuple[int, ...]
) -> tuple[list[int], list[int], list[float]]:
    """Return the axes, their new sizes, and the scales."""
    op, old = flow.op, len(flow.op.inputs) == 2
    rank = len(shape)
    axes = [flow.axis(a, rank) for a in op.integers("axes", tuple(range(rank)))]
    at = 1 if old else 2
    if not old and flow.has(3):
        return _sized(flow, shape, axes)
    scales = [float(v) for v in flow.value(at, "scales").reshape(-1)]
    # in float32, as ONNX Runtime has it: 6 rows by 2.3333333 are 14
    sizes = [
        math.floor(np.float32(shape[a]) * np.float32(s))
        for a, s in zip(axes, scales, strict=True)
    ]
    return axes, sizes, scales


def _sized(
    flow: Flow, shape: tuple[int, ...], axes: list[int]
) -> tuple[list[int], list[int], list[float]]:
    sizes = [int(v) for v in flow.value(3, "sizes").reshape(-1)]
    policy = str(flow.op.attrs.get("keep_aspect_ratio_policy", "stretch"))
    scales = [s / shape[a] for a, s in zip(axes, sizes, strict=True)]
    if policy != "stretch":
        scale = min(scales) if policy == "not_larger" else max(scales)
        scales = [scale] * len(axes)
        sizes = [math.floor(scale * shape[a] + 0.5) for a in axes]
    return axes, sizes, scales


@flowing
def resize(flow: Flow) -> None:
    x, rule = flow.arg(0), _Rule(flow)
    dtype, shape = flow.dtype(x), flow.shape(x)
    axes, sizes, scales = _scales(flow, shape)
    is_nearest = rule.mode == "nearest"
    if dtype is DType.FLOAT32 and len(axes) == len({*axes}):
        to = dict(zip(axes, zip(sizes, scales, strict=True), strict=True))
        made = _bilinear(flow, x, rule, to)
        if made:
            flow.give(made)
            return
    if any(
        out > MOST_RESIZED or (not is_nearest and out * shape[axis] > _MOST_WEIGHTS)
        for axis, out in zip(axes, sizes, strict=True)
    ):
        raise flow.op.invalid(f"{list(shape)} to {sizes} is too large")
    roi = np.zeros(2 * len(axes))
    cropped = rule.transform == "tf_crop_and_resize"
    if cropped:
        roi = flow.value(1, "roi").astype(np.float64).reshape(-1)
    if rule.mode != "nearest" and not dtype.is_float:
        x = flow.cast(x, DType.FLOAT32)
    inside: Any = np.ones((1,) * len(shape), bool)
    for n, (axis, out, scale) in enumerate(zip(axes, sizes, scales, strict=True)):
        size = shape[axis]
        ends = (float(roi[n]), float(roi[len(axes) + n]))
        if out == size and scale == 1 and not cropped:
            continue
        at = _source(rule.transform, out, size, scale, ends)
        if cropped:
            row = [1] * len(shape)
            row[axis] = out
            inside = inside & ((at >= 0) & (at <= size - 1)).reshape(row)
        if is_nearest:
            place = np.clip(_nearest(rule.nearest, at, scale), 0, size - 1).astype(
                np.int64
            )
            x = flow.taken(x, place, axis)
        else:
            x = weighted(flow, x, axis, rule.matrix(at, size, scale))
    if not inside.all():
        x = flow.map("where", flow.const(inside), x, flow.const(rule.outside, x))
    if flow.dtype(x) is not dtype:
        x = flow.map("round", x)
    flow.give(flow.cast(x, dtype))


# transformations of coordinates that resize_bilinear has: (corners, half)
_PLACED = {
    "half_pixel": (False, True),
    "pytorch_half_pixel": (False, True),
    "align_corners": (True, False),
    "asymmetric": (False, False),
}


def _bilinear(
    flow: Flow, x: str, rule: _Rule, to: Mapping[int, tuple[int, float]]
) -> str:
    """Emit resize_bilinear; return "" if this is another kind of interpolation.

    to  axis -> (new size, scale)
    """
    shape = flow.shape(x)
    plain = rule.mode == "linear" and not (rule.antialias or rule.exclude)
    if not plain or len(shape) != 4 or rule.transform not in _PLACED:
        return ""
    moved = {axis: each for axis, each in to.items() if each != (shape[axis], 1)}
    if not moved or max(*shape, *(size for size, _ in moved.values())) > MOST_RESIZED:
        return ""
    for axis, (size, scale) in moved.items():
        one = size == 1 and rule.transform == "pytorch_half_pixel"
        if one or abs(scale * shape[axis] - size) > 1e-6 * size:
            return ""
    last = moved.keys() <= {1, 2}
    if not last and not moved.keys() <= {2, 3}:
        return ""
    spatial = (1, 2) if last else (2, 3)
    sizes = tuple(moved[axis][0] if axis in moved else shape[axis] for axis in spatial)
    corners, half = _PLACED[rule.transform]
    rows = x if last else flow.transpose(x, (0, 2, 3, 1))
    attrs = {"sizes": sizes, "corners": corners, "half": half}
    made = flow.emit("resize_bilinear", [rows], attrs)
    return made if last else flow.transpose(made, (0, 3, 1, 2))


def weighted(flow: Flow, x: str, axis: int, matrix: Floats) -> str:
    """Multiply one axis by a matrix."""
    shape = flow.shape(x)
    outer, inner = math.prod(shape[:axis]), math.prod(shape[axis + 1 :])
    flat = flow.reshape(x, (outer, shape[axis], inner))
    made = flow.matmul(flow.const(matrix, x), flat)
    return flow.reshape(made, (*shape[:axis], matrix.shape[0], *shape[axis + 1 :]))


RESIZE: dict[str, Handler] = {"Resize": resize, "Upsample": resize}
