"""Shape arithmetic: computes operators on values known at build time. Only integers and
small constants: computations on weights are left to the passes.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pybuild.dtype import Array
from pybuild.frontends.onnx.draft.draft import Draft
from pybuild.frontends.onnx.operators.eltwise import axis_of, cut_of
from pybuild.frontends.onnx.operators.shape import target_shape
from pybuild.frontends.onnx.reader.op import Op
from pybuild.ir.graph import Attr, Node

Fold = Callable[[Op, Sequence[Any]], Any]
MOST_ELEMENTS = 1 << 24


def _axes(op: Op, values: Sequence[Any]) -> tuple[int, ...]:
    if len(values) > 1 and values[1] is not None:
        return tuple(int(v) for v in values[1].reshape(-1))
    return op.integers("axes", ())


def _constant(op: Op, values: Sequence[Any]) -> Any:
    for key, dtype in (
        ("value", None), ("value_int", np.int64), ("value_ints", np.int64),
        ("value_float", np.float32), ("value_floats", np.float32),
    ):  # fmt: skip
        if key in op.attrs:
            return np.asarray(op.attrs[key], dtype)
    raise op.invalid("this kind of constant is not supported")


def _gather(op: Op, values: Sequence[Any]) -> Any:
    data, indices = values
    return np.take(data, indices.astype(np.int64), axis=op.integer("axis", 0))


def _cuts(op: Op, values: Sequence[Any]) -> list[slice]:
    """Return the slice that Slice takes of each axis."""
    data = values[0]
    if len(values) == 1:
        starts, ends = op.integers("starts", ()), op.integers("ends", ())
        axes = op.integers("axes", tuple(range(len(starts))))
        steps: Sequence[int] = (1,) * len(starts)
    else:
        starts, ends = (tuple(v.reshape(-1).tolist()) for v in values[1:3])
        more = [*values[3:], None, None]
        axes = tuple(range(len(starts)))
        if more[0] is not None:
            axes = tuple(more[0].reshape(-1).tolist())
        steps = (1,) * len(starts) if more[1] is None else more[1].reshape(-1).tolist()
    cuts = [slice(None)] * data.ndim
    for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
        cuts[axis] = cut_of(data.shape[axis], start, end, step)
    return cuts


def _slice(op: Op, values: Sequence[Any]) -> Any:
    return values[0][tuple(_cuts(op, values))]


def _unsqueeze(op: Op, values: Sequence[Any]) -> Any:
    data = values[0]
    axes = _axes(op, values)
    rank = data.ndim + len(axes)
    return np.expand_dims(data, tuple(axis_of(op, a, rank) for a in axes))


def _squeeze(op: Op, values: Sequence[Any]) -> Any:
    axes = _axes(op, values)
    return np.squeeze(values[0], axes) if axes else np.squeeze(values[0])


def _cast(op: Op, values: Sequence[Any]) -> Any:
    from onnx import helper

    return values[0].astype(helper.tensor_dtype_to_np_dtype(op.integer("to", 1)))


def _filled(op: Op, values: Sequence[Any]) -> Any:
    shape = tuple(values[0].reshape(-1).tolist())
    fill = np.asarray(op.attrs.get("value", np.zeros(1, np.float32))).reshape(-1)
    _must_be_small(op, shape)
    return np.full(shape, fill[0], fill.dtype)


def _expand(op: Op, values: Sequence[Any]) -> Any:
    shape = np.broadcast_shapes(values[0].shape, tuple(values[1].reshape(-1).tolist()))
    _must_be_small(op, shape)
    return np.broadcast_to(values[0], shape).copy()


def _range(op: Op, values: Sequence[Any]) -> Any:
    start, limit, step = (v.reshape(()) for v in values)
    _must_be_small(op, (int((limit - start) / step) + 1,))
    return np.arange(start, limit, step, dtype=values[0].dtype)


def _must_be_small(op: Op, shape: Sequence[int]) -> None:
    if min(shape, default=0) < 0 or math.prod(shape) > MOST_ELEMENTS:
        raise op.invalid(f"a constant of shape {list(shape)} is too large")


def _binary(function: Callable[[Any, Any], Any]) -> Fold:
    def fold(op: Op, values: Sequence[Any]) -> Any:
        _must_be_small(op, np.broadcast_shapes(values[0].shape, values[1].shape))
        made = function(values[0], values[1])
        return made.astype(np.result_type(values[0], values[1]))

    return fold


def _chained(function: Callable[[Any, Any], Any]) -> Fold:
    """Return a fold that reduces one or more values by a function of two."""
    two = _binary(function)

    def fold(op: Op, values: Sequence[Any]) -> Any:
        return functools.reduce(lambda a, b: two(op, (a, b)), values)

    return fold


def _divide(a: Any, b: Any) -> Any:
    if np.issubdtype(a.dtype, np.integer):
        return np.sign(a) * np.sign(b) * (abs(a) // abs(b))  # toward zero, as C
    return a / b


def _product(op: Op, values: Sequence[Any]) -> Any:
    axes = _axes(op, values)
    if not axes and op.integer("noop_with_empty_axes", 0):
        return values[0]
    keep = bool(op.integer("keepdims", 1))
    return np.prod(values[0], axis=axes or None, keepdims=keep).astype(values[0].dtype)


def _nonzero(op: Op, values: Sequence[Any]) -> Any:
    """Return the indices of nonzero elements; a scalar has no axis, as in ONNX."""
    x = values[0]
    places = np.nonzero(x) if x.ndim else np.zeros((0, int(x != 0)))
    return np.asarray(places, np.int64)


def _reshape(op: Op, values: Sequence[Any]) -> Any:
    wanted = tuple(int(v) for v in values[1].reshape(-1))
    return values[0].reshape(target_shape(op, values[0].shape, wanted))


FOLDS: dict[str, Fold] = {
    "Constant": _constant,
    "ConstantOfShape": _filled,
    "Gather": _gather,
    "Slice": _slice,
    "Unsqueeze": _unsqueeze,
    "Squeeze": _squeeze,
    "Cast": _cast,
    "Concat": lambda op, v: np.concatenate(v, axis=op.integer("axis", 0)),
    "Reshape": _reshape,
    "Transpose": lambda op, v: v[0].transpose(op.attrs.get("perm")),
    "Identity": lambda op, v: v[0],
    "Expand": _expand,
    "Range": _range,
    "Add": _binary(np.add),
    "Sub": _binary(np.subtract),
    "Mul": _binary(np.multiply),
    "Div": _binary(_divide),
    "Min": _chained(np.minimum),
    "Max": _chained(np.maximum),
    "Sqrt": lambda op, v: np.sqrt(v[0]),
    "Neg": lambda op, v: -v[0],
    "Floor": lambda op, v: np.floor(v[0]),
    "Ceil": lambda op, v: np.ceil(v[0]),
    "ReduceProd": _product,
    "NonZero": _nonzero,
    "Where": lambda op, v: np.where(*np.broadcast_arrays(*v)),
    "Equal": lambda op, v: np.equal(*v),
}
_MOVING = {
    "Cast": "reshape", "Identity": "reshape", "Reshape": "reshape", "Slice": "slice",
    "Squeeze": "reshape", "Transpose": "transpose", "Unsqueeze": "reshape",
}  # fmt: skip
# these can be computed only from known values
ONLY_FOLDED = frozenset(FOLDS) | {"Shape", "Size"}


def fold(draft: Draft, op: Op) -> bool:
    """Compute the node now if all its inputs are known; return True if it was
    computed."""
    if op.domain:
        return False
    if op.kind in ("Shape", "Size"):
        shape = draft.shape(op.input(0))
        if op.kind == "Size":
            draft.values[op.output] = np.asarray(math.prod(shape), np.int64)
        else:
            start, end = op.integer("start", 0), op.attrs.get("end")
            draft.values[op.output] = np.asarray(shape[start:end], np.int64)
        return True
    known: list[Array | None] = [
        draft.known(name) if name else None for name in op.inputs
    ]
    missing = any(v is None and name for v, name in zip(known, op.inputs, strict=True))
    if op.kind not in FOLDS or missing:
        return False
    with np.errstate(all="ignore"):
        made = np.asarray(FOLDS[op.kind](op, known))
    _must_be_small(op, made.shape)
    node = _moving(op, known, made.dtype)
    if node is None:
        draft.budget.put(draft.values, op.output, made)
    else:
        draft.known_as(op.output, made, node)
    return True


def _moving(op: Op, values: Sequence[Any], made: np.dtype[Any]) -> Node | None:
    """Return the graph node that moves elements in the same way, or None."""
    kind = _MOVING.get(op.kind)
    if kind is None or made != values[0].dtype:
        return None
    attrs: dict[str, Attr] = {}
    if op.kind == "Transpose":
        attrs["perm"] = op.integers("perm", tuple(range(values[0].ndim))[::-1])
    elif op.kind == "Slice":
        shape = values[0].shape
        ends = [c.indices(d) for c, d in zip(_cuts(op, values), shape, strict=True)]
        for n, name in enumerate(("begin", "end", "strides")):
            attrs[name] = tuple(end[n] for end in ends)
    return Node(kind, op.name, (op.input(0),), (op.output,), attrs)
