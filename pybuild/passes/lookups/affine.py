"""A line for each channel as a layer: x * factor + offset of int8, such as
BatchNormalization between a dequantize and a quantize, is a depthwise_conv2d of one tap
where that gives the same integers for all 256 inputs of each channel.
"""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from pybuild.dtype import Array, DType
from pybuild.errors import BuildError
from pybuild.ir.graph import Graph, Node, Quant, Tensor
from pybuild.ops.interpret import operator_of
from pybuild.passes.edit import Edit
from pybuild.passes.legalise import rounded
from pybuild.records import dataclass

# weights that are tried: the greater, the finer are the steps of the bias
_WEIGHTS = range(127, 31, -1)
_OFFSETS = (0, 1, -1, 2, -2)
_MOST = 1 << 30
# how far two scales must be apart, so that float32 has one between them
_ROOM, _INSIDE = 1 + 2.0**-20, 1 + 2.0**-22
_TAP = {"strides": (1, 1), "dilations": (1, 1), "pads": (0, 0, 0, 0)}
_INPUT = np.arange(-128, 128)[:, None]

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Line:
    """The wanted function: [256, channels] integers, and the real numbers that they
    round.

    root  the tensor that is read
    node  makes the result
    """

    root: Tensor
    node: Node
    reals: Array
    whole: Array


@dataclass(frozen=True)
class _Layer:
    """y = round((x * weight + bias) * scale), of each channel."""

    weights: Array
    bias: Array
    scales: Floats


def as_layer(edit: Edit, line: Line, rounding: str) -> Node | None:
    """The node as a depthwise_conv2d; None where none gives all these integers.

    rounding  litert | tflm | single | onnx
    """
    y = edit.tensors[line.node.output]
    if len(line.root.shape) != 4 or line.root.shape != y.shape:
        return None
    slopes = _slopes(line, y)
    layer = None if slopes is None else _solved(line, y, *slopes)
    if layer is None:
        return None
    scales = (layer.scales * y.scale / line.root.scale).astype(np.float32)
    zeros = (0,) * scales.size
    of_w = Quant(tuple(scales.tolist()), zeros, 2)
    of_bias = Quant(tuple((scales * np.float32(line.root.scale)).tolist()), zeros, 0)
    low, high = int(line.whole.min()), int(line.whole.max())
    ends = (None if low == -128 else (low - y.zero_point) * y.scale,
            None if high == 127 else (high - y.zero_point) * y.scale)  # fmt: skip
    names = [edit.fresh(f"{y.name}.{n}") for n in ("factors", "offsets")]
    tensors = {
        line.root.name: line.root,
        y.name: y,
        names[0]: Tensor(names[0], layer.weights.shape, DType.INT8, of_w),
        names[1]: Tensor(names[1], layer.bias.shape, DType.INT32, of_bias),
    }
    node = replace(
        line.node, op="depthwise_conv2d", inputs=(line.root.name, *names),
        attrs={**_TAP, "clamp": ends},
    )  # fmt: skip
    held = dict(zip(names, (layer.weights, layer.bias), strict=True))
    graph = Graph("line", "line", (node,), tensors, (line.root.name,), (y.name,), held)
    if not _is_right(graph, line, rounding):
        return None
    for name, quant in zip(names, (of_w, of_bias), strict=True):
        edit.constant(name, held[name], quant)
    return node


def _is_right(graph: Graph, line: Line, rounding: str) -> bool:
    """True if the layer gives what is wanted for each integer of each channel."""
    shape = (1, 1, *line.whole.shape)
    (node,) = graph.nodes
    moved = {n: replace(graph.tensor(n), shape=shape)
             for n in (line.root.name, node.output)}  # fmt: skip
    small = replace(graph, tensors={**graph.tensors, **moved})
    node = rounded(node, small, rounding)
    x = np.broadcast_to(_INPUT.astype(np.int8), shape)
    reads = [x, *(graph.constants[name] for name in node.inputs[1:])]
    try:
        (made,) = operator_of(node, small).reference(node, small, reads)
    except BuildError:
        return False
    return bool((made.reshape(line.whole.shape) == line.whole).all())


def _slopes(line: Line, y: Tensor) -> tuple[Floats, Floats] | None:
    """For each channel: what a step of the input adds, and what its zero point gives,
    in steps of the output; from the two farthest inputs that do not saturate. None: it
    is not a line."""
    inside = (line.whole > line.whole.min()) & (line.whole < line.whole.max())
    channels = np.arange(line.whole.shape[1])
    first, last = inside.argmax(0), 255 - inside[::-1].argmax(0)
    still = (line.whole == line.whole[0]).all(0)
    if not (still | (inside.any(0) & (last > first))).all():
        return None
    reals = line.reals.astype(np.float64) / y.scale
    span = np.where(still, 1, last - first)
    slope = (reals[last, channels] - reals[first, channels]) / span
    slope = np.where(still, 0.0, slope)
    base = np.where(still, line.whole[0] - float(y.zero_point), reals[first, channels])
    base = base - slope * (first - 128 - line.root.zero_point)
    near = slope * (_INPUT - line.root.zero_point) + base + y.zero_point
    near = near.clip(line.whole.min(), line.whole.max())
    is_line = np.abs(near - line.whole) < 1
    return (slope, base) if is_line.all() else None


def _solved(line: Line, y: Tensor, slope: Floats, base: Floats) -> _Layer | None:
    """Each channel's greatest weight for which a bias and a scale give its integers."""
    weights = np.zeros(len(slope), np.int8)
    bias, scales = np.zeros(len(slope), np.int32), np.zeros(len(slope))
    left = np.arange(len(slope))
    for weight, offset in itertools.product(_WEIGHTS, _OFFSETS):
        # of a channel that gives one integer the bias alone counts
        steps = np.where(slope == 0, 2.0**-7, np.abs(slope) / weight)[left]
        whole = np.rint(base[left] / steps) + offset
        if not (np.abs(whole) < _MOST).all():
            return None
        factor = np.sign(slope[left]).astype(np.int64) * weight
        sums = (_INPUT - line.root.zero_point) * factor + whole.astype(np.int64)
        least, most = _scales(sums, line.whole, left, y)
        fits = least * _ROOM < most
        at = left[fits]
        weights[at], bias[at] = factor[fits], whole[fits]
        scales[at] = np.clip(steps, least * _INSIDE, most / _INSIDE)[fits]
        left = left[~fits]
        if not left.size:
            return _Layer(weights.reshape(1, 1, -1), bias, scales)
    return None


def _scales(
    sums: Array, wanted: Array, channels: Array, y: Tensor
) -> tuple[Floats, Floats]:
    """Between which scales every sum is rounded to its integer; of those at the ends
    what is beyond is held."""
    low, high, whole = wanted.min(), wanted.max(), wanted[:, channels]
    centred = whole.astype(np.float64) - y.zero_point
    above = np.where(whole == low, -np.inf, centred - 0.5)
    below = np.where(whole == high, np.inf, centred + 0.5)
    with np.errstate(divide="ignore", invalid="ignore"):
        ends = np.stack([above / sums, below / sums])
    least, most = np.where(np.less(sums, 0), ends[::-1], ends)
    zero = np.equal(sums, 0)
    right = (above < 0) & (below > 0)
    least = np.where(zero, np.where(right, 0.0, np.inf), least)
    most = np.where(zero, np.inf, most)
    return np.maximum(least.max(0), 0.0), most.min(0)
