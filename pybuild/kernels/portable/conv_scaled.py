"""float32 convolution and fully connected layers whose weights are integers of 4 bits
times a scale of each channel, or of blocks of its taps: eight are in a word of flash.
"""

from __future__ import annotations

import numpy as np

from pybuild.dtype import Array
from pybuild.ir.graph import Graph, Node
from pybuild.kernels.base.candidate import Candidate, Packed, RowAccess
from pybuild.kernels.base.window import Window
from pybuild.kernels.epilogues.int8 import FloatClamp
from pybuild.kernels.layers.block_weights import BlockWeights, block_weights
from pybuild.kernels.layers.weights import WEIGHTS4, in_blocks, kernels_of
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
    finish = FloatClamp(*clamp_of(node))
    like = Layer(window, finish, 0, 0, block=found.size, shifted=shifted)
    layer = fastest(like, target.float_sums or _SUMS)
    if layer is None:
        return []
    scales = Packed("scales", np.ascontiguousarray(found.scales.T), order=_ORDER)
    offsets = Packed("offsets", np.ascontiguousarray(found.offsets.T), order=_ORDER)
    tables = (pack(layer, found), scales, *((offsets,) if shifted else ()))
    return [offer(layer, tables, bias_of(node, graph), rows, calls)]


def pack(layer: Layer, weights: BlockWeights) -> Packed:
    """Integers [O, taps] as blocks of output channels, in each taps, then channels,
    eight in a word.

    The last block may hold channels of the one before again.
    """
    order = f"of each {layer.channels} output channels: taps, then channels; eight in "
    order += "a word, the first one in its lowest bits"
    return Packed.later(WEIGHTS4, order, _arranged, layer, weights)


def _arranged(layer: Layer, weights: BlockWeights) -> Array:
    read = in_blocks(layer.window.out_channels, layer.channels)
    blocks = weights.numbers[read].reshape(-1, layer.channels, layer.taps)
    eights = blocks.transpose(0, 2, 1).reshape(-1, 8).astype(np.uint32) & np.uint32(15)
    words = np.zeros(len(eights), np.uint32)
    for i in range(8):
        words |= eights[:, i] << np.uint32(4 * i)
    return words.view(np.int32)
