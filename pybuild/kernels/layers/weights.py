"""The common part of layers with weights: values, folded biases, padded rows."""

from __future__ import annotations

import numpy as np

from pybuild.dtype import Array, DType, Ints, fits_half
from pybuild.errors import BuildError
from pybuild.ir.graph import Graph, Node
from pybuild.kernels.base.candidate import Packed, RowAccess
from pybuild.kernels.epilogues.bare import bare
from pybuild.kernels.epilogues.int8 import Finish, FloatClamp, int8_finish
from pybuild.kernels.epilogues.int16 import MOST_SUM, finish16
from pybuild.kernels.layers.zero_points import weights_zero
from pybuild.ops.base.operator import clamp_of
from pybuild.ops.conv import ConvParameters, conv_parameters
from pybuild.ops.fixed_point.quant import accumulator_bound, sums_by_sign
from pybuild.targets.target import Target

_MOST = 2**31 - 1
# the roles of weights of which four, or two, are in a byte
WEIGHTS2, WEIGHTS4 = "weights2", "weights4"
PACKED = {2: WEIGHTS2, 4: WEIGHTS4}  # by their bits
# of float32 weights that are float16 in flash
WEIGHTS16 = "weights16"


def constant(
    node: Node, graph: Graph, position: int, default: Array | None = None
) -> Array:
    """Return the value of an input that the kernel needs at build time.

    Errors  BuildError if it is computed at run time
    """
    name = node.inputs[position] if position < len(node.inputs) else ""
    if not name and default is not None:
        return default
    if name not in graph.constants:
        what = f"'{name}' must be constant: its kernel packs it at build time"
        raise BuildError(graph.where(node), what, "export the model with its weights")
    return graph.constants[name]


def kernels_of(node: Node, graph: Graph) -> Array:
    """Return the weights of a layer as [O, taps].

    Errors  BuildError if they are computed at run time
    """
    weights = constant(node, graph, 1)
    if node.op == "depthwise_conv2d":
        return weights.reshape(-1, weights.shape[-1]).T
    return weights.reshape(len(weights), -1)


def fits_int4(kernels: Array) -> bool:
    """Return True if every weight fits 4 bits, whatever the type in the model's
    file."""
    return fits_bits(kernels, 4)


def fits_bits(kernels: Array, bits: int) -> bool:
    """Return True if every weight fits so many bits, with its sign."""
    half = 1 << bits - 1
    return bool(kernels.min(initial=0) >= -half and kernels.max(initial=0) < half)


def halves(weights: Array, order: str) -> Packed:
    """Return float32 weights as the bits of float16, in the same order."""
    bits = weights.astype(np.float16).view(np.uint16)
    return Packed(WEIGHTS16, bits, order=f"{order}; float16")


def two_in_a_word(weights: Array) -> Array:
    """Return an even number of float32 weights as float16, two in an int32, the first
    in the lower half."""
    halves = weights.reshape(-1).astype(np.float16).view(np.uint16).astype(np.uint32)
    return (halves[0::2] | halves[1::2] << np.uint32(16)).view(np.int32)


def known_halves(node: Node, graph: Graph) -> bool:
    """Return True if a float32 layer's weights are known and exact in float16."""
    return fixed(node, graph) and fits_half(constant(node, graph, 1))


def widens(target: Target, optimise: str) -> bool:
    """Return True if a core's float32 layers may have float16 weights: an instruction
    widens those of two channels, or `widens_each` allows it."""
    instruction = not target.features.isdisjoint({"dsp", "mve"})
    return instruction or widens_each(target, optimise)


def widens_each(target: Target, optimise: str) -> bool:
    """Return True if widening weights one by one is acceptable: float multiplication is
    far slower, or flash is short."""
    return target.float_calls or optimise == "size"


def folded_bias(
    node: Node, graph: Graph, weights: Array, bias: Array, x_zero: int
) -> Array:
    """Return bias - x_zero * sum(w), so that the kernel multiplies plain inputs.

    Shapes  weights [O, ...], bias int32[O]
    Errors  BuildError if some order of summing could overflow int32
    """
    up, down = sums_by_sign(weights)
    folded: Ints = bias.astype(np.int64) - x_zero * (up + down)
    reach = np.abs(folded) + 128 * (up - down)
    if reach.size and int(reach.max()) > _MOST:
        channel = int(reach.argmax())
        what = f"the 32-bit accumulator of output channel {channel} could overflow"
        raise BuildError(
            graph.where(node), what, "split the layer, or use smaller weights"
        )
    return folded.astype(np.int32)


def block_starts(channels: int, size: int) -> list[int]:
    """Return the first channel of each block; the last block may overlap the one
    before."""
    return [min(c, channels - size) for c in range(0, channels, size)]


def in_blocks(channels: int, size: int) -> Ints:
    """Return the channels in order of computation, in blocks of `size`."""
    starts = block_starts(channels, size)
    return np.asarray([s + j for s in starts for j in range(size)])


def fixed(node: Node, graph: Graph) -> bool:
    """Return True if kernels may depend on the values of a layer's weights and bias.
    They may not if users can replace them: the kernel must then serve any values."""
    return all(graph.known(name) for name in node.inputs[1:] if name)


def takes_pairs(node: Node, graph: Graph, target: Target) -> bool:
    """True if a layer of int8 and its known weights may have kernels on pairs of
    int16."""
    return "dsp" in target.features and known_int8(node, graph)


def on_pairs16(
    node: Node, graph: Graph, target: Target
) -> tuple[Array, Finish, Array, int] | None:
    """Return (kernels [O, taps], finish, bias, zero point of the input) of an int16
    layer that may have kernels on pairs, with known weights and int32 sums; else
    None."""
    if graph.tensor(node.output).dtype is not DType.INT16:
        return None
    if "dsp" not in target.features or not fixed(node, graph):
        return None
    kernels = kernels_of(node, graph)
    finish, bias, x_zero = epilogue(node, graph, kernels)
    is_short = DType.of(bias) is DType.INT32
    return (kernels, finish, bias, x_zero) if is_short else None


