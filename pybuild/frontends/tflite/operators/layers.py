"""TensorFlow Lite's computing operators as nodes of the graph IR, one function each.
Must not know shapes that inference finds.
"""

from __future__ import annotations

import math

import numpy as np

from pybuild.dtype import Array, DType
from pybuild.frontends.tflite.draft.builder import Call
from pybuild.frontends.tflite.operators.hybrid import Hybrid, is_hybrid
from pybuild.frontends.tflite.operators.hybrid import emit as emit_hybrid
from pybuild.ir.graph import Attr, Quant, Tensor
from pybuild.ops.fixed_point.centred import centred
from pybuild.ops.fixed_point.quant import dequantized as to_real
from pybuild.ops.fixed_point.quant import quantized

_CLAMPS = {0: None, 1: (0.0, None), 2: (-1.0, 1.0), 3: (0.0, 6.0)}
SAME, VALID = 0, 1


def fused(call: Call) -> dict[str, Attr]:
    """Return the fused activation as the attribute `clamp`; {} if there is none."""
    kind = call.option("FusedActivationFunction")
    if kind not in _CLAMPS:
        hint = "NONE, RELU, RELU_N1_TO_1 and RELU6 are"
        raise call.error(f"the fused activation {kind} is not supported", hint)
    clamp = _CLAMPS[kind]
    return {} if clamp is None else {"clamp": clamp}


