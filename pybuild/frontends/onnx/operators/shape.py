"""Operators that move data: reshape and its relatives, transpose, concat, pad, slice,
split."""

from __future__ import annotations

import math

import numpy as np

from pybuild.dtype import Array, DType
from pybuild.frontends.onnx.draft.draft import Draft
from pybuild.frontends.onnx.draft.unsigned import kind_of, lift
from pybuild.frontends.onnx.operators.eltwise import axis_of
from pybuild.frontends.onnx.reader.op import Op


def _ints(draft: Draft, op: Op, index: int, key: str) -> tuple[int, ...] | None:
    """Return the integers of a constant input or of an attribute; None if both are
    absent."""
    if op.input(index):
        value = draft.needed(op, op.input(index), key)
        return tuple(int(v) for v in value.reshape(-1))
    return op.integers(key, ()) if key in op.attrs else None


def _reshaped(draft: Draft, op: Op, shape: tuple[int, ...]) -> None:
    x = draft.tensor(op.input(0))
    draft.emit("reshape", op.name, [x.name], op.output, shape=shape, dtype=x.dtype)


def reshape(draft: Draft, op: Op) -> None:
    """Reshape; 0 keeps a dimension, -1 takes the remaining elements."""
    wanted = _ints(draft, op, 1, "shape")
    if wanted is None:
        raise op.invalid("it has no shape")
    have = draft.tensor(op.input(0)).shape
    _reshaped(draft, op, target_shape(op, have, wanted))


def target_shape(
    op: Op, have: tuple[int, ...], wanted: tuple[int, ...]
) -> tuple[int, ...]:
    """The shape that a Reshape of `have` to `wanted` gives."""
    shape = list(wanted)
    if not op.integer("allowzero", 0):
        shape = [have[i] if dim == 0 else dim for i, dim in enumerate(shape)]
    if shape.count(-1) == 1:
        rest = -math.prod(shape)
        shape[shape.index(-1)] = math.prod(have) // rest if rest else 0
    if min(shape, default=0) < 0 or math.prod(shape) != math.prod(have):
        raise op.invalid(f"{list(have)} does not reshape to {list(wanted)}")
    return tuple(shape)


def flatten(draft: Draft, op: Op) -> None:
    shape = draft.tensor(op.input(0)).shape
    axis, rank = op.integer("axis", 1), len(shape)
    if not -rank <= axis <= rank:
        raise op.invalid(f"axis {axis} of a tensor of {rank} axes")
    axis = axis + rank if axis < 0 else axis
    _reshaped(draft, op, (math.prod(shape[:axis]), math.prod(shape[axis:])))


def squeeze(draft: Draft, op: Op) -> None:
    shape = draft.tensor(op.input(0)).shape
    axes = _ints(draft, op, 1, "axes")
    if axes is None:
        gone = {i for i, dim in enumerate(shape) if dim == 1}
    else:
        gone = {axis_of(op, a, len(shape)) for a in axes}
    if any(shape[i] != 1 for i in gone):
        raise op.invalid(f"axes {sorted(gone)} of {list(shape)} are not of size 1")
    _reshaped(draft, op, tuple(d for i, d in enumerate(shape) if i not in gone))


def unsqueeze(draft: Draft, op: Op) -> None:
    shape = draft.tensor(op.input(0)).shape
    axes = _ints(draft, op, 1, "axes") or ()
    rank = len(shape) + len(axes)
    new = {axis_of(op, a, rank) for a in axes}
    rest = iter(shape)
    _reshaped(draft, op, tuple(1 if i in new else next(rest) for i in range(rank)))


def transpose(draft: Draft, op: Op) -> None:
    rank = len(draft.tensor(op.input(0)).shape)
    perm = op.integers("perm", tuple(range(rank))[::-1])
    if op.input(0) in draft.sources:  # integers of the file: they are moved
        shape = draft.shape(op.input(0))
        moved = draft.arranged(
            op, op.input(0), perm, tuple(shape[axis] for axis in perm), "input"
        )
        whole = draft.sources[moved]
        draft.emit("dequantize", op.name, [whole], op.output, {"simulated": True})
        draft.sources[op.output] = whole
        return
    draft.emit("transpose", op.name, [op.input(0)], op.output, {"perm": perm})


def concat(draft: Draft, op: Op) -> None:
    names = [name for name in op.inputs if name]
    axis = axis_of(op, op.integer("axis", 1), len(draft.tensor(names[0]).shape))
    draft.emit("concat", op.name, names, op.output, {"axis": axis})


def identity(draft: Draft, op: Op) -> None:
    """Identity, and Dropout in inference."""
    if len(op.outputs) > 1 and op.outputs[1]:
        raise op.invalid("the output of a mask is not supported")
    if op.kind == "Dropout" and op.input(2):
        training = draft.known(op.input(2))
        if training is None or bool(training.any()):
            raise op.invalid("training mode is not supported")
    if not draft.passed(op.input(0), op.output):
        draft.emit("copy", op.name, [op.input(0)], op.output)


