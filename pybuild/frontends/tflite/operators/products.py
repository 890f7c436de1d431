"""TensorFlow Lite operators of products and sums beyond the layers' own: BATCH_MATMUL,
TRANSPOSE_CONV, resizing, norms of rows.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from pybuild.dtype import DType
from pybuild.errors import BuildError
from pybuild.frontends.tflite.draft.builder import MOST_BYTES, Call
from pybuild.frontends.tflite.draft.flow import Flow
from pybuild.frontends.tflite.operators import hybrid_matmul, layers, logs
from pybuild.frontends.tflite.operators.elements import Handler, typed, unsupported
from pybuild.frontends.tflite.operators.fixed import (
    inverse_root,
    requantized_wide,
    whole_scale,
)
from pybuild.frontends.tflite.operators.hybrid import is_hybrid, transposed
from pybuild.ir.graph import Attr, Quant, Tensor
from pybuild.ops.contract import product_fits, ratio_of
from pybuild.params.budget import MOST_RESIZED


def batch_matmul(call: Call) -> None:
    """BATCH_MATMUL: multiply matrices in the last two axes, each optionally
    transposed."""
    kinds, flow = (DType.FLOAT32, DType.INT8, DType.INT16), Flow(call)
    a = flow.arg(0)
    if a.dtype is DType.FLOAT32 and call.settled(1):
        flow.give(_by_constant(flow, a))
        return
    b = flow.arg(1)
    mixed = (a.dtype, b.dtype)
    if mixed == (DType.INT16, DType.INT8):
        b = _in_int16(flow, b)
    elif mixed != (DType.FLOAT32, DType.INT8):
        flow, (a, b) = typed(call, kinds, 0, 1)
    a, b = _turned(flow, a, "AdjX"), _turned(flow, b, "AdjY")
    if mixed == (DType.FLOAT32, DType.INT8):
        flow.give(hybrid_matmul.by_computed(call, a, b))
    else:
        flow.give(_product(flow, a, b))


def _by_constant(flow: Flow, a: Tensor) -> Tensor:
    """Return float32 by a constant, whose integers stay or become float32."""
    call = flow.call
    tensor, value = layers.weights(call, a)
    a = _turned(flow, a, "AdjX")
    if tensor.dtype is DType.INT8:
        if value.ndim < 2:
            raise _no_matrix(call, tensor.name, value.shape)
        value = value.swapaxes(-1, -2) if call.option("AdjY") else value
        return hybrid_matmul.by_constant(call, a, tensor, value)
    b = call.builder.add(tensor, value)
    return _product(flow, a, _turned(flow, b, "AdjY"))


def _turned(flow: Flow, x: Tensor, option: str) -> Tensor:
    """Return an operand, transposed if the option says so."""
    if len(x.shape) < 2:
        raise _no_matrix(flow.call, x.name, x.shape)
    axes = list(range(len(x.shape)))
    if flow.call.option(option):
        axes[-2:] = axes[-1], axes[-2]
    return flow.transpose(x, axes)


def _no_matrix(call: Call, name: str, shape: tuple[int, ...]) -> BuildError:
    return call.error(f"'{name}' {list(shape)} is not a matrix")


def _in_int16(flow: Flow, x: Tensor) -> Tensor:
    """The same numbers without a zero point: LiteRT multiplies int16 by int8 as it does
    two of int16.
    """
    whole_scale(flow, x)
    made = flow.cast(flow.centred(x), DType.INT16)
    quant = Quant((x.scale,), (0,))
    value = flow.known(made)
    if value is None:
        return flow.node("copy", [made], like=replace(made, quant=quant))
    name = flow.builder.fresh(f"{x.name}_int16")
    return flow.builder.add(Tensor(name, x.shape, DType.INT16, quant), value)


def _product(flow: Flow, a: Tensor, b: Tensor) -> Tensor:
    """Return a @ b in the output's type and, for integers, in its scale."""
    if a.dtype.is_float:
        return flow.matmul(a, b)
    y = flow.wanted()
    whole_scale(flow, a, b, y)
    ratio, wide = ratio_of(a, b, y), a.dtype is DType.INT16
    if product_fits(ratio, a.shape[-1], a.dtype) and y.dtype is a.dtype:
        return flow.node("matmul", [a, b], {"rounding": "double"}, like=y)
    left, right = flow.centred(a), flow.centred(b)
    if wide:
        left, right = flow.cast(left, DType.INT64), flow.cast(right, DType.INT64)
    scaled = requantized_wide if wide else Flow.requantized
    return flow.quantised(scaled(flow, flow.matmul(left, right), ratio), y)


