"""Operators that move, repeat or create elements without computing on them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pybuild.dtype import DType
from pybuild.frontends.onnx.draft.flow import Flow
from pybuild.frontends.onnx.operators.elements import Handler, flowing, onnx_type
from pybuild.frontends.onnx.operators.eltwise import cut_of

# of an axis that is mirrored, repeated or wrapped: each is a number in flash
_MOST_PLACES = 1 << 24


@flowing
def expand(flow: Flow) -> None:
    x = flow.arg(0)
    wanted = flow.ints(1, "shape") or ()
    flow.give(flow.expand(x, np.broadcast_shapes(flow.shape(x), wanted)))


@flowing
def tile(flow: Flow) -> None:
    x = flow.arg(0)
    shape, repeats = flow.shape(x), flow.ints(1, "repeats") or ()
    if len(repeats) != len(shape) or min(repeats, default=0) < 0:
        raise flow.op.invalid(f"repeats {list(repeats)} of {list(shape)}")
    split = [n for d in shape for n in (1, d)]
    wide = [n for r, d in zip(repeats, shape, strict=True) for n in (r, d)]
    made = flow.expand(flow.reshape(x, split), wide)
    flow.give(flow.reshape(made, [r * d for r, d in zip(repeats, shape, strict=True)]))


@flowing
def pad(flow: Flow) -> None:
    """Pads in every mode; a negative padding removes elements."""
    op, x = flow.op, flow.arg(0)
    rank, mode = flow.rank(x), str(op.attrs.get("mode", "constant"))
    given = flow.ints(1, "pads") or ()
    axes = flow.ints(3, "axes") if flow.has(3) else tuple(range(rank))
    if axes is None or len(given) != 2 * len(axes):
        raise op.invalid(f"pads {list(given)} do not fit {rank} axes")
    fill = flow.arg(2) if flow.has(2) else ""
    for n, number in enumerate(axes):
        axis = flow.axis(number, rank)
        before, after = given[n], given[len(axes) + n]
        size = flow.shape(x)[axis]
        if before < 0 or after < 0:
            x = flow.slice(x, axis, max(-before, 0), size - max(-after, 0))
            before, after = max(before, 0), max(after, 0)
            size = flow.shape(x)[axis]
        if not before and not after:
            continue
        if mode == "constant":
            x = _bordered(flow, x, axis, (before, after), fill)
        else:
            if size + before + after > _MOST_PLACES:
                what = f"axis {axis} would have {size + before + after} elements"
                raise op.invalid(what, "constant padding takes no table of them")
            wide: Any = np.pad
            places = wide(np.arange(size), (before, after), mode)
            x = flow.taken(x, places, axis)
    flow.give(x)


def _bordered(flow: Flow, x: str, axis: int, pads: tuple[int, int], fill: str) -> str:
    value = flow.known(fill) if fill else np.asarray(flow.op.attrs.get("value", 0.0))
    exact = value is not None and abs(float(value.reshape(-1)[0])) < 2**24
    if value is not None and (exact or not np.isfinite(value).all()):
        row = [(0, 0)] * flow.rank(x)
        row[axis] = pads
        if flow.dtype(x) is not DType.BOOL:
            return flow.pad(x, row, float(value.reshape(-1)[0]))
    border = fill or flow.const(0, x)
    parts = []
    for count in pads:
        shape = list(flow.shape(x))
        shape[axis] = count
        parts += (
            [flow.expand(flow.reshape(border, (1,) * len(shape)), shape)]
            if count
            else [""]
        )
    found = [p for p in (parts[0], x, parts[1]) if p]
    return flow.concat(found, axis)


@flowing
def split(flow: Flow) -> None:
    """A slice for each output."""
    op, x = flow.op, flow.arg(0)
    shape = flow.shape(x)
    axis = flow.axis(op.integer("axis", 0), len(shape))
    sizes = flow.ints(1, "split")
    if sizes is None:
        count = len(op.outputs)
        each = -(-shape[axis] // count)
        sizes = (*(each,) * (count - 1), shape[axis] - each * (count - 1))
    if len(sizes) != len(op.outputs) or sum(sizes) != shape[axis]:
        raise op.invalid(f"split {list(sizes)} does not fit {list(shape)}")
    start = 0
    for index, size in enumerate(sizes):
        flow.give(flow.slice(x, axis, start, start + size), index)
        start += size


@flowing
def depth_to_space(flow: Flow) -> None:
    op, x = flow.op, flow.arg(0)
    n, c, h, w = flow.shape(x)
    block = op.integer("blocksize", 1)
    depth = c // block**2
    if str(op.attrs.get("mode", "DCR")) == "DCR":
        made = flow.reshape(x, (n, block, block, depth, h, w))
        made = flow.transpose(made, (0, 3, 4, 1, 5, 2))
    else:
        made = flow.reshape(x, (n, depth, block, block, h, w))
        made = flow.transpose(made, (0, 1, 4, 2, 5, 3))
    flow.give(flow.reshape(made, (n, depth, h * block, w * block)))


@flowing
def space_to_depth(flow: Flow) -> None:
    x, block = flow.arg(0), flow.op.integer("blocksize", 1)
    n, c, h, w = flow.shape(x)
    if block < 1 or h % block or w % block:
        raise flow.op.invalid(f"{[h, w]} are not whole blocks of {block} by {block}")
    made = flow.reshape(x, (n, c, h // block, block, w // block, block))
    order = (0, 3, 5, 1, 2, 4)
    if str(flow.op.attrs.get("mode", "DCR")) == "CRD":
        order = (0, 1, 3, 5, 2, 4)
    made = flow.transpose(made, order)
    flow.give(flow.reshape(made, (n, c * block**2, h // block, w // block)))


@flowing
def triangle(flow: Flow) -> None:
    """Trilu: keep one side of a diagonal, and set the rest to 0."""
    x, upper = flow.arg(0), bool(flow.op.integer("upper", 1))
    k = int(flow.value(1, "k").reshape(())) if flow.has(1) else 0
    rows, columns = flow.shape(x)[-2:]
    if not rows or not columns:
        flow.give(x)
        return
    held = int(np.clip(k, -rows - columns, rows + columns))
    mask = np.triu(np.ones((rows, columns), bool), held)
    if not upper:
        mask = np.tril(np.ones((rows, columns), bool), held)
    flow.give(flow.map("where", flow.const(mask), x, flow.const(0, x)))


@flowing
def eye_like(flow: Flow) -> None:
    x, op = flow.arg(0), flow.op
    dtype = (
        onnx_type(op, op.integer("dtype", 0)) if "dtype" in op.attrs else flow.dtype(x)
    )
    rows, columns = flow.shape(x)
    flow.give(flow.const(np.eye(rows, columns, op.integer("k", 0)), dtype))


@flowing
def constant_of_shape(flow: Flow) -> None:
    shape = flow.value(0, "shape").reshape(-1).tolist()
    fill = np.asarray(flow.op.attrs.get("value", np.zeros(1, np.float32))).reshape(-1)
    flow.give(flow.expand(flow.const(fill[0]), shape))


@flowing
def range_(flow: Flow) -> None:
    values = [flow.value(i, n) for i, n in enumerate(("start", "limit", "delta"))]
    start, limit, step = (value.reshape(()).item() for value in values)
    flow.give(flow.const(np.arange(start, limit, step, dtype=values[0].dtype)))


@flowing
def shape_of(flow: Flow) -> None:
    op, shape = flow.op, flow.shape(flow.op.input(0))
    if op.kind == "Size":
        flow.give(flow.const(np.asarray(math.prod(shape), np.int64)))
    else:
        start, end = op.integer("start", 0), op.attrs.get("end")
        flow.give(flow.const(np.asarray(shape[start:end], np.int64)))


@flowing
def reshape(flow: Flow) -> None:
    """Reshape, Flatten, Squeeze, Unsqueeze in cases that the layers do not take."""
    from pybuild.frontends.onnx.operators.shape import target_shape

    op, x = flow.op, flow.arg(0)
    shape = flow.shape(x)
    rank = len(shape)
    match op.kind:
        case "Reshape":
            wanted = target_shape(op, shape, flow.ints(1, "shape") or ())
        case "Flatten":
            at = op.integer("axis", 1)
            at = at + rank if at < 0 else at
            wanted = (math.prod(shape[:at]), math.prod(shape[at:]))
        case "Squeeze":
            axes = flow.ints(1, "axes")
            gone = (
                {flow.axis(a, rank) for a in axes}
                if axes is not None
                else {i for i, d in enumerate(shape) if d == 1}
            )
            wanted = tuple(d for i, d in enumerate(shape) if i not in gone)
        case _:
            given = flow.ints(1, "axes") or ()
            new = {flow.axis(a, rank + len(given)) for a in given}
            rest = iter(shape)
            wanted = tuple(
                1 if i in new else next(rest) for i in range(rank + len(given))
            )
    flow.give(flow.reshape(x, wanted))


@flowing
def transpose(flow: Flow) -> None:
    x = flow.arg(0)
    order = flow.op.integers("perm", tuple(range(flow.rank(x)))[::-1])
    flow.give(flow.transpose(x, order))


@flowing
def concat(flow: Flow) -> None:
    parts = flow.args()
    axis = flow.axis(flow.op.integer("axis", 1), flow.rank(parts[0]))
    flow.give(flow.concat(parts, axis))


@flowing
def slice_(flow: Flow) -> None:
    x = flow.arg(0)
    rank = flow.rank(x)
    starts, ends = flow.ints(1, "starts") or (), flow.ints(2, "ends") or ()
    axes = flow.ints(3, "axes") or tuple(range(len(starts)))
    steps = flow.ints(4, "steps") or (1,) * len(starts)
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        at = flow.axis(axis, rank)
        size = flow.shape(x)[at]
        places = range(size)[cut_of(size, start, end, step)]
        if step > 0:
            x = flow.slice(x, at, places.start, places.stop, step)
        else:
            x = flow.taken(x, list(places), at)
    flow.give(x)


@flowing
def col2im(flow: Flow) -> None:
    """Col2Im: add blocks back at the positions they came from, by a scatter that
    adds."""
    op, x = flow.op, flow.arg(0)
    image = flow.ints(1, "image_shape") or ()
    block = flow.ints(2, "block_shape") or ()
    rank = len(image)
    ones = (1,) * rank
    strides, dilations = op.integers("strides", ones), op.integers("dilations", ones)
    pads = op.integers("pads", (0,) * (2 * rank))
    counts = [
        (image[i] + pads[i] + pads[rank + i] - dilations[i] * (block[i] - 1) - 1)
        // strides[i]
        + 1
        for i in range(rank)
    ]
    grids = np.indices((*block, *counts))
    place = np.zeros((*block, *counts), np.int64)
    inside = np.ones((*block, *counts), bool)
    for i in range(rank):
        at = grids[rank + i] * strides[i] + grids[i] * dilations[i] - pads[i]
        inside &= (at >= 0) & (at < image[i])
        place = place * image[i] + at
    whole = math.prod(image)
    # what falls outside is added to one place more, which is cut away
    place = np.where(inside, place, whole).reshape(-1)
    n = flow.shape(x)[0]
    channels = flow.shape(x)[1] // math.prod(block)
    rows = flow.reshape(x, (n * channels, place.size))
    rows = flow.transpose(rows, (1, 0))
    empty = flow.expand(flow.const(0, x), (whole + 1, n * channels))
    made = flow.emit(
        "scatter", [empty, flow.const(place.astype(np.int32)), rows], {"join": "add"}
    )
    made = flow.transpose(flow.slice(made, 0, 0, whole), (1, 0))
    flow.give(flow.reshape(made, (n, channels, *image)))


MOVES: dict[str, Handler] = {
    "Col2Im": col2im,
    "ConstantOfShape": constant_of_shape,
    "DepthToSpace": depth_to_space,
    "Expand": expand,
    "EyeLike": eye_like,
    "Range": range_,
    "Shape": shape_of,
    "Size": shape_of,
    "SpaceToDepth": space_to_depth,
    "Tile": tile,
    "Trilu": triangle,
}
