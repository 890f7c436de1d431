"""Operators that may read a partly filled tensor, and how full their results are. All
others are rejected: they would compute with the unused room.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from pybuild.frontends.onnx.draft.draft import Draft
from pybuild.frontends.onnx.draft.flow import Flow
from pybuild.frontends.onnx.operators.elements import ELEMENTS
from pybuild.frontends.onnx.operators.shape import target_shape
from pybuild.frontends.onnx.reader.op import Op
from pybuild.ir.graph import Bound

# gives what holds of the result; None: it cannot be computed from such a tensor
Rule = Callable[[Draft, Op], Bound | None]


def passed_on(draft: Draft, op: Op) -> Bound | None:
    """Return the bound of a node's results; None if they are full.

    Errors  BuildError if the operator would read unused room
    """
    read = [name for name in op.inputs if name in draft.ragged]
    if not read:
        return None
    rule = None if op.domain else RULES.get(op.kind)
    found = rule(draft, op) if rule else None
    if found is None:
        what = f"it reads '{read[0]}', which holds less than it has room for"
        hint = f"end the model at '{read[0]}', or give the values that decide its size"
        raise op.invalid(what, hint)
    return found


def shape_of(draft: Draft, op: Op) -> None:
    """Compute Shape and Size of a partly filled tensor at run time."""
    flow = Flow(draft, op)
    name = op.input(0)
    bound, shape = draft.ragged[name], list(flow.shape(name))
    if op.kind == "Size":
        del shape[bound.axis]
        rest = flow.const(np.asarray(math.prod(shape), np.int64))
        flow.give(flow.reshape(flow.mul(bound.count, rest), ()))
        return
    parts = [flow.const(np.asarray([d], np.int64)) for d in shape]
    parts[bound.axis] = bound.count
    start, end = op.integer("start", 0), op.attrs.get("end")
    flow.give(flow.concat(parts[start:end], 0))


def _element(draft: Draft, op: Op) -> Bound | None:
    """The rule for elementwise operators: all inputs must be equally filled."""
    names = [name for name in op.inputs if name]
    shapes = {name: draft.shape(name) for name in names}
    rank = max(map(len, shapes.values()))
    found = set()
    for name in names:
        if name in draft.ragged:
            own = draft.ragged[name]
            found.add(Bound(own.axis + rank - len(shapes[name]), own.count))
    if len(found) > 1:
        return None
    (bound,) = found
    for name in names:
        axis = bound.axis - (rank - len(shapes[name]))
        if name not in draft.ragged and axis >= 0 and shapes[name][axis] != 1:
            return None
    return bound


def _first(draft: Draft, op: Op) -> Bound | None:
    """The bound of the first input, if no other input has unused room."""
    if any(name in draft.ragged for name in op.inputs[1:]):
        return None
    return draft.ragged[op.input(0)]


def _axes(draft: Draft, op: Op, index: int, rank: int) -> list[int] | None:
    """The axes from an input or an attribute; None if they are missing or unknown."""
    given: Sequence[int] = op.integers("axes", ())
    if op.input(index):
        value = draft.known(op.input(index))
        if value is None:
            return None
        given = [int(v) for v in value.reshape(-1)]
    return [int(v) % rank for v in given] or None


def _transpose(draft: Draft, op: Op) -> Bound | None:
    bound = draft.ragged[op.input(0)]
    rank = len(draft.shape(op.input(0)))
    perm = op.integers("perm", tuple(reversed(range(rank))))
    return Bound(perm.index(bound.axis), bound.count)


def _unsqueeze(draft: Draft, op: Op) -> Bound | None:
    bound = _first(draft, op)
    rank = len(draft.shape(op.input(0)))
    count = len(op.integers("axes", ()))
    if op.input(1):
        count = math.prod(draft.shape(op.input(1)))
    axes = _axes(draft, op, 1, rank + count)
    if bound is None or axes is None:
        return None
    kept = [axis for axis in range(rank + count) if axis not in axes]
    return Bound(kept[bound.axis], bound.count)


def _squeeze(draft: Draft, op: Op) -> Bound | None:
    bound, shape = _first(draft, op), draft.shape(op.input(0))
    axes = _axes(draft, op, 1, len(shape))
    if axes is None:
        axes = [axis for axis, dim in enumerate(shape) if dim == 1]
    if bound is None or bound.axis in axes:
        return None
    return Bound(bound.axis - sum(a < bound.axis for a in axes), bound.count)


def _gather(draft: Draft, op: Op) -> Bound | None:
    x, indices = op.input(0), op.input(1)
    rank, more = len(draft.shape(x)), len(draft.shape(indices))
    axis = op.integer("axis", 0) % rank
    if x not in draft.ragged:
        own = draft.ragged[indices]
        return Bound(axis + own.axis, own.count)
    bound = _first(draft, op)
    if bound is None or bound.axis == axis:
        return None
    return Bound(bound.axis + (more - 1) * (bound.axis > axis), bound.count)


def _gather_nd(draft: Draft, op: Op) -> Bound | None:
    x, indices = op.input(0), op.input(1)
    own = draft.ragged.get(indices)
    last = len(draft.shape(indices)) - 1
    if x in draft.ragged or own is None or op.integer("batch_dims", 0):
        return None
    return own if own.axis < last else None


def _gather_elements(draft: Draft, op: Op) -> Bound | None:
    return None if op.input(0) in draft.ragged else draft.ragged[op.input(1)]


def _slice(draft: Draft, op: Op) -> Bound | None:
    """The rule for Slice: other axes only."""
    bound, rank = _first(draft, op), len(draft.shape(op.input(0)))
    starts = draft.known(op.input(1))
    axes = _axes(draft, op, 3, rank)
    if axes is None and starts is not None and not op.input(3):
        axes = list(range(starts.size))
    return bound if bound and axes is not None and bound.axis not in axes else None


def _concat(draft: Draft, op: Op) -> Bound | None:
    """The bound of tensors that all hold the same number, joined along another axis."""
    found = {draft.ragged.get(name) for name in op.inputs}
    (bound,) = found if len(found) == 1 else {None}
    rank = len(draft.shape(op.input(0)))
    along = op.integer("axis", 0) % rank
    return bound if bound is not None and bound.axis != along else None


def _reshape(draft: Draft, op: Op) -> Bound | None:
    """The rule for Reshape: the partly filled axis must stay an axis of its own."""
    x, shape = op.input(0), draft.known(op.input(1))
    if x not in draft.ragged or shape is None:
        return None
    bound, have = draft.ragged[x], draft.shape(x)
    made = target_shape(op, have, tuple(int(v) for v in shape.reshape(-1)))
    before = math.prod(have[: bound.axis])
    for axis, dim in enumerate(made):
        if dim == have[bound.axis] and math.prod(made[:axis]) == before:
            return Bound(axis, bound.count)
    return None


def _softmax(draft: Draft, op: Op) -> Bound | None:
    """The rule for Softmax: another axis only."""
    bound, rank = _first(draft, op), len(draft.shape(op.input(0)))
    other = op.integer("axis", -1) % rank != (bound.axis if bound else 0)
    return bound if op.opset >= 13 and other else None


def _reduce(draft: Draft, op: Op) -> Bound | None:
    """The rule for reductions: other axes only."""
    bound, rank = _first(draft, op), len(draft.shape(op.input(0)))
    axes = _axes(draft, op, 1, rank)
    if op.kind in ("ArgMax", "ArgMin"):
        axes = [op.integer("axis", 0) % rank]
    if bound is None or axes is None or bound.axis in axes:
        return None
    gone = 0 if op.integer("keepdims", 1) else sum(a < bound.axis for a in axes)
    return Bound(bound.axis - gone, bound.count)


def _rows(draft: Draft, op: Op) -> Bound | None:
    """The rule for rows times a matrix: each row is computed by itself."""
    bound, rank = _first(draft, op), len(draft.shape(op.input(0)))
    plain = len(draft.shape(op.input(1))) == 2
    return bound if bound and plain and bound.axis < rank - 1 else None


_NOT_EACH = ("Hardmax", "LogSoftmax")
RULES: dict[str, Rule] = {
    **{kind: _element for kind in ELEMENTS if kind not in _NOT_EACH},
    **{
        kind: _element
        for kind in (
            "Add", "Cast", "Clip", "Div", "HardSigmoid", "HardSwish", "Identity",
            "LeakyRelu", "Mul", "Relu", "Sigmoid", "Sub", "Tanh",
        )
    },
    **{
        f"Reduce{kind}": _reduce
        for kind in (
            "L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "Sum",
            "SumSquare",
        )
    },
    "ArgMax": _reduce,
    "ArgMin": _reduce,
    "Concat": _concat,
    "Gather": _gather,
    "GatherElements": _gather_elements,
    "GatherND": _gather_nd,
    "LogSoftmax": _softmax,
    "MatMul": _rows,
    "Reshape": _reshape,
    "Slice": _slice,
    "Softmax": _softmax,
    "Squeeze": _squeeze,
    "Transpose": _transpose,
    "Unsqueeze": _unsqueeze,
}  # fmt: skip