def fully_connected(call: Call) -> None:
    """Weights [O,K]: a layer where the file holds them, else a product of tensors."""
    if call.settled(1):
        layers.fully_connected(call)
        return
    flow, (x, w) = typed(call, (DType.FLOAT32, DType.INT8), 0, 1)
    if call.option("WeightsFormat") or len(w.shape) != 2 or x.size % w.shape[1]:
        raise call.error(f"input {list(x.shape)}, weights {list(w.shape)}")
    outs, depth = w.shape
    keep = bool(call.option("KeepNumDims"))
    if keep and x.shape[-1:] != (depth,):
        raise call.error(f"input {list(x.shape)} does not end in {depth} values")
    rows = x.shape[:-1] if keep else (x.size // depth,)
    x = flow.reshape(x, (math.prod(rows), depth))
    w = flow.transpose(w, (1, 0))
    bias = flow.arg(2) if call.has(2) else None
    clamp = layers.fused(call).get("clamp", (None, None))
    if x.dtype.is_float:
        made = flow.matmul(x, w)
        made = flow.held(made if bias is None else flow.add(made, bias), *clamp)
    else:
        y = flow.wanted()
        whole_scale(flow, x, w, y)
        made = flow.matmul(flow.centred(x), flow.centred(w))
        made = made if bias is None else flow.add(made, flow.plain(bias))
        made = flow.requantized(made, x.scale * w.scale / y.scale, once=True)
        made = flow.quantised(made, y, clamp)
    flow.give(flow.reshape(made, (*rows, outs)))


def transpose_conv(call: Call) -> None:
    """Emit a convolution with reversed weights over the input with zeros inserted
    between its rows and columns.

    Shapes  output shape [4]  w [O,KH,KW,C]  x [N,H,W,C]  bias [O]
    """
    flow = Flow(call)
    x, wanted = flow.arg(2), call.integers(0)
    tensor, value = layers.weights(call, x)
    if value.ndim != 4 or len(wanted) != 4 or len(x.shape) != 4:
        raise call.error(f"input {list(x.shape)}, weights {list(value.shape)}")
    strides = (call.option("StrideH"), call.option("StrideW"))
    if min(strides) < 1 or x.shape[3] != value.shape[3]:
        what = f"input {list(x.shape)}, weights {list(value.shape)}"
        raise call.error(f"{what}, strides {strides} make no sense")
    bias = layers.bias(call, x, 3)
    sizes = zip(x.shape[1:3], value.shape[1:3], strides, wanted[1:3], strict=True)
    (top, bottom), (left, right) = (_around(call, *each) for each in sizes)
    if is_hybrid(call, x, tensor):
        value = np.ascontiguousarray(value[:, ::-1, ::-1])
        pads = (top, left, bottom, right)
        transposed(call, x, (tensor, value), bias, {**layers.fused(call), "pads": pads})
        return
    tensor, value = layers.without_zero(call, tensor, value)
    w = flow.flip(flow.flip(call.builder.add(tensor, value), 1), 2)
    attrs = {
        "groups": 1, "strides": (1, 1), "dilations": (1, 1),
        "input_dilations": strides, "pads": (top, left, bottom, right),
        **layers.fused(call),
    }  # fmt: skip
    call.emit("conv2d", (x.name, w.name, bias), attrs)


def _around(
    call: Call, rows: int, kernel: int, stride: int, size: int
) -> tuple[int, int]:
    """Return rows of zeros before and after, so that `size` windows fit; negative: rows
    to cut off."""
    same = call.option("Padding") == layers.SAME
    inner = (
        (size + stride - 1) // stride if same else (size + stride - kernel) // stride
    )
    margin = max(0, (inner - 1) * stride + kernel - size) // 2
    before = kernel - 1 - margin
    after = size - 1 + margin - (rows - 1) * stride
    if size < 1 or (rows - 1) * stride + 1 + min(after, 0) + min(before, 0) < 1:
        raise call.error(f"{size} rows of {rows} make no sense")
    return before, after


# ---- resizing -----------------------------------------------------------------


def _sizes(call: Call) -> tuple[Flow, Tensor, tuple[int, int], bool, bool]:
    """Input, size wanted, corners aligned, centres of pixels half in."""
    flow, sizes = Flow(call), call.integers(1)
    x = flow.arg(0)
    corners, half = (bool(call.option(n)) for n in ("AlignCorners", "HalfPixelCenters"))
    if len(x.shape) != 4 or len(sizes) != 2 or min(sizes) < 1 or (corners and half):
        raise call.error(f"{list(x.shape)} to {list(sizes)}")
    many = math.prod((x.shape[0], *sizes, x.shape[3])) >= MOST_BYTES
    if many or max(sizes) > MOST_RESIZED:
        raise call.error(f"{list(x.shape)} to {list(sizes)} is too large")
    return flow, x, (sizes[0], sizes[1]), corners, half


def resize_nearest(call: Call) -> None:
    flow, x, sizes, corners, half = _sizes(call)
    one = np.float32(1)
    for axis, size in enumerate(sizes, 1):
        old = x.shape[axis]
        scale = np.float32(old) / np.float32(size)
        if corners and size > 1:
            scale = np.float32(old - 1) / np.float32(size - 1)
        at = np.arange(size, dtype=np.float32) + (one / 2 if half else 0 * one)
        at = (at * scale).astype(np.float32)
        places = np.floor(at + one / 2) if corners else np.floor(at)
        x = flow.taken(x, np.clip(places, 0, old - 1).astype(np.int64), axis)
    flow.give(x)


def resize_bilinear(call: Call) -> None:
    flow, x, sizes, corners, half = _sizes(call)
    if call.builder.has_twin(call.index(0)):
        flow.give(_bytes_bilinear(flow, x, sizes, corners, half))
    elif x.dtype in (DType.INT8, DType.INT16, DType.FLOAT32):
        attrs = {"sizes": sizes, "corners": corners, "half": half}
        call.emit("resize_bilinear", (x.name,), attrs)
    else:
        kinds = (DType.FLOAT32, DType.INT8, DType.UINT8, DType.INT16)
        raise unsupported(call, x, kinds)


def _bytes_bilinear(
    flow: Flow, x: Tensor, sizes: tuple[int, int], corners: bool, half: bool
) -> Tensor:
    """Four neighbours of uint8 in float32, then the nearest integer."""
    real = flow.cast(flow.cast(flow.plain(x), DType.INT32), DType.FLOAT32)
    attrs: dict[str, Attr] = {"sizes": sizes, "corners": corners, "half": half}
    between = flow.node("resize_bilinear", [flow.plus(real, 128)], attrs)
    made = flow.cast(flow.plus(between, 0.5), DType.INT32)
    return flow.cast(flow.plus(made, -128), DType.INT8)


# ---- norms of rows ------------------------------------------------------------


def l2_normalization(call: Call) -> None:
    """Normalise rows of the last axis to length 1; bytes have a scale of 1/128."""
    flow = Flow(call)
    x = flow.arg(0)
    last = (len(x.shape) - 1,)
    if x.dtype is DType.FLOAT32:
        size = flow.map("sqrt", flow.reduce("sum", flow.mul(x, x), last))
        flow.give(flow.map("divide", x, flow.held(size, 1e-6, None)))
        return
    if x.dtype is not DType.INT8:
        raise unsupported(call, x, (DType.FLOAT32, DType.INT8))
    q = flow.centred(x)
    total = flow.reduce("sum", flow.mul(q, q), last)
    multiplier, shift = inverse_root(flow, total)
    wide = flow.mul(q, flow.const(128, q))
    made = flow.map("requantize_once", wide, multiplier, shift)
    low = flow.wanted().zero_point if flow.wanted().quant else 0
    flow.give(flow.cast(flow.held(flow.plus(made, low), -128, 127), DType.INT8))


def log_softmax(call: Call) -> None:
    flow, (x,) = typed(call, (DType.FLOAT32, DType.INT8), 0)
    if x.dtype is DType.INT8:
        flow.give(logs.log_softmax(flow, x))
        return
    last = (len(x.shape) - 1,)
    left = flow.sub(x, flow.reduce("max", x, last))
    total = flow.reduce("sum", flow.map("exp", left), last)
    flow.give(flow.sub(left, flow.map("log", total)))


PRODUCTS: dict[str, Handler] = {
    "BATCH_MATMUL": batch_matmul,
    "FULLY_CONNECTED": fully_connected,
    "L2_NORMALIZATION": l2_normalization,
    "LOG_SOFTMAX": log_softmax,
    "RESIZE_BILINEAR": resize_bilinear,
    "RESIZE_NEAREST_NEIGHBOR": resize_nearest,
    "TRANSPOSE_CONV": transpose_conv,
}
