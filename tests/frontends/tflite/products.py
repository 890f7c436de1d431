"""How random files of products, resizing and norms are drawn: PRODUCTS."""

from __future__ import annotations

from collections.abc import Callable

from tests.frontends.tflite.files import One
from tests.frontends.tflite.layers import weights, wide

Draw = Callable[[One], None]
KINDS = ("float32", "int8", "uint8")


def batch_matmul(one: One) -> None:
    batch, m, k, n = one.shape(0, 2, 3), one.size(1, 4), one.size(1, 6), one.size(1, 4)
    turns = one.flag(), one.flag()
    one.x((*batch, *((k, m) if turns[0] else (m, k))))
    one.x((*one.broadcast(batch), *((n, k) if turns[1] else (k, n))))
    one.y(quant=wide(one))
    one.with_options("BatchMatMulOptions", AdjX=turns[0], AdjY=turns[1])


def transpose_conv(one: One) -> None:
    height, width, channels = one.size(2, 5), one.size(2, 5), one.size(1, 4)
    stride, kernel, same = one.size(1, 3), one.size(1, 4), one.size(0, 1)
    quant, outs = one.quant(one.kind), one.size(1, 4)
    grown = 0 if same == 0 else max(kernel - stride, 0)
    sizes = [d * stride + grown for d in (height, width)]
    one.constant((1, *sizes, outs))
    shape = (outs, kernel, kernel, channels)
    one.code = "CONV_2D"  # always with a bias
    weights(one, shape, 0, quant)
    one.code = "TRANSPOSE_CONV"
    bias = one.reads.pop()
    one.x((1, height, width, channels), quant=quant)
    one.reads.append(bias)
    one.y(quant=wide(one))
    one.with_options("TransposeConvOptions", Padding=same, StrideH=stride,
                     StrideW=stride)  # fmt: skip


def resize(one: One) -> None:
    quant = one.quant(one.kind)
    one.x((one.size(1, 2), one.size(2, 5), one.size(2, 5), one.size(1, 3)), quant=quant)
    one.constant([one.size(1, 9), one.size(1, 9)])
    one.y(quant=quant)
    corners, half = one.pick((False, False), (True, False), (False, True))
    table = "ResizeBilinearOptions"
    if one.code != "RESIZE_BILINEAR":
        table = "ResizeNearestNeighborOptions"
    one.with_options(table, AlignCorners=corners, HalfPixelCenters=half)


def l2_norm(one: One) -> None:
    one.x(one.shape(2, 4, 9))
    one.y(quant=(1 / 128, 0) if one.kind == "int8" else ())
    one.with_options("L2NormOptions")


def log_softmax(one: One) -> None:
    quant = one.quant(one.kind, 0.01, 2)
    one.x(one.shape(1, 4, 30), quant=quant)
    one.y(quant=(1 / 16, 255 if one.kind == "uint8" else 127) if quant else ())
    one.with_options("LogSoftmaxOptions")


PRODUCTS: dict[str, tuple[tuple[str, ...], Draw]] = {
    "BATCH_MATMUL": (("float32", "int8"), batch_matmul),
    "L2_NORMALIZATION": (("float32", "int8"), l2_norm),
    "LOG_SOFTMAX": (KINDS, log_softmax),
    "RESIZE_BILINEAR": ((*KINDS, "int16"), resize),
    "RESIZE_NEAREST_NEIGHBOR": (KINDS, resize),
    "TRANSPOSE_CONV": (KINDS, transpose_conv),
}
