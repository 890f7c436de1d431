"""float32 convolution and fully connected layers whose weights are integers of 2 or
4 bits times a scale of each channel, or of blocks of its taps: packed in words.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from pybuild.dtype import Array
from pybuild.ir.graph import Graph, Node
from pybuild.kernels.base.candidate import Candidate, Packed, RowAccess
from pybuild.kernels.base.window import Window
from pybuild.kernels.epilogues.int8 import FloatClamp
from pybuild.kernels.layers.block_weights import BlockWeights, block_weights
from pybuild.kernels.layers.weights import PACKED, in_blocks, kernels_of
from pybuild.kernels.portable.conv_float import bias_of, fastest, offer, suited
from pybuild.kernels.portable.conv_float_code import Layer
from pybuild.ops.base.operator import clamp_of
from pybuild.targets.target import Target

# of cores without a kernel of real weights, because all sums are calls of functions
_SUMS = ((8, 1), (4, 1))
_ORDER = "blocks of taps, then output channels"


def candidates(
    node: Node,
    graph: Graph,
    target: Target,
    window: Window,
    rows: tuple[RowAccess, RowAccess],
    calls: tuple[int, int],
) -> list[Candidate]:
    """The kernels of this file that suit a layer: none, or one."""
    if not suited(node, graph, window):
        return []
    found = block_weights(kernels_of(node, graph))
    if found is None:
        return []
    shifted = bool(found.offsets.any())
    like = Layer(window, FloatClamp(*clamp_of(node)), 0, 0, block=found.size)
    layer = None
    for bits in sorted({found.bits, 4}):  # where 2 bits fill no words, 4 may
        like = replace(like, bits=bits, shifted=shifted)
        layer = layer or fastest(like, target.float_sums or _SUMS)
    if layer is None:
        return []
    scales = Packed("scales", np.ascontiguousarray(found.scales.T), order=_ORDER)
    offsets = Packed("offsets", np.ascontiguousarray(found.offsets.T), order=_ORDER)
    tables = (pack(layer, found), scales, *((offsets,) if shifted else ()))
    return [offer(layer, tables, bias_of(node, graph), rows, calls)]


def pack(layer: Layer, weights: BlockWeights) -> Packed:
    """Integers [O, taps] as blocks of output channels, in each taps, then channels,
    as many in a word as fit.

    The last block may hold channels of the one before again.
    """
    order = f"of each {layer.channels} output channels: taps, then channels; "
    order += f"{layer.each} in a word, the first one in its lowest bits"
    return Packed.later(PACKED[layer.bits], order, _arranged, layer, weights)


def _arranged(layer: Layer, weights: BlockWeights) -> Array:
    read = in_blocks(layer.window.out_channels, layer.channels)
    blocks = weights.numbers[read].reshape(-1, layer.channels, layer.taps)
    ordered = blocks.transpose(0, 2, 1).reshape(-1, layer.each).astype(np.uint32)
    parts = ordered & np.uint32((1 << layer.bits) - 1)
    words = np.zeros(len(parts), np.uint32)
    for i in range(layer.each):
        words |= parts[:, i] << np.uint32(layer.bits * i)
    return words.view(np.int32)
