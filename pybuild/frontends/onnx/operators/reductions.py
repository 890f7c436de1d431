"""Reductions, argmax and argmin, cumulative sums, top k, and normalisations."""

from __future__ import annotations

import numpy as np

from pybuild.dtype import DType
from pybuild.frontends.onnx.draft.flow import Flow
from pybuild.frontends.onnx.operators.elements import Handler, flowing, widening


def _axes(flow: Flow, rank: int) -> list[int] | None:
    """Return the axes to reduce; None if nothing is to be reduced."""
    given = flow.ints(1, "axes")
    if not given:
        if flow.op.integer("noop_with_empty_axes", 0):
            return None
        return list(range(rank))
    return [flow.axis(a, rank) for a in given]


@widening
def reduce(flow: Flow) -> None:
    """Reduce an input; without axes, the elementwise part is still applied."""
    kind, x = flow.op.kind.removeprefix("Reduce"), flow.arg(0)
    axes = _axes(flow, flow.rank(x))
    keep = bool(flow.op.integer("keepdims", 1))
    dtype = flow.dtype(x)
    if axes is None:
        axes, keep = [], True
    if kind == "LogSumExp":
        x = _log_sum_exp(flow, x, axes)
    else:
        x = _plain_reduce(flow, kind, x, axes)
    if not keep:
        x = flow.reshape(x, [d for i, d in enumerate(flow.shape(x)) if i not in axes])
    flow.give(flow.cast(x, dtype))


def _plain_reduce(flow: Flow, kind: str, x: str, axes: list[int]) -> str:
    if kind in ("L1", "L2", "SumSquare"):
        x = flow.map("abs", x) if kind == "L1" else flow.mul(x, x)
    if flow.dtype(x) is DType.BOOL:
        x = flow.cast(x, DType.UINT8)
    usual = {"Max": "max", "Min": "min", "Prod": "product", "Mean": "mean"}
    x = flow.reduce(usual.get(kind, "sum"), x, axes)
    if kind == "LogSum":
        return flow.map("log", x)
    return flow.map("sqrt", x) if kind == "L2" else x


def _log_sum_exp(flow: Flow, x: str, axes: list[int]) -> str:
    """Return log(sum(exp(x))) as max + log(sum(exp(x - max))), in which exp cannot
    overflow."""
    highest = flow.reduce("max", x, axes)
    # of nothing but minus infinity the sum is 0, whose logarithm is that again
    lost = flow.map("is_infinite", highest)
    highest = flow.map("where", lost, flow.const(0, x), highest)
    total = flow.reduce("sum", flow.map("exp", flow.sub(x, highest)), axes)
    return flow.add(flow.map("log", total), highest)


@flowing
def arg_extreme(flow: Flow) -> None:
    x, op = flow.arg(0), flow.op
    rank = flow.rank(x)
    axis = flow.axis(op.integer("axis", 0), rank)
    last = bool(op.integer("select_last_index", 0))
    fn = "max" if op.kind == "ArgMax" else "min"
    made = flow.emit("arg_reduce", [x], {"fn": fn, "axis": axis, "last": last})
    if not op.integer("keepdims", 1):
        made = flow.reshape(
            made, [d for i, d in enumerate(flow.shape(made)) if i != axis]
        )
    flow.give(made)


@flowing
def cumulate(flow: Flow) -> None:
    x, op = flow.arg(0), flow.op
    axis = flow.axis(int(flow.value(1, "axis").reshape(())), flow.rank(x))
    attrs = {
        "fn": "product" if op.kind == "CumProd" else "sum",
        "axis": axis,
        "exclusive": bool(op.integer("exclusive", 0)),
        "reverse": bool(op.integer("reverse", 0)),
    }
    flow.give(flow.emit("cumulate", [x], attrs))


@flowing
def top_k(flow: Flow) -> None:
    x, op = flow.arg(0), flow.op
    shape = flow.shape(x)
    axis = flow.axis(op.integer("axis", -1), len(shape))
    k = int(flow.value(1, "k").reshape(()))
    outer, inner = int(np.prod(shape[:axis])), int(np.prod(shape[axis + 1 :]))
    flat = flow.reshape(x, (outer, shape[axis], inner))
    largest = bool(op.integer("largest", 1))
    places = flow.emit("top_k", [flat], {"k": k, "largest": largest})
    made = (*shape[:axis], k, *shape[axis + 1 :])
    places = flow.reshape(places, made)
    flow.give(elements_at(flow, x, places, axis))
    flow.give(places, 1)


def elements_at(flow: Flow, x: str, indices: str, axis: int) -> str:
    """GatherElements: read x at the index on one axis, and at the index's own position
    on others."""
    flat = flow.reshape(x, (int(np.prod(flow.shape(x))),))
    return flow.gather(flat, flat_places(flow, x, indices, axis), 0)


def flat_places(flow: Flow, x: str, indices: str, axis: int) -> str:
    """Return the flat indices in x of the elements that GatherElements reads."""
    shape, wanted = flow.shape(x), flow.shape(indices)
    steps = [int(np.prod(shape[i + 1 :])) for i in range(len(shape))]
    base = np.zeros(wanted, np.int64)
    for i, step in enumerate(steps):
        if i != axis:
            row = [1] * len(wanted)
            row[i] = wanted[i]
            base += (np.arange(wanted[i]) * step).reshape(row)
    index = flow.cast(indices, DType.INT64)
    size = flow.const(shape[axis], DType.INT64)
    below = flow.map("less", index, flow.const(0, DType.INT64))
    index = flow.map("where", below, flow.add(index, size), index)
    scaled = flow.mul(index, flow.const(steps[axis], DType.INT64))
    return flow.add(scaled, flow.const(base))


