"""Layers as TensorFlow Lite and as ONNX spell them: the same numbers, the same result.

A layer of images stands between two convolutions of 1x1, as in a network.
"""

from __future__ import annotations

import functools
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from pybuild.dtype import Array
from tests.frontends.doors.writers import IMAGE, USUAL, Onnx, Scale, Shape, Tflite

FLAT: Shape = (6, 32)
UNIT: Scale = (1 / 256, -128)
_PLAIN = {
    "padding": 0, "stride_w": 1, "stride_h": 1, "fused_activation_function": 0,
    "dilation_w_factor": 1, "dilation_h_factor": 1,
}  # fmt: skip
KIND = {False: "float", True: "int8"}
Both = tuple[int, str]
Layer = Callable[[Tflite, Onnx], Both]


def numbers(*shape: int) -> Array:
    return np.random.default_rng(shape).normal(0, 0.3, shape).astype(np.float32)


def places(*values: int) -> Array:
    return np.asarray(values, np.int64)


def pointwise(t: Tflite, o: Onnx, xs: Both, shape: Shape, outs: int) -> Both:
    """A convolution of 1x1 in both files."""
    weights, bias = numbers(outs, 1, 1, shape[3]), numbers(outs)
    reads = [xs[0], *t.weighted(weights, 0, bias)]
    made = t.op("CONV_2D", reads, (*shape[:3], outs), "Conv2DOptions", **_PLAIN)
    turned = weights.transpose(0, 3, 1, 2)
    return made, o.op("Conv", [xs[1], *o.weighted(turned, 0, bias)])


def image(t: Tflite, o: Onnx, shape: Shape | None = None) -> Both:
    """What a layer of images reads."""
    shape = shape or t.image
    given = t.input(shape), o.input(shape)
    return pointwise(t, o, given, shape, shape[3])


def flat(t: Tflite, o: Onnx, shape: Shape = FLAT) -> Both:
    return t.input(shape), o.input(shape)


