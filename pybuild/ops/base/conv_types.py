"""Shapes and types of convolutions, and what any layer with weights may read."""

from __future__ import annotations

from pybuild.dtype import DType
from pybuild.ir.graph import Graph, Node, Tensor
from pybuild.ops.base.operator import (
    Shape,
    Types,
    computable,
    invalid,
    operand,
    optional,
    same_types,
)

INPUT_DILATIONS = "input_dilations"


def infer_conv2d(node: Node, graph: Graph) -> Types:
    """Shapes  x [N,H,W,C]  w [O,KH,KW,C/groups]  y [N,OH,OW,O]"""
    x, w = operand(node, graph, 0), operand(node, graph, 1)
    dtype = layer_types(node, graph, x, w)
    groups = int(node.attrs.get("groups", 1))
    if len(x.shape) != 4 or len(w.shape) != 4:
        what = f"needs x[N,H,W,C] and w[O,KH,KW,C], has {x.shape} and {w.shape}"
        raise invalid(node, graph, what)
    if groups < 1 or w.shape[3] * groups != x.shape[3] or w.shape[0] % groups:
        what = f"{groups} groups of {w.shape[3]} channels, {w.shape[0]} outputs do "
        raise invalid(node, graph, what + f"not fit {x.shape[3]} input channels")
    height, width = windows(node, graph, x.shape, w.shape[1:3])
    check_weights(node, graph, w.shape[0], 0)
    return (((x.shape[0], height, width, w.shape[0]), dtype),)


def infer_depthwise(node: Node, graph: Graph) -> Types:
    """Shapes  x [N,H,W,C]  w [KH,KW,C*M]  y [N,OH,OW,C*M]"""
    x, w = operand(node, graph, 0), operand(node, graph, 1)
    dtype = layer_types(node, graph, x, w)
    if len(x.shape) != 4 or len(w.shape) != 3:
        what = f"needs x[N,H,W,C] and w[KH,KW,C*M], has {x.shape} and {w.shape}"
        raise invalid(node, graph, what)
    if x.shape[3] == 0 or w.shape[2] % x.shape[3]:
        what = f"{w.shape[2]} outputs are not a multiple of {x.shape[3]} input channels"
        raise invalid(node, graph, what)
    height, width = windows(node, graph, x.shape, w.shape[:2])
    check_weights(node, graph, w.shape[2], 2)
    return (((x.shape[0], height, width, w.shape[2]), dtype),)


def windows(
    node: Node, graph: Graph, x: Shape, kernel: tuple[int, ...]
) -> tuple[int, int]:
    """Output height and width of a window that moves over padded input.

    With input_dilations, also of 1, it is a transposed convolution: over an input with
    zeros between its rows and columns; where pads are below 0, so many are cut off.
    """
    strides = node.attrs.get("strides", (1, 1))
    dilations = node.attrs.get("dilations", (1, 1))
    apart = node.attrs.get(INPUT_DILATIONS, (1, 1))
    top, left, bottom, right = pads = node.attrs.get("pads", (0, 0, 0, 0))
    is_transposed = INPUT_DILATIONS in node.attrs
    if is_transposed and (strides != (1, 1) or 0 in x):
        raise invalid(node, graph, f"strides {strides} of a transposed convolution")
    if not is_transposed and min(pads) < 0:
        raise invalid(node, graph, f"pads {pads} are below 0")
    x = (x[0], *((n - 1) * d + 1 for n, d in zip(x[1:3], apart, strict=True)), x[3])
    found = []
    for dim, size, stride, dilation, pad in zip(
        x[1:3], kernel, strides, dilations, (top + bottom, left + right), strict=True
    ):
        if size < 1 or stride < 1 or dilation < 1:
            what = f"kernel {tuple(kernel)}, strides {strides}, dilations {dilations}"
            raise invalid(node, graph, what + " must be positive")
        room = dim + pad - ((size - 1) * dilation + 1)
        if room < 0:
            what = f"the window {tuple(kernel)} is larger than its padded input"
            raise invalid(node, graph, f"{what} {tuple(x[1:3])}")
        found.append(room // stride + 1)
    return found[0], found[1]


def layer_types(node: Node, graph: Graph, x: Tensor, w: Tensor) -> DType:
    """The type of activations: that of the weights, or int16 with int8 weights, or int8
    with int16 weights: those of nine bits, as a zero point that is taken out leaves
    them. int16 of QuantizeLinear may have a zero point."""
    if {x.dtype, w.dtype} == {DType.INT8, DType.INT16}:
        computable(node, graph, w)
        return computable(node, graph, x, zero=node.attrs.get("rounding") == "even")
    if w.dtype is DType.INT16:
        what = f"weights '{w.name}' are int16"
        raise invalid(node, graph, what, "int16 activations go with int8 weights")
    return same_types(node, graph, x, w)


def check_weights(node: Node, graph: Graph, channels: int, axis: int) -> None:
    """Scales per tensor or per output channel; a bias that fits."""
    x, w = operand(node, graph, 0), operand(node, graph, 1)
    if not w.dtype.is_float:
        assert w.quant is not None  # same_types has seen to it
        count = len(w.quant.scale)
        if any(w.quant.zero_point):
            hint = "quantise weights symmetrically"
            raise invalid(node, graph, f"weights '{w.name}' have a zero point", hint)
        if count > 1 and (count != channels or w.quant.axis != axis):
            what = f"{count} weight scales on axis {w.quant.axis}, {channels} outputs"
            raise invalid(node, graph, what)
    bias = optional(node, graph, 2)
    if bias is None:
        return
    expected = DType.FLOAT32 if w.dtype.is_float else DType.INT32
    if x.dtype is DType.INT16 and bias.dtype is DType.INT64:
        expected = DType.INT64
    if bias.shape != (channels,) or bias.dtype is not expected:
        what = f"bias is {bias.dtype.value}{list(bias.shape)}, not "
        raise invalid(node, graph, f"{what}{expected.value}[{channels}]")
