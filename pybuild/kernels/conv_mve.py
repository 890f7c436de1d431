"""int8 convolution and fully connected layers on vectors of 16 bytes (VMLADAVA).

Four output channels at a time sum over the bytes of a window: of one tap where it
lies, of more taps, or few bytes, from a patch in scratch. Then the four are scaled
together.
"""

from __future__ import annotations

import numpy as np

from pybuild.dtype import Array
from pybuild.graph import Graph, Node
from pybuild.kernels.affine import REACH, Affine, affine
from pybuild.kernels.candidate import Candidate, Packed, RowAccess
from pybuild.kernels.conv_mve_code import Layer, kernel
from pybuild.kernels.weights import (
    constant,
    folded_bias,
    in_blocks,
    reach,
    takes_vectors,
)
from pybuild.kernels.window import Window
from pybuild.ops.conv import ConvParameters, conv_parameters
from pybuild.targets.target import Target


def pack(layer: Layer, kernels: Array) -> Packed:
    """Weights [O, taps] as vectors: four channels, then steps, then channels."""
    order = np.asarray(layer.order)
    taps = np.where(order < 0, 0, kernels[:, np.maximum(order, 0)])
    taps = taps[in_blocks(len(kernels), 4)]
    vectors = taps.reshape(-1, 4, layer.steps, 16).transpose(0, 2, 1, 3)
    return Packed("weights", np.ascontiguousarray(vectors).astype(np.int8))


def table(made: Affine, bias: Array) -> Packed:
    """What each four output channels end with, in reading order."""
    start = bias.astype(np.int64) << 8
    columns = [start + made.offsets, made.multipliers]
    if made.below is not None:
        columns = [start, made.offsets, made.below, made.multipliers]
    rows = np.stack(columns)[:, in_blocks(len(bias), 4)].reshape(len(columns), -1, 4)
    return Packed("ends", rows.transpose(1, 0, 2).astype(np.int32))


def known(
    node: Node, graph: Graph, target: Target, kernels: Array
) -> tuple[ConvParameters, Affine, Array] | None:
    """(parameters, the cheap requantisation, the bias to add) of a layer with one.

    Shapes  kernels [O, taps]
    """
    if not takes_vectors(node, graph, target):
        return None
    made = conv_parameters(node, graph)
    bias = constant(node, graph, 2, np.zeros(len(kernels), np.int32))
    bias = folded_bias(node, graph, kernels, bias, made.x_zero)
    low, high = reach(node, graph, kernels, bias)
    if max(-int(low.min()), int(high.max())) > REACH:
        return None
    ending = affine(made, low, high)
    return None if ending is None else (made, ending, bias)


def candidates(
    node: Node,
    graph: Graph,
    target: Target,
    window: Window,
    rows: tuple[RowAccess, RowAccess],
    calls: tuple[int, int],
) -> list[Candidate]:
    """The kernels of this file that suit a layer: none, or one."""
    if window.groups > 1 or window.out_channels < 4:
        return []
    weights = constant(node, graph, 1)
    kernels = weights.reshape(len(weights), -1)
    found = known(node, graph, target, kernels)
    if found is None:
        return []
    made, ending, bias = found
    layer = Layer(window, ending, made.x_zero)
    k = kernel(layer)
    images, bands = calls
    pixels = images * bands * window.out_width
    blocks = (window.out_channels + 3) // 4
    gathered = 0 if layer.direct else 3 * layer.steps + 10 * window.kernel_h
    return [
        Candidate(
            func=k.finish(),
            args=tuple(k.values),
            outputs=rows[:1],
            inputs=rows[1:],
            constants=(pack(layer, kernels), table(ending, bias)),
            images=images,
            bands=bands,
            scratch=layer.scratch,
            cost=pixels * (blocks * (10 * layer.steps + 24) + gathered),
        )
    ]
