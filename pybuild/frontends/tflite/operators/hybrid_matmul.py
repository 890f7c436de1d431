"""BATCH_MATMUL of float32 by int8, which TensorFlow's converter writes by default where
the second operand is constant: each row of the first becomes int8 by its own range.

Source  LiteRT batch_matmul.cc EvalHybrid. Where both operands have two axes of batches
        or more, its kernel (2.3) reads the scales of other rows; here each row has its
        own.
"""

from __future__ import annotations

import numpy as np

from pybuild.dtype import Array, DType
from pybuild.frontends.tflite.draft.builder import Call
from pybuild.frontends.tflite.draft.flow import Flow
from pybuild.frontends.tflite.operators.hybrid import (
    Hybrid,
    Rows,
    Weights,
    product,
    quantised,
)
from pybuild.ir.graph import Tensor


def by_constant(call: Call, x: Tensor, w: Tensor, value: Array) -> Tensor:
    """The product of rows by constant matrices: a dense layer for each matrix.

    Shapes  x [...,M,K]  value [...,K,N]; axes before the last two broadcast
    Errors  BuildError for shapes that do not fit, and for scales of another axis
    """
    flow, builder = Flow(call), call.builder
    rank = max(len(x.shape), value.ndim)
    left, right = ((1,) * (rank - len(s)) + s for s in (x.shape, value.shape))
    _must_fit(call, x, value.shape, left, right)
    assert w.quant is not None
    outputs = len(w.shape) - (2 if call.option("AdjY") else 1)
    if w.quant.axis not in (None, outputs):
        what = f"'{w.name}' has scales along axis {w.quant.axis}"
        raise call.error(what, f"one scale, or one for each column: axis {outputs}")
    scales = np.asarray(w.quant.scale, np.float32)
    factor = builder.add(Tensor(f"{w.name}_scale", scales.shape, DType.FLOAT32), scales)
    q, scale, zero = _rows(flow, x)
    q = flow.reshape(q, left)
    marks = [_shaped(flow, one, left[:-1]) for one in (scale, zero)]

    def stacked(rows: list[Tensor | None], matrices: Array, axis: int) -> Tensor:
        if axis == rank - 2:
            return _dense(call, rows, (w.name, matrices), factor)
        count, parts = matrices.shape[axis], []
        for i in range(count):
            some = rows
            if count > 1:
                some = [_at(flow, one, axis, i) for one in rows]
            one = matrices.take([i], axis)
            parts.append(stacked(some, one, axis + 1))
        return flow.concat(parts, axis)

    return stacked([q, *marks], value.reshape(right), 0)


def by_computed(call: Call, x: Tensor, b: Tensor) -> Tensor:
    """The product of rows by computed matrices of int8, with one scale.

    Shapes  x [...,M,K]  b [...,K,N]
    Errors  BuildError for shapes that do not fit, and for other scales
    """
    flow = Flow(call)
    rank = max(len(x.shape), len(b.shape))
    left, right = ((1,) * (rank - len(s)) + s for s in (x.shape, b.shape))
    _must_fit(call, x, b.shape, left, right)
    if b.quant is None or len(b.quant.scale) > 1 or any(b.quant.zero_point):
        raise call.error(f"'{b.name}' must have one scale and no zero point")
    q, scale, zero = _rows(flow, x)
    rows = flow.cast(q, DType.INT32)
    each = (*x.shape[:-1], 1)
    point = _shaped(flow, zero, each)
    if point is not None:
        rows = flow.sub(rows, point)
    sums = flow.matmul(rows, flow.cast(flow.plain(b), DType.INT32))
    scales = flow.reshape(flow.builder.tensors[scale], each)
    scales = flow.mul(scales, flow.const(b.scale, scales))
    return flow.mul(flow.cast(sums, DType.FLOAT32), scales)


def _must_fit(
    call: Call, x: Tensor, other: tuple[int, ...], left: tuple[int, ...],
    right: tuple[int, ...],
) -> None:  # fmt: skip
    fits = left[-1] == right[-2]
    for a, b in zip(left[:-2], right[:-2], strict=True):
        fits = fits and (a == b or 1 in (a, b))
    if not fits or not x.size or 0 in other:
        raise call.error(f"{list(x.shape)} by {list(other)}")


def _rows(flow: Flow, x: Tensor) -> Rows:
    """The rows of x as int8, with a scale each."""
    asymmetric = bool(flow.call.option("AsymmetricQuantizeInputs"))
    how = Hybrid("dense", x.size // x.shape[-1], asymmetric)
    return quantised(flow.call, how, x)


def _shaped(flow: Flow, name: str, shape: tuple[int, ...]) -> Tensor | None:
    """Scales or zero points in the shape of their rows; None: there are none."""
    return flow.reshape(flow.builder.tensors[name], shape) if name else None


def _at(flow: Flow, x: Tensor | None, axis: int, place: int) -> Tensor | None:
    """The part of x for one matrix; all of it where it is the same for each matrix."""
    if x is None or x.shape[axis] == 1:
        return x
    return flow.part(x, axis, place, place + 1)


def _dense(
    call: Call, rows: list[Tensor | None], w: tuple[str, Array], factor: Tensor
) -> Tensor:
    """The rows by one matrix [...,K,N], whose outer axes are 1."""
    flow, (name, value) = Flow(call), w
    q, scale, zero = rows
    assert q is not None and scale is not None
    matrix = np.ascontiguousarray(value.reshape(value.shape[-2:]).T)
    tensor = call.builder.add(Tensor(name, matrix.shape, DType.INT8), matrix)
    marks = [
        flow.reshape(one, (one.size,)).name if one is not None else ""
        for one in (scale, zero)
    ]
    return product(call, (q, marks[0], marks[1]), Weights(tensor, factor))
