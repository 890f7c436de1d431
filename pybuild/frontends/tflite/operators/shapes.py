"""TensorFlow Lite operators that only move data, as nodes of the Graph IR."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from pybuild.frontends.tflite.draft.builder import Call
from pybuild.frontends.tflite.operators.layers import fused
from pybuild.ir.graph import Tensor
from pybuild.ops.fixed_point.quant import real


def _reshape(call: Call, x: Tensor, shape: tuple[int, ...]) -> None:
    call.emit("reshape", (x.name,), {}, shape)


def reshape(call: Call) -> None:
    """The new shape is a known input, an option, or what the file declares."""
    x = call.tensor(0)
    if call.has(1) and call.settled(1):
        target = call.integers(1)
    else:
        option = call.any_option("NewShapeAsNumpy")
        listed = isinstance(option, np.ndarray) and not call.has(1)
        target = tuple(int(d) for d in option) if listed else call.declared()
    open_dims = [i for i, dim in enumerate(target) if dim == -1]
    if call.builder.redimensioned and not open_dims and target:
        # the file was made for another first dimension
        open_dims = [0]
    known = 1
    for i, dim in enumerate(target):
        known *= 1 if i in open_dims else dim
    if open_dims and known > 0 and x.size % known == 0:
        first = open_dims[0]
        target = (*target[:first], x.size // known, *target[first + 1 :])
    if any(dim < 1 for dim in target):
        raise call.error(f"{list(x.shape)} does not reshape to {list(target)}")
    _reshape(call, x, target)


def squeeze(call: Call) -> None:
    x = call.tensor(0)
    rank = len(x.shape)
    listed = call.any_option("SqueezeDimsAsNumpy")
    axes = {int(a) for a in listed} if isinstance(listed, np.ndarray) else set()
    axes = {a + rank if a < 0 else a for a in axes}
    axes = axes or {i for i, dim in enumerate(x.shape) if dim == 1}
    if any(not 0 <= a < rank or x.shape[a] != 1 for a in axes):
        raise call.error(f"axes {sorted(axes)} of {list(x.shape)} are not all 1")
    _reshape(call, x, tuple(d for i, d in enumerate(x.shape) if i not in axes))


def expand_dims(call: Call) -> None:
    x, axes = call.tensor(0), call.integers(1)
    rank = len(x.shape)
    if len(axes) != 1 or not -rank - 1 <= axes[0] <= rank:
        raise call.error(f"axis {list(axes)} of a tensor of rank {rank}")
    at = axes[0] + rank + 1 if axes[0] < 0 else axes[0]
    _reshape(call, x, (*x.shape[:at], 1, *x.shape[at:]))


def transpose(call: Call) -> None:
    x = call.tensor(0)
    rank = len(x.shape)
    perm = tuple(p + rank if p < 0 else p for p in call.integers(1))
    call.emit("transpose", (x.name,), {"perm": perm})


def concatenation(call: Call) -> None:
    if fused(call):
        raise call.error("a fused activation is not supported here")
    every = [call.tensor(i, True) for i in range(len(call.flat.inputs))]
    tensors = [t for t in every if t.size]
    if not tensors:
        raise call.error("has no inputs")
    axis = call.option("Axis")
    axis += len(tensors[0].shape) if axis < 0 else 0
    call.emit("concat", tuple(t.name for t in tensors), {"axis": axis})


def pad(call: Call) -> None:
    """PAD with real 0, PADV2 with a constant."""
    x, value = call.tensor(0), call.constant(1)
    if value.dtype.kind != "i" or value.shape != (len(x.shape), 2):
        raise call.error(f"paddings {list(value.shape)} for {list(x.shape)}")
    pads = tuple((int(before), int(after)) for before, after in value)
    fill = 0.0
    if call.has(2):
        tensor, constant = call.held(2)
        if constant.size != 1:
            raise call.error(f"one padding value is needed, not {constant.size}")
        fill = float(real(constant, tensor).reshape(()))
    call.emit("pad", (x.name,), {"pads": pads, "value": fill})


def slice_(call: Call) -> None:
    """begin and size per axis; size -1 reaches the end."""
    x, begin, size = call.tensor(0), call.integers(1), call.integers(2)
    if not len(begin) == len(size) == len(x.shape):
        raise call.error(f"begin {begin} and size {size} for {list(x.shape)}")
    end = tuple(
        dim if s == -1 else b + s
        for dim, b, s in zip(x.shape, begin, size, strict=True)
    )
    counts = tuple(max(0, e - b) for b, e in zip(begin, end, strict=True))
    if 0 in counts and all(
        0 <= b <= e <= dim for b, e, dim in zip(begin, end, x.shape, strict=True)
    ):
        nothing(call, counts)
        return
    attrs = {"begin": begin, "end": end, "strides": (1,) * len(begin)}
    call.emit("slice", (x.name,), attrs)


def nothing(call: Call, shape: tuple[int, ...]) -> None:
    """Make an output without elements: loops join such pieces to others."""
    builder, index = call.builder, call.flat.outputs[0]
    made = replace(call.output((1,) * len(shape)), shape=shape)
    builder.known[index] = builder.add(made, np.zeros(shape, made.dtype.numpy))


def strided_slice(call: Call) -> None:
    """Python's slices, with masks for open ends, dropped, new and skipped axes."""
    x = call.tensor(0)
    cuts, shape, drop = _cuts(call, x)
    begin, end, strides = (tuple(c) for c in zip(*cuts, strict=True))
    counts = tuple(len(range(b, e, s)) for b, e, s in cuts)
    kept = tuple(1 if dim is None else counts[dim] for dim in shape if dim not in drop)
    if 0 in counts:
        nothing(call, kept)
        return
    attrs = {"begin": begin, "end": end, "strides": strides}
    if kept == counts:
        call.emit("slice", (x.name,), attrs)
        return
    wanted = Tensor(f"{call.label}_slice", counts, x.dtype, x.quant)
    cut = call.between("slice", (x.name,), attrs, wanted)
    _reshape(call, cut, kept)


