"""Operators that read or write elements at computed indices."""

from __future__ import annotations

import math

import numpy as np

from pybuild.dtype import DType
from pybuild.frontends.onnx.draft.flow import Flow
from pybuild.frontends.onnx.operators.elements import Handler, flowing
from pybuild.frontends.onnx.operators.reductions import elements_at, flat_places


@flowing
def gather(flow: Flow) -> None:
    x, indices = flow.args()
    flow.give(
        flow.gather(x, indices, flow.axis(flow.op.integer("axis", 0), flow.rank(x)))
    )


@flowing
def gather_elements(flow: Flow) -> None:
    x, indices = flow.args()
    axis = flow.axis(flow.op.integer("axis", 0), flow.rank(x))
    flow.give(elements_at(flow, x, indices, axis))


def _row_places(flow: Flow, x: str, indices: str, batch: int) -> tuple[str, int]:
    """Return indices[.., k] as row numbers of x, whose axes before `batch + k` are
    flattened, and the number of rows."""
    shape, wanted = flow.shape(x), flow.shape(indices)
    count = wanted[-1]
    indices = flow.cast(indices, DType.INT64)
    total = flow.const(0, DType.INT64)
    for n in range(count):
        size = flow.const(shape[batch + n], DType.INT64)
        one = flow.slice(indices, len(wanted) - 1, n, n + 1)
        below = flow.map("less", one, flow.const(0, DType.INT64))
        one = flow.map("where", below, flow.add(one, size), one)
        total = flow.add(flow.mul(total, size), one)
    outer = math.prod(shape[:batch])
    inner = math.prod(shape[batch : batch + count])
    total = flow.reshape(total, (outer, math.prod(wanted[batch:-1])))
    base = (np.arange(outer) * inner).reshape(-1, 1)
    total = flow.add(total, flow.const(base, DType.INT64)) if batch else total
    return total, outer * inner


@flowing
def gather_nd(flow: Flow) -> None:
    x, indices = flow.args()
    batch = flow.op.integer("batch_dims", 0)
    shape, wanted = flow.shape(x), flow.shape(indices)
    places, rows = _row_places(flow, x, indices, batch)
    rest = shape[batch + wanted[-1] :]
    made = flow.gather(flow.reshape(x, (rows, math.prod(rest))), places, 0)
    flow.give(flow.reshape(made, (*wanted[:-1], *rest)))


def _scattered(flow: Flow, x: str, places: str, updates: str, axis: int = 0) -> str:
    """Return x with the rows of `updates` written at the given indices of an axis."""
    join = str(flow.op.attrs.get("reduction", "none"))
    attrs = {"join": join, "axis": axis} if axis else {"join": join}
    return flow.emit("scatter", [x, places, updates], attrs)


@flowing
def scatter_nd(flow: Flow) -> None:
    x, indices, updates = flow.args()
    shape, wanted = flow.shape(x), flow.shape(indices)
    places, rows = _row_places(flow, x, indices, 0)
    rest = shape[wanted[-1] :] or (1,)
    count = math.prod(wanted[:-1])
    made = _scattered(
        flow,
        flow.reshape(x, (rows, *rest)),
        flow.reshape(places, (count,)),
        flow.reshape(updates, (count, *rest)),
    )
    flow.give(flow.reshape(made, shape))


@flowing
def scatter_elements(flow: Flow) -> None:
    x, indices, updates = flow.args()
    axis = flow.axis(flow.op.integer("axis", 0), flow.rank(x))
    flow.give(_along(flow, x, (indices, updates), axis))


def _along(flow: Flow, x: str, given: tuple[str, str], axis: int) -> str:
    shape = flow.shape(x)
    indices, updates = given
    row = _row(flow, indices, axis)
    whole = (*shape[:axis], flow.shape(indices)[axis], *shape[axis + 1 :])
    if row is not None and flow.shape(updates) == flow.shape(indices) == whole:
        return _scattered(flow, x, row, updates, axis)
    count = math.prod(flow.shape(indices))
    places = flow.reshape(flat_places(flow, x, indices, axis), (count,))
    made = _scattered(
        flow,
        flow.reshape(x, (math.prod(shape), 1)),
        places,
        flow.reshape(updates, (count, 1)),
    )
    return flow.reshape(made, shape)


