"""int8 depthwise convolution on vectors of 16 bytes (VST4, VMLADAV).

The rows under the window are woven into words, one for each pixel and channel; four
words side by side, of one channel, are what a window or two are summed from.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from pybuild.dtype import Array, DType
from pybuild.ir.graph import Graph, Node
from pybuild.kernels.base.candidate import Candidate, Packed, RowAccess
from pybuild.kernels.base.once import Written
from pybuild.kernels.base.window import Window
from pybuild.kernels.layers.weights import (
    constant,
    in_blocks,
    known_bytes,
    known_int9,
)
from pybuild.kernels.mve.depthwise_code import kernel
from pybuild.kernels.mve.depthwise_layer import SIDE, Layer
from pybuild.kernels.mve.depthwise_pieces import kernel_of_pieces, pieces_of
from pybuild.kernels.mve.epilogue import ended_sums, table
from pybuild.targets.target import Target

MOST = 8  # vectors of a window


def pack(layer: Layer, weights: Array) -> Packed:
    """Weights as `_packed` lays them; of nine bits those that eight can hold, then what
    these lack."""
    if not layer.nine:
        return _packed(layer, weights)
    whole = weights.astype(np.int16)
    first = np.clip(whole, -128, 127)
    parts = [_packed(layer, one.astype(np.int8)) for one in (first, whole - first)]
    both = np.concatenate([part.array.reshape(-1) for part in parts])
    return replace(
        parts[0], values=both, order=f"{parts[0].order}; then what they lack"
    )


def _in_two(weights: Array) -> bool:
    """True if each weight is a sum of two int8."""
    least, most = 2 * DType.INT8.low, 2 * DType.INT8.high
    return bool(weights.min(initial=0) >= least and weights.max(initial=0) <= most)


def _packed(layer: Layer, weights: Array) -> Packed:
    """Weights [KH, KW, C] as vectors of four columns, each of four rows, and before
    each channel's the columns that are 0 for all windows but the first; wide windows
    as words in the order of `Layer.words`, channel after channel."""
    w = layer.window
    if layer.halves:
        return _halves(layer, weights)
    if layer.wide:
        words = np.zeros((w.channels, len(layer.words), SIDE), np.int8)
        seen = set[tuple[int, int]]()
        for i, (plane, column) in enumerate(layer.words):
            if (plane, column) in seen:
                continue  # what fills a vector up, or is in two
            seen.add((plane, column))
            rows = weights[SIDE * plane : SIDE * (plane + 1), column]
            words[:, i, : len(rows)] = rows.T
        order = "of each channel its taps: words of four rows, column by column"
        return Packed("weights", words, order=order)
    made = np.zeros((w.channels * SIDE + layer.lead, SIDE), np.int8)
    for kx in range(w.kernel_w):
        made[layer.lead + kx :: SIDE, : w.kernel_h][: w.channels] = weights[:, kx].T
    order = "of each channel four words, a column of four rows each"
    return Packed("weights", made, order=order)


def _halves(layer: Layer, weights: Array) -> Packed:
    """The same as halves of words in the order of `Layer.words`: of two rows each, of
    the last row of two columns each."""
    w, lanes = layer.window, layer.lanes
    count = lanes * layer.steps
    made = np.zeros((w.channels * count + layer.lead, 2), np.int8)
    seen = set[tuple[int, int]]()
    for i, (plane, x) in enumerate(layer.words[: count - layer.lead]):
        if (plane, x) in seen:
            continue  # what fills a vector up
        seen.add((plane, x))
        two = weights[2 * plane : 2 * plane + 2, x]
        if plane == layer.planes - 1:
            two = weights[-1, x : x + 2]
        made[layer.lead + i :: count, : len(two)][: w.channels] = two.T
    order = "of each channel its taps: halves of words, of two rows; of the last row"
    return Packed("weights", made, order=f"{order} of two columns")


def candidates(
    node: Node,
    graph: Graph,
    target: Target,
    window: Window,
    rows: tuple[RowAccess, RowAccess],
    calls: tuple[int, int],
) -> list[Candidate]:
    """The kernels of this file that suit a layer: none, or that of rows and those of
    pieces of them, which have less scratch."""
    w = window
    if "mve" not in target.features or not known_bytes(node, graph):
        return []
    if w.out_channels != w.channels or w.channels < 4:
        return []
    if w.width * w.channels < 16:
        return []
    weights = constant(node, graph, 1)
    sums, epilogue = ended_sums(node, graph, weights.reshape(-1, w.channels).T)
    nine = known_int9(node, graph)
    if nine and not _in_two(weights):
        return []
    layer = Layer(window, epilogue, sums.made.x_zero, nine=nine)
    if layer.steps > MOST:
        return []
    made = [(kernel(layer), layer)]
    made += [(kernel_of_pieces(one), one.layer) for one in pieces_of(layer)]
    found = []
    for k, one in made:
        blocks = in_blocks(w.channels, 4) if one.turned else np.arange(w.channels)
        ends = table(epilogue, sums.bias, blocks, turned=one.turned)
        found.append(_offer(k, one, w, (pack(one, weights), ends), rows, calls))
    return found


def _offer(
    k: Written,
    layer: Layer,
    row: Window,
    tables: tuple[Packed, ...],
    rows: tuple[RowAccess, RowAccess],
    calls: tuple[int, int],
) -> Candidate:
    """The candidate of a layer, of a whole row or of pieces of it."""
    images, bands = calls
    pieces = -(-row.out_width // layer.window.out_width)
    woven = layer.unit * layer.planes * layer.plane // 8
    summed = layer.window.out_width * row.channels * (3 * layer.steps + 4)
    return Candidate(
        func=k.finish(),
        args=tuple(k.values),
        outputs=rows[:1],
        inputs=rows[1:],
        constants=tables,
        images=images,
        bands=bands,
        scratch=layer.scratch,
        cost=images * bands * pieces * (woven + summed),
        spare=pieces > 1,
    )
