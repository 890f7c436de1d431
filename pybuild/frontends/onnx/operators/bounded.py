"""Operators with data-dependent result sizes: NonZero, Compress, Unique. Results have
room for a bound that the user gives. Unused room holds -1 for indices and 0 for values;
an extra output counts the used elements.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pybuild.dtype import DType
from pybuild.frontends.onnx.draft.flow import Flow
from pybuild.frontends.onnx.operators.elements import Handler, flowing
from pybuild.ir.graph import Bound


def room_for(flow: Flow, most: int, also: str = "") -> int:
    """Return the number of elements to reserve, at most `most`; `also`: another hint
    for the user.

    Errors  BuildError if the user must give a bound
    """
    draft, outputs = flow.draft, [name for name in flow.op.outputs if name]
    if not most:
        raise flow.op.invalid("its result is always empty")
    if draft.bounds is None:
        return most
    draft.boundless.update(outputs)
    given = [draft.bounds[name] for name in outputs if name in draft.bounds]
    if given:
        return min(given[0], most)
    name = outputs[0]
    hint = f"--bound {name}=N, the rest is filled and {name}_count says how many{also}"
    what = f"the size of its result depends on data: {most} at most"
    raise flow.op.invalid(what, hint)


def places_of(flow: Flow, mask: str, room: int) -> tuple[str, str]:
    """Return the indices of true elements of a vector, int32[room] filled up with -1,
    and their number, int64[1]."""
    made = flow.emit("places", [mask], {"count": room})
    count = flow.cast(flow.slice(made, 0, 0, 1), DType.INT64)
    return flow.slice(made, 0, 1, 1 + room), count


def absent_at(flow: Flow, places: str) -> str:
    return flow.map("less", places, flow.const(0, places))


def give_bounded(flow: Flow, name: str, axis: int, count: str, index: int = 0) -> None:
    """Set an output of which only a counted part along one axis is used."""
    outputs = flow.op.outputs
    if index < len(outputs) and outputs[index]:
        flow.give(name, index)
        flow.draft.ragged[outputs[index]] = Bound(axis, count)


@flowing
def nonzero(flow: Flow) -> None:
    """Makes one column for each element that is not 0: its index on every axis."""
    x = flow.arg(0)
    shape = flow.shape(x)
    if not shape:
        raise flow.op.invalid("a scalar has no places")
    room = room_for(flow, math.prod(shape))
    mask = flow.reshape(flow.cast(x, DType.BOOL), (math.prod(shape),))
    places, count = places_of(flow, mask, room)
    rows = []
    for axis, size in enumerate(shape):
        step, row = math.prod(shape[axis + 1 :]), places
        if step > 1:
            row = flow.div(row, flow.const(step, row))
        if axis:
            row = flow.map("modulo", row, flow.const(size, row))
        rows.append(flow.reshape(row, (1, room)))
    whole = flow.concat(rows, 0)
    whole = flow.map("where", absent_at(flow, places), flow.const(-1, whole), whole)
    give_bounded(flow, flow.cast(whole, DType.INT64), 1, count)


@flowing
def compress(flow: Flow) -> None:
    """Selects the slices for which the condition is true."""
    x, op = flow.arg(0), flow.op
    if "axis" in op.attrs:
        axis = flow.axis(op.integer("axis", 0), flow.rank(x))
    else:
        x, axis = flow.reshape(x, (math.prod(flow.shape(x)),)), 0
    size, name = flow.shape(x)[axis], op.input(1)
    condition = flow.known(name)
    if condition is not None:
        flow.give(flow.taken(x, np.flatnonzero(condition.reshape(-1)), axis))
        return
    mask = flow.arg(1)
    mask = flow.slice(mask, 0, 0, size)
    roots = sorted(flow.draft.roots(name))
    also = f"; or --input-value {roots[0]}=..." if roots else ""
    room = room_for(flow, flow.shape(mask)[0], also)
    places, count = places_of(flow, mask, room)
    row = [1] * flow.rank(x)
    row[axis] = room
    held = flow.gather(x, flow.map("maximum", places, flow.const(0, places)), axis)
    absent = flow.reshape(absent_at(flow, places), row)
    give_bounded(
        flow, flow.map("where", absent, flow.const(0, held), held), axis, count
    )


@flowing
def unique(flow: Flow) -> None:
    """Distinct values, or slices of an axis; their first indices, and how often they
    occur."""
    x, op = flow.arg(0), flow.op
    shape, axis = flow.shape(x), -1
    if "axis" in op.attrs:
        axis = flow.axis(op.integer("axis", 0), len(shape))
    others = [i for i in range(len(shape)) if i != axis] if axis >= 0 else []
    count = shape[axis] if axis >= 0 else math.prod(shape)
    room = room_for(flow, count)
    rows = flow.transpose(x, [axis, *others]) if axis >= 0 else x
    rows = flow.reshape(rows, (count, math.prod(shape[i] for i in others)))
    plain = flow.cast(rows, DType.UINT8) if flow.dtype(x) is DType.BOOL else rows
    number = flow.emit("distinct", [plain], {"sorted": bool(op.integer("sorted", 1))})
    total = flow.plus(flow.reduce("max", number, [0]), 1)
    slots = np.arange(count, dtype=np.int32)
    absent = flow.map("less_or_equal", total, flow.const(slots[:room]))
    first = _joined(flow, "min", number, np.full(count, count), slots, room)
    first = flow.map("where", absent, flow.const(-1, first), first)
    held = flow.gather(rows, flow.map("maximum", first, flow.const(0, first)), 0)
    gone = flow.reshape(absent, (room, 1))
    held = flow.map("where", gone, flow.const(0, held), held)
    made = flow.reshape(held, (room, *(shape[i] for i in others)))
    if axis >= 0:
        made = flow.transpose(made, np.argsort([axis, *others]).tolist())
    often = _joined(flow, "add", number, np.zeros(count), np.ones(count), room)
    total = flow.cast(total, DType.INT64)
    give_bounded(flow, made, max(axis, 0), total)
    give_bounded(flow, flow.cast(first, DType.INT64), 0, total, 1)
    flow.give(flow.cast(number, DType.INT64), 2)
    give_bounded(flow, flow.cast(often, DType.INT64), 0, total, 3)


def _joined(flow: Flow, join: str, number: str, old: Any, given: Any, room: int) -> str:
    """Join what is given for each number with the old value: int32[room]."""
    both = [flow.const(np.asarray(v, np.int32).reshape(-1, 1)) for v in (old, given)]
    made = flow.emit("scatter", [both[0], number, both[1]], {"join": join})
    return flow.reshape(flow.slice(made, 0, 0, room), (room,))


BOUNDED: dict[str, Handler] = {
    "Compress": compress,
    "NonZero": nonzero,
    "Unique": unique,
}