def quads(kernels: Array, words: int) -> Array:
    """Return int8 weights [O, taps] as [O, words, 4], padded with zeros; the four taps
    of a word are in the order in which its bytes are widened in pairs."""
    taps = np.zeros((len(kernels), words, 4), np.int8)
    taps.reshape(len(kernels), -1)[:, : kernels.shape[1]] = kernels
    return taps[:, :, (0, 2, 1, 3)]


def is_bare(node: Node, graph: Graph) -> bool:
    """Return True if a layer's output is its int32 sums of int8 products."""
    return graph.tensor(node.output).dtype is DType.INT32


def known_bytes(node: Node, graph: Graph, sums: bool = False) -> bool:
    """True if a layer is of int8, with known weights of eight or nine bits.

    sums  its output may be its int32 sums
    """
    if not fixed(node, graph) or graph.tensor(node.inputs[0]).dtype is not DType.INT8:
        return False
    y = graph.tensor(node.output).dtype
    return y is DType.INT8 or (sums and y is DType.INT32)


def known_int8(node: Node, graph: Graph) -> bool:
    """Return True for an int8 layer with known int8 weights."""
    whole = {graph.tensor(name).dtype for name in (node.inputs[1], node.output)}
    return whole == {DType.INT8} and fixed(node, graph)


def known_int9(node: Node, graph: Graph) -> bool:
    """True if a layer is of int8, and its weights, which are known, of int16."""
    types = [graph.tensor(name).dtype for name in node.inputs[:2]]
    return types == [DType.INT8, DType.INT16] and fixed(node, graph)


def as_bytes(node: Node, graph: Graph, kernels: Array) -> tuple[bool, int | None]:
    """Return (whether a layer's weights can be stored as bytes, the number that makes
    uint8 of 9-bit weights or None if they have 8 bits).

    Shapes  kernels [O, taps]
    """
    if not known_int9(node, graph):
        return True, None
    zero = weights_zero(kernels)
    return zero is not None, zero


def reach(node: Node, graph: Graph, kernels: Array, folded: Array) -> tuple[Ints, Ints]:
    """Return the least and the greatest accumulator of each output channel, bias
    included.

    Shapes  kernels [O, taps], folded int32[O]: the bias of `folded_bias`
    Source  every input from -128 to 127, in any order of summing
    """
    return accumulator_bound(kernels, folded, 0)


def epilogue(node: Node, graph: Graph, kernels: Array) -> tuple[Finish, Array, int]:
    """Return (finish, bias as its kernel adds it, input zero point) of a layer.

    Shapes  kernels [O, ...], one row of weights per output channel
    Errors  BuildError if the int32 accumulator could overflow
    """
    outputs = len(kernels)
    if graph.tensor(node.output).dtype is DType.FLOAT32:
        bias = constant(node, graph, 2, np.zeros(outputs, np.float32))
        return FloatClamp(*clamp_of(node)), bias, 0
    if is_bare(node, graph):
        return bare(outputs), np.zeros(outputs, np.int32), 0
    made = conv_parameters(node, graph)
    bias = constant(node, graph, 2, np.zeros(outputs, np.int32))
    if graph.tensor(node.output).dtype is DType.INT16:
        return (*_epilogue16(node, graph, made, kernels, bias), made.x_zero)
    bias = folded_bias(node, graph, kernels, bias, made.x_zero)
    return int8_finish(made), bias, made.x_zero


def _epilogue16(
    node: Node, graph: Graph, made: ConvParameters, kernels: Array, bias: Array
) -> tuple[Finish, Array]:
    """Return the epilogue and the bias, in the type of the sums: 32 bits if that is
    proven to be enough."""
    beside = 0  # what replaced weights and biases may add
    if made.x_zero:  # kernels multiply plain inputs
        bias = bias.astype(np.int64) - made.x_zero * sum(sums_by_sign(kernels))
    if not fixed(node, graph):
        kernels = np.full(kernels.shape, -128, np.int8)
        beside = _MOST + abs(made.x_zero) * 128 * kernels[0].size
    held = np.clip(bias, 1 - MOST_SUM, MOST_SUM)  # beyond it is refused
    least, most = accumulator_bound(kernels, held, 0, DType.INT16)
    reach = np.maximum(-least, most) + beside
    small = made.rounding == "double" or int(reach.max(initial=0)) <= _MOST
    bias = bias.astype(np.int32 if small else np.int64)
    if made.rounding == "double":
        return int8_finish(made, DType.INT16), bias
    return finish16(made, reach, graph.where(node)), bias


def window_rows(node: Node, graph: Graph, window: int, fill: int | float) -> RowAccess:
    """Return the access to the input [N,H,W,C] of a layer as a sliding window of rows.

    window  rows under the kernel, gaps of a dilation included
    fill    the value of rows above and below the image
    """
    x, y = graph.tensor(node.inputs[0]), graph.tensor(node.output)
    top = node.attrs.get("pads", (0, 0, 0, 0))[0]
    stride = node.attrs.get("strides", (1, 1))[0]
    end = (y.shape[1] - 1) * stride - top + window
    pad_row = None
    if top > 0 or end > x.shape[1]:
        row = np.full(x.shape[2] * x.shape[3], fill, x.dtype.numpy)
        pad_row = row.tobytes()
    row_bytes = x.bytes // (x.shape[0] * x.shape[1])
    return RowAccess(x.name, x.shape[1], row_bytes, window, stride, top, pad_row)