def window(call: Call, x: Tensor, kernel: tuple[int, ...]) -> dict[str, Attr]:
    """Return strides, dilations and pads of a window over x[N,H,W,C]."""
    strides = (call.option("StrideH"), call.option("StrideW"))
    dilations = (
        max(1, call.option("DilationHFactor", 1)),
        max(1, call.option("DilationWFactor", 1)),
    )
    padding = call.option("Padding")
    if len(x.shape) != 4 or min(strides) < 1 or padding not in (SAME, VALID):
        what = f"input {list(x.shape)}, strides {strides}, padding {padding}"
        raise call.error(what + " make no sense")
    before, after = [], []
    for dim, size, stride, dilation in zip(
        x.shape[1:3], kernel, strides, dilations, strict=True
    ):
        total = 0
        if padding == SAME:
            span = (size - 1) * dilation + 1
            total = max((math.ceil(dim / stride) - 1) * stride + span - dim, 0)
        before.append(total // 2)
        after.append(total - total // 2)
    pads = (*before, *after)
    return {"strides": strides, "dilations": dilations, "pads": pads}


def weights(
    call: Call, x: Tensor, keep: bool = True, at: int = 1
) -> tuple[Tensor, Array]:
    """Return constant weights; dequantised if the activations are float32, unless the
    layer quantises these."""
    tensor, value = call.held(at)
    if keep and is_hybrid(call, x, tensor):
        return tensor, value
    if x.dtype is DType.FLOAT32 and tensor.dtype is not DType.FLOAT32:
        return dequantised(call, tensor, value)
    return tensor, value


def without_zero(call: Call, tensor: Tensor, value: Array) -> tuple[Tensor, Array]:
    """Return weights without their zero point, as in uint8 files. LiteRT's int8
    convolutions ignore it: theirs is rejected later."""
    looks = call.builder.has_twin(call.index(1)) or call.flat.code == "FULLY_CONNECTED"
    one = tensor.quant is not None and len(tensor.quant.zero_point) == 1
    return centred(tensor, value) if looks and one else (tensor, value)


def dequantised(call: Call, tensor: Tensor, value: Array) -> tuple[Tensor, Array]:
    """A constant as float32, computed now."""
    if value.dtype in (np.float16, np.float32):
        real = value.astype(np.float32)
    elif tensor.quant is None:
        what = f"'{tensor.name}' is {tensor.dtype.value} without a scale"
        raise call.error(what, "scales may be those of a tensor, channels or blocks")
    else:
        real = to_real(value, tensor.quant)
    return Tensor(tensor.name, value.shape, DType.FLOAT32), real


def bias(call: Call, x: Tensor, at: int = 2) -> str:
    """Return the name of a constant bias, "" if there is none."""
    if not call.has(at):
        return ""
    tensor, value = call.held(at)
    if x.dtype is DType.FLOAT32 and tensor.dtype is not DType.FLOAT32:
        tensor, value = dequantised(call, tensor, value)
    if value.ndim != 1:
        value = value.reshape(-1)
        tensor = Tensor(tensor.name, value.shape, tensor.dtype, tensor.quant)
    if tensor.quant is not None and tensor.quant.axis is not None:
        quant = Quant(tensor.quant.scale, tensor.quant.zero_point, 0)
        tensor = Tensor(tensor.name, tensor.shape, tensor.dtype, quant)
    return call.builder.add(tensor, value).name


def conv2d(call: Call) -> None:
    """Weights [O,KH,KW,C/groups]; groups follow from the channels."""
    x = call.tensor(0)
    tensor, value = weights(call, x)
    if value.ndim != 4 or len(x.shape) != 4 or x.shape[3] % value.shape[3]:
        raise call.error(f"input {list(x.shape)}, weights {list(value.shape)}")
    if is_hybrid(call, x, tensor):
        _hybrid_conv(call, x, tensor, value)
        return
    _conv(call, x, call.builder.add(*without_zero(call, tensor, value)))


def _hybrid_conv(call: Call, x: Tensor, tensor: Tensor, value: Array) -> None:
    """Emit a convolution with dynamic quantisation. With per-channel scales or several
    groups there is a zero point, and sums are multiplied by the weights' scale first.
    """
    groups = x.shape[3] // value.shape[3]
    each = groups > 1 or len(_quant(tensor).scale) > 1
    how = Hybrid("conv2d", x.shape[0], asymmetric=each, sums_first=each)
    span = window(call, x, value.shape[1:3])
    attrs = {"groups": groups, **span, **fused(call)}
    emit_hybrid(call, how, x, (tensor, value), bias(call, x), attrs)


def _quant(tensor: Tensor) -> Quant:
    assert tensor.quant is not None
    return tensor.quant


def _conv(call: Call, x: Tensor, w: Tensor) -> None:
    span = window(call, x, w.shape[1:3])
    groups = x.shape[3] // w.shape[3]
    names = (x.name, w.name, bias(call, x))
    attrs = {"groups": groups, **span, **fused(call)}
    call.emit("conv2d", names, attrs)


def depthwise_conv2d(call: Call) -> None:
    """Weights [1,KH,KW,C*M], kept as [KH,KW,C*M]."""
    x = call.tensor(0)
    tensor, value = weights(call, x)
    if value.ndim != 4 or value.shape[0] != 1:
        raise call.error(f"weights of shape {list(value.shape)} are not [1,KH,KW,C]")
    if is_hybrid(call, x, tensor):
        how = Hybrid("depthwise_conv2d", x.shape[0], asymmetric=True, axis=2)
        attrs = {**window(call, x, value.shape[1:3]), **fused(call)}
        emit_hybrid(call, how, x, (tensor, value[0]), bias(call, x), attrs)
        return
    tensor, value = without_zero(call, tensor, value)
    quant = tensor.quant
    if quant is not None and quant.axis is not None:
        quant = Quant(quant.scale, quant.zero_point, quant.axis - 1)
    value = value[0]
    w = call.builder.add(Tensor(tensor.name, value.shape, tensor.dtype, quant), value)
    span = window(call, x, w.shape[:2])
    names = (x.name, w.name, bias(call, x))
    call.emit("depthwise_conv2d", names, {**span, **fused(call)})


def fully_connected(call: Call) -> None:
    """Flattens its input to rows of K, unless the rows are there and are kept."""
    x = call.tensor(0)
    if call.option("WeightsFormat"):
        raise call.error("shuffled weights are not supported", "convert again")
    tensor, value = weights(call, x)
    if value.ndim != 2 or x.size % value.shape[1]:
        raise call.error(f"input {list(x.shape)}, weights {list(value.shape)}")
    depth = value.shape[1]
    added = bias(call, x)
    keep = bool(call.option("KeepNumDims"))
    fits = bool(x.shape) and x.shape[-1] == depth and (keep or len(x.shape) == 2)
    if keep and not fits:
        raise call.error(f"input {list(x.shape)} does not end in {depth} values")
    if not fits:
        rows = (x.size // depth, depth)
        flat = Tensor(x.name, rows, x.dtype, x.quant)
        x = call.between("reshape", (x.name,), {}, flat)
    if is_hybrid(call, x, tensor):
        zero = bool(call.option("AsymmetricQuantizeInputs"))
        how = Hybrid("dense", x.size // depth, asymmetric=zero)
        emit_hybrid(call, how, x, (tensor, value), added, fused(call))
        return
    w = call.builder.add(*without_zero(call, tensor, value))
    call.emit("dense", (x.name, w.name, added), fused(call))


def add(call: Call) -> None:
    _sum("add", call)


def sub(call: Call) -> None:
    _sum("sub", call)


def _sum(op: str, call: Call) -> None:
    """Sum int16 exactly if scales are powers of 2, unless told otherwise."""
    a, b = call.tensor(0), call.tensor(1)
    attrs: dict[str, Attr] = fused(call)
    if a.dtype is DType.INT16 and call.option("PotScaleInt16", 1):
        y = call.output((1,))
        scales = [t.scale for t in (a, b, y) if t.quant is not None]
        if len(scales) == 3 and all(math.frexp(s)[0] == 0.5 for s in scales):
            attrs["exact"] = True
    call.emit(op, (a.name, b.name), attrs)


def mul(call: Call) -> None:
    names = (call.tensor(0).name, call.tensor(1).name)
    call.emit("mul", names, fused(call))


def kernel_of(call: Call) -> tuple[int, int]:
    """Return height and width of a pooling window."""
    kernel = (call.option("FilterHeight"), call.option("FilterWidth"))
    if min(kernel) < 1 or max(kernel) > 1 << 15:
        raise call.error(f"the window {kernel} makes no sense")
    return kernel


def _pool(op: str, call: Call, **attrs: Attr) -> None:
    x = call.tensor(0)
    kernel = kernel_of(call)
    span = window(call, x, kernel)
    del span["dilations"]
    merged = {"kernel": kernel, **span, **attrs, **fused(call)}
    call.emit(op, (x.name,), merged)


def average_pool2d(call: Call) -> None:
    _pool("avg_pool2d", call, count_include_pad=False)


def max_pool2d(call: Call) -> None:
    _pool("max_pool2d", call)


def mean(call: Call) -> None:
    x = call.tensor(0)
    rank = len(x.shape)
    axes = tuple(sorted({a + rank if a < 0 else a for a in call.integers(1)}))
    attrs = {"axes": axes, "keepdims": bool(call.option("KeepDims"))}
    call.emit("mean", (x.name,), attrs)


def softmax(call: Call) -> None:
    x = call.tensor(0)
    beta = call.any_option("Beta")
    attrs: dict[str, Attr] = {"axis": len(x.shape) - 1}
    attrs["beta"] = 1.0 if beta is None else float(beta)
    if (x.dtype, call.output(x.shape).dtype) == (DType.INT8, DType.INT16):
        attrs["wide"] = True
    call.emit("softmax", (x.name,), attrs)


def logistic(call: Call) -> None:
    call.emit("logistic", (call.tensor(0).name,), {})


def tanh(call: Call) -> None:
    call.emit("tanh", (call.tensor(0).name,), {})


def relu(call: Call) -> None:
    call.emit("clip", (call.tensor(0).name,), {"clamp": (0.0, None)})


def relu6(call: Call) -> None:
    """RELU6; TFLM's integer kernel ignores the output's scale."""
    x, attrs = call.tensor(0), {"clamp": (0.0, 6.0)}
    marks = {"unscaled": "tflm"} if x.dtype in (DType.INT8, DType.INT16) else {}
    call.emit("clip", (x.name,), {**attrs, **marks})


def relu_n1_to_1(call: Call) -> None:
    call.emit("clip", (call.tensor(0).name,), {"clamp": (-1.0, 1.0)})


def leaky_relu(call: Call) -> None:
    alpha = call.any_option("Alpha")
    slope = 0.0 if alpha is None else float(alpha)
    call.emit("leaky_relu", (call.tensor(0).name,), {"alpha": slope})


def quantize(call: Call) -> None:
    """Emit a quantisation; a constant is quantised now."""
    if call.builder.is_constant(call.index(0)):
        value = call.constant(0)
        made = call.output(value.shape)
        if value.dtype == np.float32 and made.quant is not None:
            added = call.builder.add(made, quantized(value, made, "double"))
            call.builder.known[call.flat.outputs[0]] = added
            return
    call.emit("quantize", (call.tensor(0).name,), {})


def densify(call: Call) -> None:
    """DENSIFY: the weights with their zeros become a constant of the file."""
    call.builder.hold(call.flat.outputs[0], call.constant(0))


def dequantize(call: Call) -> None:
    """Emit a dequantisation; constant int8 or float16 weights are dequantised now."""
    index = call.index(0)
    if not call.builder.is_constant(index):
        call.emit("dequantize", (call.tensor(0).name,), {})
        return
    value = call.constant(0)
    name = call.builder.names[index]
    tensor = Tensor(name, value.shape, DType.FLOAT32)
    if value.dtype != np.float16:
        tensor = call.builder.typed(index, value.shape)
    _, real = dequantised(call, tensor, value)
    made = call.output(value.shape)
    if made.dtype is not DType.FLOAT32:
        raise call.error(f"makes {made.dtype.value}, not float32")
    call.builder.known[call.flat.outputs[0]] = call.builder.add(made, real)
