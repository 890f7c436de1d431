"""int8 depthwise convolution with pairs of int16 (SMLABB, SMLATT).

Four channels at a time: their rows are widened to int16 into scratch, two channels
a word, padding included; then several columns are summed together.
"""

from __future__ import annotations

import numpy as np

from pybuild.dtype import Array
from pybuild.graph import Graph, Node
from pybuild.kernels.affine import FRACTION, REACH, Affine, affine
from pybuild.kernels.candidate import Candidate, Packed, RowAccess
from pybuild.kernels.depthwise_dsp_code import kernel
from pybuild.kernels.depthwise_dsp_layer import GROUP, Image, Layer
from pybuild.kernels.weights import constant, folded_bias, reach, takes_pairs
from pybuild.kernels.window import Window
from pybuild.ops.conv import conv_parameters
from pybuild.targets.target import Target


def _order(channels: int) -> Array:
    """Channels as they are summed: of each four the even ones, then the odd ones;
    the last four may be computed twice."""
    starts = [min(c, channels - GROUP) for c in range(0, channels, GROUP)]
    return np.asarray([s + c for s in starts for c in (0, 2, 1, 3)])


def pack(kernels: Array) -> Packed:
    """Weights [C, taps] as words: four channels, then taps."""
    channels = len(kernels)
    starts = [min(c, channels - GROUP) for c in range(0, channels, GROUP)]
    groups = np.stack([kernels[s : s + GROUP].T for s in starts]).astype(np.int8)
    return Packed("weights", np.ascontiguousarray(groups).view("<i4").reshape(-1))


def table(ending: Affine, bias: Array) -> Packed:
    """What each two channels start and end with, in reading order."""
    start = bias.astype(np.int64) << FRACTION
    columns = [start + ending.offsets, ending.multipliers]
    if ending.below is not None:
        columns = [start, ending.offsets, ending.below, ending.multipliers]
    made = np.stack(columns, axis=1)[_order(len(bias))]
    return Packed("ends", made.reshape(-1, 2 * made.shape[1]).astype(np.int32))


def candidates(
    node: Node,
    graph: Graph,
    target: Target,
    window: Window,
    rows: tuple[RowAccess, RowAccess],
    calls: tuple[int, int],
) -> list[Candidate]:
    """The kernels of this file that suit a layer: none, or one."""
    if not takes_pairs(node, graph, target):
        return []
    if window.out_channels != window.channels or window.channels < GROUP:
        return []
    kernels = constant(node, graph, 1).reshape(-1, window.channels).T
    made = conv_parameters(node, graph)
    bias = constant(node, graph, 2, np.zeros(window.channels, np.int32))
    bias = folded_bias(node, graph, kernels, bias, made.x_zero)
    low, high = reach(node, graph, kernels, bias)
    if max(-int(low.min()), int(high.max())) > REACH:
        return []
    ending = affine(made, low, high)
    if ending is None:
        return []
    x, y = graph.tensor(node.inputs[0]), graph.tensor(node.output)
    strides, pads = node.attrs.get("strides", (1, 1)), node.attrs.get("pads", (0,))
    image = Image(x.shape[1], y.shape[1], strides[0], pads[0])
    tables = (pack(kernels), table(ending, bias))
    by_row = _offer(Layer(window, ending, made.x_zero), rows, tables, calls)
    layer = Layer(window, ending, made.x_zero, image)
    images = tuple(RowAccess(t.name, 1, t.bytes // x.shape[0], 1, 1) for t in (y, x))
    at_once = _offer(layer, (images[0], images[1]), tables, (x.shape[0], 1))
    return [by_row, at_once]


def _offer(
    layer: Layer,
    rows: tuple[RowAccess, RowAccess],
    tables: tuple[Packed, ...],
    calls: tuple[int, int],
) -> Candidate:
    """The candidate of a layer; `calls`: images and bands."""
    k = kernel(layer)
    w, (images, bands) = layer.window, calls
    heights = bands if layer.image is None else layer.image.out_height
    new = w.kernel_h if layer.image is None else min(w.rows, layer.image.stride_h)
    widened = 3 * new * layer.pitch * w.channels
    summed = w.out_width * w.channels * (2 * layer.taps + 6)
    return Candidate(
        func=k.finish(),
        args=tuple(k.values),
        outputs=rows[:1],
        inputs=rows[1:],
        constants=tables,
        images=images,
        bands=bands,
        scratch=layer.scratch,
        cost=images * heights * (widened + summed),
    )
