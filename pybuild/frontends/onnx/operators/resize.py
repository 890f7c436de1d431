"""Resize, Upsample, GridSample, DeformConv: interpolation.

Where the places are known, each axis is a product with a matrix of a few diagonals;
the nearest is a gather.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from pybuild.dtype import DType
from pybuild.frontends.onnx.draft.flow import Flow
from pybuild.frontends.onnx.operators.elements import Handler, flowing
from pybuild.frontends.onnx.operators.windows import window
from pybuild.params.budget import MOST_RESIZED

_MOST_WEIGHTS = 1 << 25  # of an axis: each result's of each row
Floats = np.ndarray[tuple[int, ...], np.dtype[np.float64]]


def _source(
    mode: str, out: int, size: int, scale: float, roi: tuple[float, float]
) -> Floats:
    """The place in the input of each output, by the transformation of coordinates."""
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
    """How one Resize interpolates."""

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
        """Weights of every input for every output of one axis."""
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
    """Axes, their new sizes, and the scales."""
    op, old = flow.op, len(flow.op.inputs) == 2
    rank = len(shape)
    axes = [flow.axis(a, rank) for a in op.integers("axes", tuple(range(rank)))]
    at = 1 if old else 2
    if not old and flow.has(3):
        return _sized(flow, shape, axes)
    scales = [float(v) for v in flow.value(at, "scales").reshape(-1)]
    sizes = [math.floor(shape[a] * s) for a, s in zip(axes, scales, strict=True)]
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


def weighted(flow: Flow, x: str, axis: int, matrix: Floats) -> str:
    """Multiplies one axis by a matrix."""
    shape = flow.shape(x)
    outer, inner = math.prod(shape[:axis]), math.prod(shape[axis + 1 :])
    flat = flow.reshape(x, (outer, shape[axis], inner))
    made = flow.matmul(flow.const(matrix, x), flat)
    return flow.reshape(made, (*shape[:axis], matrix.shape[0], *shape[axis + 1 :]))


# ---- places that are computed ---------------------------------------------------


def _reflected(flow: Flow, at: str, size: int, corners: bool) -> str:
    """Places outside thrown back from the edges."""
    low, high = (0.0, size - 1.0) if corners else (-0.5, size - 0.5)
    span = high - low
    if span <= 0:
        return flow.mul(at, flow.const(0, at))
    moved = flow.map("abs", flow.plus(at, -low))
    turns = flow.map("floor", flow.scaled(moved, 1 / span))
    rest = flow.sub(moved, flow.scaled(turns, span))
    odd = flow.map(
        "equal", flow.map("modulo", turns, flow.const(2, at)), flow.const(1, at)
    )
    back = flow.sub(flow.const(span, at), rest)
    return flow.plus(flow.map("where", odd, back, rest), low)


@flowing
def grid_sample(flow: Flow) -> None:
    """Computes every output from the positions that a grid gives, in any number of
    axes."""
    op, x, grid = flow.op, flow.arg(0), flow.arg(1)
    mode = str(op.attrs.get("mode", "linear")).removeprefix("bi")
    padding = str(op.attrs.get("padding_mode", "zeros"))
    corners = bool(op.integer("align_corners", 0))
    shape, wanted = flow.shape(x), flow.shape(grid)
    sizes, rank = shape[2:], len(shape) - 2
    n, count = wanted[0], math.prod(wanted[1:-1])
    flat = flow.reshape(grid, (n, count, rank))
    places = []
    for i, size in enumerate(sizes):
        # the grid's first number is of the last axis
        at = flow.reshape(flow.slice(flat, 2, rank - 1 - i, rank - i), (n, count))
        if corners:
            at = flow.scaled(flow.plus(at, 1), (size - 1) / 2)
        else:
            at = flow.scaled(flow.plus(flow.scaled(flow.plus(at, 1), size), -1), 0.5)
        if padding == "border" and mode != "cubic":
            at = _clamped(flow, at, size)
        elif padding == "reflection":
            at = _reflected(flow, at, size, corners) if mode != "cubic" else at
            at = _clamped(flow, at, size) if mode != "cubic" else at
        places.append(at)
    taps = [_axis_taps(flow, at, mode, float(op.attrs.get("cubic_coeff_a", -0.75)))
            for at in places]  # fmt: skip
    total = ""
    planes = flow.reshape(x, (shape[0] * shape[1], math.prod(sizes)))
    for chosen in itertools.product(*taps):
        value = _at_places(
            flow, planes, shape, [p for p, _ in chosen], padding, corners
        )
        for _, weight in chosen:
            if weight:
                value = flow.mul(value, flow.reshape(weight, (n, 1, count)))
        total = flow.add(total, value) if total else value
    flow.give(flow.reshape(total, (*shape[:2], *wanted[1:-1])))


def _clamped(flow: Flow, at: str, size: int) -> str:
    low = flow.map("maximum", at, flow.const(0, at))
    return flow.map("minimum", low, flow.const(size - 1, at))


def _axis_taps(flow: Flow, at: str, mode: str, a: float) -> list[tuple[str, str]]:
    """The whole places around one on an axis, and their weights."""
    if mode == "nearest":
        return [(flow.map("round", at), "")]
    first = flow.map("floor", at)
    rest = flow.sub(at, first)
    one = flow.const(1, at)
    if mode == "linear":
        return [(first, flow.sub(one, rest)), (flow.plus(first, 1), rest)]
    found = []
    for step in range(-1, 3):
        t = flow.map("abs", flow.plus(flow.map("negate", rest), step))
        cubic = (a + 2, -(a + 3), 0.0, 1.0)
        if step in (-1, 2):
            cubic = (a, -5 * a, 8 * a, -4 * a)
        value = flow.plus(flow.scaled(t, cubic[0]), cubic[1])
        for coefficient in cubic[2:]:
            value = flow.plus(flow.mul(value, t), coefficient)
        found.append((flow.plus(first, step), value))
    return found


def _at_places(
    flow: Flow, planes: str, shape: tuple[int, ...], places: list[str], padding: str,
    corners: bool,
) -> str:  # fmt: skip
    """[N, C, count]: each image at its own places; zeros outside, if so padded."""
    sizes, (n, count) = shape[2:], flow.shape(places[0])
    inside, index = "", ""
    for size, at in zip(sizes, places, strict=True):
        if padding == "reflection":
            at = _reflected(flow, at, size, corners)
        held = _clamped(flow, at, size)
        if padding == "zeros":
            good = flow.map("equal", held, at)
            inside = flow.map("and", inside, good) if inside else good
        whole = flow.cast(held, DType.INT32)
        moved = flow.mul(index, flow.const(size, DType.INT32)) if index else ""
        index = flow.add(moved, whole) if moved else whole
    channels = shape[1]
    base = np.arange(n * channels).reshape(n, channels, 1) * math.prod(sizes)
    all_ = flow.add(flow.reshape(index, (n, 1, count)), flow.const(base, DType.INT32))
    flat = flow.reshape(planes, (math.prod(shape),))
    value = flow.gather(flat, all_, 0)
    if inside:
        mask = flow.reshape(inside, (n, 1, count))
        value = flow.map("where", mask, value, flow.const(0, value))
    return value


@flowing
def deform_conv(flow: Flow) -> None:
    """A convolution each of whose taps lies where an offset says, times a mask."""
    op, x, w, offset = flow.op, flow.arg(0), flow.arg(1), flow.arg(2)
    n, channels, *sizes = flow.shape(x)
    made, depth, *kernel = flow.shape(w)
    *_, height, width = flow.shape(offset)
    if len(sizes) != 2:
        raise op.invalid(f"it has {len(sizes)} axes, only 2 are supported")
    strides, dilations, pads = window(flow, sizes, kernel)
    full = [
        (size + sum(pad) - (k - 1) * d - 1) // stride + 1
        for size, pad, k, d, stride in zip(
            sizes, pads, kernel, dilations, strides, strict=True
        )
    ]
    if full != [height, width]:
        what = f"offsets for {[height, width]} windows, where {full} fit"
        raise op.invalid(what)
    groups, parts = op.integer("group", 1), op.integer("offset_group", 1)
    taps, each = math.prod(kernel), channels // parts
    moved = flow.reshape(offset, (n, parts, taps, 2, height, width))
    plane = height * width
    mask = flow.reshape(flow.arg(4), (n, parts, taps, plane)) if flow.has(4) else ""
    columns = []
    for part in range(parts):
        own = flow.slice(moved, 1, part, part + 1)
        places = [
            flow.add(
                flow.reshape(flow.slice(own, 3, axis, axis + 1), (n, taps, plane)),
                flow.const(_usual_places(flow, kernel, (height, width), axis), x),
            )
            for axis in (0, 1)
        ]
        image = flow.slice(x, 1, part * each, (part + 1) * each)
        value = _between(
            flow, image, [flow.reshape(p, (n, taps * plane)) for p in places]
        )
        value = flow.reshape(value, (n, each, taps, plane))
        if mask:
            value = flow.mul(value, flow.slice(mask, 1, part, part + 1))
        columns.append(value)
    whole = flow.concat(columns, 1)
    rows = []
    for group in range(groups):
        own = flow.slice(whole, 1, group * depth, (group + 1) * depth)
        own = flow.reshape(own, (n, depth * taps, plane))
        of = made // groups
        weights = flow.slice(w, 0, group * of, (group + 1) * of)
        rows.append(flow.matmul(flow.reshape(weights, (of, depth * taps)), own))
    y = flow.reshape(flow.concat(rows, 1), (n, made, height, width))
    if flow.has(3):
        y = flow.add(y, flow.reshape(flow.arg(3), (made, 1, 1)))
    flow.give(y)


def _usual_places(
    flow: Flow, kernel: Sequence[int], outputs: tuple[int, int], axis: int
) -> Floats:
    """[taps, outputs]: the row or column of each tap without an offset."""
    ones = (1, 1)
    step, wide = (flow.op.integers(k, ones)[axis] for k in ("strides", "dilations"))
    begin = flow.op.integers("pads", (0, 0, 0, 0))[axis]
    tap = np.indices(tuple(kernel))[axis].reshape(-1, 1)
    output = np.indices(outputs)[axis].reshape(1, -1)
    return np.asarray(output * step - begin + tap * wide, np.float64)


def _between(flow: Flow, x: str, places: list[str]) -> str:
    """[N, C, count]: each image between its pixels, 0 outside."""
    shape = flow.shape(x)
    n, count = flow.shape(places[0])
    planes = flow.reshape(x, (shape[0] * shape[1], math.prod(shape[2:])))
    total = ""
    both = (_axis_taps(flow, at, "linear", 0.0) for at in places)
    for chosen in itertools.product(*both):
        found = [p for p, _ in chosen]
        value = _at_places(flow, planes, shape, found, "zeros", False)
        for _, weight in chosen:
            value = flow.mul(value, flow.reshape(weight, (n, 1, count)))
        total = flow.add(total, value) if total else value
    return total


RESIZE: dict[str, Handler] = {
    "DeformConv": deform_conv,
    "GridSample": grid_sample,
    "Resize": resize,
    "Upsample": resize,
}
