"""Convolution and fully connected layers of float32 on vectors of sums, each of another
output channel, a tap at a time; products and sums are rounded one by one.
"""

from __future__ import annotations

import numpy as np

from pybuild.dtype import Array, DType, fits_half
from pybuild.ir.graph import Graph, Node
from pybuild.kernels.base.candidate import EACH, Candidate, Packed, RowAccess
from pybuild.kernels.base.real_vectors import real_vectors
from pybuild.kernels.base.window import Window
from pybuild.kernels.epilogues.int8 import FloatClamp
from pybuild.kernels.layers.weights import (
    WEIGHTS16,
    constant,
    fixed,
    in_blocks,
    two_in_a_word,
)
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
    """The kernels of this file that suit a layer: none, one, or another one whose
    weights are float16 in flash."""
    is_float = graph.tensor(node.output).dtype is DType.FLOAT32
    vectors = real_vectors(target)
    if vectors is None or not is_float or not fixed(node, graph) or window.groups > 1:
        return []
    finish = FloatClamp(*clamp_of(node))
    weights = constant(node, graph, 1)
    kernels = weights.reshape(len(weights), -1)
    bias = constant(node, graph, 2, np.zeros(len(kernels), np.float32))
    kinds = (False, True) if vectors.half_shapes and fits_half(kernels) else (False,)
    found = (best_layer(window, finish, vectors, halves) for halves in kinds)
    return [_offer(layer, kernels, bias, rows, calls) for layer in found if layer]


def _offer(
    layer: FloatLayer,
    kernels: Array,
    bias: Array,
    rows: tuple[RowAccess, RowAccess],
    calls: tuple[int, int],
) -> Candidate:
    k, (images, bands) = kernel(layer), calls
    return Candidate(
        func=k.finish(),
        args=tuple(k.values),
        outputs=rows[:1],
        inputs=rows[1:],
        constants=(
            pack(layer, kernels),
            Packed("bias", bias, order=EACH),
            *layer.finish.tables(),
        ),
        images=images,
        bands=bands,
        scratch=layer.scratch,
        cost=images * bands * layer.cycles,
    )


def pack(layer: FloatLayer, kernels: Array) -> Packed:
    """Weights [O, taps] as blocks of output channels, in each: taps, then channels.

    The last block may hold channels of the one before again.
    """
    n = layer.together
    blocks = kernels[in_blocks(len(kernels), n)].reshape(-1, n, layer.window.taps)
    order = f"of each {n} output channels: taps, channels"
    lie = blocks.transpose(0, 2, 1)
    if layer.in_pairs:
        # those of two vectors in turns
        pairs = lie.reshape(*lie.shape[:2], -1, 2, layer.vectors.lanes)
        order += "; float16, in each word those of two vectors"
        return Packed(WEIGHTS16, two_in_a_word(pairs.swapaxes(-1, -2)), order=order)
    data = np.ascontiguousarray(lie).reshape(-1)
    if layer.halves:
        data = data.astype(np.float16).view(np.int16)
        return Packed(WEIGHTS16, data, order=f"{order}; float16")
    return Packed("weights", data, order=order)
