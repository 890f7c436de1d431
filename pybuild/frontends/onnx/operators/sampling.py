"""GridSample and DeformConv: interpolation at computed positions."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np

from pybuild.dtype import DType
from pybuild.frontends.onnx.draft.flow import Flow
from pybuild.frontends.onnx.operators.elements import Handler, flowing
from pybuild.frontends.onnx.operators.windows import window

Floats = np.ndarray[tuple[int, ...], np.dtype[np.float64]]


def _reflected(flow: Flow, at: str, size: int, corners: bool) -> str:
    """Reflect positions outside the image at its edges."""
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
    """Return the integer positions around a position on an axis, with their weights."""
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
    """Return the values of each image at integer positions, [N, C, count]; 0 outside if
    so padded."""
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
    """Convolve with each tap moved by an offset, and multiplied by a mask if given."""
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
    """Return the row or column of each tap without its offset: [taps, outputs]."""
    ones = (1, 1)
    step, wide = (flow.op.integers(k, ones)[axis] for k in ("strides", "dilations"))
    begin = flow.op.integers("pads", (0, 0, 0, 0))[axis]
    tap = np.indices(tuple(kernel))[axis].reshape(-1, 1)
    output = np.indices(outputs)[axis].reshape(1, -1)
    return np.asarray(output * step - begin + tap * wide, np.float64)


def _between(flow: Flow, x: str, places: list[str]) -> str:
    """Interpolate each image bilinearly, 0 outside: [N, C, count]."""
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


SAMPLING: dict[str, Handler] = {"DeformConv": deform_conv, "GridSample": grid_sample}
