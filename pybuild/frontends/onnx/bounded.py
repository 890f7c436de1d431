"""Results as large as the data says: NonZero, Compress.

They have room for a bound that the user gives. What is not there is -1 where it would
be a place and 0 where it would be a value; a count says how much there is.
"""

from __future__ import annotations

import math

import numpy as np

from pybuild.dtype import DType
from pybuild.frontends.onnx.elements import Handler, flowing
from pybuild.frontends.onnx.flow import Flow
from pybuild.graph import Bound


def _room(flow: Flow, most: int, also: str = "") -> int:
    """How many there is room for, of at most so many; `also`: another way out.

    Errors  BuildError where the user must say it
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


def _places(flow: Flow, mask: str, room: int) -> tuple[str, str]:
    """Of what is true in a row: places int32[room], -1 after the last; int64[1], how
    many there are.
    """
    made = flow.emit("places", [mask], {"count": room})
    count = flow.cast(flow.slice(made, 0, 0, 1), DType.INT64)
    return flow.slice(made, 0, 1, 1 + room), count


def _absent(flow: Flow, places: str) -> str:
    return flow.map("less", places, flow.const(0, places))


def _give(flow: Flow, name: str, axis: int, count: str, index: int = 0) -> None:
    """An output that holds only so much along an axis."""
    outputs = flow.op.outputs
    if index < len(outputs) and outputs[index]:
        flow.give(name, index)
        flow.draft.ragged[outputs[index]] = Bound(axis, count)


@flowing
def nonzero(flow: Flow) -> None:
    """One column for each element that is not 0: its place on every axis."""
    x = flow.arg(0)
    shape = flow.shape(x)
    if not shape:
        raise flow.op.invalid("a scalar has no places")
    room = _room(flow, math.prod(shape))
    mask = flow.reshape(flow.cast(x, DType.BOOL), (math.prod(shape),))
    places, count = _places(flow, mask, room)
    rows = []
    for axis, size in enumerate(shape):
        step, row = math.prod(shape[axis + 1 :]), places
        if step > 1:
            row = flow.div(row, flow.const(step, row))
        if axis:
            row = flow.map("modulo", row, flow.const(size, row))
        rows.append(flow.reshape(row, (1, room)))
    whole = flow.concat(rows, 0)
    whole = flow.map("where", _absent(flow, places), flow.const(-1, whole), whole)
    _give(flow, flow.cast(whole, DType.INT64), 1, count)


@flowing
def compress(flow: Flow) -> None:
    """Where the condition holds."""
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
    room = _room(flow, flow.shape(mask)[0], also)
    places, count = _places(flow, mask, room)
    row = [1] * flow.rank(x)
    row[axis] = room
    held = flow.gather(x, flow.map("maximum", places, flow.const(0, places)), axis)
    absent = flow.reshape(_absent(flow, places), row)
    _give(flow, flow.map("where", absent, flow.const(0, held), held), axis, count)


BOUNDED: dict[str, Handler] = {"Compress": compress, "NonZero": nonzero}
