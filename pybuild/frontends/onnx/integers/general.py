"""Quantised operators with computed scales or weights, or on other integer types. Zero
points are subtracted first, so that sums are of plain int32.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from pybuild.dtype import Array, DType
from pybuild.frontends.onnx.draft.draft import Draft
from pybuild.frontends.onnx.draft.flow import Flow
from pybuild.frontends.onnx.integers import dynamic
from pybuild.frontends.onnx.operators.elements import Handler, flowing, onnx_type
from pybuild.frontends.onnx.operators.products import product
from pybuild.frontends.onnx.operators.windows import convolved, window
from pybuild.frontends.onnx.reader.op import Op

_REAL = DType.FLOAT32


def _scale(flow: Flow, index: int) -> str:
    """Return an input that is a scale.

    Errors  BuildError if its value in the file is infinity or NaN
    """
    known = flow.draft.known(flow.op.input(index))
    numbers = () if known is None else known.reshape(-1).astype(np.float32)
    for channel, number in enumerate(numbers):
        if not np.isfinite(number):
            where = f" in channel {channel}" if len(numbers) > 1 else ""
            what = f"its scale {number:g}{where} is not a finite number"
            raise flow.op.invalid(what, "quantise the model again")
    return flow.arg(index)


def _along(flow: Flow, v: str, rank: int, axis: int) -> str:
    """Return a scale or zero point, reshaped to broadcast along one axis if it has
    several values."""
    count = math.prod(flow.shape(v))
    if count == 1:
        return flow.reshape(v, ())
    row = [1] * rank
    row[axis] = count
    return flow.reshape(v, row)


def _blocks(flow: Flow, v: str, x: str, axis: int) -> str:
    """Repeat the scales of blocks along the axis, one for each element."""
    size = flow.op.integer("block_size", 0)
    shape, whole = flow.shape(v), flow.shape(x)
    count = -(-whole[axis] // size) if size > 0 else 0
    if shape != (*whole[:axis], count, *whole[axis + 1 :]):
        what = f"{list(shape)} scales or zero points of {list(whole)} in blocks of "
        hint = "export it again: one for each block, the last of which may be shorter"
        raise flow.op.invalid(f"{what}{size} along axis {axis}", hint)
    size = min(size, whole[axis])
    wide = flow.reshape(v, (*shape[: axis + 1], 1, *shape[axis + 1 :]))
    wide = flow.expand(wide, (*shape[: axis + 1], size, *shape[axis + 1 :]))
    flat = (*shape[:axis], shape[axis] * size, *shape[axis + 1 :])
    return flow.slice(flow.reshape(wide, flat), axis, 0, whole[axis])


def _fitting(flow: Flow, v: str, x: str) -> str:
    rank = flow.rank(x)
    axis = flow.axis(flow.op.integer("axis", 1), rank) if flow.rank(v) else 0
    if flow.op.integer("block_size", 0):
        return _blocks(flow, v, x, axis)
    shape, whole = flow.shape(v), flow.shape(x)
    if math.prod(shape) not in (1, *whole[axis : axis + 1]):
        what = f"{list(shape)} scales or zero points along axis {axis} of {list(whole)}"
        hint = "export it again: one, one for each along the axis, or a block_size"
        raise flow.op.invalid(what, hint)
    return _along(flow, v, rank, axis)


def held(flow: Flow, x: str, to: DType) -> str:
    """Clamp whole real numbers to the range of an integer type, and cast them."""
    low, high = flow.const(to.low, x), flow.const(to.high, x)
    return flow.cast(flow.map("minimum", flow.map("maximum", x, low), high), to)


def quantised(flow: Flow, x: str, scale: str, zero: str, to: DType) -> str:
    """round(x / scale) + zero, clamped to the type."""
    steps = flow.map("round", flow.div(x, scale))
    if zero:
        steps = flow.add(steps, flow.cast(zero, flow.dtype(steps)))
    return held(flow, steps, to)


@flowing
def quantize(flow: Flow) -> None:
    x, scale = flow.arg(0), _scale(flow, 1)
    zero = flow.arg(2) if flow.has(2) else ""
    to = flow.dtype(zero) if zero else DType.UINT8
    if not zero and flow.op.integer("output_dtype", 0):
        to = onnx_type(flow.op, flow.op.integer("output_dtype", 0))
    if to.is_float:
        raise flow.op.invalid(f"quantisation to {to.value} is not supported")
    wide = _fitting(flow, flow.cast(scale, _REAL), x)
    zero = _fitting(flow, zero, x) if zero else ""
    flow.give(quantised(flow, flow.cast(x, _REAL), wide, zero, to))


@flowing
def dequantize(flow: Flow) -> None:
    x, scale = flow.arg(0), _scale(flow, 1)
    result = flow.dtype(scale)
    wide = flow.cast(x, DType.INT32)
    if flow.has(2):
        zero = flow.cast(_fitting(flow, flow.arg(2), x), DType.INT32)
        wide = flow.sub(wide, zero)
    made = flow.mul(flow.cast(wide, result), _fitting(flow, scale, x))
    told = flow.op.integer("output_dtype", 0)
    flow.give(flow.cast(made, onnx_type(flow.op, told)) if told else made)


_NARROW = {"int4": np.int8, "uint4": np.uint8, "int2": np.int8, "uint2": np.uint8}


def in_bytes(handler: Handler) -> Handler:
    """Return a handler that treats values and zero points of 4 or 2 bits as if they had
    8. A zero point shared by all values is subtracted, so that the weights need none.
    """

    def made(draft: Draft, op: Op) -> None:
        inputs, known = list(op.inputs), dict[int, Array]()
        for index in (0, 2):
            value = draft.known(op.input(index))
            kind = None if value is None else _NARROW.get(value.dtype.name)
            if value is not None and kind is not None:
                known[index] = value.astype(kind)
        if len(known) == 2 and len(np.unique(known[2])) == 1:
            zero = int(known[2].flat[0])
            known[0] = (known[0].astype(np.int16) - zero).astype(np.int8)
            known[2] = np.zeros_like(known[2], np.int8)
        for index, value in known.items():
            inputs[index] = draft.fresh(f"{op.input(index)}.bytes")
            draft.budget.put(draft.values, inputs[index], value)
        handler(draft, replace(op, inputs=tuple(inputs)))

    return made


def _centred(flow: Flow, index: int, zero: int, axis: int) -> str:
    """Return an input as int32 with its zero point subtracted."""
    x = flow.arg(index)
    wide = flow.cast(x, DType.INT32)
    if not flow.has(zero):
        return wide
    point = flow.cast(flow.arg(zero), DType.INT32)
    rank = flow.rank(x)
    if flow.rank(point) < 2:
        point = _along(flow, point, rank, axis % rank)
    return flow.sub(wide, point)


@flowing
def matmul_integer(flow: Flow) -> None:
    if dynamic.matmul_sums(flow):
        return
    a = _centred(flow, 0, 2, -2)
    b = _centred(flow, 1, 3, -1)
    flow.give(product(flow, a, b))


@flowing
def conv_integer(flow: Flow) -> None:
    if dynamic.conv_sums(flow):
        return
    flow.give(_conv(flow, _centred(flow, 0, 2, 1), _centred(flow, 1, 3, 0)))


def _conv(flow: Flow, x: str, w: str) -> str:
    given = window(flow, flow.shape(x)[2:], flow.shape(w)[2:])
    return convolved(flow, x, w, given, flow.op.integer("group", 1))


def _requantised(flow: Flow, total: str, axis: int) -> None:
    """Emit total * a's scale * b's scale, quantised for the output."""
    rank = flow.rank(total)
    factors = [
        flow.cast(_scale(flow, 1), _REAL),
        _along(flow, flow.cast(_scale(flow, 4), _REAL), rank, axis % rank),
    ]
    if flow.rank(factors[0]) < 2:
        factors[0] = _along(flow, factors[0], rank, -2 % rank)
    real = flow.mul(flow.mul(flow.cast(total, _REAL), factors[0]), factors[1])
    scale = _along(flow, flow.cast(_scale(flow, 6), _REAL), rank, -2 % rank)
    zero = flow.arg(7)
    to = flow.dtype(zero)
    flow.give(quantised(flow, real, scale, _along(flow, zero, rank, -2 % rank), to))


@flowing
def qlinear_matmul(flow: Flow) -> None:
    total = product(flow, _centred(flow, 0, 2, -2), _centred(flow, 3, 5, -1))
    _requantised(flow, total, -1)


@flowing
def qlinear_conv(flow: Flow) -> None:
    total = _conv(flow, _centred(flow, 0, 2, 1), _centred(flow, 3, 5, 0))
    if flow.has(8):
        bias = flow.arg(8)
        row = (flow.shape(bias)[0], *[1] * (flow.rank(total) - 2))
        total = flow.add(total, flow.reshape(bias, row))
    _requantised(flow, total, 1)


INTEGER: dict[str, Handler] = {
    "ConvInteger": conv_integer,
    "DynamicQuantizeLinear": dynamic.quantize,
    "MatMulInteger": matmul_integer,
}