@widening
def instance_norm(flow: Flow) -> None:
    x, scale, bias = flow.args()
    rank = flow.rank(x)
    made = normalised(
        flow, x, range(2, rank), float(flow.op.attrs.get("epsilon", 1e-5))
    )
    row = (-1, *[1] * (rank - 2))
    channels = flow.shape(x)[1]
    wide = [flow.reshape(v, (channels, *row[1:])) for v in (scale, bias)]
    flow.give(flow.add(flow.mul(made, wide[0]), wide[1]))


def normalised(flow: Flow, x: str, axes: range, epsilon: float) -> str:
    """(x - mean) / sqrt(variance + epsilon)"""
    centred = flow.sub(x, flow.reduce("mean", x, axes))
    variance = flow.reduce("mean", flow.mul(centred, centred), axes)
    return flow.div(centred, flow.map("sqrt", flow.plus(variance, epsilon)))


@widening
def mean_variance_norm(flow: Flow) -> None:
    """(x - mean) / (deviation + 1e-9), over the axes of a picture's batch."""
    x = flow.arg(0)
    axes = [flow.axis(a, flow.rank(x)) for a in flow.op.integers("axes", (0, 2, 3))]
    centred = flow.sub(x, flow.reduce("mean", x, axes))
    variance = flow.reduce("mean", flow.mul(centred, centred), axes)
    flow.give(flow.div(centred, flow.plus(flow.map("sqrt", variance), 1e-9)))


@widening
def batch_norm(flow: Flow) -> None:
    """Normalises as in inference, or with the statistics of this batch."""
    x, scale, bias, mean, variance = flow.args()
    rank, op = flow.rank(x), flow.op
    row = (flow.shape(x)[1], *[1] * (rank - 2)) if rank > 1 else (1,)
    epsilon = float(op.attrs.get("epsilon", 1e-5))
    if op.integer("training_mode", 0):
        axes = [i for i in range(rank) if i != 1]
        own_mean = flow.reduce("mean", x, axes, False)
        centred = flow.sub(x, flow.reshape(own_mean, row))
        own = flow.reduce("mean", flow.mul(centred, centred), axes, False)
        kept = float(op.attrs.get("momentum", 0.9))
        pairs = ((mean, own_mean), (variance, own))
        for index, (old, new) in enumerate(pairs, 1):
            moved = flow.add(flow.scaled(old, kept), flow.scaled(new, 1 - kept))
            flow.give(moved, index)
        mean, variance = own_mean, own
    wide = [flow.reshape(v, row) for v in (scale, bias, mean, variance)]
    root = flow.map("sqrt", flow.plus(wide[3], epsilon))
    made = flow.mul(flow.div(flow.sub(x, wide[2]), root), wide[0])
    flow.give(flow.add(made, wide[1]))


@widening
def lp_norm(flow: Flow) -> None:
    """x / |x|, or 0 where the norm is 0."""
    x, op = flow.arg(0), flow.op
    axes = [flow.axis(op.integer("axis", -1), flow.rank(x))]
    if op.integer("p", 2) == 1:
        size = flow.reduce("sum", flow.map("abs", x), axes)
    else:
        size = flow.map("sqrt", flow.reduce("sum", flow.mul(x, x), axes))
    zero = flow.const(0, x)
    nothing = flow.map("equal", size, zero)
    safe = flow.map("where", nothing, flow.const(1, x), size)
    flow.give(flow.map("where", nothing, zero, flow.div(x, safe)))


@widening
def local_response(flow: Flow) -> None:
    """LRN: divide by a power of the sum of squares of neighbouring channels."""
    x, op = flow.arg(0), flow.op
    size = op.integer("size", 1)
    rank = flow.rank(x)
    before = (size - 1) // 2
    pads = [(0, 0)] * rank
    pads[1] = (before, size - 1 - before)
    wide = flow.pad(flow.mul(x, x), pads)
    count = flow.shape(x)[1]
    total = flow.slice(wide, 1, 0, count)
    for start in range(1, size):
        total = flow.add(total, flow.slice(wide, 1, start, start + count))
    alpha, beta = (
        float(op.attrs.get(k, d)) for k, d in (("alpha", 1e-4), ("beta", 0.75))
    )
    root = flow.plus(flow.scaled(total, alpha / size), float(op.attrs.get("bias", 1.0)))
    flow.give(flow.div(x, flow.map("power", root, flow.const(beta, x))))


JOINS: dict[str, Handler] = {
    **{
        f"Reduce{kind}": reduce
        for kind in (
            "L1", "L2", "LogSum", "LogSumExp", "Max", "Min", "Prod", "Sum", "SumSquare",
        )
    },
    "ArgMax": arg_extreme,
    "ArgMin": arg_extreme,
    "CumProd": cumulate,
    "CumSum": cumulate,
    "InstanceNormalization": instance_norm,
    "LRN": local_response,
    "LpNormalization": lp_norm,
    "MeanVarianceNormalization": mean_variance_norm,
    "TopK": top_k,
}  # fmt: skip
