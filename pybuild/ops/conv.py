"""Convolutions, and the integers that end every layer with weights.

conv2d(x[N,H,W,C], w[O,KH,KW,C/groups], bias[O]) and
depthwise_conv2d(x[N,H,W,C], w[KH,KW,C*M], bias[C*M]), out channel = c*M + m.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from pybuild.dtype import Array, DType, Ints
from pybuild.errors import BuildError
from pybuild.ir.graph import Graph, Node
from pybuild.ops.base.conv_types import INPUT_DILATIONS
from pybuild.ops.base.operator import (
    Numbers,
    Values,
    clamp_of,
    clamped,
    invalid,
    operand,
    optional,
    rounding,
    value,
    whole_quant,
)
from pybuild.ops.fixed_point.chunks import chunks
from pybuild.ops.fixed_point.quant import (
    accumulator_bound,
    multipliers,
    quantized_clamp,
    requantize,
    rounded_away,
    saturated,
)
from pybuild.ops.fixed_point.still import Still, fits, sum_ends
from pybuild.records import dataclass

_INT32 = 1 << 31
_MOST = 64  # layers whose scales are remembered
_EXACT = ("away", "even")  # of int16: by a scale of float64
# than a scaled sum: a zero point, and what rounds up; of int16
_MORE, _MORE16 = 256, 1 << 17


@dataclass(frozen=True)
class ConvParameters:
    """y = clamp(requantize(sum((x - x_zero) * w) + bias) + y_zero), per channel.

    rounding              "double" | "away" | "single" | "wide": quant's requantize;
                          "even": round((float32)acc * scale) in float32, ties to
                          even, as ONNX Runtime has it, of int16 in float64
    multipliers, shifts   of quant.requantize, one per output channel, or one
    scales                as many, in float64; of "even" and int8 in float32
    low, high             clamp of y, in its integers
    """

    rounding: str
    multipliers: tuple[int, ...]
    shifts: tuple[int, ...]
    scales: tuple[float, ...]
    x_zero: int
    y_zero: int
    low: int
    high: int


def layer_rounding(node: Node, graph: Graph) -> str:
    """The rule of a layer with weights; that of int16 follows from its bias.

    Source  LiteRT and TFLM sum in int64 unless the bias is int32
    """
    if operand(node, graph, 0).dtype is not DType.INT16 or "rounding" in node.attrs:
        return rounding(node)
    bias = optional(node, graph, 2)
    return "double" if bias is not None and bias.dtype is DType.INT32 else "wide"


def conv_parameters(node: Node, graph: Graph) -> ConvParameters:
    """Every integer of an int8 or int16 conv2d, depthwise_conv2d or dense.

    Errors  BuildError if int32 could overflow with these weights, or for weights
            with a zero point
    Source  LiteRT PopulateConvolutionQuantizationParams
    """
    x, w = operand(node, graph, 0), operand(node, graph, 1)
    y = graph.tensor(node.output)
    for tensor in (x, y):
        whole_quant(node, graph, tensor)
    if w.quant is None:
        raise invalid(node, graph, f"weights '{w.name}' have no scale")
    if any(w.quant.zero_point):
        hint = "quantise weights symmetrically"
        raise invalid(node, graph, f"weights '{w.name}' have a zero point", hint)
    rule = layer_rounding(node, graph)
    single = rule == "even" and y.dtype is not DType.INT16
    scales = _scales(x.scale, w.quant.scale, y.scale, single)
    if max(scales) == math.inf:
        raise _too_far(node, graph, scales, scales.index(math.inf))
    low, high = quantized_clamp(clamp_of(node), y)
    mults, shifts = _integers(scales, rule)
    made = ConvParameters(
        rule, mults, shifts, scales, x.zero_point, y.zero_point, low, high
    )
    _must_fit(node, graph, made)
    return made


@functools.lru_cache(_MOST)
def _scales(
    x: float, w: tuple[float, ...], y: float, single: bool
) -> tuple[float, ...]:
    """The real multiplier of each channel: every family of kernels asks for them.

    single  in float32, as ONNX Runtime has it
    """
    if not single:
        return tuple(x * s / y for s in w)
    with np.errstate(over="ignore"):
        made = np.float32(x) * np.asarray(w, np.float32) / np.float32(y)
    return tuple(made.tolist())


_integers = functools.lru_cache(_MOST)(multipliers)


def sums_are_wide(node: Node, graph: Graph, made: ConvParameters) -> bool:
    """True if sums are int64: of int16, unless the bias is int32.

    Source  LiteRT's dense layers scale a sum of int32 in float64, too
    """
    bias = optional(node, graph, 2)
    narrow = bias is not None and bias.dtype is DType.INT32
    whole = made.rounding == "double" or (made.rounding in _EXACT and narrow)
    return operand(node, graph, 0).dtype is DType.INT16 and not whole


def sum_reach(node: Node, graph: Graph, made: ConvParameters) -> Ints | None:
    """The greatest amount of any partial sum in int32, per output channel; None: the
    sums are int64, or the weights are not known.

    int64 holds every sum of 2^24 products of int16 and int8.
    """
    weights = graph.constants.get(node.inputs[1])
    x = operand(node, graph, 0).dtype
    if weights is None or sums_are_wide(node, graph, made):
        return None
    bias = graph.constants.get(node.inputs[2]) if len(node.inputs) > 2 else None
    rows = by_output(node, weights)
    least, most = accumulator_bound(rows, bias, made.x_zero, x)
    reach = np.maximum(-least, most)
    if made.rounding == "double":
        reach = reach << np.maximum(np.asarray(made.shifts), 0)
    return reach


def by_output(node: Node, weights: Array) -> Array:
    """Weights [outputs, ...] of any layer."""
    if node.op == "depthwise_conv2d":
        return weights.reshape(-1, weights.shape[-1]).T
    return weights


def _must_fit(node: Node, graph: Graph, made: ConvParameters) -> None:
    """Proves that no partial sum leaves its type, where the weights are known; what a
    channel sums that is still is all the same.
    """
    reach = sum_reach(node, graph, made)
    if reach is None:
        return
    over, far = reach >= _INT32, np.zeros(len(reach), bool)
    wide = operand(node, graph, 0).dtype is DType.INT16
    if made.rounding in ("single", "away") or (made.rounding == "even" and wide):
        more = _MORE16 if wide else _MORE
        far = reach * np.asarray(made.scales) + more >= _INT32
    if not (over | far).any():
        return
    still = still_channels(node, graph, made)
    moving = ~still.flags if still is not None else np.ones(len(reach), bool)
    if (over & moving).any():
        channel = int(np.argmax(np.where(moving, reach, 0)))
        what = f"the int32 sum of output channel {channel} could overflow"
        raise invalid(node, graph, what, "fewer inputs per output, or smaller weights")
    if (far & moving).any():
        raise _too_far(node, graph, made.scales, int(np.argmax(far & moving)))


def _too_far(
    node: Node, graph: Graph, scales: Sequence[float], channel: int
) -> BuildError:
    output = f"output channel {channel}" if len(scales) > 1 else "output"
    what = f"the scales of inputs and {output} are too far apart for 32 bits"
    return invalid(node, graph, what, "calibrate the output of this layer")


def still_channels(node: Node, graph: Graph, made: ConvParameters) -> Still | None:
    """The output channels that give one integer whatever comes in: with weights of 0,
    or a scale in which no sum is a step. None: the weights may be replaced.
    """
    fixed = [name for name in node.inputs[1:] if name]
    if not all(graph.known(name) for name in fixed):
        return None
    rows, x = by_output(node, graph.constants[fixed[0]]), operand(node, graph, 0).dtype
    bias = np.zeros(len(rows), np.int64)
    if len(fixed) > 1:
        bias = graph.constants[fixed[1]].astype(np.int64)
    least, most = accumulator_bound(rows, None, made.x_zero, x)
    wide = sums_are_wide(node, graph, made)
    ends, sure = sum_ends(bias, (least, most), wide)
    real = made.rounding == "even" or (made.rounding == "away" and x is DType.INT16)
    if real:  # by the scale itself
        sure = sure & (np.abs(ends).max(0) * np.asarray(made.scales) < _INT32)
    else:
        fit = fits(ends, made.multipliers, made.shifts, made.rounding)
        none = np.asarray(made.multipliers) == 0
        sure, ends = sure & fit | none, np.where(none, 0, ends)
    values = finish(node, graph, np.where(sure, ends, 0), made).astype(np.int64)
    return Still(sure & (values[0] == values[1]), values[0])


def finish(node: Node, graph: Graph, acc: Numbers, made: ConvParameters) -> Array:
    """From accumulators (channel last) to the integers of the output."""
    is_wide = graph.tensor(node.output).dtype is DType.INT16
    y: Numbers
    if made.rounding in _EXACT and is_wide:
        rounded = np.rint if made.rounding == "even" else rounded_away
        y = rounded(acc.astype(np.float64) * np.asarray(made.scales)) + made.y_zero
    elif made.rounding == "even":
        with np.errstate(over="ignore"):
            y = np.rint(acc.astype(np.float32) * np.asarray(made.scales, np.float32))
        y = y.clip(-_INT32, _INT32).astype(np.int64) + made.y_zero
    else:
        y = requantize(acc, made.multipliers, made.shifts, made.rounding)
        y = y + made.y_zero
    return saturated(y, graph.tensor(node.output).dtype, made.low, made.high)


def conv2d(node: Node, graph: Graph, values: Values) -> tuple[Array, ...]:
    """Numpy meaning; integers exact, float32 summed in float64."""
    x, w = value(values, 0), value(values, 1)
    if operand(node, graph, 0).dtype is DType.FLOAT32:
        return (_float_end(node, conv_sums(node, graph, x, w, np.float64), values),)
    made = conv_parameters(node, graph)
    centred, sizes = without_zero(x, made), (x.itemsize, w.itemsize)
    acc = conv_sums(node, graph, centred, w, exact(w[0].size, *sizes))
    return (finish(node, graph, _with_bias(acc, values), made),)


def depthwise(node: Node, graph: Graph, values: Values) -> tuple[Array, ...]:
    """Numpy meaning; int8 exact, float32 summed in float64."""
    x, w = value(values, 0), value(values, 1)
    if operand(node, graph, 0).dtype is DType.FLOAT32:
        return (
            _float_end(node, depthwise_sums(node, graph, x, w, np.float64), values),
        )
    made = conv_parameters(node, graph)
    acc = depthwise_sums(node, graph, without_zero(x, made), w, np.int64)
    return (finish(node, graph, _with_bias(acc, values), made),)


def without_zero(x: Array, made: ConvParameters) -> Array:
    """x - x_zero, in a type that holds it."""
    wide: Array = x.astype(np.int16 if x.dtype == np.int8 else np.int32) - made.x_zero
    return wide


def exact(terms: int, x: int = 1, w: int = 1) -> type[np.floating]:
    """The smallest float in which a sum of products is exact.

    x, w  bytes of an input, its zero point taken out, and of a weight
    """
    return np.float32 if terms * 256 ** (x + w) < 1 << 25 else np.float64


def _with_bias(acc: Numbers, values: Values) -> Numbers:
    whole: Numbers = acc.astype(np.int64)
    if len(values) > 2 and values[2] is not None:
        whole = whole + values[2].astype(np.int64)
    return whole


def _float_end(node: Node, acc: Numbers, values: Values) -> Array:
    if len(values) > 2 and values[2] is not None:
        acc = acc + values[2].astype(np.float64)
    return clamped(node, acc.astype(np.float32))


def taps(
    node: Node, graph: Graph, x: Numbers, kernel: tuple[int, ...], fill: float = 0
) -> npt.NDArray[np.generic]:
    """All windows [N,OH,OW,KH,KW,C] of the padded input, a view."""
    x = _with_zeros_between(node, x)
    top, left, bottom, right = node.attrs.get("pads", (0, 0, 0, 0))
    dy, dx = node.attrs.get("dilations", (1, 1))
    sy, sx = node.attrs.get("strides", (1, 1))
    x = x[:, max(-top, 0) : x.shape[1] + min(bottom, 0)]
    x = x[:, :, max(-left, 0) : x.shape[2] + min(right, 0)]
    rows, columns = (max(top, 0), max(bottom, 0)), (max(left, 0), max(right, 0))
    padded = np.pad(x, ((0, 0), rows, columns, (0, 0)), constant_values=fill)
    span = ((kernel[0] - 1) * dy + 1, (kernel[1] - 1) * dx + 1)
    view = np.lib.stride_tricks.sliding_window_view(padded, span, axis=(1, 2))
    picked = view[:, ::sy, ::sx, :, ::dy, ::dx]
    return picked.transpose(0, 1, 2, 4, 5, 3)


def _with_zeros_between(node: Node, x: Numbers) -> Numbers:
    """The input of a transposed convolution as its window sees it."""
    dy, dx = node.attrs.get(INPUT_DILATIONS, (1, 1))
    if (dy, dx) == (1, 1):
        return x
    n, height, width, channels = x.shape
    shape = (n, (height - 1) * dy + 1, (width - 1) * dx + 1, channels)
    made = np.zeros(shape, x.dtype)
    made[:, ::dy, ::dx] = x
    return made


def conv_sums(
    node: Node, graph: Graph, x: Numbers, w: Numbers, kind: type[np.floating]
) -> Numbers:
    """Sums of products in that type, channel last."""
    groups = int(node.attrs.get("groups", 1))
    windows = taps(node, graph, x.astype(kind), w.shape[1:3])
    n, height, width = windows.shape[:3]
    outs, depth = w.shape[0] // groups, w.shape[3]
    parts = []
    for group in range(groups):
        patch = windows[..., group * depth : (group + 1) * depth]
        rows = patch.reshape(n * height * width, -1)
        weights = w[group * outs : (group + 1) * outs].reshape(outs, -1)
        parts.append(products(rows, weights))
    return np.concatenate(parts, 1).reshape(n, height, width, w.shape[0])


def products(rows: Numbers, w: Numbers) -> Numbers:
    """rows @ w.T in the element type of rows, which few weights have at a time.

    Shapes  rows [..., K], w [O, K]
    """
    parts = [rows @ few.astype(rows.dtype).T for few in chunks(w, w.shape[1])]
    return np.concatenate(parts, -1) if parts[1:] else parts[0]


def depthwise_sums(
    node: Node, graph: Graph, x: Numbers, w: Numbers, kind: type[np.number]
) -> Numbers:
    """Sums of products in that type, channel last."""
    multiplier = w.shape[2] // x.shape[3]
    wide = np.repeat(x, multiplier, axis=3).astype(kind)
    windows = taps(node, graph, wide, w.shape[:2])
    acc = np.zeros((*windows.shape[:3], w.shape[2]), kind)
    for row in range(w.shape[0]):
        for column in range(w.shape[1]):
            acc += windows[:, :, :, row, column] * w[row, column].astype(kind)
    return acc


def macs_conv2d(node: Node, graph: Graph) -> int:
    _, kh, kw, depth = operand(node, graph, 1).shape
    return graph.tensor(node.output).size * kh * kw * depth // _zeros(node)


def macs_depthwise(node: Node, graph: Graph) -> int:
    kh, kw, _ = operand(node, graph, 1).shape
    return graph.tensor(node.output).size * kh * kw // _zeros(node)


def _zeros(node: Node) -> int:
    """One of so many taps of a window meets an input, not a zero between inputs."""
    return math.prod(node.attrs.get(INPUT_DILATIONS, (1, 1)))
