"""Operators that move, repeat, create or reduce elements."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pybuild.frontends.torch.operators.in_place import turned_axes
from pybuild.frontends.torch.operators.indices import INDICES
from pybuild.frontends.torch.operators.writer import Handler, Writer
from pybuild.frontends.torch.reader.program import Call, Ref


def reshape(w: Writer, call: Call) -> None:
    """Reshape to the shape that the program declares for the output."""
    w.give("Reshape", call.tensor("self"), w.ints(w.shape(call.outputs[0])))


def permute(w: Writer, call: Call) -> None:
    x = call.tensor("self")
    rank = w.rank(x)
    w.give("Transpose", x, perm=[w.axis(d, rank) for d in call.ints("dims")])


def transpose(w: Writer, call: Call) -> None:
    x = call.tensor("self")
    rank = w.rank(x)
    a, b = (w.axis(n, rank) for n in turned_axes(call))
    perm = list(range(rank))
    if rank > 1:
        perm[a], perm[b] = perm[b], perm[a]
    w.give("Transpose", x, perm=perm)


def cat(w: Writer, call: Call) -> None:
    refs = [ref for ref in call.get("tensors") if w.shape(ref.name) != (0,)]
    rank = w.rank(refs[0].name)
    kind = w.kind(call.outputs[0])
    names = [w.as_kind(ref.name, kind) for ref in refs]
    w.give("Concat", *names, axis=w.axis(int(call.get("dim", 0)), rank))


def stack(w: Writer, call: Call) -> None:
    refs = call.get("tensors")
    axis = w.axis(int(call.get("dim", 0)), w.rank(refs[0].name) + 1)
    parts = [w.op("Unsqueeze", ref.name, w.ints([axis])) for ref in refs]
    w.give("Concat", *parts, axis=axis)


def split(w: Writer, call: Call) -> None:
    """split, split_with_sizes, chunk: the sizes come from the outputs."""
    x = call.tensor("self")
    axis = w.axis(int(call.get("dim", 0)), w.rank(x))
    sizes = [w.shape(name)[axis] for name in call.outputs if name]
    if len(sizes) == 1:
        w.same(x)
        return
    w.op("Split", x, w.ints(sizes), to=call.outputs, axis=axis)


def unbind(w: Writer, call: Call) -> None:
    x = call.tensor("self")
    axis = w.axis(int(call.get("dim", 0)), w.rank(x))
    for index, name in enumerate(call.outputs):
        w.op("Gather", x, w.const(index, "int64"), to=name, axis=axis)


def slice_(w: Writer, call: Call) -> None:
    x = call.tensor("self")
    axis = w.axis(int(call.get("dim", 0)), w.rank(x))
    size = w.shape(x)[axis]
    start, end = call.get("start", 0), call.get("end", size)
    if start == 0 and end >= size and call.get("step", 1) == 1:
        w.same(x)
        return
    given = (start, min(end, size), axis, call.get("step", 1))
    w.give("Slice", x, *(w.ints([int(n)]) for n in given))


def narrow(w: Writer, call: Call) -> None:
    x, start = call.tensor("self"), call.get("start")
    axis = w.axis(int(call.get("dim")), w.rank(x))
    end = start + call.get("length")
    w.give("Slice", x, *(w.ints([int(n)]) for n in (start, end, axis)))


def select(w: Writer, call: Call) -> None:
    x, index = call.tensor("self"), int(call.get("index"))
    axis = w.axis(int(call.get("dim")), w.rank(x))
    w.give("Gather", x, w.const(index, "int64"), axis=axis)


def expand(w: Writer, call: Call) -> None:
    x, shape = call.tensor("self"), w.shape(call.outputs[0])
    if w.shape(x) == shape:
        w.same(x)
    else:
        w.give("Expand", x, w.ints(shape))


def repeat(w: Writer, call: Call) -> None:
    x, counts = call.tensor("self"), call.ints("repeats")
    wide = [1] * (len(counts) - w.rank(x)) + list(w.shape(x))
    w.give("Tile", w.reshape(x, wide), w.ints(counts))


def pad(w: Writer, call: Call) -> None:
    x, flat = call.tensor("self"), call.ints("pad")
    rank, mode = w.rank(x), call.get("mode", "constant")
    modes = {"constant": "constant", "reflect": "reflect", "replicate": "edge",
             "circular": "wrap"}  # fmt: skip
    before, after = [0] * rank, [0] * rank
    for i in range(len(flat) // 2):
        before[rank - 1 - i], after[rank - 1 - i] = flat[2 * i], flat[2 * i + 1]
    value = call.get("value", 0.0) or 0.0
    fill = [w.like(value, x)] if modes[mode] == "constant" else []
    w.give("Pad", x, w.ints([*before, *after]), *fill, mode=modes[mode])


def shuffle(w: Writer, call: Call) -> None:
    factor = int(call.get("upscale_factor"))
    w.give("DepthToSpace", call.tensor("self"), blocksize=factor, mode="CRD")


def unshuffle(w: Writer, call: Call) -> None:
    x, f = call.tensor("self"), int(call.get("downscale_factor"))
    n, c, h, v = w.shape(x)
    made = w.reshape(x, (n, c, h // f, f, v // f, f))
    made = w.op("Transpose", made, perm=[0, 1, 3, 5, 2, 4])
    w.give("Reshape", made, w.ints((n, c * f * f, h // f, v // f)))


def flip(w: Writer, call: Call) -> None:
    x = call.tensor("self")
    axes = [w.axis(d, w.rank(x)) for d in call.ints("dims")]
    starts, ends = [-1] * len(axes), [-(1 << 62)] * len(axes)
    given = (starts, ends, axes, [-1] * len(axes))
    w.give("Slice", x, *(w.ints(values) for values in given))


def roll(w: Writer, call: Call) -> None:
    x, shifts, dims = call.tensor("self"), call.ints("shifts"), call.ints("dims")
    if not dims:
        raise call.invalid("a roll of a flattened tensor is not supported")
    for shift, dim in zip(shifts, dims, strict=True):
        axis = w.axis(dim, w.rank(call.tensor("self")))
        size = w.shape(call.tensor("self"))[axis]
        places = np.roll(np.arange(size), shift)
        x = w.op("Gather", x, w.const(places, "int64"), axis=axis)
    w.give("Identity", x)


# ---- numbers --------------------------------------------------------------------


def full(value: float | None) -> Handler:
    """Emit a tensor of one value, with the shape and type that the program declares."""

    def handler(w: Writer, call: Call) -> None:
        made, shape = call.outputs[0], w.shape(call.outputs[0])
        number = call.get("fill_value", call.get("s", 0)) if value is None else value
        w.constants[made] = np.full(shape, number, w.kind(made))

    return handler


def arange(w: Writer, call: Call) -> None:
    made = call.outputs[0]
    start, step = call.get("start", 0), call.get("step", 1)
    count = w.shape(made)[0]
    w.constants[made] = (start + step * np.arange(count)).astype(w.kind(made))


def eye(w: Writer, call: Call) -> None:
    made = call.outputs[0]
    rows, columns = w.shape(made)
    w.constants[made] = np.eye(rows, columns, dtype=w.kind(made))


def triangle(upper: int) -> Handler:
    def handler(w: Writer, call: Call) -> None:
        diagonal = w.const(int(call.get("diagonal", 0)), "int64")
        w.give("Trilu", call.tensor("self"), diagonal, upper=upper)

    return handler


# ---- reductions -----------------------------------------------------------------


def _axes(w: Writer, call: Call, x: str) -> tuple[list[int], int]:
    given = call.get("dim")
    dims: Sequence[int] = () if given is None else call.ints("dim")
    rank = w.rank(x)
    axes = sorted({w.axis(d, rank) for d in dims}) or list(range(rank))
    return axes, int(bool(call.get("keepdim", False)))


def reduce(kind: str) -> Handler:
    def handler(w: Writer, call: Call) -> None:
        x = call.tensor("self")
        axes, keep = _axes(w, call, x)
        x = w.as_kind(x, w.kind(call.outputs[0])) if kind == "ReduceSum" else x
        w.give(kind, x, w.ints(axes), keepdims=keep)

    return handler


def best(kind: str, values: str = "") -> Handler:
    """argmax, argmin; max and min with their places, too."""

    def handler(w: Writer, call: Call) -> None:
        x, other = call.tensor("self"), call.get("other")
        if isinstance(other, Ref):  # of two tensors, element by element
            made = w.kind(call.outputs[0])
            both = (w.as_kind(name, made) for name in (x, other.name))
            w.give(values.removeprefix("Reduce"), *both)
            return
        if not values and call.get("dim") is None:
            w.give(kind, w.reshape(x, (-1,)), axis=0, keepdims=0)
            return
        if values and call.get("dim") is None:
            w.give(values, x, w.ints(range(w.rank(x))), keepdims=0)
            return
        axis, keep = w.axis(int(call.get("dim")), w.rank(x)), call.get("keepdim", False)
        if values:
            w.give(values, x, w.ints([axis]), keepdims=int(keep))
        place = (
            call.outputs[1 if values else 0] if len(call.outputs) > bool(values) else ""
        )
        if place:
            w.op(kind, x, to=place, axis=axis, keepdims=int(keep))

    return handler


def variance(w: Writer, call: Call, root: bool = False) -> None:
    x = call.tensor("self")
    axes, keep = _axes(w, call, x)
    count = int(np.prod([w.shape(x)[a] for a in axes]))
    less = call.get("correction", int(call.get("unbiased", True)))
    mean = w.op("ReduceMean", x, w.ints(axes), keepdims=1)
    far = w.op("Sub", x, mean)
    total = w.op("ReduceSum", w.op("Mul", far, far), w.ints(axes), keepdims=keep)
    made = w.op("Div", total, w.const(max(count - less, 0), "float32"))
    w.give("Sqrt" if root else "Identity", made)


def cumsum(w: Writer, call: Call) -> None:
    x = w.as_kind(call.tensor("self"), w.kind(call.outputs[0]))
    w.give("CumSum", x, w.const(int(call.get("dim")), "int64"))


def topk(w: Writer, call: Call) -> None:
    x = call.tensor("self")
    attrs = {
        "axis": w.axis(int(call.get("dim", -1)), w.rank(x)),
        "largest": int(call.get("largest", True)), "sorted": 1,
    }  # fmt: skip
    w.op("TopK", x, w.ints([int(call.get("k"))]), to=call.outputs, **attrs)


def unfold(w: Writer, call: Call) -> None:
    """Windows along an axis: their elements are the last axis."""
    x = call.tensor("self")
    axis = w.axis(int(call.get("dimension")), w.rank(x))
    size, step = int(call.get("size")), int(call.get("step"))
    count = (w.shape(x)[axis] - size) // step + 1
    places = np.arange(count)[:, None] * step + np.arange(size)
    made = w.op("Gather", x, w.const(places, "int64"), axis=axis)
    rest = [i for i in range(w.rank(x) + 1) if i != axis + 1]
    w.give("Transpose", made, perm=[*rest, axis + 1])


def nothing(w: Writer, call: Call) -> None:
    """Ignore a check, or a size that is already a number."""


MOVES: dict[str, Handler] = {
    **INDICES,
    **dict.fromkeys(
        ("view", "reshape", "flatten", "_unsafe_view", "unsqueeze", "squeeze",
         "unflatten", "reshape_as", "view_as"), reshape,
    ),
    **dict.fromkeys(("split", "split_with_sizes", "chunk", "tensor_split"), split),
    **dict.fromkeys(("pad", "constant_pad_nd"), pad),
    **dict.fromkeys(("full", "full_like", "scalar_tensor", "new_full"), full(None)),
    **dict.fromkeys(("zeros", "zeros_like", "new_zeros"), full(0)),
    **dict.fromkeys(("ones", "ones_like", "new_ones"), full(1)),
    **dict.fromkeys(("empty", "empty_like"), full(0)),
    **dict.fromkeys(("expand", "expand_as", "broadcast_to"), expand),
    **dict.fromkeys(("t", "transpose", "swapaxes", "swapdims"), transpose),
    "mean": reduce("ReduceMean"),
    **dict.fromkeys(
        ("sym_size", "_assert_tensor_metadata", "_assert_scalar", "sym_constrain_range",
         "_assert_async", "sym_constrain_range_for_size"), nothing,
    ),
    "amax": reduce("ReduceMax"), "amin": reduce("ReduceMin"), "arange": arange,
    "argmax": best("ArgMax"), "argmin": best("ArgMin"), "cat": cat,
    "cumsum": cumsum, "eye": eye, "flip": flip,
    "max": best("ArgMax", "ReduceMax"), "min": best("ArgMin", "ReduceMin"),
    "logsumexp": reduce("ReduceLogSumExp"), "narrow": narrow, "permute": permute,
    "pixel_shuffle": shuffle,
    "pixel_unshuffle": unshuffle, "prod": reduce("ReduceProd"), "repeat": repeat,
    "roll": roll, "select": select, "slice": slice_, "stack": stack,
    "std": lambda w, call: variance(w, call, root=True),
    "sum": reduce("ReduceSum"), "topk": topk,
    "tril": triangle(0), "triu": triangle(1), "unbind": unbind, "unfold": unfold,
    "var": variance,
}  # fmt: skip
