"""How random files of operators that move or join elements are drawn: MOVES."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from tests.frontends.tflite.files import One, packed4

Draw = Callable[[One], None]
FLOAT, BYTES, WHOLE = ("float32",), ("int8", "uint8"), ("int32", "int64")
NUMBERS = (*FLOAT, *WHOLE)
MOVED = (*FLOAT, *BYTES, *WHOLE)


def batch_to_space(one: One) -> None:
    quant, (a, b) = one.quant(one.kind), (one.size(1, 3), one.size(1, 2))
    one.x((a * b * one.size(1, 2), one.size(2, 4), one.size(2, 4), 2), quant=quant)
    one.constant([a, b])
    one.constant([[one.size(0, 1), 0], [0, one.size(0, 1)]])
    one.y(quant=quant)


def space_to_batch(one: One) -> None:
    quant, (a, b) = one.quant(one.kind), (one.size(1, 3), one.size(1, 2))
    left, top = one.size(0, a), one.size(0, b)
    height, width = a * one.size(2, 3) - left, b * one.size(2, 3) - top
    shape = (one.size(1, 2), max(height, a), max(width, b), 2)
    left, top = -shape[1] % a, -shape[2] % b
    one.x(shape, quant=quant)
    one.constant([a, b])
    one.constant([[left, 0], [0, top]])
    one.y(quant=quant)


def depth(to_space: bool) -> Draw:
    def draw(one: One) -> None:
        quant, size = one.quant(one.kind), one.size(2, 3)
        h, w, c = one.size(1, 3), one.size(1, 3), one.size(1, 3)
        shape = (1, h, w, c * size * size) if to_space else (1, h * size, w * size, c)
        one.x(shape, quant=quant)
        one.y(quant=quant)
        table = "DepthToSpaceOptions" if to_space else "SpaceToDepthOptions"
        one.with_options(table, BlockSize=size)

    return draw


def broadcast_to(one: One) -> None:
    shape, quant = one.shape(), one.quant(one.kind)
    one.x(one.broadcast(shape), quant=quant)
    one.constant(shape)
    one.y(quant=quant)


def broadcast_args(one: One) -> None:
    shape = one.shape()
    for dims in (shape, one.broadcast(shape)):
        one.constant(dims, one.kind)
    one.y()
    one.then("BROADCAST_TO", one.broadcast(shape))


def shape_of(one: One) -> None:
    one.x(one.shape())
    one.y("int32", ())
    if one.code == "SHAPE":
        one.with_options("ShapeOptions", OutType=2)


def same(one: One) -> None:
    quant = one.quant(one.kind)
    one.x(one.shape(), quant=quant)
    one.y(quant=quant)


def fill(one: One) -> None:
    quant = one.quant(one.kind)
    one.constant(one.shape())
    one.x((), quant=quant)
    one.y(quant=quant)


def gather(one: One) -> None:
    shape, quant = one.shape(2, 3), one.quant(one.kind)
    batch = one.size(0, 1)
    axis = one.size(batch, len(shape) - 1)
    one.x(shape, quant=quant)
    places = (shape[0], one.size(1, 3)) if batch else one.shape(1, 2, 3)
    one.x(places, "int32", bounds=(0, shape[axis] - 1))
    one.y(quant=quant)
    one.with_options("GatherOptions", Axis=axis, BatchDims=batch)


def gather_nd(one: One) -> None:
    shape, quant = one.shape(2, 4), one.quant(one.kind)
    depth = one.size(1, len(shape))
    one.x(shape, quant=quant)
    one.x((one.size(1, 4), depth), "int32", bounds=(0, min(shape[:depth]) - 1))
    one.y(quant=quant)


def embedding(one: One) -> None:
    """Rows of a table: of float32, or of bytes or half bytes with a scale, or one for
    each row. LiteRT takes rows of half bytes to begin with a byte.
    """
    rows, width = one.size(2, 6), one.size(1, 3) * (2 if one.kind == "int4" else 1)
    one.x((one.size(1, 4),), "int32", bounds=(0, rows - 1))
    if one.kind == "float32":
        one.constant(one.values((rows, width), one.kind, *one.span(one.kind)), one.kind)
    else:
        low, high = (-8, 7) if one.kind == "int4" else one.span(one.kind)
        table = one.values((rows, width), "int8", low, high)
        data = packed4(table) if one.kind == "int4" else table
        scales = [one.quant("int8")[0] for _ in range(rows if one.flag() else 1)]
        index = one.tensor((rows, width), one.kind, (1.0, 0), data)
        zeros = (0,) * len(scales)
        one.tensors[index] = replace(
            one.tensors[index], scale=tuple(scales), zero_point=zeros
        )
        one.reads.append(index)
    one.y("float32")


def mirror_pad(one: One) -> None:
    shape, quant = one.shape(1, 4, 4), one.quant(one.kind)
    mode = one.size(0, 1)
    most = [max(0, d - 1 + mode) for d in shape]
    one.x(shape, quant=quant)
    one.constant([[one.size(0, m), one.size(0, m)] for m in most])
    one.y(quant=quant)
    one.with_options("MirrorPadOptions", Mode=mode)


def pad(value: bool) -> Draw:
    def draw(one: One) -> None:
        shape, quant = one.shape(1, 4, 4), one.quant(one.kind)
        one.x(shape, quant=quant)
        one.constant([[one.size(0, 2), one.size(0, 2)] for _ in shape])
        if value:
            low, high = one.span(one.kind)
            one.constant(one.values((1,), one.kind, low, high), one.kind, quant)
        one.y(quant=quant)

    return draw


def pack(one: One) -> None:
    shape, quant, count = one.shape(1, 3), one.quant(one.kind), one.size(1, 4)
    for _ in range(count):
        one.x(shape, quant=quant)
    one.y(quant=quant)
    axis = one.size(-len(shape) - 1, len(shape))
    one.with_options("PackOptions", Axis=axis, ValuesCount=count)


def concatenation(one: One) -> None:
    shape, quant = list(one.shape(1, 4)), one.quant(one.kind)
    axis = one.size(0, len(shape) - 1)
    for _ in range(one.size(2, 4)):
        shape[axis] = one.size(1, 4)
        one.x(tuple(shape), quant=quant)
    one.y(quant=quant)
    one.with_options("ConcatenationOptions", Axis=axis)


def unpack(one: One) -> None:
    shape, quant = one.shape(2, 4, 4), one.quant(one.kind)
    axis = one.size(0, len(shape) - 1)
    one.x(shape, quant=quant)
    for _ in range(shape[axis]):
        one.y(quant=quant)
    one.with_options("UnpackOptions", Axis=axis, Num=shape[axis])


def split(one: One) -> None:
    shape, quant, count = list(one.shape(1, 4)), one.quant(one.kind), one.size(1, 3)
    axis = one.size(0, len(shape) - 1)
    shape[axis] = count * one.size(1, 3)
    one.constant(axis)
    one.x(tuple(shape), quant=quant)
    for _ in range(count):
        one.y(quant=quant)
    one.with_options("SplitOptions", NumSplits=count)


def split_v(one: One) -> None:
    shape, quant = list(one.shape(1, 4)), one.quant(one.kind)
    axis = one.size(0, len(shape) - 1)
    sizes = [one.size(1, 3) for _ in range(one.size(1, 3))]
    shape[axis] = sum(sizes)
    one.x(tuple(shape), quant=quant)
    if one.flag():
        sizes[0] = -1
    one.constant(sizes)
    one.constant(axis)
    for _ in sizes:
        one.y(quant=quant)
    one.with_options("SplitVOptions", NumSplits=len(sizes))


def reverse(one: One) -> None:
    shape, quant = one.shape(1, 3), one.quant(one.kind)
    one.x(shape, quant=quant)
    one.constant([one.size(0, len(shape) - 1)])
    one.y(quant=quant)


def tile(one: One) -> None:
    shape, quant = one.shape(1, 3, 3), one.quant(one.kind)
    one.x(shape, quant=quant)
    one.constant([one.size(1, 3) for _ in shape])
    one.y(quant=quant)


def update(one: One) -> None:
    shape, quant = one.shape(1, 4, 4), one.quant(one.kind)
    one.x(shape, quant=quant)
    one.x(tuple(one.size(1, d) for d in shape), quant=quant)
    one.x((len(shape),), "int32", bounds=(-1, 4))
    one.y(quant=quant)


def reshape(one: One) -> None:
    a, b, c = one.size(1, 4), one.size(1, 4), one.size(1, 4)
    quant = one.quant(one.kind)
    one.x((a, b * c), quant=quant)
    one.constant(one.pick((a * b, c), (-1, c), (1, a, b, c), (b, a * c)))
    one.y(quant=quant)


def squeeze(one: One) -> None:
    shape, quant = (1, one.size(2, 4), 1, one.size(1, 4)), one.quant(one.kind)
    one.x(shape, quant=quant)
    one.y(quant=quant)
    one.with_options("SqueezeOptions", SqueezeDims=one.pick((0,), (2,), (0, 2)))


def expand_dims(one: One) -> None:
    shape, quant = one.shape(1, 3), one.quant(one.kind)
    one.x(shape, quant=quant)
    one.constant(one.size(-len(shape) - 1, len(shape)))
    one.y(quant=quant)


def transpose(one: One) -> None:
    shape, quant = one.shape(2, 5, 4), one.quant(one.kind)
    one.x(shape, quant=quant)
    one.constant(one.rng.permutation(len(shape)))
    one.y(quant=quant)


def slice_(one: One) -> None:
    shape, quant = one.shape(1, 4), one.quant(one.kind)
    begin = [one.size(0, d - 1) for d in shape]
    size = [one.pick(-1, one.size(1, d - b)) for d, b in zip(shape, begin, strict=True)]
    one.x(shape, quant=quant)
    one.constant(begin)
    one.constant(size)
    one.y(quant=quant)


def strided_slice(one: One) -> None:
    shape, quant = one.shape(1, 4, 6), one.quant(one.kind)
    begin = [one.size(0, d - 1) for d in shape]
    back = [one.flag() for _ in shape]
    end = [
        one.size(0, b) - 1 if r else one.size(b + 1, d)
        for d, b, r in zip(shape, begin, back, strict=True)
    ]
    end = [e - d if e < 0 else e for e, d in zip(end, shape, strict=True)]
    end = [-d - 1 if e < 0 else e for e, d in zip(end, shape, strict=True)]
    steps = [-one.size(1, 2) if r else one.size(1, 3) for r in back]
    one.x(shape, quant=quant)
    one.constant(begin)
    one.constant(end)
    one.constant(steps)
    one.y(quant=quant)
    masks = {"BeginMask": one.size(0, 3), "ShrinkAxisMask": one.size(0, 1)}
    if any(back):
        masks = {}
    one.with_options("StridedSliceOptions", **masks)


def reduction(one: One) -> None:
    shape = one.shape(1, 4)
    same_scale = one.code in ("REDUCE_MAX", "REDUCE_MIN")
    quant = one.quant(one.kind)
    bounds = (-3, 3) if one.code == "REDUCE_PROD" else None
    one.x(shape, quant=quant, bounds=bounds)
    count = one.size(1, len(shape))
    axes = sorted(int(a) for a in one.rng.permutation(len(shape))[:count])
    one.constant([a - len(shape) if one.flag() else a for a in axes])
    wide = one.quant(one.kind, 0.05, 2) if one.code == "SUM" else None
    one.y(quant=quant if same_scale else wide)
    one.with_options("ReducerOptions", KeepDims=one.flag())


def place(one: One) -> None:
    shape = one.shape(1, 4)
    one.x(shape, bounds=(-3, 3) if one.kind in ("int8", "int32") else None)
    one.constant(one.size(-len(shape), len(shape) - 1))
    to = one.pick("int32", "int64")
    one.y(to, ())
    table = "ArgMaxOptions" if one.code == "ARG_MAX" else "ArgMinOptions"
    one.with_options(table, OutputType=2 if to == "int32" else 4)


def cumsum(one: One) -> None:
    shape = one.shape(1, 4)
    one.x(shape)
    one.constant(one.size(-len(shape), len(shape) - 1))
    one.y()
    one.with_options("CumsumOptions", Exclusive=one.flag(), Reverse=one.flag())


def range_(one: One) -> None:
    start, step = one.size(-5, 5), one.size(1, 3)
    for value in (start, start + one.size(1, 9), step):
        one.constant(np.asarray(value), one.kind)
    one.y()
    one.then("ADD", (), "AddOptions")


MOVES: dict[str, tuple[tuple[str, ...], Draw]] = {
    "ARG_MAX": ((*FLOAT, *BYTES, "int32"), place),
    "ARG_MIN": ((*FLOAT, *BYTES, "int32"), place),
    "BATCH_TO_SPACE_ND": (MOVED, batch_to_space),
    "BROADCAST_ARGS": (WHOLE, broadcast_args),
    "BROADCAST_TO": ((*MOVED, "bool"), broadcast_to),
    "CONCATENATION": ((*MOVED, "bool", "int16"), concatenation),
    "CUMSUM": ((*NUMBERS, "int8"), cumsum),
    "DEPTH_TO_SPACE": (MOVED, depth(True)),
    "DYNAMIC_UPDATE_SLICE": ((*FLOAT, "int8", *WHOLE, "bool"), update),
    "EMBEDDING_LOOKUP": ((*FLOAT, "int8", "int4"), embedding),
    "EXPAND_DIMS": (MOVED, expand_dims),
    "FILL": ((*FLOAT, "int8", *WHOLE, "bool"), fill),
    "GATHER": ((*MOVED, "bool", "int16"), gather),
    "GATHER_ND": ((*MOVED, "bool", "int16"), gather_nd),
    "MEAN": ((*FLOAT, *BYTES, *WHOLE), reduction),
    "MIRROR_PAD": (MOVED, mirror_pad),
    "PACK": ((*MOVED, "int16"), pack),
    "PAD": ((*MOVED, "bool"), pad(False)),
    "PADV2": ((*MOVED,), pad(True)),
    "RANGE": ((*FLOAT, *WHOLE), range_),
    "RANK": (FLOAT, shape_of),
    "REDUCE_ALL": (("bool",), reduction),
    "REDUCE_ANY": (("bool",), reduction),
    "REDUCE_MAX": ((*NUMBERS, *BYTES), reduction),
    "REDUCE_MIN": ((*NUMBERS, *BYTES), reduction),
    "REDUCE_PROD": (NUMBERS, reduction),
    "RESHAPE": (MOVED, reshape),
    "REVERSE_V2": ((*MOVED, "bool", "int16"), reverse),
    "SHAPE": ((*FLOAT, "int8"), shape_of),
    "SLICE": ((*MOVED, "bool"), slice_),
    "SPACE_TO_BATCH_ND": (MOVED, space_to_batch),
    "SPACE_TO_DEPTH": (MOVED, depth(False)),
    "SPLIT": ((*FLOAT, *BYTES, "int16", "int32"), split),
    "SPLIT_V": ((*FLOAT, *BYTES, "int16", *WHOLE), split_v),
    "SQUEEZE": (MOVED, squeeze),
    "STRIDED_SLICE": ((*MOVED, "bool", "int16"), strided_slice),
    "SUM": ((*NUMBERS, *BYTES), reduction),
    "TILE": ((*MOVED, "bool"), tile),
    "TRANSPOSE": ((*MOVED, "bool", "int16"), transpose),
    "UNPACK": ((*FLOAT, *BYTES, "int32", "bool"), unpack),
    "ZEROS_LIKE": (NUMBERS, same),
}