def convolution(
    outs: int, onnx: dict[str, Any], code: str = "CONV_2D", size: int = 3,
    groups: int = 1, relu: bool = False, **options: Any,
) -> Layer:  # fmt: skip
    """outs: output channels; a depthwise one has those of its input"""
    depthwise = code != "CONV_2D"
    axis, perm = (3, (3, 0, 1, 2)) if depthwise else (0, (0, 3, 1, 2))

    def layer(t: Tflite, o: Onnx) -> Both:
        x, (_, h, w, c) = image(t, o), t.image
        weights = numbers(1 if depthwise else outs, size, size, c // groups)
        bias, stride = numbers(weights.shape[axis]), options.get("stride_w", 1)
        out = (1, h // stride, w // stride, weights.shape[axis])
        known = {"group": c} if depthwise else {"group": groups}
        table = "DepthwiseConv2DOptions" if depthwise else "Conv2DOptions"
        given = _PLAIN | options | {"fused_activation_function": int(relu)}
        reads = [x[0], *t.weighted(weights, axis, bias)]
        made = t.op(code, reads, out, table, **given)
        turned = np.ascontiguousarray(weights.transpose(perm))
        other = o.node("Conv", [x[1], *o.weighted(turned, 0, bias)], **known, **onnx)
        return made, o.through(o.node("Relu", [other]) if relu else other)

    return layer


def transposed(t: Tflite, o: Onnx) -> Both:
    x, (_, h, w, c) = image(t, o), t.image
    weights, bias, out = numbers(8, 2, 2, c), numbers(8), (1, 2 * h, 2 * w, 8)
    w, b = t.weighted(weights, 0, bias)
    made = t.op(
        "TRANSPOSE_CONV", [t.known(np.asarray(out, np.int32)), w, x[0], b], out,
        "TransposeConvOptions", padding=0, stride_w=2, stride_h=2,
    )  # fmt: skip
    reads = o.weighted(np.ascontiguousarray(weights.transpose(3, 0, 1, 2)), 1, bias)
    return made, o.op("ConvTranspose", [x[1], *reads], strides=[2, 2])


def dense(product: bool) -> Layer:
    """product: ONNX has it as MatMul and Add."""

    def layer(t: Tflite, o: Onnx) -> Both:
        x, weights, bias = flat(t, o), numbers(20, 32), numbers(20)
        reads = [x[0], *t.weighted(weights, 0, bias)]
        made = t.op("FULLY_CONNECTED", reads, (6, 20), "FullyConnectedOptions")
        if not product:
            given = o.weighted(weights, 0, bias)
            return made, o.op("Gemm", [x[1], *given], transB=1)
        w, b = o.weighted(np.ascontiguousarray(weights.T), 1, bias)
        return made, o.op("Add", [o.node("MatMul", [x[1], w]), b])

    return layer


def matmul(turned: bool) -> Layer:
    def layer(t: Tflite, o: Onnx) -> Both:
        a, b = flat(t, o, (2, 6, 32)), flat(t, o, (2, 9, 32) if turned else (2, 32, 9))
        made = t.op(
            "BATCH_MATMUL", [a[0], b[0]], (2, 6, 9), "BatchMatMulOptions", adj_y=turned
        )
        other = o.node("Transpose", [b[1]], perm=[0, 2, 1]) if turned else b[1]
        return made, o.op("MatMul", [a[1], other])

    return layer


def pool(code: str, kind: str) -> Layer:
    def layer(t: Tflite, o: Onnx) -> Both:
        x, (_, h, w, c) = image(t, o), t.image
        size = {"stride_w": 2, "stride_h": 2, "filter_width": 2, "filter_height": 2}
        made = t.op(
            code, [x[0]], (1, h // 2, w // 2, c), "Pool2DOptions", padding=1, **size
        )
        return made, o.op(kind, [x[1]], kernel_shape=[2, 2], strides=[2, 2])

    return layer


def reduced(code: str, kind: str, axes: tuple[int, ...], keep: bool) -> Layer:
    """axes: of an image with its channels last"""

    def layer(t: Tflite, o: Onnx) -> Both:
        x, there = image(t, o), t.known(np.asarray(axes, np.int32))
        left = tuple(1 if i in axes else size for i, size in enumerate(t.image))
        out = left if keep else tuple(s for i, s in enumerate(t.image) if i not in axes)
        made = t.op(code, [x[0], there], out, "ReducerOptions", keep_dims=keep)
        turned = places(*((0, 2, 3, 1)[axis] for axis in axes))
        reads = [x[1], o.plain(turned)]
        return made, o.op(kind, reads, keepdims=int(keep))

    return layer


def unary(
    code: str, kind: str, table: str = "", scale: Scale = USUAL, flat_: bool = False,
    axis: int | None = None, **attrs: Any,
) -> Layer:  # fmt: skip
    def layer(t: Tflite, o: Onnx) -> Both:
        x = (flat if flat_ else image)(t, o)
        known = {"axis": axis} if axis is not None else {}
        options = {"beta": 1.0} if code == "SOFTMAX" else attrs
        made = t.op(code, [x[0]], FLAT if flat_ else t.image, table, scale, **options)
        return made, o.op(kind, [x[1]], scale, **known, **attrs)

    return layer


def binary(code: str, kind: str, table: str, other: str = "") -> Layer:
    """other: a known operand, "channels" or "number" """

    def layer(t: Tflite, o: Onnx) -> Both:
        x = image(t, o)
        if not other:
            y = image(t, o)
        else:
            value = numbers(t.image[3] if other == "channels" else 1)
            back = value.reshape(-1, 1, 1) if value.size > 1 else value
            y = t.known(value), o.known(back)
        made = t.op(code, [x[0], y[0]], t.image, table)
        return made, o.op(kind, [x[1], y[1]])

    return layer


def excited(t: Tflite, o: Onnx) -> Both:
    """Channels by a number of each, as in squeeze and excitation."""
    x, small = image(t, o), image(t, o, (1, 1, 1, t.image[3]))
    made = t.op("MUL", [x[0], small[0]], t.image, "MulOptions")
    return made, o.op("Mul", [x[1], small[1]])


def line(t: Tflite, o: Onnx) -> Both:
    """A product and an addition by channel, as a batch norm that is left over."""
    x, c = image(t, o), t.image[3]
    factor, offset = numbers(c), numbers(c)
    made = t.op("MUL", [x[0], t.known(factor)], t.image, "MulOptions")
    made = t.op("ADD", [made, t.known(offset)], t.image, "AddOptions")
    other = o.op("Mul", [x[1], o.known(factor.reshape(c, 1, 1))])
    return made, o.op("Add", [other, o.known(offset.reshape(c, 1, 1))])


def relu6(t: Tflite, o: Onnx) -> Both:
    x = image(t, o)
    ends = [o.plain(np.float32(0)), o.plain(np.float32(6))]
    return t.op("RELU6", [x[0]], t.image), o.op("Clip", [x[1], *ends])


def silu(t: Tflite, o: Onnx) -> Both:
    x = image(t, o)
    gate = t.op("LOGISTIC", [x[0]], t.image, scale=UNIT)
    made = t.op("MUL", [x[0], gate], t.image, "MulOptions")
    return made, o.op("Mul", [x[1], o.op("Sigmoid", [x[1]], UNIT)])


def prelu(t: Tflite, o: Onnx) -> Both:
    x, slopes = image(t, o), numbers(t.image[3])
    made = t.op("PRELU", [x[0], t.known(slopes.reshape(1, 1, -1))], t.image)
    return made, o.op("PRelu", [x[1], o.known(slopes.reshape(-1, 1, 1))])


def padded(mode: str) -> Layer:
    def layer(t: Tflite, o: Onnx) -> Both:
        x, (_, h, w, c) = image(t, o), t.image
        out = (1, h + 2, w + 2, c)
        sizes = t.known(np.asarray([[0, 0], [1, 1], [2, 0], [0, 0]], np.int32))
        code, table = ("PAD", "PadOptions")
        if mode != "constant":
            code, table = "MIRROR_PAD", "MirrorPadOptions"
        made = t.op(code, [x[0], sizes], out, table)
        reads = [x[1], o.plain(places(0, 0, 1, 2, 0, 0, 1, 0))]
        return made, o.op("Pad", reads, mode=mode)

    return layer


def joined(axis: int) -> Layer:
    """axis: of images with their channels last"""

    def layer(t: Tflite, o: Onnx) -> Both:
        x, y = image(t, o), image(t, o)
        out = tuple(2 * s if i == axis else s for i, s in enumerate(t.image))
        table = "ConcatenationOptions"
        made = t.op("CONCATENATION", [x[0], y[0]], out, table, axis=axis)
        return made, o.op("Concat", [x[1], y[1]], axis=(0, 2, 3, 1)[axis])

    return layer


def sliced(t: Tflite, o: Onnx) -> Both:
    x, (_, h, w, _) = image(t, o), t.image
    ends = ((0, 1, 0, 4), (1, h, w, 12), (1, 1, 1, 1))
    given = [t.known(np.asarray(end, np.int32)) for end in ends]
    made = t.op(
        "STRIDED_SLICE", [x[0], *given], (1, h - 1, w, 8), "StridedSliceOptions"
    )
    reads = [o.plain(places(*pair)) for pair in ((1, 4), (h, 12), (2, 1))]
    return made, o.op("Slice", [x[1], *reads])


def resized(mode: str) -> Layer:
    near = mode == "nearest"
    how = {"coordinate_transformation_mode": "asymmetric" if near else "half_pixel"}
    how |= {"nearest_mode": "floor"} if near else {}

    def layer(t: Tflite, o: Onnx) -> Both:
        x, (_, h, w, c) = image(t, o), t.image
        size = t.known(np.asarray([2 * h, 2 * w], np.int32))
        code = "RESIZE_NEAREST_NEIGHBOR" if near else "RESIZE_BILINEAR"
        table = "ResizeNearestNeighborOptions" if near else "ResizeBilinearOptions"
        more = {} if near else {"half_pixel_centers": True}
        made = t.op(code, [x[0], size], (1, 2 * h, 2 * w, c), table, **more)
        twice = o.plain(np.asarray([1, 1, 2, 2], np.float32))
        return made, o.op("Resize", [x[1], "", twice], mode=mode, **how)

    return layer


def blocks(to_space: bool) -> Layer:
    def layer(t: Tflite, o: Onnx) -> Both:
        x, (_, h, w, c) = image(t, o), t.image
        out = (1, 2 * h, 2 * w, c // 4) if to_space else (1, h // 2, w // 2, 4 * c)
        kind = "DepthToSpace" if to_space else "SpaceToDepth"
        code = "DEPTH_TO_SPACE" if to_space else "SPACE_TO_DEPTH"
        made = t.op(code, [x[0]], out, f"{kind}Options", block_size=2)
        return made, o.op(kind, [x[1]], blocksize=2)

    return layer


def gathered(t: Tflite, o: Onnx) -> Both:
    x = flat(t, o)
    there = t.known(np.asarray([3, 1, 4], np.int32))
    made = t.op("GATHER", [x[0], there], (3, 32), "GatherOptions")
    return made, o.op("Gather", [x[1], o.plain(np.asarray([3, 1, 4], np.int32))])


_SAME = {"pads": [1] * 4}
LAYERS: dict[str, Layer] = {
    "conv 3x3, relu": convolution(8, _SAME, relu=True),
    "conv 3x3, stride 2": convolution(
        8, {"strides": [2, 2], "auto_pad": "SAME_UPPER"}, stride_w=2, stride_h=2
    ),
    "conv 1x1": convolution(24, {}, size=1),
    "conv of groups": convolution(24, _SAME, groups=4),
    "conv with gaps": convolution(
        8, {"pads": [2] * 4, "dilations": [2, 2]}, dilation_w_factor=2,
        dilation_h_factor=2,
    ),
    "depthwise": convolution(0, _SAME, "DEPTHWISE_CONV_2D", depth_multiplier=1),
    "transposed conv": transposed,
    "dense": dense(False),
    "dense as product and sum": dense(True),
    "matmul": matmul(False),
    "matmul, second turned": matmul(True),
    "average pool": pool("AVERAGE_POOL_2D", "AveragePool"),
    "max pool": pool("MAX_POOL_2D", "MaxPool"),
    "mean of pixels": reduced("MEAN", "ReduceMean", (1, 2), True),
    "mean of pixels, no axes": reduced("MEAN", "ReduceMean", (1, 2), False),
    "mean of channels": reduced("MEAN", "ReduceMean", (3,), True),
    "greatest pixel": reduced("REDUCE_MAX", "ReduceMax", (1, 2), False),
    "sum of pixels": reduced("SUM", "ReduceSum", (1, 2), False),
    "relu": unary("RELU", "Relu"),
    "relu6": relu6,
    "sigmoid": unary("LOGISTIC", "Sigmoid", scale=UNIT),
    "tanh": unary("TANH", "Tanh", scale=(1 / 128, 0)),
    "abs": unary("ABS", "Abs"),
    "neg": unary("NEG", "Neg"),
    "exp": unary("EXP", "Exp"),
    "hard swish": unary("HARD_SWISH", "HardSwish"),
    "leaky relu": unary("LEAKY_RELU", "LeakyRelu", "LeakyReluOptions", alpha=0.1),
    "gelu": unary("GELU", "Gelu"),
    "silu": silu,
    "prelu": prelu,
    "softmax": unary("SOFTMAX", "Softmax", "SoftmaxOptions", UNIT, True, -1),
    "softmax of channels": unary("SOFTMAX", "Softmax", "SoftmaxOptions", UNIT, axis=1),
    "log softmax": unary(
        "LOG_SOFTMAX", "LogSoftmax", scale=(16 / 256, 127), flat_=True, axis=-1
    ),
    "add": binary("ADD", "Add", "AddOptions"),
    "sub": binary("SUB", "Sub", "SubOptions"),
    "mul": binary("MUL", "Mul", "MulOptions"),
    "div": binary("DIV", "Div", "DivOptions"),
    "maximum": binary("MAXIMUM", "Max", "MaximumMinimumOptions"),
    "minimum": binary("MINIMUM", "Min", "MaximumMinimumOptions"),
    "mul by channel": binary("MUL", "Mul", "MulOptions", "channels"),
    "add by channel": binary("ADD", "Add", "AddOptions", "channels"),
    "mul by a number": binary("MUL", "Mul", "MulOptions", "number"),
    "line by channel": line,
    "excited channels": excited,
    "pad": padded("constant"),
    "mirrored pad": padded("reflect"),
    "channels joined": joined(3),
    "rows joined": joined(1),
    "slice": sliced,
    "nearest": resized("nearest"),
    "bilinear": resized("linear"),
    "depth to space": blocks(True),
    "space to depth": blocks(False),
    "gather": gathered,
}  # fmt: skip


@functools.cache
def _exported() -> dict[str, bytes]:
    """What export_torch.py wrote, by name."""
    with tarfile.open(Path(__file__).with_name("torch.tar.xz")) as archive:
        return {
            entry.name: archive.extractfile(entry).read()  # type: ignore[union-attr]
            for entry in archive
        }


def drawn(seed: int) -> Shape:
    """The shape of an image, even in rows and columns, of a multiple of 4 channels."""
    chance = np.random.default_rng(seed)
    h, w = (2 * int(size) for size in chance.integers(2, 9, 2))
    return (1, h, w, 4 * int(chance.integers(3, 8)))


def written(name: str, int8: bool, image: Shape = IMAGE) -> tuple[bytes, bytes]:
    """A layer's .tflite file and its ONNX file."""
    t, o = Tflite(int8, image), Onnx(int8)
    made = LAYERS[name](t, o)
    shape = t.tensors[made[0]].shape
    if len(shape) == 4:
        made = pointwise(t, o, made, shape, 8)
    return t.file(made[0]), o.file(made[1])


def files(name: str, int8: bool) -> dict[str, bytes]:
    """A layer's files: by "tflite", "onnx", "torch"."""
    kinds = (*written(name, int8), _exported()[f"{name}, {KIND[int8]}.pt2"])
    return dict(zip(("tflite", "onnx", "torch"), kinds, strict=True))