def _row(flow: Flow, indices: str, axis: int) -> str | None:
    """Return the indices as one row if they are equal for all positions on other
    axes."""
    wanted, known = flow.shape(indices), flow.known(indices)
    if known is not None:
        first = np.moveaxis(known, axis, -1).reshape(-1, wanted[axis])
        alike = bool((first == first[:1]).all())
        return flow.const(first[0].astype(np.int64)) if alike else None
    for node in reversed(flow.draft.nodes):  # which may broadcast one row
        copies = node.op == "copy" or node.attrs.get("fn") == "copy"
        if node.output == indices and copies:
            indices = node.inputs[0]
    shape = (*(1 for _ in wanted), *flow.shape(indices))[-len(wanted) :]
    if shape[axis] != wanted[axis] or math.prod(shape) != wanted[axis]:
        return None
    return flow.reshape(indices, (wanted[axis],))


@flowing
def tensor_scatter(flow: Flow) -> None:
    """Write rows into a cache from write_indices on; they wrap around in circular
    mode."""
    op, cache, update = flow.op, flow.arg(0), flow.arg(1)
    shape, given = flow.shape(cache), flow.shape(update)
    axis = flow.axis(op.integer("axis", -2), len(shape))
    start = flow.arg(2) if flow.has(2) else flow.const(np.zeros(shape[0], np.int64))
    row = [1] * len(shape)
    row[0] = shape[0]
    steps = [1] * len(shape)
    steps[axis] = given[axis]
    number = np.arange(given[axis]).reshape(steps)
    places = flow.add(
        flow.reshape(flow.cast(start, DType.INT64), row),
        flow.const(number, DType.INT64),
    )
    if str(op.attrs.get("mode", "linear")) == "circular":
        places = flow.map("modulo", places, flow.const(shape[axis], DType.INT64))
    flow.give(_along(flow, cache, (flow.expand(places, given), update), axis))


@flowing
def one_hot(flow: Flow) -> None:
    indices, values, op = flow.arg(0), flow.arg(2), flow.op
    depth = int(flow.value(1, "depth").reshape(-1)[0])
    shape = flow.shape(indices)
    axis = flow.axis(op.integer("axis", -1), len(shape) + 1)
    whole = flow.cast(indices, DType.INT64)
    below = flow.map("less", whole, flow.const(0, DType.INT64))
    whole = flow.map("where", below, flow.plus(whole, depth), whole)
    whole = flow.reshape(whole, (*shape[:axis], 1, *shape[axis:]))
    row = [1] * (len(shape) + 1)
    row[axis] = depth
    hit = flow.map(
        "equal", whole, flow.const(np.arange(depth).reshape(row), DType.INT64)
    )
    off, on = (flow.slice(values, 0, i, i + 1) for i in (0, 1))
    flow.give(flow.map("where", hit, on, off))


@flowing
def reverse_sequence(flow: Flow) -> None:
    """Reverses each sequence up to its own length."""
    x, lengths, op = flow.arg(0), flow.arg(1), flow.op
    time, batch = op.integer("time_axis", 0), op.integer("batch_axis", 1)
    shape = flow.shape(x)
    rows, columns = [1] * len(shape), [1] * len(shape)
    rows[batch], columns[time] = shape[batch], shape[time]
    step = flow.const(np.arange(shape[time]).reshape(columns), DType.INT64)
    length = flow.reshape(flow.cast(lengths, DType.INT64), rows)
    back = flow.plus(flow.sub(length, step), -1)
    places = flow.map("where", flow.map("less", step, length), back, step)
    flow.give(elements_at(flow, x, flow.expand(places, shape), time))


@flowing
def array_feature(flow: Flow) -> None:
    """ai.onnx.ml ArrayFeatureExtractor: columns by number."""
    x, indices = flow.args()
    count = math.prod(flow.shape(indices))
    made = flow.gather(x, flow.reshape(indices, (count,)), flow.rank(x) - 1)
    flow.give(flow.reshape(made, (math.prod(flow.shape(made)) // count, count)))


INDEX: dict[str, Handler] = {
    "Gather": gather,
    "GatherElements": gather_elements,
    "GatherND": gather_nd,
    "OneHot": one_hot,
    "ReverseSequence": reverse_sequence,
    "Scatter": scatter_elements,
    "ScatterElements": scatter_elements,
    "ScatterND": scatter_nd,
    "TensorScatter": tensor_scatter,
}
