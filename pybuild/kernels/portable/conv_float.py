"""float32 convolution and fully connected layers whose weights are constant.

A few output channels and pixels are summed together in registers, so that each value
loaded meets several others. Windows of more than a tap are copied side by side into
scratch; the weights lie in the order in which they are read.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

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
    kernels_of,
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
    loads = layer.words / layer.unrolled
    widened = layer.channels * (layer.halves + 4 * bool(layer.block) + layer.shifted)
    tap = int(loads + widened) + layer.pixels + 2 * sums
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
    if not suited(node, graph, window):
        return []
    layer = fastest(Layer(window, FloatClamp(*clamp_of(node)), 0, 0), target.float_sums)
    if layer is None:
        return []
    weights = (pack(layer, kernels_of(node, graph)),)
    return [offer(layer, weights, bias_of(node, graph), rows, calls)]


def suited(node: Node, graph: Graph, window: Window) -> bool:
    """True if a layer may have kernels of blocks of sums: float32, weights known."""
    is_float = graph.tensor(node.output).dtype is DType.FLOAT32
    few = window.kernel_h * window.kernel_w * window.channels < _FEWEST_TAPS
    return is_float and window.groups == 1 and fixed(node, graph) and not few


def fastest(like: Layer, sums: Iterable[tuple[int, int]]) -> Layer | None:
    """The layer with that of some sums by which it takes least; None: none fits.

    sums  (output channels, pixels) that are summed together
    """
    layers = [
        replace(like, channels=channels, pixels=pixels)
        for channels, pixels in sums
        if pixels <= like.window.out_width and channels <= like.window.out_channels
    ]
    return min((one for one in layers if one.unrolled), key=cost, default=None)


def bias_of(node: Node, graph: Graph) -> Array:
    """float32[O]; zeros where a layer has none."""
    outputs = graph.tensor(node.inputs[1]).shape[0]
    return constant(node, graph, 2, np.zeros(outputs, np.float32))


def offer(
    layer: Layer,
    weights: tuple[Packed, ...],
    bias: Array,
    rows: tuple[RowAccess, RowAccess],
    calls: tuple[int, int],
) -> Candidate:
    """The kernel of a layer.

    weights  and what they are multiplied by
    calls    images and bands
    """
    k = kernel(layer)
    images, bands = calls
    first, *others = weights
    return Candidate(
        func=k.finish(),
        args=tuple(k.values),
        outputs=rows[:1],
        inputs=rows[1:],
        constants=(
            first, Packed("bias", bias, order=EACH), *others, *layer.finish.tables()
        ),
        images=images,
        bands=bands,
        scratch=layer.scratch,
        cost=images * bands * cost(layer),
    )  # fmt: skip
