"""int8 convolution and fully connected layers by one compact kernel, with pairs of
int16 (SMLAD): for `--optimise size`. The windows of two pixels are widened into
scratch, whatever their form, and four output channels are summed at a time. A leftover
pixel or channel is computed twice, so it needs no code of its own. The arithmetic is
dsp/conv.py's.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from pybuild.dtype import Array
from pybuild.ir.graph import Graph, Node
from pybuild.kernels.base.builder import have_room
from pybuild.kernels.base.candidate import Candidate, Packed, RowAccess
from pybuild.kernels.base.window import Window, is_row_by_row
from pybuild.kernels.compact.conv_code import BLOCK, Layer, kernel
from pybuild.kernels.compact.epilogue import columns, forms
from pybuild.kernels.dsp import conv as conv_dsp
from pybuild.kernels.layers import conv as conv_dsp_layer
from pybuild.kernels.layers.known_sums import affine_sums
from pybuild.kernels.layers.weights import constant, takes_pairs
from pybuild.targets.target import Target


def _pairs(layer: Layer) -> Array:
    """Return the first output channel of each pair, in order of computation."""
    outputs, step = layer.window.out_channels, layer.pair_step
    starts = [min(c, outputs - step - 2) for c in range(0, outputs, BLOCK)]
    return np.asarray([s + p for s in starts for p in (0, step)])


def pack(layer: Layer, kernels: Array, bias: Array) -> Packed:
    """Weights in reading order: for each two pairs of output channels, their weights
    [O, taps] for each pair of taps, and their epilogue numbers."""
    order = np.asarray(layer.order)
    lanes = np.where(order < 0, 0, kernels[:, np.maximum(order, 0)].astype(np.int64))
    first = _pairs(layer)
    both = 256 * lanes[first] + lanes[first + 1]
    words = (both[:, 1::2] << 16) + (both[:, 0::2] & 0xFFFF)
    ends = columns(layer.epilogue, bias, layer.signed)
    parts = (
        words.reshape(-1, 2, words.shape[1]).transpose(0, 2, 1),
        np.concatenate([ends[first], ends[first + 1]], axis=1),
    )
    rows = [part.reshape(len(first) // 2, -1) for part in parts]
    lie = "of each two pairs of output channels: pairs of taps, then their epilogue"
    made = np.concatenate(rows, axis=1).reshape(-1).astype(np.int32)
    return Packed("weights", made, order=lie)


def candidates(
    node: Node,
    graph: Graph,
    target: Target,
    window: Window,
    rows: tuple[RowAccess, RowAccess],
    calls: tuple[int, int],
) -> list[Candidate]:
    """Return the kernels of this file that suit a layer."""
    if not takes_pairs(node, graph, target):
        return []
    weights = constant(node, graph, 1)
    kernels = weights.reshape(len(weights), -1)
    if window.groups > 1 or len(kernels) < 2 or int(kernels.min(initial=0)) < -127:
        return []
    known = affine_sums(node, graph, kernels)
    if known is None:
        return []
    sums, epilogue = known
    found = []
    for signed in forms(epilogue):
        layer = Layer(window, epilogue, sums.made.x_zero, signed)
        if have_room(layer.arguments):
            found.append(_offer(layer, rows, pack(layer, kernels, sums.bias), calls))
    one = conv_dsp_layer.Layer(
        window, epilogue, sums.made.x_zero, pixels=1, direct=True
    )
    if calls[0] * calls[1] * window.out_width == 1 and one.may_be_direct:
        # a model of such layers has no use for pairs of pixels
        tables = (conv_dsp.pack(one, kernels), conv_dsp.table(one, sums.bias))
        found.append(replace(conv_dsp.offer(one, rows, tables, calls), small=True))
    return found


def _offer(
    layer: Layer,
    rows: tuple[RowAccess, RowAccess],
    weights: Packed,
    calls: tuple[int, int],
) -> Candidate:
    """The candidate of a layer; `calls`: images and bands."""
    k, w, (images, bands) = kernel(layer), layer.window, calls
    pixels, taps = images * bands * (w.out_width + w.out_width % 2), len(layer.order)
    return Candidate(
        func=k.finish(in_place=True),
        args=tuple(k.values),
        outputs=rows[:1],
        inputs=rows[1:],
        constants=(weights,),
        images=images,
        bands=bands,
        scratch=layer.scratch,
        # a pair of windows is widened before its results are written
        in_place=(0,) if is_row_by_row(w, rows, calls) else (),
        small=True,
        cost=80 * images * bands + pixels * (w.out_channels * (taps + 10) + 4 * taps),
    )