_Cut = tuple[int, int, int]


def _cuts(call: Call, x: Tensor) -> tuple[list[_Cut], list[int | None], set[int]]:
    """Return (begin, end, stride) of each input axis; the output's axes as input axes
    (None: a new one); and the input axes that are dropped."""
    spec = list(zip(call.integers(1), call.integers(2), call.integers(3), strict=False))

    def masked(name: str, i: int) -> bool:
        return bool(call.option(f"{name}Mask") >> i & 1)

    new = sum(masked("NewAxis", i) for i in range(len(spec)))
    skipped = sum(masked("Ellipsis", i) for i in range(len(spec)))
    rest = len(x.shape) - (len(spec) - new - skipped)
    if rest < 0 or skipped > 1:
        raise call.error(f"{len(spec)} slices of a tensor of rank {len(x.shape)}")
    cuts: list[_Cut] = []
    shape: list[int | None] = []
    drop: set[int] = set()
    for i, cut in enumerate(spec):
        if masked("Ellipsis", i):
            _whole_axes(x, cuts, shape, rest)
        elif masked("NewAxis", i):
            shape.append(None)
        else:
            shape.append(len(cuts))
            dim = x.shape[len(cuts)]
            if masked("ShrinkAxis", i):
                drop.add(len(cuts))
                first = 0 if masked("Begin", i) else cut[0]
                at = range(dim)[first : first + 1 or None]
                cuts.append((at.start, at.stop, 1))
            else:
                opened = masked("Begin", i), masked("End", i)
                cuts.append(_cut(call, dim, cut, opened))
    _whole_axes(x, cuts, shape, len(x.shape) - len(cuts))
    return cuts, shape, drop


def _cut(call: Call, dim: int, cut: _Cut, opened: tuple[bool, bool]) -> _Cut:
    """Return one slice of an axis, with its ends normalised as Python does."""
    begin, end, stride = cut
    if stride == 0:
        raise call.error("a stride of 0 makes no sense")
    if call.option("Offset"):
        first = slice(None if opened[0] else begin, None, stride).indices(dim)[0]
        return _counted(call, dim, (first, end, stride), opened[1])
    span = slice(None if opened[0] else begin, None if opened[1] else end, stride)
    return span.indices(dim)


def _counted(call: Call, dim: int, cut: _Cut, opened: bool) -> _Cut:
    """Return a slice whose end is relative to its begin.

    Errors  BuildError if LiteRT's kernel would access memory outside its tensors: it
            trusts the declared output size
    """
    first, count, stride = cut
    last = first + count
    if opened or not 0 <= last <= dim - (stride < 0):
        what = f"{count} values from {first} on (offset) are not in an axis of {dim}"
        raise call.error(what, "no offset, or an end within the axis")
    return first, last, stride


def _whole_axes(
    x: Tensor, cuts: list[_Cut], shape: list[int | None], count: int
) -> None:
    """Take the next `count` axes whole."""
    for _ in range(count):
        shape.append(len(cuts))
        cuts.append((0, x.shape[len(cuts)], 1))
