"""float32 convolution and fully connected layers whose weights are constant.

A few output channels and pixels are summed together in registers, so that each value
loaded meets several others. Windows of more than a tap are copied side by side into
scratch; the weights lie in the order in which they are read.
"""

from __future__ import annotations

import numpy as np

from pybuild.dtype import Array, DType
from pybuild.ir.graph import Graph, Node
from pybuild.kernels.base.candidate import EACH, Candidate, Packed, RowAccess
from pybuild.kernels.base.window import Window
from pybuild.kernels.epilogues.int8 import FloatClamp
from pybuild.kernels.layers.weights import (
    WEIGHTS16,
    constant,
    fixed,
    in_blocks,
    two_in_a_word,
)
from pybuild.kernels.portable.conv_float_code import Layer, kernel
from pybuild.ops.base.operator import clamp_of
from pybuild.ops.fixed_point.chunks import chunks, filled
from pybuild.targets.target import Target

_FEWEST_TAPS = 4  # below, what surrounds the sums is most of the work


def pack(layer: Layer, kernels: Array) -> Packed:
    """Weights [O, taps] as blocks of output channels, in each: taps, then channels.

    The last block may hold channels of the one before again.
    """
    order = f"of each {layer.channels} output channels: taps, then channels"
    if layer.halves:
        order += ", float16, the first of two in the lower half"
        return Packed.later(WEIGHTS16, order, _halves, layer, kernels)
    return Packed.later("weights", order, _arranged, layer, kernels)


def _halves(layer: Layer, kernels: Array) -> Array:
    """The words that hold two weights each."""
    return two_in_a_word(_arranged(layer, kernels))


def _arranged(layer: Layer, kernels: Array) -> Array:
    n, taps = layer.channels, layer.taps
    read = in_blocks(layer.window.out_channels, n)
    few = (kernels[some].reshape(-1, n, taps) for some in chunks(read, taps, n))
    blocks = (some.transpose(0, 2, 1) for some in few)
    return filled(np.empty(len(read) * taps, kernels.dtype), blocks)


def cost(layer: Layer) -> int:
    """Estimated instructions of a row: loads, products, loops, ends, the patch."""
    w = layer.window
    columns = -(-w.out_width // layer.pixels)
    sums = layer.channels * layer.pixels
    tap = layer.words + layer.channels * layer.halves + layer.pixels + 2 * sums
    turn = 4 + (layer.pixels if layer.direct else 1)
    block = layer.taps * tap + layer.taps // layer.unrolled * turn + 8 * sums
    copied = 0 if layer.direct else columns * layer.pixels * (3 * layer.taps + 20)
    return columns * -(-w.out_channels // layer.channels) * block + copied


def candidates(
    node: Node,
    graph: Graph,
    target: Target,
    window: Window,
    rows: tuple[RowAccess, RowAccess],
    calls: tuple[int, int],
) -> list[Candidate]:
    """The kernels of this file that suit a layer: none, or one."""
    return offers(node, graph, target, window, rows, calls, False)


def offers(
    node: Node,
    graph: Graph,
    target: Target,
    window: Window,
    rows: tuple[RowAccess, RowAccess],
    calls: tuple[int, int],
    halves: bool,
) -> list[Candidate]:
    """The same; halves: with weights that are float16 in flash."""
    is_float = graph.tensor(node.output).dtype is DType.FLOAT32
    if not is_float or window.groups > 1 or not fixed(node, graph):
        return []
    finish = FloatClamp(*clamp_of(node))
    layers = [
        Layer(window, finish, channels, pixels, halves)
        for channels, pixels in target.float_sums
        if pixels <= window.out_width and channels <= window.out_channels
    ]
    layer = min(layers, key=cost, default=None)
    if layer is None or layer.taps < _FEWEST_TAPS:
        return []
    weights = constant(node, graph, 1)
    kernels = weights.reshape(len(weights), -1)
    bias = constant(node, graph, 2, np.zeros(len(kernels), np.float32))
    k = kernel(layer)
    images, bands = calls
    found = Candidate(
        func=k.finish(),
        args=tuple(k.values),
        outputs=rows[:1],
        inputs=rows[1:],
        constants=(
            pack(layer, kernels),
            Packed("bias", bias, order=EACH),
            *finish.tables(),
        ),
        images=images,
        bands=bands,
        scratch=layer.scratch,
        cost=images * bands * cost(layer),
    )
    return [found]
