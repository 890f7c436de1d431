"""Convolution and fully connected layers of float32 on vectors of sums, each of another
output channel, a tap at a time; products and sums are rounded one by one.
"""

from __future__ import annotations

import numpy as np

from pybuild.dtype import Array, DType
from pybuild.ir.graph import Graph, Node
from pybuild.kernels.base.candidate import EACH, Candidate, Packed, RowAccess
from pybuild.kernels.base.real_vectors import real_vectors
from pybuild.kernels.base.window import Window
from pybuild.kernels.epilogues.int8 import FloatClamp
from pybuild.kernels.layers.weights import constant, fixed, in_blocks
from pybuild.kernels.wide.float_code import kernel
from pybuild.kernels.wide.float_layer import FloatLayer, best_layer
from pybuild.ops.base.operator import clamp_of
from pybuild.targets.target import Target


def candidates(
    node: Node,
    graph: Graph,
    target: Target,
    window: Window,
    rows: tuple[RowAccess, RowAccess],
    calls: tuple[int, int],
) -> list[Candidate]:
    """The kernels of this file that suit a layer: none, or one."""
    is_float = graph.tensor(node.output).dtype is DType.FLOAT32
    vectors = real_vectors(target)
    if vectors is None or not is_float or not fixed(node, graph):
        return []
    finish = FloatClamp(*clamp_of(node))
    layer = best_layer(window, finish, vectors) if window.groups == 1 else None
    if layer is None:
        return []
    weights = constant(node, graph, 1)
    kernels = weights.reshape(len(weights), -1)
    bias = constant(node, graph, 2, np.zeros(len(kernels), np.float32))
    k, (images, bands) = kernel(layer), calls
    return [
        Candidate(
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
            cost=images * bands * layer.cycles,
        )
    ]


def pack(layer: FloatLayer, kernels: Array) -> Packed:
    """Weights [O, taps] as blocks of output channels, in each: taps, then channels.

    The last block may hold channels of the one before again.
    """
    n = layer.together
    blocks = kernels[in_blocks(len(kernels), n)].reshape(-1, n, layer.window.taps)
    data = np.ascontiguousarray(blocks.transpose(0, 2, 1)).reshape(-1)
    return Packed("weights", data, order=f"of each {n} output channels: taps, channels")
