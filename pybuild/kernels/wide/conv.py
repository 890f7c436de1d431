"""Convolution and fully connected layers of int8 on vectors of sixteen sums, each of
another output channel: four taps at a time (vpdpbusd, or what LLVM makes of it).
"""

from __future__ import annotations

import numpy as np

from pybuild.dtype import Array, Ints
from pybuild.ir.graph import Graph, Node
from pybuild.kernels.base.candidate import Candidate, Packed, RowAccess
from pybuild.kernels.base.wide_vectors import FEATURE, LANES, TAPS
from pybuild.kernels.base.window import Window
from pybuild.kernels.layers.weights import (
    as_bytes,
    in_blocks,
    kernels_of,
    known_bytes,
)
from pybuild.kernels.layers.zero_points import HALF, half_zero
from pybuild.kernels.mve.epilogue import ended_sums
from pybuild.kernels.wide.conv_code import kernel
from pybuild.kernels.wide.conv_layer import Layer
from pybuild.kernels.wide.epilogue import table
from pybuild.ops.fixed_point.chunks import chunks, filled
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
    known = known_bytes(node, graph)
    if FEATURE not in target.features or not known or window.groups > 1:
        return []
    kernels = kernels_of(node, graph)
    fits, zero = as_bytes(node, graph, kernels)
    if not fits:
        return []
    sums, epilogue = ended_sums(node, graph, kernels)
    # between start and end a sum is no further from the bias than with plain inputs:
    # of these 128 times the weights' sizes, which `known_sums` has checked
    starts = sums.bias - HALF * kernels.astype(np.int64).sum(1)
    layer = Layer(window, epilogue, sums.made.x_zero, zero)
    ends = Packed(
        "epilogue",
        table(epilogue, starts, _order(layer)),
        order=f"of each {LANES} output channels, {LANES} words of each: what its sum "
        f"begins with, then {epilogue.row}",
    )
    k, (images, bands) = kernel(layer), calls
    return [
        Candidate(
            func=k.finish(),
            args=tuple(k.values),
            outputs=rows[:1],
            inputs=rows[1:],
            constants=(pack(layer, kernels), ends),
            images=images,
            bands=bands,
            scratch=layer.scratch,
            cost=images * bands * window.out_width * window.taps,
        )
    ]


def _order(layer: Layer) -> Ints:
    """Output channels as they are computed; -1: a lane without."""
    channels = layer.window.out_channels
    if layer.spilled:
        return np.concatenate([np.arange(channels), np.full(LANES - channels, -1)])
    return in_blocks(channels, layer.together)


def pack(layer: Layer, kernels: Array) -> Packed:
    """Weights [O, taps] as vectors: of each block of channels, of each four taps of a
    run."""
    lie = f"of each {layer.blocks * LANES} output channels, of each {TAPS} taps: "
    return Packed.later("weights", lie + "channels", _arranged, layer, kernels)


def _arranged(layer: Layer, kernels: Array) -> Array:
    order, steps = _order(layer), layer.runs * layer.run_steps
    block, run = layer.blocks * LANES, layer.window.run

    def vectors(few: Ints) -> Array:
        taps = np.zeros((len(few), layer.runs, layer.run_steps * TAPS), np.int8)
        given = kernels[few[few >= 0]] + half_zero(layer.zero)
        taps[few >= 0, :, :run] = given.reshape(len(given), layer.runs, run)
        return taps.reshape(-1, block, steps, TAPS).transpose(0, 2, 1, 3)

    parts = map(vectors, chunks(order, steps * TAPS, block))
    return filled(np.empty(len(order) * steps * TAPS, np.int8), parts)
