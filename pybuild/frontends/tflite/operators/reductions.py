"""TensorFlow Lite operators that reduce elements along axes."""

from __future__ import annotations

import math

from pybuild.dtype import DType
from pybuild.frontends.tflite.draft.builder import Call
from pybuild.frontends.tflite.draft.flow import Flow
from pybuild.frontends.tflite.operators import layers
from pybuild.frontends.tflite.operators.elements import (
    BYTES,
    SMALL,
    Handler,
    unsupported,
)
from pybuild.frontends.tflite.operators.fixed import cumulated, whole_scale
from pybuild.ir.graph import Attr, Tensor

_WHOLE = (DType.INT32, DType.INT64)
_NUMBERS = (DType.FLOAT32, *_WHOLE)


def _reducing(
    call: Call, kinds: tuple[DType, ...]
) -> tuple[Flow, Tensor, tuple[int, ...], bool]:
    """Return the input, its axes, and whether these are kept."""
    flow = Flow(call)
    x = flow.arg(0)
    if x.dtype not in kinds:
        raise unsupported(call, x, kinds)
    rank = len(x.shape)
    axes = tuple(sorted({flow.axis(a, rank) for a in call.integers(1)}))
    return flow, x, axes, bool(call.option("KeepDims"))


def reduced(fn: str, kinds: tuple[DType, ...]) -> Handler:
    """max, min or product; quantised ones by their integers."""

    def handler(call: Call) -> None:
        flow, x, axes, keep = _reducing(call, kinds)
        flow.give(flow.reduce(fn, flow.plain(x), axes, keep))

    return handler


def logical(fn: str) -> Handler:
    """any or all: greatest or least of 0 and 1."""

    def handler(call: Call) -> None:
        flow, x, axes, keep = _reducing(call, (DType.BOOL,))
        made = flow.reduce(fn, flow.cast(x, DType.UINT8), axes, keep)
        flow.give(flow.cast(made, DType.BOOL))

    return handler


def total(call: Call) -> None:
    """SUM; for bytes in int32, scaled with one rounding, in TFLM with two.

    Source  LiteRT's optimised SUM; its reference kernel of int8 is far from the sum
    """
    flow, x, axes, keep = _reducing(call, (*_NUMBERS, *SMALL))
    if x.dtype not in SMALL:
        flow.give(flow.reduce("sum", x, axes, keep))
        return
    y = flow.wanted()
    whole_scale(flow, x, y)
    made = flow.reduce("sum", flow.centred(x), axes, keep)
    ratio = x.scale / y.scale
    flow.give(flow.quantised(flow.requantized(made, ratio, True), y))


def mean(call: Call) -> None:
    """MEAN; integers without a scale divide toward zero, other types use the layer's
    own rule."""
    x = Flow(call).arg(0)
    if x.dtype not in _WHOLE:
        layers.mean(call)
        return
    flow, x, axes, keep = _reducing(call, _WHOLE)
    count = math.prod(x.shape[a] for a in axes)
    made = flow.reduce("sum", x, axes, keep)
    flow.give(flow.map("divide", made, flow.const(count, made)))


def place(fn: str) -> Handler:
    """ARG_MAX or ARG_MIN: the first of equal elements."""

    def handler(call: Call) -> None:
        flow = Flow(call)
        x = flow.plain(flow.arg(0))
        kinds = (*_NUMBERS, *BYTES, DType.BOOL)
        if x.dtype not in kinds:
            raise unsupported(call, x, kinds)
        if x.dtype is DType.BOOL:
            x = flow.cast(x, DType.UINT8)
        axis = flow.axis_of(call.integer(1), x)
        made = flow.node("arg_reduce", [x], {"fn": fn, "axis": axis, "last": False})
        shape = (*x.shape[:axis], *x.shape[axis + 1 :])
        flow.give(flow.cast(flow.reshape(made, shape), flow.wanted().dtype))

    return handler


def cumulative(call: Call) -> None:
    """The running sum."""
    flow = Flow(call)
    x = flow.arg(0)
    if x.dtype not in (*_NUMBERS, DType.INT8):
        raise unsupported(call, x, (*_NUMBERS, DType.INT8))
    attrs: dict[str, Attr] = {
        "fn": "sum",
        "axis": flow.axis_of(call.integer(1), x),
        "exclusive": bool(call.option("Exclusive")),
        "reverse": bool(call.option("Reverse")),
    }
    if x.dtype is DType.INT8:
        flow.give(cumulated(flow, x, attrs))
    else:
        flow.give(flow.node("cumulate", [x], attrs))


REDUCTIONS: dict[str, Handler] = {
    "ARG_MAX": place("max"),
    "ARG_MIN": place("min"),
    "CUMSUM": cumulative,
    "MEAN": mean,
    "REDUCE_ALL": logical("min"),
    "REDUCE_ANY": logical("max"),
    "REDUCE_MAX": reduced("max", (*_NUMBERS, *SMALL)),
    "REDUCE_MIN": reduced("min", (*_NUMBERS, *SMALL)),
    "REDUCE_PROD": reduced("product", _NUMBERS),
    "SUM": total,
}
