"""TensorFlow Lite operators that move, repeat, select or create elements, in every
type.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import numpy as np

from pybuild.dtype import DType
from pybuild.frontends.tflite.draft.builder import MOST_BYTES, Call
from pybuild.frontends.tflite.draft.flow import Flow
from pybuild.frontends.tflite.operators.shapes import nothing
from pybuild.ir.graph import Tensor

Handler = Callable[[Call], None]


def _moving(call: Call) -> tuple[Flow, Tensor]:
    flow = Flow(call)
    return flow, flow.arg(0)


def _blocks(call: Call) -> tuple[tuple[int, ...], tuple[tuple[int, int], ...]]:
    """Return the block sizes, and the pads or crops of each axis."""
    sizes, flat = call.integers(1), call.integers(2)
    if min(sizes, default=0) < 1 or len(flat) != 2 * len(sizes):
        raise call.error(f"blocks {list(sizes)} and margins {list(flat)} do not fit")
    pairs = tuple(zip(flat[::2], flat[1::2], strict=True))
    return sizes, pairs


def batch_to_space(call: Call) -> None:
    """Place the batch's blocks side by side, then crop."""
    flow, x = _moving(call)
    sizes, crops = _blocks(call)
    rank, n = len(x.shape), len(sizes)
    if n >= rank or x.shape[0] % math.prod(sizes):
        raise call.error(f"blocks {list(sizes)} of {list(x.shape)}")
    batch, rest = x.shape[0], x.shape[1:]
    made = flow.reshape(x, (*sizes, batch // math.prod(sizes), *rest))
    order = [n]
    for i in range(n):
        order += [n + 1 + i, i]
    made = flow.transpose(made, (*order, *range(2 * n + 1, rank + n)))
    wide = [rest[i] * sizes[i] for i in range(n)]
    made = flow.reshape(made, (batch // math.prod(sizes), *wide, *rest[n:]))
    for axis, (before, after) in enumerate(crops, 1):
        made = flow.part(made, axis, before, made.shape[axis] - after)
    flow.give(made)


def space_to_batch(call: Call) -> None:
    """Pad with zero points (in TFLM with 0), then move each block's positions into the
    batch."""
    flow = Flow(call)
    x = flow.arg(0)
    sizes, pads = _blocks(call)
    rank, n = len(x.shape), len(sizes)
    if n >= rank:
        raise call.error(f"blocks {list(sizes)} of {list(x.shape)}")
    full = ((0, 0), *pads, *((0, 0) for _ in range(rank - n - 1)))
    made = flow.pad(x, full)
    twin = call.builder.has_twin(call.index(0))
    if made is not x and x.dtype is DType.INT8 and x.zero_point and not twin:
        bare = flow.pad(flow.plain(x), full)
        made = flow.either(flow.plain(made), bare, "tflm")
    shape = made.shape
    if any(shape[i + 1] % sizes[i] for i in range(n)):
        raise call.error(f"blocks {list(sizes)} of {list(shape)}")
    split = [d for i in range(n) for d in (shape[i + 1] // sizes[i], sizes[i])]
    made = flow.reshape(made, (shape[0], *split, *shape[n + 1 :]))
    inner, outer = [2 * i + 2 for i in range(n)], [2 * i + 1 for i in range(n)]
    last = range(2 * n + 1, rank + n)
    made = flow.transpose(made, (*inner, 0, *outer, *last))
    spatial = [shape[i + 1] // sizes[i] for i in range(n)]
    count = shape[0] * math.prod(sizes)
    flow.give(flow.reshape(made, (count, *spatial, *shape[n + 1 :])))


def depth_to_space(call: Call) -> None:
    flow, x = _moving(call)
    size = call.option("BlockSize")
    if len(x.shape) != 4 or size < 1 or x.shape[3] % (size * size):
        raise call.error(f"blocks of {size} in {list(x.shape)}")
    n, h, w, c = x.shape
    made = flow.reshape(x, (n, h, w, size, size, c // (size * size)))
    made = flow.transpose(made, (0, 1, 3, 2, 4, 5))
    flow.give(flow.reshape(made, (n, h * size, w * size, c // (size * size))))


def space_to_depth(call: Call) -> None:
    flow, x = _moving(call)
    size = call.option("BlockSize")
    if len(x.shape) != 4 or size < 1 or x.shape[1] % size or x.shape[2] % size:
        raise call.error(f"blocks of {size} in {list(x.shape)}")
    n, h, w, c = x.shape
    made = flow.reshape(x, (n, h // size, size, w // size, size, c))
    made = flow.transpose(made, (0, 1, 3, 2, 4, 5))
    flow.give(flow.reshape(made, (n, h // size, w // size, size * size * c)))


def broadcast_to(call: Call) -> None:
    flow, x = _moving(call)
    shape = call.integers(1)
    try:
        fits = np.broadcast_shapes(x.shape, shape) == shape
    except ValueError:
        fits = False
    if not fits:
        raise call.error(f"{list(x.shape)} does not broadcast to {list(shape)}")
    flow.give(flow.expand(x, shape))


def broadcast_args(call: Call) -> None:
    a, b = call.integers(0), call.integers(1)
    try:
        made = np.broadcast_shapes(a, b)
    except ValueError:
        raise call.error(f"{list(a)} and {list(b)} do not broadcast") from None
    flow = Flow(call)
    flow.give(flow.const(made, flow.wanted()))


def shape_(call: Call) -> None:
    flow = Flow(call)
    flow.give(flow.const(flow.arg(0).shape, flow.wanted()))


def rank(call: Call) -> None:
    flow = Flow(call)
    flow.give(flow.const(len(flow.arg(0).shape), DType.INT32))


def zeros_like(call: Call) -> None:
    """Make zeros as the file has them: in the twin of a uint8 tensor they are -128."""
    flow, x = _moving(call)
    zero = -128 if call.builder.has_twin(call.index(0)) else 0
    flow.give(flow.const(np.full(x.shape, zero), x))


def fill(call: Call) -> None:
    flow, dims = Flow(call), call.integers(0)
    value = flow.arg(1)
    if value.size != 1 or any(d < 1 for d in dims):
        raise call.error(f"{list(value.shape)} does not fill {list(dims)}")
    flow.give(flow.expand(flow.reshape(value, ()), dims))


def range_(call: Call) -> None:
    """Make a constant of a RANGE with known limits."""
    flow = Flow(call)
    start, limit, delta = (call.constant(i).reshape(-1)[0].item() for i in range(3))
    count = (limit - start) / delta if delta else 0
    if not 0 < count < MOST_BYTES // 8:
        few = "too many" if count > 0 else "no"
        raise call.error(f"from {start} to {limit} by {delta} has {few} values")
    flow.give(flow.const(np.arange(start, limit, delta), flow.wanted()))


def tile(call: Call) -> None:
    flow, x = _moving(call)
    counts = call.integers(1)
    if len(counts) != len(x.shape) or min(counts, default=0) < 0:
        raise call.error(f"{list(counts)} times {list(x.shape)}")
    if 0 in counts:
        nothing(call, tuple(c * d for c, d in zip(counts, x.shape, strict=True)))
        return
    pairs = [d for pair in zip((1,) * len(counts), x.shape, strict=True) for d in pair]
    wide = [d for pair in zip(counts, x.shape, strict=True) for d in pair]
    made = flow.expand(flow.reshape(x, pairs), wide)
    flow.give(flow.reshape(made, [c * d for c, d in zip(counts, x.shape, strict=True)]))


def gather(call: Call) -> None:
    """Gather rows along an axis; leading axes may be batch axes."""
    flow, x = _moving(call)
    indices = flow.arg(1)
    rank, batch = len(x.shape), call.option("BatchDims")
    batch += len(indices.shape) if batch < 0 else 0
    axis = flow.axis_of(call.option("Axis"), x)
    whole = (DType.INT32, DType.INT64)
    if indices.dtype not in whole:
        indices = flow.cast(indices, DType.INT32)
    if batch == 0:
        flow.give(flow.gather(x, indices, axis))
        return
    if not 0 <= batch <= axis or x.shape[:batch] != indices.shape[:batch]:
        what = f"{batch} axes of a batch of {list(x.shape)} and {list(indices.shape)}"
        raise call.error(what)
    # the rows of one batch after those of another
    count, size = math.prod(x.shape[:batch]), x.shape[axis]
    order = (*range(batch), axis, *(a for a in range(batch, rank) if a != axis))
    flat = flow.transpose(x, order)
    flat = flow.reshape(flat, (count * size, *flat.shape[batch + 1 :]))
    starts = np.arange(count).reshape(x.shape[:batch]) * size
    starts = starts.reshape((*x.shape[:batch], *(1,) * (len(indices.shape) - batch)))
    rows = flow.add(indices, flow.const(starts, indices))
    made = flow.gather(flat, rows, 0)
    # [batch, indices, before the axis, after it]
    own, before = len(indices.shape), axis - batch
    order = (
        *range(batch), *range(own, own + before), *range(batch, own),
        *range(own + before, len(made.shape)),
    )  # fmt: skip
    flow.give(flow.transpose(made, order))


def gather_nd(call: Call) -> None:
    """Places in the last axis of the indices."""
    flow, x = _moving(call)
    indices = flow.arg(1)
    depth = indices.shape[-1] if indices.shape else 0
    if not 0 < depth <= len(x.shape):
        raise call.error(f"places of {depth} numbers in {list(x.shape)}")
    indices = flow.cast(indices, DType.INT32)
    steps = [math.prod(x.shape[i + 1 : depth]) for i in range(depth)]
    rows = flow.reduce(
        "sum", flow.mul(indices, flow.const(steps, indices)),
        (len(indices.shape) - 1,), False,
    )  # fmt: skip
    flat = flow.reshape(x, (math.prod(x.shape[:depth]), *x.shape[depth:]))
    flow.give(flow.gather(flat, rows, 0))


def embedding_lookup(call: Call) -> None:
    """Look up rows of a table. int8 and int4 rows become float32 if the output is, by
    the table's scale or by one per row; TFLM always uses the first."""
    flow, rows = Flow(call), Flow(call).arg(0)
    table = flow.arg(1)
    rows = flow.cast(rows, DType.INT32)
    if flow.wanted().dtype is not DType.FLOAT32 or table.dtype is not DType.INT8:
        flow.give(flow.gather(flow.plain(table), rows, 0))
        return
    quant = table.quant
    if quant is None or quant.axis not in (None, 0) or len(quant.zero_point) > 1:
        raise call.error(f"'{table.name}' has no scale, nor one for each row")
    if quant.axis is None:
        bytes_ = flow.gather(table, rows, 0)
        flow.give(flow.node("dequantize", [bytes_], like=flow.wanted()))
        return
    made = flow.gather(flow.plain(table), rows, 0)
    zero = -quant.zero_point[0]
    if zero:
        made = flow.plus(flow.cast(made, DType.INT32), zero)
    real = flow.cast(made, DType.FLOAT32)
    scale = flow.const(quant.scale, real)
    last = (1,) * (len(table.shape) - 1)
    first = flow.const(np.full(rows.shape, quant.scale[0]), real)
    scale = flow.either(flow.gather(scale, rows, 0), first, "tflm")
    flow.give(flow.mul(real, flow.reshape(scale, (*rows.shape, *last))))


def mirror_pad(call: Call) -> None:
    """Pad by reflection, with the edge (SYMMETRIC, 1) or without it (REFLECT, 0)."""
    flow, x = _moving(call)
    pads = call.integers(1)
    if len(pads) != 2 * len(x.shape):
        raise call.error(f"paddings {list(pads)} of {list(x.shape)}")
    symmetric = int(call.option("Mode") == 1)
    for axis, (before, after) in enumerate(zip(pads[::2], pads[1::2], strict=True)):
        size = x.shape[axis]
        if max(before, after) > size - 1 + symmetric or min(before, after) < 0:
            raise call.error(f"paddings {list(pads)} of {list(x.shape)}")
        if size >= MOST_BYTES // 8:
            raise call.error(f"{size} elements side by side are too many")
        if before or after:
            places = np.arange(-before, size + after)
            places = np.where(places < 0, -places - symmetric, places)
            over = 2 * size - 2 + symmetric
            places = np.where(places < size, places, over - places)
            x = flow.taken(x, places, axis)
    flow.give(x)


def pack(call: Call) -> None:
    flow = Flow(call)
    parts = flow.args()
    if any(x.quant != parts[0].quant for x in parts):
        parts = [flow.plain(x) for x in parts]
    axis = flow.axis(call.option("Axis"), len(parts[0].shape) + 1)
    shape = parts[0].shape
    if any(p.shape != shape for p in parts):
        raise call.error("its inputs have several shapes")
    rows = [flow.reshape(p, (*shape[:axis], 1, *shape[axis:])) for p in parts]
    if len(rows) == 1:
        rows = [flow.node("copy", rows)]
    flow.give(flow.concat(rows, axis))


def _cut(call: Call, x: Tensor, axis: int, sizes: list[int], drop: bool) -> None:
    """Cut the input into pieces as the outputs."""
    flow, at = Flow(call), 0
    if len(sizes) != len(call.flat.outputs) or sum(sizes) != x.shape[axis]:
        raise call.error(f"pieces {sizes} of axis {axis} of {list(x.shape)}")
    for index, size in enumerate(sizes):
        made = flow.part(x, axis, at, at + size)
        if drop:
            made = flow.reshape(made, (*x.shape[:axis], *x.shape[axis + 1 :]))
        flow.give(made, index)
        at += size


def unpack(call: Call) -> None:
    flow, x = _moving(call)
    axis = flow.axis_of(call.option("Axis"), x)
    _cut(call, x, axis, [1] * len(call.flat.outputs), True)


def split(call: Call) -> None:
    flow, count = Flow(call), len(call.flat.outputs)
    x = flow.arg(1)
    axis = flow.axis_of(call.integer(0), x)
    if x.shape[axis] % count:
        raise call.error(f"{count} pieces of axis {axis} of {list(x.shape)}")
    _cut(call, x, axis, [x.shape[axis] // count] * count, False)


def split_v(call: Call) -> None:
    flow, x = _moving(call)
    axis = flow.axis_of(call.integer(2), x)
    sizes = list(call.integers(1))
    if sizes.count(-1) == 1:
        sizes[sizes.index(-1)] = x.shape[axis] - sum(sizes) - 1
    _cut(call, x, axis, sizes, False)


def reverse(call: Call) -> None:
    flow, x = _moving(call)
    for number in call.integers(1):
        x = flow.flip(x, flow.axis_of(number, x))
    flow.give(x)


def dynamic_update_slice(call: Call) -> None:
    """Write the second input over the first, at computed positions clamped to it."""
    flow, x = _moving(call)
    update, starts = flow.arg(1), flow.cast(flow.arg(2), DType.INT32)
    room = [a - b for a, b in zip(x.shape, update.shape, strict=False)]
    if len(update.shape) != len(x.shape) or min(room, default=0) < 0:
        raise call.error(f"{list(update.shape)} does not fit {list(x.shape)}")
    begin = flow.map("maximum", starts, flow.const(0, starts))
    begin = flow.map("minimum", begin, flow.const(room, starts))
    free = [axis for axis, count in enumerate(room) if count]
    if len(free) < 2:
        axis = free[0] if free else 0
        count = flow.const(range(update.shape[axis]), DType.INT32)
        rows = flow.add(flow.part(begin, 0, axis, axis + 1), count)
        attrs = {"join": "none", "axis": axis} if axis else {"join": "none"}
        flow.give(flow.node("scatter", [x, rows, update], attrs))
        return
    steps = [math.prod(x.shape[i + 1 :]) for i in range(len(x.shape))]
    first = flow.mul(begin, flow.const(steps, begin))
    first = flow.reduce("sum", first, (0,), False)
    places = [
        sum(i * s for i, s in zip(at, steps, strict=True))
        for at in itertools.product(*map(range, update.shape))
    ]
    rows = flow.add(first, flow.const(places, DType.INT32))
    flat = [flow.reshape(x, (x.size, 1)), rows, flow.reshape(update, (update.size, 1))]
    made = flow.node("scatter", flat, {"join": "none"})
    flow.give(flow.reshape(made, x.shape))


MOVES: dict[str, Handler] = {
    "BATCH_TO_SPACE_ND": batch_to_space,
    "BROADCAST_ARGS": broadcast_args,
    "BROADCAST_TO": broadcast_to,
    "DEPTH_TO_SPACE": depth_to_space,
    "DYNAMIC_UPDATE_SLICE": dynamic_update_slice,
    "EMBEDDING_LOOKUP": embedding_lookup,
    "FILL": fill,
    "GATHER": gather,
    "GATHER_ND": gather_nd,
    "MIRROR_PAD": mirror_pad,
    "PACK": pack,
    "RANGE": range_,
    "RANK": rank,
    "REVERSE_V2": reverse,
    "SHAPE": shape_,
    "SPACE_TO_BATCH_ND": space_to_batch,
    "SPACE_TO_DEPTH": space_to_depth,
    "SPLIT": split,
    "SPLIT_V": split_v,
    "TILE": tile,
    "UNPACK": unpack,
    "ZEROS_LIKE": zeros_like,
}
