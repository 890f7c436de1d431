"""Convolutions, transposed convolutions and pools, in any type and number of axes."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from pybuild.dtype import DType
from pybuild.frontends.onnx.draft.flow import Flow
from pybuild.frontends.onnx.operators.elements import Handler, flowing, widening
from pybuild.frontends.onnx.operators.spatial import transposed_window

Pads = list[tuple[int, int]]


def window(
    flow: Flow, sizes: Sequence[int], kernel: Sequence[int]
) -> tuple[tuple[int, ...], tuple[int, ...], Pads]:
    """Return strides, dilations and pads of a node."""
    op, rank = flow.op, len(sizes)
    ones = (1,) * rank
    strides, dilations = op.integers("strides", ones), op.integers("dilations", ones)
    flat = op.integers("pads", (0,) * (2 * rank))
    reach = [(k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True)]
    pads = [(flat[i], flat[rank + i]) for i in range(rank)]
    auto = str(op.attrs.get("auto_pad", "NOTSET"))
    if auto == "VALID":
        pads = [(0, 0)] * rank
    if auto.startswith("SAME"):
        pads = []
        for size, stride, span in zip(sizes, strides, reach, strict=True):
            total = max((math.ceil(size / stride) - 1) * stride + span - size, 0)
            less, more = total // 2, total - total // 2
            pads.append((less, more) if auto == "SAME_UPPER" else (more, less))
    return strides, dilations, pads


Given = tuple[Sequence[int], Sequence[int], Pads]


def convolved(flow: Flow, x: str, w: str, given: Given, groups: int) -> str:
    strides, dilations, pads = given
    attrs = {
        "strides": tuple(strides), "dilations": tuple(dilations),
        "pads": tuple(map(tuple, pads)), "groups": groups,
    }  # fmt: skip
    return flow.emit("conv", [x, w], attrs)


def _biased(flow: Flow, made: str, index: int) -> str:
    if not flow.has(index):
        return made
    bias = flow.arg(index)
    row = (flow.shape(bias)[0], *[1] * (flow.rank(made) - 2))
    return flow.add(made, flow.reshape(bias, row))


@flowing
def conv(flow: Flow) -> None:
    x, w = flow.arg(0), flow.arg(1)
    given = window(flow, flow.shape(x)[2:], flow.shape(w)[2:])
    made = convolved(flow, x, w, given, flow.op.integer("group", 1))
    flow.give(_biased(flow, made, 2))


@flowing
def conv_transpose(flow: Flow) -> None:
    """Convolve the input, with zeros inserted between elements, with reversed
    filters."""
    op, x, w = flow.op, flow.arg(0), flow.arg(1)
    rank, groups = flow.rank(x) - 2, op.integer("group", 1)
    kernel = flow.shape(w)[2:]
    given = transposed_window(op, flow.shape(x)[2:], kernel)
    depth, outs = flow.shape(w)[:2]
    w = flow.reshape(w, (groups, depth // groups, outs, *kernel))
    w = flow.transpose(w, (0, 2, 1, *range(3, 3 + rank)))
    w = flow.reshape(w, (groups * outs, depth // groups, *kernel))
    wide = []
    for i, (before, after) in enumerate(given.around):
        w = flow.flip(w, 2 + i)
        x = _stuffed(flow, x, 2 + i, given.strides[i])
        end = max(flow.shape(x)[2 + i] + min(after, 0), 0)
        x = flow.slice(x, 2 + i, max(-before, 0), end)
        wide.append((max(before, 0), max(after, 0)))
    made = convolved(flow, x, w, ((1,) * rank, given.dilations, wide), groups)
    flow.give(_biased(flow, made, 2))


def _stuffed(flow: Flow, x: str, axis: int, stride: int) -> str:
    """Insert zeros between the elements of an axis."""
    if stride == 1:
        return x
    shape = flow.shape(x)
    wide = flow.reshape(x, (*shape[: axis + 1], 1, *shape[axis + 1 :]))
    pads = [(0, 0)] * (len(shape) + 1)
    pads[axis + 1] = (0, stride - 1)
    wide = flow.pad(wide, pads)
    count = shape[axis] * stride
    flat = flow.reshape(wide, (*shape[:axis], count, *shape[axis + 1 :]))
    return flow.slice(flat, axis, 0, count - stride + 1)


def unfolded(
    flow: Flow, x: str, kernel: Sequence[int], fill: float
) -> tuple[str, list[int], Pads]:
    """Every window of an input [N, C, ...] as [N, C, outputs..., taps], with the
    padding that was needed and the number of outputs on each axis."""
    op, sizes = flow.op, flow.shape(x)[2:]
    strides, dilations, pads = window(flow, sizes, kernel)
    rank, outs = len(sizes), []
    wide: Pads = []
    for i in range(rank):
        reach = (kernel[i] - 1) * dilations[i] + 1
        before, after = pads[i]
        room = sizes[i] + before + after - reach
        if room < 0:
            padded = [s + sum(pad) for s, pad in zip(sizes, pads, strict=True)]
            what = f"the window {list(kernel)}"
            if max(dilations) > 1:
                what += f" with dilations {list(dilations)}"
            what += f" is larger than its padded input {padded}"
            raise op.invalid(what, "a larger input, a smaller window, or padding")
        count = room // strides[i] + 1
        if op.integer("ceil_mode", 0):
            count = -(-room // strides[i]) + 1
            count -= (count - 1) * strides[i] >= sizes[i] + before
        outs.append(count)
        need = (count - 1) * strides[i] + reach - sizes[i] - before
        wide.append((before, max(need, 0)))
    x = flow.pad(x, [(0, 0), (0, 0), *wide], fill)
    for i in range(rank):
        places = np.arange(outs[i])[:, None] * strides[i]
        places = places + np.arange(kernel[i])[None] * dilations[i]
        x = flow.taken(x, places, 2 + 2 * i)
    order = [0, 1, *range(2, 2 + 2 * rank, 2), *range(3, 3 + 2 * rank, 2)]
    x = flow.transpose(x, order)
    n, c = flow.shape(x)[:2]
    return flow.reshape(x, (n, c, *outs, math.prod(kernel))), outs, wide


@flowing
def max_pool(flow: Flow) -> None:
    """A maximum pool with dilations, of any rank, and with the indices of the
    greatest."""
    op, x = flow.op, flow.arg(0)
    kernel, shape = op.integers("kernel_shape", ()), flow.shape(x)
    dtype = flow.dtype(x)
    least = float("-inf") if dtype.is_float else float(dtype.low)
    seen, outs, pads = unfolded(flow, x, kernel, least)
    axis = 2 + len(outs)
    flow.give(flow.reduce("max", seen, [axis], False))
    if len(op.outputs) > 1 and op.outputs[1]:
        attrs = {"fn": "max", "axis": axis, "last": False}
        best = flow.emit("arg_reduce", [seen], attrs)
        places = _window_places(flow, shape, kernel, outs, pads)
        flat = flow.const(places.reshape(-1))
        base = np.arange(math.prod(outs)).reshape((1, 1, *outs, 1)) * math.prod(kernel)
        at = flow.gather(flat, flow.add(best, flow.const(base, DType.INT64)), 0)
        planes = math.prod(shape[2:])
        first = np.arange(shape[0] * shape[1]).reshape(shape[0], shape[1], *[1] * axis)
        first = first.reshape(shape[0], shape[1], *[1] * (len(outs) + 1)) * planes
        at = flow.add(at, flow.const(first, DType.INT64))
        flow.give(flow.reshape(at, (*shape[:2], *outs)), 1)


def _window_places(
    flow: Flow,
    shape: Sequence[int],
    kernel: Sequence[int],
    outs: Sequence[int],
    pads: Pads,
) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    """The index in one plane of every tap of every window."""
    strides, dilations, _ = window(flow, shape[2:], kernel)
    rank = len(outs)
    grids = np.indices((*outs, *kernel))
    place = np.zeros((*outs, *kernel), np.int64)
    order = range(rank)
    if flow.op.integer("storage_order", 0):
        order = range(rank - 1, -1, -1)
    for i in order:
        at = grids[i] * strides[i] + grids[rank + i] * dilations[i] - pads[i][0]
        place = place * shape[2 + i] + np.clip(at, 0, shape[2 + i] - 1)
    return place.reshape(math.prod(outs), math.prod(kernel))


@widening
def average_pool(flow: Flow) -> None:
    op, x = flow.op, flow.arg(0)
    kernel = op.integers("kernel_shape", ())
    seen, outs, _ = unfolded(flow, x, kernel, 0.0)
    total = flow.reduce("sum", seen, [2 + len(outs)], False)
    flow.give(
        flow.div(total, flow.const(_counts(flow, flow.shape(x), kernel, outs), x))
    )


def _counts(
    flow: Flow, shape: Sequence[int], kernel: Sequence[int], outs: Sequence[int]
) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    """Return the number of elements that count in each window."""
    strides, dilations, pads = window(flow, shape[2:], kernel)
    total = np.ones((1,) * len(outs))
    include = bool(flow.op.integer("count_include_pad", 0))
    for i, count in enumerate(outs):
        at = np.arange(count)[:, None] * strides[i] - pads[i][0]
        at = at + np.arange(kernel[i])[None] * dilations[i]
        low, high = (
            (-pads[i][0], shape[2 + i] + pads[i][1]) if include else (0, shape[2 + i])
        )
        row = [1] * len(outs)
        row[i] = count
        total = total * ((at >= low) & (at < high)).sum(1).reshape(row)
    return total


@widening
def lp_pool(flow: Flow) -> None:
    op, x = flow.op, flow.arg(0)
    p = float(op.integer("p", 2))
    seen, outs, _ = unfolded(flow, x, op.integers("kernel_shape", ()), 0.0)
    powers = flow.map("power", flow.map("abs", seen), flow.const(p, x))
    total = flow.reduce("sum", powers, [2 + len(outs)], False)
    flow.give(flow.map("power", total, flow.const(1 / p, x)))


@widening
def global_pool(flow: Flow) -> None:
    x = flow.arg(0)
    fn = "max" if flow.op.kind == "GlobalMaxPool" else "mean"
    flow.give(flow.reduce(fn, x, range(2, flow.rank(x))))


@flowing
def max_unpool(flow: Flow) -> None:
    """Puts each value at its index in the flat output, 0 elsewhere."""
    op, x, places = flow.op, flow.arg(0), flow.arg(1)
    shape, kernel = flow.shape(x), op.integers("kernel_shape", ())
    rank = len(kernel)
    strides = op.integers("strides", (1,) * rank)
    pads = op.integers("pads", (0,) * (2 * rank))
    natural = [
        (shape[2 + i] - 1) * strides[i] + kernel[i] - pads[i] - pads[rank + i]
        for i in range(rank)
    ]
    if min(natural) < 1:
        what = f"nothing is left of {list(shape)}: windows of {list(kernel)}, "
        raise op.invalid(what + f"pads {list(pads)}")
    own = (*shape[:2], *natural)
    wanted = flow.ints(2, "output_shape") or own
    count = math.prod(shape)
    empty = flow.expand(flow.const(0, x), (math.prod(wanted), 1))
    flat = flow.reshape(places, (count,))
    if tuple(wanted) != own:
        flat = _moved_places(flow, flat, own, wanted)
    made = flow.emit(
        "scatter", [empty, flat, flow.reshape(x, (count, 1))], {"join": "none"}
    )
    flow.give(flow.reshape(made, wanted))


def _moved_places(
    flow: Flow, flat: str, own: Sequence[int], wanted: Sequence[int]
) -> str:
    """Convert indices in a tensor of one shape to indices in the corner of a larger
    one."""
    total, left = "", flat
    step = math.prod(wanted)
    inner = math.prod(own)
    for have, want in zip(own, wanted, strict=True):
        inner, step = inner // have, step // want
        size = flow.const(inner, DType.INT64)
        index = flow.div(left, size)
        left = flow.sub(left, flow.mul(index, size))
        moved = flow.mul(index, flow.const(step, DType.INT64))
        total = flow.add(total, moved) if total else moved
    return total


WINDOWS: dict[str, Handler] = {
    "LpPool": lp_pool,
    "MaxUnpool": max_unpool,
}