def pad(draft: Draft, op: Op) -> None:
    """Constant padding; negative padding becomes a slice."""
    mode = str(op.attrs.get("mode", "constant"))
    if mode != "constant":
        raise op.invalid(f"mode '{mode}' is not supported", "only constant padding is")
    x = draft.tensor(op.input(0))
    rank = len(x.shape)
    given = _ints(draft, op, 1, "pads") or ()
    axes = _ints(draft, op, 3, "axes") if op.input(3) else tuple(range(rank))
    if axes is None or len(given) != 2 * len(axes):
        raise op.invalid(f"pads {list(given)} do not fit {rank} axes")
    pads = [(0, 0)] * rank
    for i, axis in enumerate(axes):
        pads[axis_of(op, axis, rank)] = (given[i], given[len(axes) + i])
    name = _cut(draft, op, x.name, pads)
    grown = tuple((max(b, 0), max(a, 0)) for b, a in pads)
    attrs = {"pads": grown, "value": _pad_value(draft, op, x.dtype)}
    draft.emit("pad", op.name, [name], op.output, attrs)


def _pad_value(draft: Draft, op: Op, dtype: DType) -> float:
    """Return the padding's real number; for a quantised tensor, from its integer."""
    value: Array | None = None
    if op.input(2):
        value = draft.known(op.input(2))
        if value is None or value.size != 1:
            raise op.invalid("its value is computed by the model")
    if dtype is DType.FLOAT32:
        number = op.attrs.get("value", 0.0) if value is None else value.reshape(())
        return float(number)
    x = draft.tensor(op.input(0))
    whole = int(value.reshape(())) if value is not None else 0
    if x.quant and (value is None or value.dtype in (np.uint8, np.uint16)):
        whole -= lift(kind_of(draft, x.name))
    return x.scale * (whole - x.zero_point) if x.quant else float(whole)


def _cut(draft: Draft, op: Op, name: str, pads: list[tuple[int, int]]) -> str:
    """Return the input without the elements that negative padding removes."""
    if all(b >= 0 and a >= 0 for b, a in pads):
        return name
    shape = draft.tensor(name).shape
    begin = tuple(max(-b, 0) for b, _ in pads)
    end = tuple(d - max(-a, 0) for d, (_, a) in zip(shape, pads, strict=True))
    attrs = {"begin": begin, "end": end, "strides": (1,) * len(shape)}
    made = draft.fresh(f"{name}.cut")
    return draft.emit("slice", f"{op.name}.cut", [name], made, attrs)


def slice_(draft: Draft, op: Op) -> None:
    shape = draft.tensor(op.input(0)).shape
    starts, ends = _ints(draft, op, 1, "starts"), _ints(draft, op, 2, "ends")
    if starts is None or ends is None or len(starts) != len(ends):
        raise op.invalid("its starts and ends do not fit")
    axes = _ints(draft, op, 3, "axes") or tuple(range(len(starts)))
    steps = _ints(draft, op, 4, "steps") or (1,) * len(starts)
    begin, end, strides = [0] * len(shape), list(shape), [1] * len(shape)
    for axis, start, stop, step in zip(axes, starts, ends, steps, strict=True):
        at = axis_of(op, axis, len(shape))
        if step == 0:
            raise op.invalid("a step is 0")
        # as Python's own slices, whose rules are those of ONNX
        begin[at], end[at], strides[at] = slice(start, stop, step).indices(shape[at])
    attrs = {"begin": tuple(begin), "end": tuple(end), "strides": tuple(strides)}
    draft.emit("slice", op.name, [op.input(0)], op.output, attrs)


def split(draft: Draft, op: Op) -> None:
    """A slice for each output."""
    if draft.known(op.input(0)) is not None:
        raise op.invalid("what it splits is known: so are its pieces")
    shape = draft.tensor(op.input(0)).shape
    axis = axis_of(op, op.integer("axis", 0), len(shape))
    sizes = _ints(draft, op, 1, "split")
    if sizes is None:
        count = len(op.outputs)
        each = -(-shape[axis] // count)
        sizes = (*(each,) * (count - 1), shape[axis] - each * (count - 1))
    if len(sizes) != len(op.outputs) or sum(sizes) != shape[axis] or min(sizes) < 1:
        raise op.invalid(f"split {list(sizes)} does not fit {list(shape)}")
    start = 0
    for output, size in zip(op.outputs, sizes, strict=True):
        begin, end = [0] * len(shape), list(shape)
        begin[axis], end[axis] = start, start + size
        attrs = {"begin": tuple(begin), "end": tuple(end), "strides": (1,) * len(shape)}
        draft.emit("slice", op.name, [op.input(0)], output, attrs)
        start += size
